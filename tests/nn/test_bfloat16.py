"""Training with products of bfloat16: nearly float32; the same bits of a layer without AMX."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.config import LSTMConfig  # noqa: E402
from elmokit.engine import native  # noqa: E402
from elmokit.engine.batching import pack  # noqa: E402
from elmokit.engine.native import Products  # noqa: E402
from elmokit.nn.bfloat16 import affine  # noqa: E402
from elmokit.nn.kernel import without_kernel  # noqa: E402
from elmokit.nn.lstm import LSTMWeights, projected_lstm  # noqa: E402
from elmokit.nn.samplers import PoissonSampler  # noqa: E402
from elmokit.nn.softmax import gather_softmax_rows, softmax_loss  # noqa: E402

pytestmark = pytest.mark.skipif(not native.kernel_available(), reason=native.kernel_error())
ISAS = native.instruction_sets("bfloat16") if native.kernel_available() else []
FUSED = [isa for isa in ISAS if isa in ("amx", "avx512", "avx2")]
"""Instruction sets that add in the same order and fuse it with multiplication: the same bits."""

SIZES = [(16, 5), (48, 40), (64, 32), (80, 96)]
LENGTHS = [[1], [5, 3, 3, 1], [2] * 40, [30, 1, *[17] * 18]]


def integers(*shape: int, seed: int) -> torch.Tensor:
    """Whole numbers, which bfloat16 represents exactly, and whose products float32 sums exactly."""
    source = torch.Generator().manual_seed(seed)
    return torch.randint(-9, 10, shape, generator=source).float().requires_grad_()


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    assert found.shape == wanted.shape
    return float((found - wanted).norm() / (wanted.norm() + 1e-3))


def layer(
    products: Products, cells: int, width: int, lengths: list[int], clip: float | None = 3
) -> list[torch.Tensor]:
    """Outputs with both last states, and the gradients of everything that goes in."""
    source = torch.Generator().manual_seed(3)

    def drawn(*shape: int, by: float = 1.0) -> torch.Tensor:
        return (by * torch.randn(*shape, generator=source)).requires_grad_()

    packing, rows = pack(lengths), len(lengths)
    config = LSTMConfig(cells=cells, width=width, cell_clip=clip, projection_clip=clip)
    x, h, c = drawn(packing.rows, width), drawn(rows, width), drawn(rows, cells, by=0.5)
    weights = LSTMWeights(
        drawn(width, 4 * cells, by=width**-0.5),
        drawn(width, 4 * cells, by=width**-0.5),
        drawn(4 * cells, by=0.3),
        drawn(cells, width, by=cells**-0.5),
    )
    outputs = projected_lstm(config, weights, x, packing.alive, h, c, products)
    total = sum((drawn(*o.shape).detach() * o).sum() for o in outputs)
    gradients = torch.autograd.grad(total, [x, h, c, *weights])  # type: ignore[arg-type]
    return [*(o.detach() for o in outputs), *gradients]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize(("cells", "width"), SIZES)
def test_an_lstm_layer_is_nearly_that_of_float32(
    isa: str, lengths: list[int], cells: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = layer("float32", cells, width, lengths)
    monkeypatch.setenv(native.ISA_VARIABLE, isa)
    found = layer("bfloat16", cells, width, lengths)
    distances = [distance(*pair) for pair in zip(found, wanted, strict=True)]
    assert max(distances) < 0.02
    assert max(distances) > 1e-5  # it does round


@pytest.mark.parametrize("isa", FUSED[1:])
@pytest.mark.parametrize("clip", [None, 0.3])
def test_an_lstm_layer_has_the_same_bits_with_and_without_amx(
    isa: str, clip: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = []
    for name in (FUSED[0], isa):
        monkeypatch.setenv(native.ISA_VARIABLE, name)
        results.append(layer("bfloat16", 48, 70, [30, 1, *[17] * 40], clip))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def test_clipped_values_pass_no_gradient() -> None:
    outputs, _, cell, *gradients = layer("bfloat16", 32, 12, [9, 7, 7, 2], 0.2)
    assert 0.05 < float((outputs.abs() == np.float32(0.2)).float().mean()) < 0.95
    assert 0.05 < float((cell.abs() == np.float32(0.2)).float().mean()) < 0.95
    # Clips that round differently change single gradients, so the whole is compared loosely.
    wanted = layer("float32", 32, 12, [9, 7, 7, 2], 0.2)[3:]
    assert all(distance(*pair) < 0.2 for pair in zip(gradients, wanted, strict=True))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (16, 32, 64), (33, 31, 70), (100, 65, 129), (0, 4, 5)]
)
def test_an_affine_map_of_whole_numbers_is_exact(
    isa: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native.ISA_VARIABLE, isa)
    rows, inputs, outputs = sizes
    x, weight, bias = (
        integers(*shape, seed=seed)
        for seed, shape in enumerate([(rows, inputs), (inputs, outputs), (outputs,)])
    )
    d_y = integers(rows, outputs, seed=3).detach()
    results = []
    for products in ("float32", "bfloat16"):
        with without_kernel() if products == "float32" else nullcontext():
            y = affine(x, weight, bias, products)  # type: ignore[arg-type]
            results.append([y, *torch.autograd.grad(y, [x, weight, bias], d_y)])
    for found, wanted in zip(*results[::-1], strict=True):
        assert torch.equal(found, wanted)


def test_gradients_that_nobody_needs_are_not_computed() -> None:
    x, weight, bias = (integers(*s, seed=0) for s in [(3, 4), (4, 5), (5,)])
    y = affine(x.detach(), weight, bias.detach(), "bfloat16")
    (d_weight,) = torch.autograd.grad(y.sum(), [weight])
    assert torch.equal(d_weight, x.detach().t() @ torch.ones(3, 5))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("rows", [1, 40, 300])
def test_the_loss_is_nearly_that_of_float32(
    isa: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    counts = np.arange(500, 0, -1)
    candidates = PoissonSampler(counts, 100).draw(rng)
    targets = torch.from_numpy(rng.integers(0, 500, rows))
    words, target_rows = gather_softmax_rows(candidates, targets)
    source = torch.Generator().manual_seed(0)
    h, weight, bias = (
        torch.randn(*shape, generator=source).requires_grad_()
        for shape in [(rows, 24), (len(words), 24), (len(words),)]
    )
    results = []
    for products in ("float32", "bfloat16"):
        if products == "bfloat16":
            monkeypatch.setenv(native.ISA_VARIABLE, isa)
        loss = softmax_loss(h, weight, bias, target_rows, candidates, words, products)  # type: ignore[arg-type]
        results.append([loss.detach().reshape(1), *torch.autograd.grad(loss, [h, weight, bias])])
    for found, wanted in zip(*results[::-1], strict=True):
        assert distance(found, wanted) < 0.02


def test_a_loss_without_gradients_is_the_same() -> None:
    candidates = PoissonSampler(np.full(30, 5), 10).draw(np.random.default_rng(0))
    targets = torch.arange(7)
    words, target_rows = gather_softmax_rows(candidates, targets)
    h, weight, bias = torch.randn(7, 8), torch.randn(len(words), 8), torch.randn(len(words))
    arguments = (target_rows, candidates, words, "bfloat16")
    with torch.no_grad():
        plain = softmax_loss(h, weight, bias, *arguments)  # type: ignore[arg-type]
    with_gradients = softmax_loss(h.requires_grad_(), weight, bias, *arguments)  # type: ignore[arg-type]
    assert float(plain) == float(with_gradients.detach())


@pytest.mark.parametrize(
    ("lstm", "device", "message"),
    [
        ({"cells": 24, "width": 8}, "cpu", "a multiple of 16 cells; it has 24 cells;"),
        ({"cells": 16, "width": 16, "projection": False}, "cpu", "and no projection"),
        ({"cells": 16, "width": 8}, "meta", "the device is meta"),
    ],
)
def test_what_bfloat16_cannot_train(lstm: dict[str, Any], device: str, message: str) -> None:
    from elmokit.bilm.sizes import SIZES
    from elmokit.errors import ConfigError
    from elmokit.train.recipe import Recipe
    from elmokit.train.trainer import _check_products

    config = replace(SIZES["tiny"], lstm=LSTMConfig(**lstm))
    recipe = Recipe(products="bfloat16")
    _check_products(Recipe(), config, torch.device(device))  # float32 can always be trained
    with pytest.raises(ConfigError, match=message):
        _check_products(recipe, config, torch.device(device))


def test_a_run_is_nearly_that_of_float32_and_resumes_to_the_same_bits(tmp_path: Path) -> None:
    from tests.train.toy import SENTENCES, TINY, toy_corpus

    from elmokit.train import Budget, pretrain, resume

    corpus = toy_corpus(tmp_path / "toy", size=9).path
    recipe = SENTENCES.replace(products="bfloat16")
    budget = Budget(tokens=3000)
    whole = pretrain(corpus, tmp_path / "whole", config=TINY, recipe=recipe, budget=budget)
    plain = pretrain(corpus, tmp_path / "plain", config=TINY, recipe=SENTENCES, budget=budget)
    differences = [
        float(np.abs(array - plain.bilm.weights[name]).max())
        for name, array in whole.bilm.weights.items()
    ]
    assert 0 < max(differences) < 0.1

    def stop(report: object) -> None:
        nonlocal steps
        steps += 1
        if steps == 7:
            raise KeyboardInterrupt

    steps = 0
    with pytest.raises(KeyboardInterrupt):
        pretrain(
            corpus, tmp_path / "halves", config=TINY, recipe=recipe, budget=budget, on_step=stop
        )
    resume(corpus, tmp_path / "halves")
    halves = (tmp_path / "halves" / "model.safetensors").read_bytes()
    assert halves == (tmp_path / "whole" / "model.safetensors").read_bytes()
