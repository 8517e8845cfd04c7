"""Make qa.json: answers, and the scores that the official SQuAD script gives them.

    python tests/golden/tasks/qa_make.py evaluate-v1.1.py

The argument is the official script of SQuAD 1.1, which AllenNLP 0.9 also contains as
allennlp/tools/squad_eval.py.

Some cases are written by hand for the odd rules; the others are made at random from few words, so
that overlaps, repetitions and ties occur. Does not use elmokit, on purpose.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path

OUT = Path(__file__).with_name("qa.json")

HAND_MADE: list[tuple[str | None, list[str]]] = [
    ("Denver Broncos", ["Denver Broncos", "The Denver Broncos"]),
    ("the Denver Broncos.", ["DENVER  BRONCOS"]),
    ("Broncos", ["Denver Broncos", "Carolina Panthers"]),
    ("Santa Clara, California", ["Levi's Stadium", "Santa Clara"]),
    ("", ["Denver"]),
    ("", [""]),
    ("Denver", ["", "Denver"]),
    ("the", ["a"]),
    ("the", ["an the a", "x"]),
    ("The", ["theatre"]),
    ("a-b", ["ab", "a b"]),
    ("a-b", ["b"]),
    ("the-end", ["end"]),
    ("«Denver»", ["Denver"]),
    ("“Denver”", ['"Denver"']),
    ("Denver’s", ["Denver's", "Denver s"]),
    ("1962–66", ["1962-66", "1962–66"]),
    ("İstanbul", ["i̇stanbul", "istanbul"]),
    ("Straße", ["STRASSE", "STRAßE"]),
    ("a\u00a0b\u2003c\n", ["b c"]),
    ("new new york", ["new york", "new york new"]),
    ("york new", ["new york"]),
    ("$5.50", ["550", "5.50"]),
    ("...", ["!"]),
    ("éa the", ["éa"]),
    ("a_the_b", ["atheb"]),
    (None, ["unanswered"]),
    ("x" * 300, ["y", "x" * 300]),
]
WORDS = ["the", "A", "an", "New", "new", "York,", "york", "of", "1990", "(U.S.)", "—", "d'Or"]


def cases() -> list[dict[str, object]]:
    """Return all cases: those written by hand, then the random ones."""
    chance = random.Random(6)
    pairs = list(HAND_MADE)
    for _ in range(300):
        answers = [
            " ".join(chance.choices(WORDS, k=chance.randint(0, 5)))
            for _ in range(chance.randint(2, 5))
        ]
        pairs.append((answers[0] if chance.random() < 0.95 else None, answers[1:]))
    return [{"answer": answer, "golds": golds} for answer, golds in pairs]


def main() -> None:
    """Score each case alone, and all cases together."""
    spec = importlib.util.spec_from_file_location("official", sys.argv[1])
    if spec is None or spec.loader is None:
        raise SystemExit(f"{sys.argv[1]} is not a Python file")
    official = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(official)

    def scores(chosen: list[dict[str, object]]) -> list[float]:
        questions = [
            {"id": str(k), "answers": [{"text": gold} for gold in case["golds"]]}
            for k, case in enumerate(chosen)
        ]
        answers = {str(k): c["answer"] for k, c in enumerate(chosen) if c["answer"] is not None}
        result = official.evaluate([{"paragraphs": [{"qas": questions}]}], answers)
        return [result["exact_match"], result["f1"]]

    all_cases = cases()
    lines = [json.dumps({**case, "scores": scores([case])}) for case in all_cases]
    body = ",\n".join(lines)
    text = f'{{"all": {json.dumps(scores(all_cases))},\n"cases": [\n{body}\n]}}\n'
    OUT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
