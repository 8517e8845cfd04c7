"""The table convolution against plain PyTorch: the same outputs, the same gradients."""

from __future__ import annotations

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.bilm.config import BiLMConfig, CharCNNConfig  # noqa: E402
from elmokit.bilm.config import LSTMConfig as LSTMConfig  # noqa: E402
from elmokit.bilm.random import random_bilm  # noqa: E402
from elmokit.engine import native  # noqa: E402
from elmokit.nn import Batcher, BiLMModule, kernel, network  # noqa: E402
from elmokit.nn.batch import Batch  # noqa: E402
from elmokit.nn.convolution import can_convolve_with_tables, table_convolution  # noqa: E402

if not native.kernel_available():
    pytest.skip(f"the kernel is not built: {native.kernel_error()}", allow_module_level=True)

PADDING = 260


@pytest.fixture(params=native.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernel for each instruction set."""
    monkeypatch.setenv(native.ISA_VARIABLE, request.param)
    return str(request.param)


def make(
    cnn: CharCNNConfig,
    lengths: list[int],
    dtype: torch.dtype = torch.float32,
    padding: int = PADDING,
) -> tuple[dict[str, torch.Tensor], Batch]:
    """Weights that let all positions and both sides of the activation occur, and random words."""
    random = np.random.default_rng(len(lengths))

    def some(*shape: int, scale: float) -> torch.Tensor:
        return torch.from_numpy(random.normal(0, scale, shape)).to(dtype).requires_grad_()

    weights = {"characters.embedding": some(cnn.characters, cnn.embedding_dim, scale=1)}
    for i, (width, count) in enumerate(cnn.filters):
        name, fan = f"characters.convolution.{i}", width * cnn.embedding_dim
        weights[f"{name}.weight"] = some(width, cnn.embedding_dim, count, scale=fan**-0.5)
        weights[f"{name}.bias"] = some(count, scale=1) - 1.5
    ids_UC = np.full((len(lengths), cnn.max_characters), padding, np.int16)
    for word, length in zip(ids_UC, lengths, strict=True):
        word[:length] = random.integers(0, padding, length)
    batch = Batch(ids_UC, np.array(lengths, np.int64), np.arange(len(lengths)), (), 0)
    return weights, batch


def compare(
    cnn: CharCNNConfig, weights: dict[str, torch.Tensor], batch: Batch, tolerance: float = 1e-5
) -> torch.Tensor:
    """Both paths, with a random upstream gradient; the plain one in float64."""
    parameters = [x.detach().requires_grad_() for x in weights.values()]
    exact = [x.detach().double().requires_grad_() for x in parameters]
    assert can_convolve_with_tables(cnn, *parameters)
    ours = network.pooled_filters(
        cnn, dict(zip(weights, parameters, strict=True)), batch.ids_UC, batch.characters_U
    )
    theirs = network.pooled_filters(
        cnn, dict(zip(weights, exact, strict=True)), batch.ids_UC, batch.characters_U
    )
    upstream = torch.randn(ours.shape, generator=torch.Generator().manual_seed(1))
    assert ours.dtype == torch.float32 and theirs.dtype == torch.float64
    assert ours.grad_fn is not None and "TableConvolution" in type(ours.grad_fn).__name__
    found = [ours, *torch.autograd.grad(ours, parameters, upstream)]
    expected = [theirs, *torch.autograd.grad(theirs, exact, upstream.double())]
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        if a.numel():
            assert (a - b).abs().max() <= tolerance * b.abs().max()
    return ours


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(
    ("filters", "dim"),
    [
        (((1, 32), (2, 32), (3, 64), (4, 128)), 16),
        (((2, 5),), 3),  # no whole vector
        (((1, 1), (7, 75), (3, 17)), 5),  # vectors and a rest
        (((50, 9), (49, 16)), 4),  # wider than the words
    ],
)
def test_outputs_and_gradients_are_those_of_the_plain_path(
    isa: str, filters: tuple[tuple[int, int], ...], dim: int, activation: str
) -> None:
    cnn = CharCNNConfig(filters=filters, embedding_dim=dim, activation=activation)  # type: ignore[arg-type]
    lengths = [3, 50, 9, 1, 0, 49, *(4 + i % 9 for i in range(40))]
    outputs = compare(cnn, *make(cnn, lengths))
    if activation == "relu" and len(outputs[0]) > 5:
        assert 0.05 < (outputs == 0).float().mean() < 0.95, "both sides of the rectifier"


@pytest.mark.parametrize("lengths", [[], [5], [0], [50], [50, 50, 50]])
def test_few_words(isa: str, lengths: list[int]) -> None:
    cnn = CharCNNConfig(filters=((1, 4), (3, 20), (6, 33)), embedding_dim=7)
    assert compare(cnn, *make(cnn, lengths)).shape == (len(lengths), 57)


def test_other_lengths_and_alphabets(isa: str) -> None:
    short = CharCNNConfig(filters=((1, 4), (3, 8)), embedding_dim=7, max_characters=3)
    compare(short, *make(short, [3, 2, 1, 3]))
    long = CharCNNConfig(filters=((1, 4), (3, 8)), embedding_dim=4, max_characters=700)
    compare(long, *make(long, [700, 2, 400, 300]))
    many = CharCNNConfig(
        filters=((1, 32), (5, 50)), embedding_dim=50, scheme="code_points", characters=30_000
    )
    compare(many, *make(many, [9, 20, 7, 50], padding=29_999))


def test_a_repeated_character_is_learned_once_per_window(isa: str) -> None:
    """Equal windows tie; whichever wins, the gradient is the same."""
    cnn = CharCNNConfig(filters=((1, 4), (2, 20)), embedding_dim=7)
    weights, batch = make(cnn, [6, 8, 50])
    batch.ids_UC[0, :6] = 97
    batch.ids_UC[1, :8] = [97, 98] * 4
    batch.ids_UC[2] = 99
    compare(cnn, weights, batch)


def test_the_whole_network_learns_the_same(isa: str) -> None:
    config = BiLMConfig(
        char_cnn=CharCNNConfig(filters=((1, 4), (2, 6), (3, 21)), embedding_dim=5, highways=1),
        lstm=LSTMConfig(cells=11, width=6),
    )
    bilm = random_bilm(config)
    batch = Batcher(bilm).from_words([["the", "bank", "of", "x" * 60], ["ü", "", "</S>"]])
    weights = BiLMModule.from_bilm(bilm).tensors()
    learned = [name for name in weights if name.startswith("characters")]

    def step() -> list[torch.Tensor]:
        vectors = network.word_vectors(config, weights, batch)
        loss = vectors.square().sum()
        return [vectors, *torch.autograd.grad(loss, [weights[name] for name in learned])]

    ours = step()
    with kernel.without_kernel():
        theirs = step()
    for a, b in zip(ours, theirs, strict=True):
        assert (a - b).abs().max() <= 2e-5 * b.abs().max()


def test_where_the_kernel_is_used() -> None:
    cnn = CharCNNConfig(filters=((1, 4),))
    x = torch.zeros(3)
    assert can_convolve_with_tables(cnn, x)
    assert not can_convolve_with_tables(cnn, x, x.double())
    assert not can_convolve_with_tables(CharCNNConfig(filters=((1, 4),), max_characters=40_000), x)
    with kernel.without_kernel():
        assert not can_convolve_with_tables(cnn, x)
        with kernel.without_kernel():
            pass
        assert not can_convolve_with_tables(cnn, x)
    assert can_convolve_with_tables(cnn, x)


def test_what_needs_no_gradient_gets_none(isa: str) -> None:
    cnn = CharCNNConfig(filters=((1, 4), (3, 20)), embedding_dim=7)
    weights, batch = make(cnn, [5, 9])
    embedding, *rest = (x.detach() for x in weights.values())
    chosen = rest[0].requires_grad_()
    out = table_convolution(
        cnn, embedding, rest[0::2], rest[1::2], batch.ids_UC, batch.characters_U
    )
    (gradient,) = torch.autograd.grad(out.sum(), [chosen])
    assert gradient.shape == chosen.shape and gradient.any()
    with torch.no_grad():
        alone = table_convolution(
            cnn, embedding, rest[0::2], rest[1::2], batch.ids_UC, batch.characters_U
        )
    assert not alone.requires_grad and torch.equal(alone, out)


def test_two_threads_compute_what_one_does(isa: str) -> None:
    cnn = CharCNNConfig(filters=((1, 32), (3, 64), (5, 100)))
    jobs = [make(cnn, [5 + (i * k) % 11 for i in range(300)]) for k in (3, 7)]

    def step(weights: dict[str, torch.Tensor], batch: Batch) -> list[torch.Tensor]:
        leaves = {name: x.detach().requires_grad_() for name, x in weights.items()}
        out = network.pooled_filters(cnn, leaves, batch.ids_UC, batch.characters_U)
        return [out.detach(), *torch.autograd.grad(out.square().sum(), list(leaves.values()))]

    alone = [step(*job) for job in jobs]
    found: dict[int, list[torch.Tensor]] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: step(*jobs[i])})) for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for i in range(2) for a, b in zip(alone[i], found[i], strict=True))


@pytest.mark.parametrize(
    ("ids", "length"), [(-1, 3), (261, 3), (5, -1), (5, 51)], ids=["low", "high", "less", "more"]
)
def test_impossible_words_are_refused(ids: int, length: int) -> None:
    cnn = CharCNNConfig(filters=((1, 4), (3, 20)), embedding_dim=7)
    weights, batch = make(cnn, [5, 9])
    batch.ids_UC[1, 2] = ids
    batch.characters_U[0] = length
    with pytest.raises(IndexError):
        network.pooled_filters(cnn, weights, batch.ids_UC, batch.characters_U)
