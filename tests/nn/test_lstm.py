"""The LSTM in the compiled kernel: outputs, states and all gradients are those of plain PyTorch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.config import LSTMConfig  # noqa: E402
from elmokit.engine import native  # noqa: E402
from elmokit.engine.batching import pack  # noqa: E402
from elmokit.nn import kernel  # noqa: E402
from elmokit.nn.lstm import LSTMWeights, projected_lstm  # noqa: E402

needs_kernel = pytest.mark.skipif(not native.kernel_available(), reason=native.kernel_error())
ISAS = native.instruction_sets() if native.kernel_available() else []


def layer(
    config: LSTMConfig, lengths: list[int], scale: float = 1.0
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Outputs with both last states, and the gradients of everything that goes in."""
    source = torch.Generator().manual_seed(3)

    def drawn(*shape: int, by: float = 1.0) -> torch.Tensor:
        return (by * torch.randn(*shape, generator=source)).requires_grad_()

    packing, (cells, width), rows = pack(lengths), (config.cells, config.width), len(lengths)
    x, h, c = drawn(packing.rows, width), drawn(rows, width), drawn(rows, cells, by=0.5)
    weights = LSTMWeights(
        drawn(width, 4 * cells, by=scale / width**0.5),
        drawn(width, 4 * cells, by=scale / width**0.5),
        drawn(4 * cells, by=0.3),
        drawn(cells, width, by=2 * scale / cells**0.5),
    )
    outputs = projected_lstm(config, weights, x, packing.alive, h, c)
    total = sum((drawn(*o.shape).detach() * o).sum() for o in outputs)
    gradients = torch.autograd.grad(total, [x, h, c, *weights])  # type: ignore[arg-type]
    return [o.detach() for o in outputs], list(gradients)


def compare(config: LSTMConfig, lengths: list[int], scale: float = 1.0) -> list[torch.Tensor]:
    outputs, gradients = layer(config, lengths, scale)
    with kernel.without_kernel():
        wanted, wanted_gradients = layer(config, lengths, scale)
    for ours, theirs in zip(outputs + gradients, wanted + wanted_gradients, strict=True):
        assert ours.shape == theirs.shape
        assert float((ours - theirs).norm()) <= 2e-6 * (1 + float(theirs.norm()))
    return outputs


@needs_kernel
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("lengths", [[1], [5, 3, 3, 1], [2] * 9, [40, 1, 17]])
@pytest.mark.parametrize(("cells", "width"), [(16, 5), (32, 24), (64, 64), (48, 70)])
def test_it_is_plain_pytorch(
    isa: str, lengths: list[int], cells: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(native.ISA_VARIABLE, isa)
    compare(LSTMConfig(cells=cells, width=width), lengths)


@needs_kernel
@pytest.mark.parametrize("clips", [(0.3, 0.2), (None, None), (0.3, None), (None, 0.2)])
def test_clipped_values(clips: tuple[float | None, float | None]) -> None:
    cell, projection = clips
    config = LSTMConfig(cells=32, width=12, cell_clip=cell, projection_clip=projection)
    outputs, _, cells = compare(config, [9, 7, 7, 2], scale=1.5)
    if cell is not None:
        assert 0.05 < float((cells.abs() == cell).float().mean()) < 0.95
    if projection is not None:
        assert 0.05 < float((outputs.abs() == projection).float().mean()) < 0.95


@needs_kernel
def test_the_kernel_is_used_where_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    forward = native._native.lstm_forward

    def spy(*arguments: object) -> None:
        used.append(True)
        forward(*arguments)

    monkeypatch.setattr(native._native, "lstm_forward", spy)
    layer(LSTMConfig(cells=32, width=8), [3, 2])
    assert used == [True]
    layer(LSTMConfig(cells=24, width=8), [3, 2])  # no multiple of 16
    with kernel.without_kernel():
        layer(LSTMConfig(cells=32, width=8), [3, 2])
    assert used == [True]


@needs_kernel
def test_the_kernel_refuses_what_does_not_fit() -> None:
    import numpy as np

    zeros = lambda *shape: np.zeros(shape, np.float32)  # noqa: E731
    fine = {
        "alive": np.array([2, 1]),
        "recurrent": zeros(8, 64),
        "projection": zeros(16, 8),
        "initial_hidden": zeros(2, 8),
        "initial_cell": zeros(2, 16),
        "gates": zeros(3, 64),
        "cells": zeros(3, 16),
        "cell_outputs": zeros(3, 16),
        "outputs": zeros(3, 8),
    }

    def call(**changes: object) -> None:
        a = {**fine, **changes}
        native._native.lstm_forward(
            *(native.instruction_set(), a["alive"], a["recurrent"], a["projection"], 3.0, 3.0),
            *(a["initial_hidden"], a["initial_cell"], a["gates"], a["cells"]),
            *(a["cell_outputs"], a["outputs"]),
        )

    call()
    for name, value, message in (
        ("alive", np.array([1, 2]), "must not increase"),
        ("alive", np.array([2, 2]), "add up"),
        ("alive", np.array([], np.int64), "alive is empty"),
        ("recurrent", zeros(8, 60), "recurrent"),
        ("projection", zeros(24, 8), "multiple of 16"),
        ("cells", zeros(2, 16), "cells"),
    ):
        with pytest.raises(ValueError, match=message):
            call(**{name: value})
