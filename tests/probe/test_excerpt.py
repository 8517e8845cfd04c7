from __future__ import annotations

from elmokit.probe.excerpt import excerpt, excerpt_line, snippet

WORDS = "one two three four five".split()


def test_all_of_it() -> None:
    assert excerpt(WORDS, 2) == ("one two", "three", "four five")
    assert excerpt(WORDS, 0) == ("", "one", "two three four five")
    assert excerpt_line(WORDS, 4) == "one two three four *five*"


def test_the_nearest_letters_stay() -> None:
    assert excerpt(WORDS, 2, 5) == ("… two", "three", "four…")
    assert all(len(part) <= 5 for part in excerpt(WORDS, 2, 5))


def test_snippets_are_whole_words() -> None:
    words = "I sat by the river bank , and it did n't rain .".split()
    assert snippet(words, 5, 100, mark="*") == "I sat by the river *bank*, and it didn't rain."
    assert snippet(words, 5, 24) == "… the river bank, and …"
    assert snippet(words, 5, 1) == "… bank …"
    assert snippet(["银", "行"], 0, 4, lambda text: 2 * len(text)) == "银 …"
