from __future__ import annotations

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elmokit.engine.wordcache import WordCache

WIDTH = 3
ENTRY = 4 * WIDTH + WordCache.BYTES_PER_KEY


def vector(word: str) -> np.ndarray:
    return np.full(WIDTH, sum(map(ord, word)), np.float32)


def compute(words: list[str]) -> np.ndarray:
    return np.stack([vector(word) for word in words])


@given(st.lists(st.sets(st.sampled_from("abcdefghij"), min_size=1)), st.integers(0, 8))
def test_never_seen_in_the_results_and_never_too_large(calls: list[set[str]], size: int) -> None:
    cache = WordCache(WIDTH, size * ENTRY)
    for words in map(sorted, calls):
        assert (cache.look_up(words, compute) == compute(words)).all()
        assert len(cache) <= size


def test_a_word_is_computed_once() -> None:
    computed: list[str] = []

    def counted(words: list[str]) -> np.ndarray:
        computed.extend(words)
        return compute(words)

    cache = WordCache(WIDTH, 100 * ENTRY)
    cache.look_up(["the", "bank"], counted)
    cache.look_up(["a", "the"], counted)
    assert computed == ["the", "bank", "a"]


def test_frequent_words_outlive_rare_ones() -> None:
    computed: list[str] = []

    def counted(words: list[str]) -> np.ndarray:
        computed.extend(words)
        return compute(words)

    cache = WordCache(WIDTH, 20 * ENTRY)
    for i in range(200):
        cache.look_up(["the", f"rare{i}"], counted)
    assert computed.count("the") == 1


def test_a_result_is_not_the_cache() -> None:
    cache = WordCache(WIDTH, 10 * ENTRY)
    cache.look_up(["a"], compute)[:] = 0
    assert (cache.look_up(["a"], compute) == vector("a")).all()


def test_several_threads() -> None:
    cache = WordCache(WIDTH, 6 * ENTRY)
    wrong: list[str] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(300):
            words = sorted(set(random.choice(list("abcdefghijkl"), 4)))
            if not (cache.look_up(words, compute) == compute(words)).all():
                wrong.extend(words)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
