from __future__ import annotations

from elmokit.probe.excerpt import excerpt, excerpt_line

WORDS = "one two three four five".split()


def test_all_of_it() -> None:
    assert excerpt(WORDS, 2) == ("one two", "three", "four five")
    assert excerpt(WORDS, 0) == ("", "one", "two three four five")
    assert excerpt_line(WORDS, 4) == "one two three four *five*"


def test_the_nearest_letters_stay() -> None:
    assert excerpt(WORDS, 2, 5) == ("… two", "three", "four…")
    assert all(len(part) <= 5 for part in excerpt(WORDS, 2, 5))
