"""Samplers: how often words are drawn, corrections, and repeatable draws."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit.errors import InputError  # noqa: E402
from elmokit.nn.samplers import FullSampler, LogUniformSampler, PoissonSampler  # noqa: E402


def zipf(vocabulary: int) -> np.ndarray:
    return (1e6 / np.arange(1, vocabulary + 1)).astype(np.int64)


@pytest.mark.parametrize("negatives", [4, 50, 150, 399, 400])
def test_poisson_draws_the_number_asked_for_on_average(negatives: int) -> None:
    q = PoissonSampler(zipf(400), negatives).q_V
    assert q.sum() == pytest.approx(negatives)
    assert (q[:3] == 1).all() and (q <= 1).all() and (q > 0).all()
    weights = zipf(400)[3:] ** 0.75
    free = q[3:] < 1
    if free.any():
        ratio = (q[3:] / weights)[free]
        assert ratio == pytest.approx(ratio[0])
        assert (weights[~free] * ratio[0] >= 1).all()


def test_poisson_estimates_the_full_sum() -> None:
    sampler = PoissonSampler(zipf(400), 60)
    random = np.random.default_rng(7)
    logits = torch.from_numpy(random.normal(size=400))
    sums = []
    for _ in range(3000):
        words, correction, true_correction = sampler.draw(random)
        assert true_correction is None
        sums.append(float((logits[words] + correction).exp().sum()))
    error = np.std(sums) / np.sqrt(len(sums))
    assert np.mean(sums) == pytest.approx(float(logits.exp().sum()), abs=4 * error)
    assert error < 0.01 * np.mean(sums)


def test_words_that_never_occur_are_drawn_too() -> None:
    counts = zipf(400)
    counts[[0, 350]] = 0
    q = PoissonSampler(counts, 60).q_V
    assert q[0] == 1 and q[350] > 0


@pytest.mark.parametrize("sampler", [PoissonSampler(zipf(500), 80), LogUniformSampler(500, 80)])
def test_draws_are_distinct_marked_and_repeatable(
    sampler: PoissonSampler | LogUniformSampler,
) -> None:
    one, two = (np.random.default_rng(3) for _ in range(2))
    draws = [sampler.draw(one) for _ in range(5)]
    for candidates in draws:
        words = candidates.words_S
        assert words.dtype == torch.int64 and candidates.correction_S.dtype == torch.float32
        assert (words.diff() > 0).all() and words[0] >= 0 and words[-1] < 500
        again = sampler.draw(two)
        assert torch.equal(words, again.words_S)
        assert torch.equal(candidates.correction_S, again.correction_S)
        if isinstance(sampler, PoissonSampler):
            assert words[:3].tolist() == [0, 1, 2]
        else:
            assert len(words) == 80
    assert not all(torch.equal(draws[0].words_S, d.words_S) for d in draws[1:])


def test_log_uniform_expects_what_a_simulation_finds() -> None:
    vocabulary, negatives, rounds = 60, 25, 4000
    sampler = LogUniformSampler(vocabulary, negatives)
    assert sampler.p_V.sum() == pytest.approx(1)
    random = np.random.default_rng(5)
    # How often is each word among this many draws?
    tries = 50
    drawn = random.choice(vocabulary, size=(rounds, tries), p=sampler.p_V)
    frequency = np.mean([np.bincount(row, minlength=vocabulary) > 0 for row in drawn], axis=0)
    assert np.abs(frequency - sampler.expected(tries).numpy()).max() < 0.04
    # The words drawn and the tries they took are those of a loop that draws one by one.
    seen = np.zeros(vocabulary)
    counted = np.zeros(vocabulary)
    tried, estimated = 0, 0.0
    for _ in range(rounds):
        candidates = sampler.draw(random)
        seen[candidates.words_S.numpy()] += 1
        assert candidates.true_correction_V is not None
        corrected = candidates.true_correction_V[candidates.words_S]
        assert torch.equal(candidates.correction_S, corrected)
        missed = -np.expm1(-candidates.true_correction_V[-1].item())  # the rarest word, so often
        estimated += np.log(missed) / np.log1p(-sampler.p_V[-1])
        found: set[int] = set()
        sequence = iter(drawn[random.integers(rounds)])
        while len(found) < negatives:
            word = next(sequence, None)
            found.add(int(random.choice(vocabulary, p=sampler.p_V)) if word is None else int(word))
            tried += 1
        counted[list(found)] += 1
    assert np.abs(seen - counted).max() / rounds < 0.04
    assert estimated / rounds == pytest.approx(tried / rounds, rel=0.03)


def test_log_uniform_can_draw_all_words() -> None:
    words, correction, _ = LogUniformSampler(30, 30).draw(np.random.default_rng(0))
    assert words.tolist() == list(range(30)) and torch.isfinite(correction).all()


@pytest.mark.parametrize("negatives", [3, 31])
def test_impossible_numbers_of_negatives(negatives: int) -> None:
    with pytest.raises(InputError, match=f"{negatives} negatives"):
        PoissonSampler(zipf(30), negatives)
    with pytest.raises(InputError, match=f"{negatives} negatives"):
        LogUniformSampler(30, negatives)


def test_counts_have_to_be_counts() -> None:
    with pytest.raises(InputError, match="float64"):
        PoissonSampler(np.ones(30), 5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected one integer"):
        PoissonSampler(-zipf(30), 5)
    with pytest.raises(InputError, match="at least 1"):
        FullSampler(0)
