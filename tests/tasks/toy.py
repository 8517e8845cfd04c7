"""A task that a small network learns in a second: names after a title, as CoNLL columns."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import formats  # noqa: E402
from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.tasks.settings import Settings  # noqa: E402
from elmokit.tasks.static import StaticVectors  # noqa: E402
from elmokit.tasks.word_embedding import EmbeddedBatch, WordEmbedding  # noqa: E402

NAMES = "Ada Alan Grace Barbara Donald Edsger".split()
PLACES = "London Paris Vienna Delft".split()
PLAIN = "the a saw met went old train to in".split()
SIZES = {"hidden": 8, "filters": 6, "characters": 5}


def sentences(count: int, seed: int) -> list[list[tuple[str, str]]]:
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        words = [(draw.choice(PLAIN), "O") for _ in range(draw.randint(1, 5))]
        words += [("Dr.", "O"), (draw.choice(NAMES), "I-PER")]
        words += [("in", "O"), (draw.choice(PLACES), "I-LOC"), (".", "O")]
        found.append(words)
    return found


def write(path: Path, count: int, seed: int) -> Path:
    blocks = ("".join(f"{w} X {t}\n" for w, t in words) for words in sentences(count, seed))
    path.write_text("\n".join(blocks), encoding="utf-8")
    return path


def files(directory: Path) -> tuple[Path, Path]:
    """Training and development data."""
    return write(directory / "train.conll", 60, 1), write(directory / "dev.conll", 12, 2)


def static() -> StaticVectors:
    words = [word.lower() for word in (*NAMES, *PLACES, *PLAIN)]
    vectors = np.random.default_rng(0).normal(size=(len(words), 7))
    return StaticVectors.from_words(words, vectors, "toy")


def vectors_file(directory: Path) -> Path:
    path = directory / "vectors.txt"
    table = np.random.default_rng(0).normal(size=(len(PLAIN), 7)).round(3)
    lines = (" ".join([w, *map(str, row)]) for w, row in zip(PLAIN, table, strict=True))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def model(directory: Path) -> Path:
    """A biLM of random numbers, on disk."""
    path = directory / "bilm"
    if not path.exists():
        formats.write(random_bilm(small_config()), path, "native")
    return path


def settings(**changes: object) -> Settings:
    given = {"task": "ner", "elmo": "none", "epochs": 2, "rate": 0.01, "batch": 4, "sizes": SIZES}
    return Settings(**(given | changes))  # type: ignore[arg-type]


def embedding_of(vocabulary: list[str], dropout: float = 0.0) -> WordEmbedding:
    """Words with random vectors of 6 numbers."""
    vectors = np.random.default_rng(1).standard_normal((len(vocabulary), 6))
    return WordEmbedding(StaticVectors.from_words(vocabulary, vectors, "test"), dropout=dropout)


class WithOutput(torch.nn.Module):
    """Words with vectors for the output too, as ELMo there would give them."""

    dim, output_dim = 6, 4

    def __init__(self, vocabulary: list[str]) -> None:
        super().__init__()
        self.inner = embedding_of(vocabulary)
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, texts: list[tuple[str, ...]]) -> EmbeddedBatch:
        embedded: EmbeddedBatch = self.inner(texts)
        return embedded._replace(output_BTD=self.scale * embedded.x_BTE[..., :4])
