"""The loss and gradients of the softmax, in the kernel and in plain PyTorch."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.engine import native  # noqa: E402
from elmokit.errors import InputError  # noqa: E402
from elmokit.nn import kernel  # noqa: E402
from elmokit.nn.samplers import Candidates, FullSampler, LogUniformSampler, PoissonSampler  # noqa: E402
from elmokit.nn.softmax import gather_softmax_rows, softmax_loss  # noqa: E402

PATHS = ["plain", *(native.instruction_sets() if native.kernel_available() else [])]


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Plain PyTorch, and the kernel for each instruction set."""
    if request.param != "plain":
        monkeypatch.setenv(native.ISA_VARIABLE, request.param)
    with kernel.without_kernel() if request.param == "plain" else nullcontext():
        yield request.param


def some(*shape: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(*shape, generator=random)).requires_grad_()


def by_definition(
    h_NP: torch.Tensor,
    weight_VP: torch.Tensor,
    bias_V: torch.Tensor,
    targets_N: torch.Tensor,
    candidates: Candidates,
) -> torch.Tensor:
    """Row by row, word by word, in float64."""
    total = torch.zeros((), dtype=torch.float64)
    logits_NV = (h_NP @ weight_VP.t() + bias_V).double()
    for logits, target in zip(logits_NV, targets_N.tolist(), strict=True):
        true = logits[target]
        if candidates.true_correction_V is not None:
            true = true + candidates.true_correction_V[target]
        others = [
            logits[word] + correction
            for word, correction in zip(
                candidates.words_S.tolist(), candidates.correction_S.tolist(), strict=True
            )
            if word != target
        ]
        total = total + torch.logsumexp(torch.stack([true, *others]), 0) - true
    return total


def through_rows(
    h_NP: torch.Tensor,
    weight_VP: torch.Tensor,
    bias_V: torch.Tensor,
    targets_N: torch.Tensor,
    candidates: Candidates,
) -> torch.Tensor:
    words_R, target_rows_N = gather_softmax_rows(candidates, targets_N)
    return softmax_loss(
        h_NP, weight_VP[words_R], bias_V[words_R], target_rows_N, candidates, words_R
    )


def relative_error(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """Largest error relative to the largest value."""
    assert ours.shape == theirs.shape
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp(min=1e-6))


@pytest.mark.parametrize(
    "sampler", [PoissonSampler(np.arange(90, 0, -1), 40), LogUniformSampler(90, 37)]
)
@pytest.mark.parametrize(("words", "width"), [(50, 19), (1, 1), (700, 8)])
def test_loss_and_gradients_are_those_of_the_definition(
    path: str, sampler: PoissonSampler | LogUniformSampler, words: int, width: int
) -> None:
    candidates = sampler.draw(np.random.default_rng(1))
    h, weight, bias = some(words, width), some(90, width, seed=1), some(90, seed=2)
    targets = torch.randint(0, 90, (words,), generator=torch.Generator().manual_seed(3))
    ours = through_rows(h, weight, bias, targets, candidates)
    theirs = by_definition(h, weight, bias, targets, candidates)
    assert ours.dtype == torch.float32
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
    # Upstream, a mean: the gradients have to be scaled.
    found = torch.autograd.grad(ours / words, [h, weight, bias])
    expected = torch.autograd.grad(theirs / words, [h, weight, bias])
    assert max(map(relative_error, found, expected)) < 1e-5


@pytest.mark.parametrize("vocabulary", [1, 5, 64, 1000])
def test_all_words_give_the_full_softmax(path: str, vocabulary: int) -> None:
    h, weight, bias = some(331, 24), some(vocabulary, 24, seed=1), some(vocabulary, seed=2)
    targets = torch.arange(331) % vocabulary
    candidates = FullSampler(vocabulary).draw(np.random.default_rng())
    ours = through_rows(h, weight, bias, targets, candidates)
    logits = h.double() @ weight.double().t() + bias.double()
    theirs = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6, abs=1e-4)
    found = torch.autograd.grad(ours, [h, weight, bias])
    expected = torch.autograd.grad(theirs, [h, weight, bias])
    assert max(map(relative_error, found, expected)) < 1e-5


def test_the_plain_path_passes_gradcheck() -> None:
    candidates = LogUniformSampler(20, 9).draw(np.random.default_rng(0))
    targets = torch.tensor([0, 19, 3, 3, 11])
    inputs = [x.detach().double().requires_grad_() for x in (some(5, 4), some(20, 4), some(20))]
    assert torch.autograd.gradcheck(
        lambda h, weight, bias: through_rows(h, weight, bias, targets, candidates), inputs
    )


@pytest.mark.parametrize("scale", [80.0, -80.0, 2e4])
def test_extreme_logits_stay_finite(path: str, scale: float) -> None:
    bias = torch.zeros(40)
    bias[3], bias[7] = scale, -scale
    bias.requires_grad_()
    h, weight = some(3, 4), some(40, 4, seed=1)
    candidates = Candidates(torch.arange(4, 40), torch.zeros(36), None)
    targets = torch.tensor([3, 7, 20])
    ours = through_rows(h, weight, bias, targets, candidates)
    theirs = by_definition(h, weight, bias, targets, candidates)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
    found = torch.autograd.grad(ours, [h, weight, bias])
    assert all(torch.isfinite(x).all() for x in found)
    assert max(map(relative_error, found, torch.autograd.grad(theirs, [h, weight, bias]))) < 1e-5


def test_what_is_not_finite_is_not_hidden(path: str) -> None:
    weight = some(10, 4).detach()
    weight[5, 1] = torch.nan
    loss = through_rows(some(2, 4), weight, some(10), torch.tensor([0, 1]), FullSampler(10).draw())
    assert torch.isnan(loss)


def test_no_words_and_no_candidates(path: str) -> None:
    none = Candidates(torch.zeros(0, dtype=torch.long), torch.zeros(0), None)
    h, weight, bias = some(3, 4), some(9, 4, seed=1), some(9, seed=2)
    targets = torch.tensor([8, 0, 8])
    loss = through_rows(h, weight, bias, targets, none)
    assert loss.item() == pytest.approx(0, abs=1e-6)
    for gradient in torch.autograd.grad(loss, [h, weight, bias]):
        assert gradient.abs().max() < 1e-6
    h = some(0, 4)
    for candidates in (none, FullSampler(9).draw()):
        loss = through_rows(h, weight, bias, targets[:0], candidates)
        assert loss.item() == 0
        found = torch.autograd.grad(loss, [h, weight, bias])
        assert found[0].shape == (0, 4)
        assert not found[1].any() and not found[2].any()


def test_what_needs_no_gradient_gets_none(path: str) -> None:
    h, weight, bias = some(5, 4), some(9, 4, seed=1), some(9, seed=2)
    targets = torch.tensor([0, 1, 2, 8, 8])
    candidates = PoissonSampler(np.arange(9, 0, -1), 5).draw(np.random.default_rng(2))
    whole = through_rows(h, weight, bias, targets, candidates)
    expected = torch.autograd.grad(whole, [h, weight, bias])
    with torch.no_grad():
        alone = through_rows(h, weight, bias, targets, candidates)
    assert not alone.requires_grad
    assert alone.item() == pytest.approx(whole.item(), rel=1e-6)
    inputs = [h, weight, bias]
    for i in range(3):
        some_fixed = [x if k == i else x.detach() for k, x in enumerate(inputs)]
        loss = through_rows(*some_fixed, targets, candidates)
        assert relative_error(torch.autograd.grad(loss, inputs[i])[0], expected[i]) < 1e-6


def test_transposed_inputs(path: str) -> None:
    """Inputs need not be contiguous."""
    h, weight, bias = some(7, 4), some(9, 4, seed=1), some(9, seed=2)
    targets, candidates = torch.arange(7), FullSampler(9).draw()
    expected = softmax_loss(h, weight, bias, targets, candidates)
    turned = (x.detach().t().contiguous().t() for x in (h, weight))
    assert softmax_loss(*turned, bias, targets, candidates).item() == expected.item()


def test_two_threads_compute_what_one_does(path: str) -> None:
    candidates = PoissonSampler(np.arange(300, 0, -1), 150).draw(np.random.default_rng(1))
    weight, bias = some(300, 16, seed=1), some(300, seed=2)
    hidden = [some(900, 16, seed=seed) for seed in range(2)]
    targets = torch.arange(900) % 300

    def step(h: torch.Tensor) -> list[torch.Tensor]:
        loss = through_rows(h, weight, bias, targets, candidates)
        return [loss.detach(), *torch.autograd.grad(loss, [h, weight, bias])]

    alone = [step(h) for h in hidden]
    found: dict[int, list[torch.Tensor]] = {}
    threads = [
        threading.Thread(target=lambda i=i: found.update({i: step(hidden[i])})) for i in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for i in range(2) for a, b in zip(alone[i], found[i], strict=True))


def test_the_word_ids_are_required_where_they_are_needed() -> None:
    candidates = LogUniformSampler(20, 9).draw(np.random.default_rng(0))
    with pytest.raises(InputError, match="words_R"):
        softmax_loss(some(2, 3), some(20, 3), some(20), torch.tensor([0, 1]), candidates)


def test_gather_softmax_rows() -> None:
    candidates = Candidates(torch.tensor([0, 1, 2, 7, 30]), torch.zeros(5), None)
    targets = torch.tensor([9, 7, 40, 9, 0, 3])
    words, rows = gather_softmax_rows(candidates, targets)
    assert words.tolist() == [0, 1, 2, 7, 30, 3, 9, 40]
    assert words[rows].tolist() == targets.tolist()
    words, rows = gather_softmax_rows(FullSampler(5).draw(), torch.tensor([4, 0, 4]))
    assert words.tolist() == [0, 1, 2, 3, 4] and rows.tolist() == [4, 0, 4]
    words, rows = gather_softmax_rows(FullSampler(3).draw(), torch.tensor([4, 0, 4]))
    assert words.tolist() == [0, 1, 2, 4] and rows.tolist() == [3, 0, 3]
