"""Sentiment trees to words and labeled phrases."""

import pytest

from elmokit.errors import FormatError
from elmokit.tasks.sentiment.trees import Phrase, parse_tree


def test_a_tree_gives_words_the_label_of_the_whole_and_of_the_phrases() -> None:
    words, label, phrases = parse_tree("(3 (2 It) (4 (4 (2 's) (3 (2 a) (4 film))) (2 .)))", "f:1")
    assert words == ("It", "'s", "a", "film", ".")
    assert label == 3
    assert phrases == (Phrase(2, 4, 3), Phrase(1, 4, 4), Phrase(1, 5, 4))


def test_one_word_is_a_tree() -> None:
    assert parse_tree("(0 bad)", "f:1") == (("bad",), 0, ())


def test_any_number_of_branches_and_spaces_is_read() -> None:
    assert parse_tree("( 1 (2 a)(2 b)\t(2 c) )", "f:1") == (("a", "b", "c"), 1, ())
    assert parse_tree("(3 (3 (2 so) (4 good)))", "f:1").phrases == (Phrase(0, 2, 3),)


def test_the_treebanks_spelling_is_undone() -> None:
    line = "(2 (2 -LRB-) (2 and\\/or) (2 \\*) (2 -RCB-) (2 ``) (2 '') (2 2\xa01\\/2) (2 -lrb-))"
    words = parse_tree(line, "f:1").words
    assert words == ("(", "and/or", "*", "}", '"', '"', "2\xa01/2", "-lrb-")


def test_a_deep_tree_needs_no_deep_stack() -> None:
    depth = 20_000
    words, _, phrases = parse_tree("(2 (2 a) " * depth + "(2 b)" + ")" * depth, "f:1")
    assert (len(words), len(phrases)) == (depth + 1, depth - 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("(3 (2 It) (4 good)", "1 brackets are not closed"),
        ("(3 (2 It", "2 brackets are not closed"),
        ("(3 (2 It) (4 good)))", "')' after the tree's last bracket"),
        ("(3 It) (4 good)", "'(' after the tree's last bracket"),
        (")", "the line begins with ')'"),
        ("3 It", "'3' found; expected '('"),
        ("(5 good)", "'5' after bracket 1; expected a label from 0"),
        ("(3 (2 so) (-1 bad))", "'-1' after bracket 3"),
        ("(3 (2 so) (³ bad))", "'³' after bracket 3"),
        ("(good)", "'good' after bracket 1"),
        ("((2 a) (2 b))", "'(' after bracket 1"),
        ("(3 (2 a) (", "'the end of the line' after bracket 3"),
        ("(3)", "'(3)' holds no word"),
        ("(3 (2 a) (2 ))", "'(2)' holds no word"),
        ("()", "')' after bracket 1"),
        ("(3 very good)", "the word 'very' is not alone"),
        ("(3 (2 very) good)", "the word 'good' is not alone"),
        ("(3 very (2 good))", "the word 'very' is not alone"),
    ],
)
def test_a_bad_tree_is_told_with_its_place(line: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_tree(line, "trees.txt:9")
    assert str(caught.value).startswith(f"trees.txt:9: {message}")
