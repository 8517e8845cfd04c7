"""Find the uses of a word that mean the same.

An index holds the vector of every word of a corpus. A question is a word in a sentence; the
answer is the uses in the corpus that are most like it. The corpus here is 64 sentences;
`Index.from_files` takes text files of any size. Needs nothing but elmokit:

    python examples/find_uses.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from elmokit import Elmo
from elmokit.probe import Index, embed_word

DATA = Path(__file__).parent / "data"


def read_sentences(name: str) -> list[str]:
    """Return the second column of a table of senses and sentences."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[1] for line in lines if "\t" in line]


elmo = Elmo.load()
with tempfile.TemporaryDirectory() as folder:
    corpus = read_sentences("left.tsv") + read_sentences("bank.tsv")
    index = Index.build(elmo, corpus, Path(folder) / "uses.index")
    for question in ["They left the party early .", "She writes with her left hand ."]:
        use = embed_word(elmo, "left", question)
        print(question)
        for neighbor in index.search(use.vector, 4, word="left"):
            print(f"    {neighbor.similarity:.2f}  {' '.join(neighbor.words)}")
