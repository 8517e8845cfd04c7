"""One step: the gradient of the whole model, whoever computes it; the clip; the threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.toy import SENTENCES, STREAM, TINY, toy_corpus  # noqa: E402
from torch.nn import functional  # noqa: E402

from elmokit.bilm.config import BiLMConfig  # noqa: E402
from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.bilm.weights import SOFTMAX, expected_shapes  # noqa: E402
from elmokit.engine import native  # noqa: E402
from elmokit.errors import TrainingError  # noqa: E402
from elmokit.nn import compiled  # noqa: E402
from elmokit.nn.reading import Reading, read_both  # noqa: E402
from elmokit.nn.softmax import Candidates, Everything, Poisson  # noqa: E402
from elmokit.nn.state import TensorState  # noqa: E402
from elmokit.text.characters import Bytes  # noqa: E402
from elmokit.train import learner as learning  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.distributed import Alone  # noqa: E402
from elmokit.train.initialization import initial_softmax, initial_weights  # noqa: E402
from elmokit.train.learner import Learner, Lesson  # noqa: E402
from elmokit.train.pretraining import target_counts  # noqa: E402
from elmokit.train.recipe import Recipe  # noqa: E402
from elmokit.train.stream import Place, distinct, reader_of  # noqa: E402

needs_kernel = pytest.mark.skipif(not native.available(), reason=native.why_not())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return toy_corpus(tmp_path_factory.mktemp("toy"))


def weights(corpus: Corpus, config: BiLMConfig = TINY) -> dict[str, Any]:
    """Large ones, so that every part matters and clips bite."""
    source = np.random.default_rng(3)
    return dict(random_bilm(config, 2).weights) | initial_softmax(
        config, target_counts(corpus), source
    )


def learner(corpus: Corpus, recipe: Recipe, **more: Any) -> Learner:
    start = weights(corpus)
    return Learner(TINY, start, recipe, Alone(), torch.device("cpu"), **more)


def readings(corpus: Corpus, recipe: Recipe, place: Place = Place()) -> list[Reading]:  # noqa: B008
    reader = reader_of(corpus, recipe)
    found = []
    for part in reader.shards(place):
        words = reader.words(place, part)
        found.append(Reading(*distinct(words, corpus, Bytes(12), 2), words.alive))
    return found


def lessons(corpus: Corpus, recipe: Recipe, start: Callable[[int], TensorState]) -> list[Lesson]:
    return [
        Lesson(reading, start(int(reading.alive[0])), (recipe.seed, 0, k))
        for k, reading in enumerate(readings(corpus, recipe))
    ]


def words_in(some: list[Lesson]) -> int:
    return sum(lesson.reading.words for lesson in some)


def somewhere(rows: int) -> TensorState:
    """A state in the middle of a text."""
    source, zeros = torch.Generator().manual_seed(rows), TensorState.zeros(TINY, rows)
    return TensorState(*(torch.randn(part.shape, generator=source) for part in zeros))


@needs_kernel
@pytest.mark.parametrize("recipe", [SENTENCES, STREAM.replace(dropout=0)], ids=lambda r: r.text)
def test_gradient_of_the_whole_model(recipe: Recipe, corpus: Corpus) -> None:
    """Two shards in threads and compiled kernels, and one graph of plain PyTorch: the same."""
    recipe = recipe.replace(clip=1e9, loss_scale=3.0)
    ours = learner(corpus, recipe)
    both = lessons(corpus, recipe, somewhere)
    everything = Everything(len(corpus.vocabulary)).draw()
    taught = ours.learn(both, everything, words_in(both), 1e-3)
    ours.close()

    leaves = {n: torch.tensor(a, requires_grad=True) for n, a in weights(corpus).items()}
    total = torch.zeros(())
    with compiled.plain():
        for lesson in both:
            said, after = read_both(TINY, leaves, lesson.reading, lesson.start)
            logits = said @ leaves[SOFTMAX[0]].t() + leaves[SOFTMAX[1]]
            targets = torch.from_numpy(lesson.reading.targets_2N.reshape(-1))
            total = total + functional.cross_entropy(logits, targets, reduction="sum")
            left = taught.after.pop(0)
            assert torch.allclose(left.hidden, after.hidden, atol=1e-5)
            assert torch.allclose(left.cell, after.cell, atol=1e-5)
    mean = total / (2 * words_in(both))
    assert taught.loss == pytest.approx(float(mean.detach()), rel=1e-5)
    plain = torch.autograd.grad(3.0 * mean, list(leaves.values()))
    found = dict(zip(leaves, plain, strict=True))
    names = *expected_shapes(TINY), *SOFTMAX
    flat = torch.split(ours._gradient, [found[name].numel() for name in names])
    for name, gradient in zip(names, flat, strict=True):
        scale = float(found[name].abs().max())
        assert scale > 1e-6, f"{name} matters"
        assert torch.allclose(gradient.view_as(found[name]), found[name], atol=2e-5 * scale), name
    assert taught.norm == pytest.approx(float(torch.cat([g.flatten() for g in plain]).norm()))


def test_one_shard_or_many(corpus: Corpus) -> None:
    """How a batch is divided shows in the last digits only, and dropout aside."""
    steps = []
    for shards in (1, 2, 5):
        recipe = SENTENCES.replace(shards=shards, clip=1e9)
        ours = learner(corpus, recipe)
        own = lessons(corpus, recipe, ours.zero_state)
        taught = ours.learn(own, Everything(len(corpus.vocabulary)).draw(), words_in(own), 1e-3)
        ours.close()
        steps.append((taught.loss, ours._gradient.clone()))
    for loss, gradient in steps[1:]:
        assert loss == pytest.approx(steps[0][0], rel=1e-6)
        assert torch.allclose(gradient, steps[0][1], atol=1e-6)


@pytest.mark.parametrize("recipe", [SENTENCES, STREAM], ids=lambda r: r.text)
def test_threads_do_not_matter(
    recipe: Recipe, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for threads in (1, 2, 4):
        pool = partial(ThreadPoolExecutor, threads)
        monkeypatch.setattr(learning, "ThreadPoolExecutor", lambda _, *how, pool=pool: pool(*how))
        ours = learner(corpus, recipe.replace(shards=4))
        sampler = Poisson(target_counts(corpus), 8)
        for step in range(4):
            own = lessons(corpus, recipe.replace(shards=4), ours.zero_state)
            drawn = sampler.draw(np.random.default_rng(step))
            ours.learn(own, drawn, words_in(own), 1e-2)
        ours.close()
        results.append(ours.flat)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    assert not torch.equal(results[0], learner(corpus, recipe).flat)


def test_clip(corpus: Corpus) -> None:
    for clip, kept in ((1e9, None), (0.01, 0.01)):
        recipe = SENTENCES.replace(clip=clip)
        ours = learner(corpus, recipe)
        own = lessons(corpus, recipe, ours.zero_state)
        taught = ours.learn(own, Everything(len(corpus.vocabulary)).draw(), words_in(own), 1e-3)
        ours.close()
        assert taught.norm > 0.02
        assert float(ours._gradient.norm()) == pytest.approx(kept or taught.norm, rel=1e-3)


def test_only_the_softmax_learns(corpus: Corpus) -> None:
    ours = learner(corpus, SENTENCES, only_softmax=True)
    own = lessons(corpus, SENTENCES, ours.zero_state)
    ours.learn(own, Everything(len(corpus.vocabulary)).draw(), words_in(own), 1e-3)
    ours.close()
    before, after = weights(corpus), ours.weights()
    for name in expected_shapes(TINY):
        assert (before[name] == after[name]).all(), name
    for name in SOFTMAX:
        assert (before[name] != after[name]).all(), name


def test_only_drawn_rows_have_gradients(corpus: Corpus) -> None:
    ours = learner(corpus, SENTENCES)
    own = lessons(corpus, SENTENCES, ours.zero_state)
    drawn = Candidates(torch.tensor([0, 1, 5]), torch.zeros(3), None)
    for lesson in own:
        lesson.reading.targets_2N[:] = 7
    ours.learn(own, drawn, words_in(own), 1e-3)
    ours.close()
    changed = (ours.weights()[SOFTMAX[0]] != weights(corpus)[SOFTMAX[0]]).any(1)
    assert np.flatnonzero(changed).tolist() == [0, 1, 5, 7]


def test_dropout_is_drawn_from_the_seed(corpus: Corpus) -> None:
    recipe = SENTENCES.replace(dropout=0.5)
    losses = []
    for step in (0, 0, 1):
        ours = learner(corpus, recipe)
        own = [
            Lesson(lesson.reading, lesson.start, (0, step, k))
            for k, lesson in enumerate(lessons(corpus, recipe, ours.zero_state))
        ]
        everything = Everything(len(corpus.vocabulary)).draw()
        losses.append(ours.learn(own, everything, words_in(own), 1e-3).loss)
        ours.close()
    assert losses[0] == losses[1] != losses[2]
    kept = learner(corpus, recipe)._dropout((1, 2, 3))(torch.ones(10_000))
    assert sorted(kept.unique().tolist()) == [0, 2]
    assert float(kept.mean()) == pytest.approx(1, abs=0.05)


def test_diverged(corpus: Corpus) -> None:
    ours = learner(corpus, SENTENCES)
    own = lessons(corpus, SENTENCES, ours.zero_state)
    ours.flat.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"diverged.*rate below 0\.005"):
        ours.learn(own, Everything(len(corpus.vocabulary)).draw(), words_in(own), 1e-3)
    ours.close()


def test_it_begins_with_how_often_words_occur(corpus: Corpus, tmp_path: Path) -> None:
    counts = target_counts(corpus)
    assert counts[:3].tolist() == [100, 100, 0]
    assert counts.sum() == corpus.train.tokens + corpus.train.sentences
    start = initial_weights(TINY, counts, seed=0)
    assert {name: start[name].shape for name in expected_shapes(TINY)} == expected_shapes(TINY)
    bias = start[SOFTMAX[1]].astype(np.float64)
    assert np.exp(bias)[3:] == pytest.approx(counts[3:] / counts.sum(), rel=1e-5)
    assert all(np.isfinite(array).all() for array in start.values())
    again, other = initial_weights(TINY, counts, seed=0), initial_weights(TINY, counts, seed=1)
    name = "forward.0.input.weight"
    assert (start[name] == again[name]).all()
    assert (start[name] != other[name]).any()
