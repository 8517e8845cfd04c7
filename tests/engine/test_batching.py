from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elmokit.engine.batching import pack, plan_batches

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=12)


@given(lengths)
def test_a_packing_is_step_by_step_and_comes_back(sizes: list[int]) -> None:
    packing = pack(sizes)
    # Words written one after another, as (sentence, position).
    words = [(s, t) for s, size in enumerate(sizes) for t in range(size)]
    packed = [words[i] for i in packing.source]
    expected = [
        (s, t)
        for t in range(max(sizes))
        for s in sorted(range(len(sizes)), key=lambda s: -sizes[s])
        if t < sizes[s]
    ]
    assert packed == expected
    assert packing.alive.tolist() == [sum(n > t for n in sizes) for t in range(max(sizes))]
    assert [packed[i] for i in packing.mirror] == [(s, sizes[s] - 1 - t) for s, t in packed]
    rows = np.array(packed, np.float32)
    assert packing.unpack(rows).tolist() == [list(map(float, word)) for word in words]
    assert packing.rows == len(words)


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 60))
def test_a_plan_has_every_sentence_once_within_the_bound(sizes: list[int], bound: int) -> None:
    batches = plan_batches(sizes, bound)
    assert sorted(i for batch in batches for i in batch) == list(range(len(sizes)))
    for batch in batches:
        assert len(batch) == 1 or sum(sizes[i] for i in batch) <= bound
    ordered = [sizes[i] for batch in batches for i in batch]
    assert ordered == sorted(sizes, reverse=True), "similar lengths stand together"


def test_a_batch_of_enough_sentences_is_complete_with_half_the_words() -> None:
    lengths = [30] * 20 + [10] * 40 + [2] * 100
    words = [[lengths[i] for i in batch] for batch in plan_batches(lengths, 200, 8)]
    assert words[:3] == [[30] * 6] * 3, "fewer than 8 sentences fill it"
    assert words[4] == [10] * 10, "8 sentences, and half of the words"
    assert words[-2] == [2] * 50, "short sentences: more than 8 are needed for half of the words"
    assert all(sum(batch) <= 200 for batch in words)
    sixty_four = [list(range(64))]
    assert plan_batches([20] * 64, 2048, 48) == sixty_four, "too few are left for another batch"
    assert [len(batch) for batch in plan_batches([23] * 140, 2048, 48)] == [48, 48, 44]
    assert [len(batch) for batch in plan_batches([23] * 178, 2048, 48)] == [48, 48, 48, 34]
