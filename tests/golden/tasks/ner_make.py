"""Make ner_seqeval.json: entity scores computed by seqeval, for valid and invalid tags.

    pip install seqeval && python tests/golden/tasks/ner_make.py

The file is a list of cases: `gold` and `found` tags of some sentences, and the `scores` in percent.
"""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path

from seqeval.metrics import classification_report

draw = random.Random(2018)
ALPHABETS = {
    "IOB": ["O", "O", "O", *(f"{p}-{t}" for p in "BI" for t in ("PER", "LOC", "ORG"))],
    "BIOES": ["O", "O", "O", *(f"{p}-{t}" for p in "BIES" for t in ("PER", "LOC"))],
}


def case(alphabet: list[str]) -> dict[str, object]:
    """Return sentences of random tags, predictions that mostly agree, and their scores."""
    gold = [[draw.choice(alphabet) for _ in range(draw.randint(1, 12))] for _ in range(3)]
    found = [[t if draw.random() < 0.7 else draw.choice(alphabet) for t in tags] for tags in gold]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = classification_report(gold, found, output_dict=True)
    scores = {}
    for name, row in report.items():
        if name in ("macro avg", "weighted avg"):
            continue
        suffix = "" if name == "micro avg" else f" {name}"
        for ours, theirs in (("f1", "f1-score"), ("precision", "precision"), ("recall", "recall")):
            scores[ours + suffix] = 100 * float(row[theirs])
    return {"gold": gold, "found": found, "scores": scores}


cases = [case(alphabet) for alphabet in ALPHABETS.values() for _ in range(12)]
lines = ",\n".join(json.dumps(one) for one in cases)
Path(__file__).with_name("ner_seqeval.json").write_text(f"[\n{lines}\n]\n")
