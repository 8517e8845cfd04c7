"""Products of float32 matrices, by the kernel and by PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="needs elmokit[train]")
from torch import Tensor  # noqa: E402

from elmokit.engine import native  # noqa: E402
from elmokit.nn import products  # noqa: E402
from elmokit.nn.kernel import without_kernel  # noqa: E402

pytestmark = pytest.mark.skipif(not native.kernel_available(), reason=native.kernel_error())

ISAS = native.instruction_sets() if native.kernel_available() else []
SHAPES = [(1, 1, 1), (3, 5, 7), (13, 64, 65), (70, 257, 130), (300, 600, 20), (20, 515, 300)]
"""Rows, depth and columns: less and more than a tile, a panel and the depth of a chunk."""
ORDERS = list(itertools.product([False, True], repeat=2))
"""Whether the first factor and the second one are transposes."""


def matrix(rows: int, columns: int, *, seed: int, transposed: bool = False) -> Tensor:
    """Return a matrix of small whole numbers, whose products are exact in any order."""
    generator = torch.Generator().manual_seed(seed)
    shape = (columns, rows) if transposed else (rows, columns)
    whole = torch.randint(-4, 5, shape, generator=generator).float()
    return whole.t() if transposed else whole


@pytest.fixture
def by_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let an instruction set multiply, on any CPU."""

    def choose(isa: str) -> None:
        monkeypatch.setenv(native.ISA_VARIABLE, isa)
        monkeypatch.setattr(
            products,
            "kernel_multiplies",
            lambda *matrices: all(x.is_contiguous() or x.t().is_contiguous() for x in matrices),
        )

    return choose


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ORDERS)
def test_products_of_whole_numbers_are_exact(
    isa: str,
    shape: tuple[int, int, int],
    order: tuple[bool, bool],
    by_kernel: Callable[[str], None],
) -> None:
    by_kernel(isa)
    rows, depth, columns = shape
    a = matrix(rows, depth, seed=0, transposed=order[0])
    b = matrix(depth, columns, seed=1, transposed=order[1])
    bias, before = matrix(1, columns, seed=2)[0], matrix(rows, columns, seed=3)
    out = torch.full((rows, columns), torch.nan)
    assert products.multiply(a, b, bias, out_MN=out) is out
    assert torch.equal(out, torch.addmm(bias, a, b))
    assert torch.equal(products.multiply(a, b), a @ b)
    added = before.clone()
    products.add_product(added, a, b)
    assert torch.equal(added, before + a @ b)


@pytest.mark.parametrize("isa", ISAS)
def test_real_numbers_are_as_exact_as_those_of_pytorch(
    isa: str, by_kernel: Callable[[str], None]
) -> None:
    by_kernel(isa)
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(*shape, generator=generator) for shape in [(40, 3000), (3000, 70)])
    exact = a.double() @ b.double()
    error = (products.multiply(a, b) - exact).abs().max()
    assert error <= 2 * (a @ b - exact).abs().max()


@pytest.mark.parametrize("isa", ISAS)
def test_a_row_does_not_depend_on_the_others(isa: str, by_kernel: Callable[[str], None]) -> None:
    by_kernel(isa)
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(*shape, generator=generator) for shape in [(50, 300), (300, 70)])
    assert torch.equal(products.multiply(a[:11], b), products.multiply(a, b)[:11])


@pytest.mark.parametrize("isa", ISAS)
def test_no_rows(isa: str, by_kernel: Callable[[str], None]) -> None:
    by_kernel(isa)
    assert products.multiply(torch.empty(0, 3), torch.ones(3, 4)).shape == (0, 4)


@pytest.mark.parametrize("isa", ISAS)
def test_gradients_of_an_affine_map(isa: str, by_kernel: Callable[[str], None]) -> None:
    x, weight, d_y = matrix(33, 31, seed=0), matrix(31, 70, seed=1), matrix(33, 70, seed=2)
    inputs = [x, weight, matrix(1, 70, seed=3)[0]]
    for tensor in inputs:
        tensor.requires_grad_()
    plain = torch.addmm(inputs[2], *inputs[:2])
    wanted = [plain, *torch.autograd.grad(plain, inputs, d_y)]
    by_kernel(isa)
    y = products.float32_affine(*inputs)
    for found, expected in zip([y, *torch.autograd.grad(y, inputs, d_y)], wanted, strict=True):
        assert torch.equal(found, expected)
    y = products.float32_affine(inputs[0].detach(), weight, inputs[2].detach())
    (d_weight,) = torch.autograd.grad(y, [weight], d_y)
    assert torch.equal(d_weight, wanted[2])


def test_pytorch_multiplies_where_the_kernel_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrix(5, 6, seed=0), matrix(6, 8, seed=1)
    fast = "avx512" in ISAS
    monkeypatch.delenv(native.ISA_VARIABLE, raising=False)
    monkeypatch.setattr(products._native, "INTEL_CPU", False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert products.kernel_multiplies(a, b.t()) == fast
    assert not products.kernel_multiplies(a, b[:, :7])  # neither contiguous nor a transpose
    assert not products.kernel_multiplies(a.double(), b.double())
    with without_kernel():
        assert not products.kernel_multiplies(a, b)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not products.kernel_multiplies(a, b)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(products._native, "INTEL_CPU", True)
    assert not products.kernel_multiplies(a, b)
    assert torch.equal(products.multiply(a, b), a @ b)
    out = torch.ones(5, 8)
    products.add_product(out, a, b)
    assert torch.equal(out, a @ b + 1)


def test_outputs_that_are_not_contiguous_are_left_to_pytorch(
    by_kernel: Callable[[str], None],
) -> None:
    by_kernel(ISAS[0])
    a, b, out = matrix(5, 6, seed=0), matrix(6, 8, seed=1), torch.zeros(5, 9)
    products.multiply(a, b, out_MN=out[:, :8])
    assert torch.equal(out[:, :8], a @ b)
    products.add_product(out[:, :8], a, b)
    assert torch.equal(out[:, :8], 2 * (a @ b))
    assert not out[:, 8].any()
