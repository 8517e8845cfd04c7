"""The trainers of benchmarks/training take a step, on a tiny network and text."""

from __future__ import annotations

import math
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY, small_config

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.weights import expected_shapes  # noqa: E402
from elmokit.engine import native  # noqa: E402
from elmokit.train import SIZES, CorpusOptions, build_corpus  # noqa: E402


class Enough(Exception):
    """Ends a training loop, which has no end of its own."""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat .\na dog lay by the door .\n" * 200)
    build_corpus([str(text)], tmp_path / "corpus", CorpusOptions(form="tokenized", held_out=0))
    return tmp_path / "corpus"


@pytest.mark.parametrize(
    ("script", "name", "argument"),
    [
        ("elmokit_trainer", "ElmokitTrainer", "recommended"),
        ("elmokit_trainer", "ElmokitTrainer", "bilm-tf"),
        ("pytorch_trainer", "PyTorchTrainer", ""),
    ],
)
def test_a_trainer_counts_its_words(
    script: str, name: str, argument: str, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "training"))
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "peers"))
    monkeypatch.setattr(sys, "argv", [script, argument])
    monkeypatch.setitem(SIZES, "tiny", small_config())
    module = import_module(script)
    if script == "pytorch_trainer":
        for constant, value in (("LANES", 4), ("WINDOW", 5), ("NEGATIVES", 6)):
            monkeypatch.setattr(module, constant, value)
    counts: list[int] = []

    def on_step(words: int) -> None:
        counts.append(words)
        if len(counts) == 3:
            raise Enough

    threads = torch.get_num_threads()
    try:
        with pytest.raises(Enough):
            getattr(module, name)().train(corpus, "tiny", 1, on_step)
    finally:
        torch.set_num_threads(threads)
        for imported in (script, "trainer_worker", "worker"):
            sys.modules.pop(imported, None)
    assert counts[0] == 0 and all(words > 0 for words in counts[1:])


def test_phases_count_each_weight_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward, for the gradient of its inputs, and for that of the weight."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "training"))
    phases = import_module("phases")
    config = SIZES["tiny"]
    counts = phases.products_per_word(config, negatives=100, distinct=0.5)
    weights = sum(
        math.prod(shape)
        for name, shape in expected_shapes(config).items()
        if name.startswith(("forward.", "backward.")) and name.endswith(".weight")
    )
    characters = sum(
        math.prod(shape)
        for name, shape in expected_shapes(config).items()
        if name.startswith(("characters.highway", "characters.projection")) and len(shape) == 2
    )
    assert counts == {
        "characters": 1.5 * characters,
        "LSTM": 3 * weights,
        "softmax": 3 * 2 * 100 * config.lstm.width,
    }


@pytest.mark.skipif(not native.kernel_available(), reason=native.kernel_error())
def test_products_multiplies_the_shapes_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "training"))
    products = import_module("products")
    for name, value in (("WORDS", 7), ("DISTINCT", 5), ("BLOCK_ROWS", 3), ("NEGATIVES", 6)):
        monkeypatch.setattr(products, name, value)
    monkeypatch.setattr(products, "MIN_SECONDS", 0)
    shapes = products.products_of(small_config())
    assert len({shape.name for shape in shapes}) == len(shapes) == 10
    for shape in shapes:
        assert all(speed > 0 for speed in products.measure(shape, rounds=1).values())
