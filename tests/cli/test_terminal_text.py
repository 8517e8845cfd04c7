"""Words of all scripts in terminal columns."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.conftest import GOLDEN

from elmokit.cli.terminal_text import cut, fit, isolate, printable

MODEL = str(GOLDEN / "models" / "plain")


@pytest.mark.parametrize(
    ("word", "width", "expected"),
    [
        ("bank", 4, "bank"),
        ("banks", 4, "ban…"),
        ("我", 2, "我"),
        ("银行存钱", 5, "银行…"),
        ("银行存钱", 4, "银…"),
        ("cafe\u0301s", 5, "cafe\u0301s"),
        ("cafe\u0301teria", 5, "cafe\u0301…"),
        ("a\x1b[31m", 12, "a\ufffd[31m"),
    ],
)
def test_words_are_cut_to_columns(word: str, width: int, expected: str) -> None:
    assert cut(word, width) == expected
    assert cell_len(fit(word, width)) <= width


def test_right_to_left_text_is_isolated() -> None:
    assert isolate("שלום") == "\u2068שלום\u2069" and isolate("bank") == "bank"
    assert cell_len(fit("שלום", 4)) == 4
    assert printable("a\tb") == "a\ufffdb"


def test_wide_characters_in_the_table(elmo_command) -> None:
    """Issue 14, point 6: every row began with an ellipsis."""
    result = elmo_command("embed", "-m", MODEL, "我去银行存钱。")
    table = result.out.splitlines()[3:]
    assert [line.split()[0] for line in table[1:8]] == list("我去银行存钱。")
    assert "…" not in result.out
    assert len({cell_len(line.rstrip()) for line in table[1:7]}) == 1, "columns are aligned"


@pytest.mark.parametrize("text", ["שלום לעולם הזה", "नमस्ते दुनिया", "cafe\u0301 olé"])
def test_other_scripts_keep_the_columns(elmo_command, text: str) -> None:
    lines = elmo_command("embed", "-m", MODEL, text).out.splitlines()
    words = text.split()
    table = [line.rstrip() for line in lines[4 : 4 + len(words)]]
    assert len({cell_len(line) for line in table}) == 1
    assert all(
        line.lstrip("\u2068").startswith(word) for line, word in zip(table, words, strict=True)
    )
