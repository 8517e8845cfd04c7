"""One step: the gradient of the whole model, whoever computes it; the clip; the threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from elmokit.nn import kernel  # noqa: E402
from elmokit.nn.language_model import LMBatch, run_language_model  # noqa: E402
from elmokit.nn.samplers import Candidates, FullSampler, PoissonSampler  # noqa: E402
from elmokit.nn.state import TensorState  # noqa: E402
from elmokit.text.characters import ByteEncoder  # noqa: E402
from elmokit.threads import ThreadPool  # noqa: E402
from elmokit.train import trainer as trainer_module  # noqa: E402
from elmokit.train.batches import BatchPosition, encode_distinct_words, make_batch_reader  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.distributed import SingleProcess  # noqa: E402
from elmokit.train.initialization import initial_softmax  # noqa: E402
from elmokit.train.pretraining import target_counts  # noqa: E402
from elmokit.train.recipe import Recipe  # noqa: E402
from elmokit.train.trainer import ShardBatch, Trainer  # noqa: E402

needs_kernel = pytest.mark.skipif(not native.kernel_available(), reason=native.kernel_error())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return toy_corpus(tmp_path_factory.mktemp("toy"))


def weights(corpus: Corpus, config: BiLMConfig = TINY) -> dict[str, Any]:
    """Large ones, so that every part matters and clips bite."""
    source = np.random.default_rng(3)
    return dict(random_bilm(config, 2).weights) | initial_softmax(
        config, target_counts(corpus), source
    )


def make_trainer(corpus: Corpus, recipe: Recipe, **more: Any) -> Trainer:
    start = weights(corpus)
    return Trainer(TINY, start, recipe, SingleProcess(), torch.device("cpu"), **more)


def readings(
    corpus: Corpus,
    recipe: Recipe,
    position: BatchPosition = BatchPosition(),  # noqa: B008
) -> list[LMBatch]:
    reader = make_batch_reader(corpus, recipe)
    found = []
    for part in reader.shards(position):
        words = reader.read(position, part)
        found.append(LMBatch(*encode_distinct_words(words, corpus, ByteEncoder(12)), words.alive))
    return found


def shard_batches(
    corpus: Corpus, recipe: Recipe, start: Callable[[int], TensorState]
) -> list[ShardBatch]:
    return [
        ShardBatch(reading, start(int(reading.alive[0])), (recipe.seed, 0, k))
        for k, reading in enumerate(readings(corpus, recipe))
    ]


def words_in(some: list[ShardBatch]) -> int:
    return sum(shard.reading.words for shard in some)


def somewhere(rows: int) -> TensorState:
    """A state in the middle of a text."""
    source, zeros = torch.Generator().manual_seed(rows), TensorState.zeros(TINY, rows)
    return TensorState(*(torch.randn(part.shape, generator=source) for part in zeros))


@needs_kernel
@pytest.mark.parametrize("recipe", [SENTENCES, STREAM.replace(dropout=0)], ids=lambda r: r.text)
def test_gradient_of_the_whole_model(recipe: Recipe, corpus: Corpus) -> None:
    """Two shards in threads and compiled kernels, and one graph of plain PyTorch: the same."""
    recipe = recipe.replace(clip=1e9, loss_scale=3.0)
    ours = make_trainer(corpus, recipe)
    both = shard_batches(corpus, recipe, somewhere)
    everything = FullSampler(len(corpus.vocabulary)).draw()
    result = ours.train_step(both, everything, words_in(both), 1e-3)
    ours.close()

    leaves = {n: torch.tensor(a, requires_grad=True) for n, a in weights(corpus).items()}
    total = torch.zeros(())
    with kernel.without_kernel():
        for shard in both:
            said, after = run_language_model(TINY, leaves, shard.reading, shard.start)
            logits = said @ leaves[SOFTMAX[0]].t() + leaves[SOFTMAX[1]]
            targets = torch.from_numpy(shard.reading.targets_2N.reshape(-1))
            total = total + functional.cross_entropy(logits, targets, reduction="sum")
            left = result.final_states.pop(0)
            assert torch.allclose(left.hidden, after.hidden, atol=1e-5)
            assert torch.allclose(left.cell, after.cell, atol=1e-5)
    mean = total / (2 * words_in(both))
    assert result.loss == pytest.approx(float(mean.detach()), rel=1e-5)
    plain = torch.autograd.grad(3.0 * mean, list(leaves.values()))
    found = dict(zip(leaves, plain, strict=True))
    names = *expected_shapes(TINY), *SOFTMAX
    flat = torch.split(ours._gradient, [found[name].numel() for name in names])
    for name, gradient in zip(names, flat, strict=True):
        scale = float(found[name].abs().max())
        assert scale > 1e-6, f"{name} matters"
        assert torch.allclose(gradient.view_as(found[name]), found[name], atol=2e-5 * scale), name
    assert result.norm == pytest.approx(float(torch.cat([g.flatten() for g in plain]).norm()))


def test_one_shard_or_many(corpus: Corpus) -> None:
    """How a batch is divided shows in the last digits only, and dropout aside."""
    steps = []
    for shards in (1, 2, 5):
        recipe = SENTENCES.replace(shards=shards, clip=1e9)
        ours = make_trainer(corpus, recipe)
        own = shard_batches(corpus, recipe, ours.zero_state)
        result = ours.train_step(
            own, FullSampler(len(corpus.vocabulary)).draw(), words_in(own), 1e-3
        )
        ours.close()
        steps.append((result.loss, ours._gradient.clone()))
    for loss, gradient in steps[1:]:
        assert loss == pytest.approx(steps[0][0], rel=1e-6)
        assert torch.allclose(gradient, steps[0][1], atol=1e-6)


@pytest.mark.parametrize(
    "recipe",
    [SENTENCES, STREAM, SENTENCES.replace(optimizer="muon")],
    ids=lambda r: f"{r.text}-{r.optimizer}",
)
def test_threads_do_not_matter(
    recipe: Recipe, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for threads in (1, 2, 4):
        pool = partial(ThreadPool, threads)
        monkeypatch.setattr(trainer_module, "ThreadPool", lambda _, *how, pool=pool: pool(*how))
        ours = make_trainer(corpus, recipe.replace(shards=4))
        sampler = PoissonSampler(target_counts(corpus), 8)
        for step in range(4):
            own = shard_batches(corpus, recipe.replace(shards=4), ours.zero_state)
            drawn = sampler.draw(np.random.default_rng(step))
            ours.train_step(own, drawn, words_in(own), 1e-2)
        ours.close()
        results.append(ours.parameters)
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])
    assert not torch.equal(results[0], make_trainer(corpus, recipe).parameters)


def test_clip(corpus: Corpus) -> None:
    for clip, kept in ((1e9, None), (0.01, 0.01)):
        recipe = SENTENCES.replace(clip=clip)
        ours = make_trainer(corpus, recipe)
        own = shard_batches(corpus, recipe, ours.zero_state)
        result = ours.train_step(
            own, FullSampler(len(corpus.vocabulary)).draw(), words_in(own), 1e-3
        )
        ours.close()
        assert result.norm > 0.02
        assert float(ours._gradient.norm()) == pytest.approx(kept or result.norm, rel=1e-3)


def test_only_the_softmax_learns(corpus: Corpus) -> None:
    ours = make_trainer(corpus, SENTENCES, only_softmax=True)
    own = shard_batches(corpus, SENTENCES, ours.zero_state)
    ours.train_step(own, FullSampler(len(corpus.vocabulary)).draw(), words_in(own), 1e-3)
    ours.close()
    before, after = weights(corpus), ours.weights()
    for name in expected_shapes(TINY):
        assert (before[name] == after[name]).all(), name
    for name in SOFTMAX:
        assert (before[name] != after[name]).all(), name


def test_muon_learns_the_matrices_of_the_lstms(corpus: Corpus) -> None:
    """Everything else takes the step that Adam takes; each gate of a matrix is orthogonal."""
    after = {}
    for kind in ("adam", "muon"):
        ours = make_trainer(corpus, SENTENCES.replace(optimizer=kind))
        own = shard_batches(corpus, SENTENCES, ours.zero_state)
        ours.train_step(own, FullSampler(len(corpus.vocabulary)).draw(), words_in(own), 1e-2)
        ours.close()
        after[kind] = ours.weights()
    start = weights(corpus)
    for name in (*expected_shapes(TINY), *SOFTMAX):
        is_matrix = name.startswith(("forward", "backward")) and name.endswith("weight")
        assert (after["adam"][name] == after["muon"][name]).all() != is_matrix, name
        if is_matrix:
            change = after["muon"][name] - start[name]
            for block in np.split(change, 1 if "projection" in name else 4, axis=1):
                values = np.linalg.svd(block, compute_uv=False)
                size = 1e-2 * 0.2 * np.sqrt(max(block.shape))
                assert values.max() < 1.3 * size and np.median(values) > 0.5 * size, name


@pytest.mark.parametrize(
    ("products", "instructions", "expected"),
    [
        ("bfloat16", "avx512_bf16", torch.bfloat16),
        ("bfloat16", "amx", torch.float32),
        ("float32", "avx512_bf16", torch.float32),
    ],
)
def test_muon_computes_in_bfloat16_where_that_is_faster(
    products: str, instructions: str, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "instruction_set", lambda dtype: instructions)
    assert trainer_module._muon_dtype(SENTENCES.replace(products=products)) == expected


def test_only_drawn_rows_have_gradients(corpus: Corpus) -> None:
    ours = make_trainer(corpus, SENTENCES)
    own = shard_batches(corpus, SENTENCES, ours.zero_state)
    drawn = Candidates(torch.tensor([0, 1, 5]), torch.zeros(3), None)
    for shard in own:
        shard.reading.targets_2N[:] = 7
    ours.train_step(own, drawn, words_in(own), 1e-3)
    ours.close()
    changed = (ours.weights()[SOFTMAX[0]] != weights(corpus)[SOFTMAX[0]]).any(1)
    assert np.flatnonzero(changed).tolist() == [0, 1, 5, 7]


def test_dropout_is_drawn_from_the_seed(corpus: Corpus) -> None:
    recipe = SENTENCES.replace(dropout=0.5)
    losses = []
    for step in (0, 0, 1):
        ours = make_trainer(corpus, recipe)
        own = [
            ShardBatch(shard.reading, shard.start, (0, step, k))
            for k, shard in enumerate(shard_batches(corpus, recipe, ours.zero_state))
        ]
        everything = FullSampler(len(corpus.vocabulary)).draw()
        losses.append(ours.train_step(own, everything, words_in(own), 1e-3).loss)
        ours.close()
    assert losses[0] == losses[1] != losses[2]
    kept = make_trainer(corpus, recipe)._make_dropout((1, 2, 3))(torch.ones(10_000))
    assert sorted(kept.unique().tolist()) == [0, 2]
    assert float(kept.mean()) == pytest.approx(1, abs=0.05)


def test_diverged(corpus: Corpus) -> None:
    ours = make_trainer(corpus, SENTENCES)
    own = shard_batches(corpus, SENTENCES, ours.zero_state)
    ours.parameters.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"diverged.*rate below 0\.005"):
        ours.train_step(own, FullSampler(len(corpus.vocabulary)).draw(), words_in(own), 1e-3)
    ours.close()
