"""Named entities with 100 sentences: what ELMo adds when labels are few.

Two recognizers learn from the same 100 sentences, one without and one with ELMo's vectors, and
are tested on names that neither has seen. The sentences are made here; `elmo task train ner
--train FILE …` reads CoNLL files of yours.

    pip install 'elmokit[train]'
    python examples/ner_100_sentences.py
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from elmokit import tasks

PEOPLE = "Anna Peter Maria John Susan David Laura Thomas Helen Martin Julia Robert Emma Paul"
SURNAMES = "Smith Miller Brown Wilson Taylor Moore Clark Walker Young King Baker Carter Green Hall"
PLACES = "London Paris Berlin Madrid Vienna Dublin Oslo Prague Rome Lisbon Boston Chicago Sydney"
FIRMS = "Siemens Toyota Nokia Boeing Samsung Nestle Unilever Philips Ericsson Airbus Hitachi Bayer"
TEMPLATES = [
    "{PER} lives in {LOC} .",
    "{PER} works for {ORG} in {LOC} .",
    "The company {ORG} opened an office in {LOC} .",
    "Yesterday {PER} met {PER} near {LOC} .",
    "{ORG} has sold its factory to {ORG} .",
    "Shares of {ORG} fell by three percent .",
    "We flew from {LOC} to {LOC} on Monday .",
    "A spokesman of {ORG} said that {PER} had left .",
    "{LOC} is a beautiful city in spring .",
    "The Monday meeting was short , and the coffee was cold .",
]


def make(count: int, seed: int, half: int) -> str:
    """Return sentences in CoNLL's columns; `half` decides which half of the names they have."""
    rng = random.Random(seed)

    def pick(names: str) -> str:
        return rng.choice(names.split()[half::2])

    def name(kind: str) -> list[str]:
        if kind == "PER":
            return [pick(PEOPLE), pick(SURNAMES)][: rng.choice([1, 2])]
        return [pick(PLACES if kind == "LOC" else FIRMS)]

    lines = []
    for _ in range(count):
        for token in rng.choice(TEMPLATES).split():
            if token.startswith("{"):
                kind = token[1:4]
                words = name(kind)
                lines += [f"{word} {'I' if i else 'B'}-{kind}" for i, word in enumerate(words)]
            else:
                lines.append(f"{token} O")
        lines.append("")
    return "\n".join(lines) + "\n"


with tempfile.TemporaryDirectory() as folder:
    sets = {}
    for name, count, seed, half in [("train", 100, 1, 0), ("dev", 30, 2, 0), ("test", 100, 3, 1)]:
        path = Path(folder) / f"{name}.conll"
        path.write_text(make(count, seed, half), encoding="utf-8")
        sets[name] = tasks.read("ner", path)
    for label, elmo in [("without ELMo", "none"), ("with ELMo", "builtin")]:
        settings = tasks.Settings(task="ner", elmo=elmo, vectors="none", epochs=2)
        trained = tasks.fit(
            settings, sets["train"], sets["dev"], Path(folder) / elmo, progress=False
        )
        print(f"{label:13} F1 on unseen names: {trained.evaluate(sets['test'])['f1']:.0f}")
    answer = trained.predict("Ada Lovelace moved from Toulouse to Bilbao .")
    print([(entity["type"], entity["text"]) for entity in answer["entities"]])
