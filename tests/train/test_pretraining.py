"""The parts of a run are put together right, or refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.toy import SENTENCES, STREAM, TINY, toy_corpus  # noqa: E402

from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import FormatError, InputError, TrainingError  # noqa: E402
from elmokit.nn import kernel  # noqa: E402
from elmokit.nn.samplers import FullSampler, LogUniformSampler, PoissonSampler  # noqa: E402
from elmokit.train.budget import Budget  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.pretraining import make_sampler, pretrain, target_counts  # noqa: E402

BUDGET = Budget(tokens=300)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return toy_corpus(tmp_path_factory.mktemp("toy"), size=9)


def test_counts_of_what_is_predicted(corpus: Corpus) -> None:
    counts = target_counts(corpus)
    assert len(counts) == 9
    assert counts[:2].tolist() == [100, 100]
    assert counts[2] == round(corpus.metadata["train"]["oov_rate"] * corpus.train.tokens) > 0
    assert counts[2:].sum() == corpus.train.tokens


@pytest.mark.parametrize(
    ("sampler", "negatives", "expected"),
    [
        ("poisson", 10, PoissonSampler),
        ("log-uniform", 10, LogUniformSampler),
        ("full", 10, FullSampler),
        ("poisson", 30, FullSampler),
        ("log-uniform", 8192, FullSampler),
    ],
)
def test_samplers(sampler: str, negatives: int, expected: type) -> None:
    recipe = SENTENCES.replace(sampler=sampler, negatives=negatives)
    found = make_sampler(recipe, np.full(30, 5))
    assert type(found) is expected
    drawn = found.draw(np.random.default_rng(0))
    assert len(drawn.words_S) == 30 if expected is FullSampler else 0 < len(drawn.words_S) < 30


def test_seeds(corpus: Corpus, tmp_path: Path) -> None:
    def weights(name: str, seed: int) -> bytes:
        out = tmp_path / name
        pretrain(corpus.path, out, config=TINY, recipe=SENTENCES.replace(seed=seed), budget=BUDGET)
        return (out / "model.safetensors").read_bytes()

    assert weights("a", 0) == weights("b", 0) != weights("c", 1)


def test_without_the_kernel_nearly_the_same(corpus: Corpus, tmp_path: Path) -> None:
    how = {"config": TINY, "recipe": STREAM, "budget": BUDGET}
    fast = pretrain(corpus.path, tmp_path / "fast", **how)  # type: ignore[arg-type]
    with kernel.without_kernel():
        plain = pretrain(corpus.path, tmp_path / "plain", **how)  # type: ignore[arg-type]
    for name, array in fast.bilm.weights.items():
        assert np.allclose(array, plain.bilm.weights[name], atol=1e-4), name
    loaded = Elmo.load(tmp_path / "fast")
    assert list(loaded.bilm.vocabulary or ()) == list(corpus.vocabulary)
    assert (loaded.embed("ant bee") == fast.embed("ant bee")).all()


def test_characters_have_to_be_bytes(corpus: Corpus, tmp_path: Path) -> None:
    cnn = replace(TINY.char_cnn, scheme="code_points")
    with pytest.raises(InputError, match="reads characters as bytes"):
        pretrain(
            corpus.path,
            tmp_path / "model",
            config=replace(TINY, char_cnn=cnn),
            recipe=SENTENCES,
            budget=BUDGET,
        )


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="elmo corpus"):
        pretrain(tmp_path, tmp_path / "out", config=TINY, recipe=SENTENCES, budget=BUDGET)
    assert not (tmp_path / "out").exists()


def test_shards_and_processes(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainingError, match="3 shards cannot be divided among 2 processes"):
        recipe = SENTENCES.replace(shards=3)
        pretrain(corpus.path, tmp_path / "out", config=TINY, recipe=recipe, budget=BUDGET)
    assert not (tmp_path / "out").exists()


def test_a_corpus_too_small_for_a_stream(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"300 lanes of windows of 6 words need at least 1,801"):
        pretrain(
            corpus.path,
            tmp_path / "out",
            config=TINY,
            recipe=STREAM.replace(lanes=300),
            budget=BUDGET,
        )
