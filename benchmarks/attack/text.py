"""Gives hostile text to the tokenizer, the sentence splitter and the model, at any scale.

    python benchmarks/attack/text.py --cases 10000
    python benchmarks/attack/text.py --only tokenize --cases 1000000 --seed 7

`tokenize` and `sentences`: any Unicode, with everything that tokenizers trip over. Offsets slice
the original string back, only white space and
invisible characters lie between two words, and no error but ours occurs.
`growth`: inputs of repeated pieces, doubled in size: processor time may at most double, too, with a
generous allowance. `embed`: the same text through `embed_text` of a small model.
"""

from __future__ import annotations

import random
import time
import unicodedata
from collections import Counter
from collections.abc import Callable

from sandbox import Case, choose, outcome_of, run_cases
from seeds import tiny_model
from tally import Tally, parse_arguments

from elmokit import Elmo
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import split_words, tokenize

PIECES = [
    *("a", "Z", "9", " ", "  ", "\t", "\n", "\r\n", "\r", "\0", "\x1c", "\x85", "\xa0", "\u2028"),
    *(
        ".",
        "...",
        "…",
        ",",
        "!",
        "?",
        "?!",
        ":",
        ";",
        "'",
        "’",
        '"',
        "``",
        "''",
        "“",
        "”",
        "«",
        "»",
    ),
    *("(", ")", "[", "]", "{", "}", "<", ">", "-", "--", "–", "—", "/", "\\", "|", "@", "#", "$"),
    *("%", "&", "*", "_", "=", "+", "~", "^", "n't", "'s", "’re", "can't", "Mr.", "U.S.", "e.g."),
    *("etc.", "1,000.5", "3.14", "10:30", "http://a.b/c?d=e#f", "www.x.org", "a@b.co", "#tag"),
    *("\u0301", "\u200d", "\u200b", "\ufeff", "\ufffd", "\ud800", "\udfff", "\U0010ffff", "😀"),
    *(
        "👩\u200d👩\u200d👧",
        "🇩🇪",
        "é",
        "e\u0301",
        "ß",
        "İ",
        "ı",
        "ﬁ",
        "Ω",
        "я",
        "ש",
        "ع",
        "अ",
        "ก",
        "漢字",
    ),
    *(
        "한글",
        "ひ",
        "\u202e",
        "\u2066",
        "\ue000",
        "①",
        "½",
        "٣",
        "Ⅷ",
        "ǅ",
        "\x1b[31m",
        "</s>",
        "<S>",
    ),
]
"""Pieces of hostile text."""
LENGTHS = (0, 1, 2, 3, 5, 8, 13, 40, 100, 400)
GROWTH = 4.0
"""How much more processor time an input of twice the size may take; linear is 2."""
SMALLEST_SECONDS = 0.05
"""Times below this are not compared."""


def hostile_text(source: random.Random) -> str:
    """Return a random text."""
    length = source.choice(LENGTHS)
    kind = source.random()
    if kind < 0.6:
        return "".join(source.choices(PIECES, k=length))
    if kind < 0.8:
        return "".join(chr(source.randrange(0x110000)) for _ in range(length))
    if kind < 0.9:
        return "".join(chr(source.randrange(0x250)) for _ in range(length))
    return source.choice(PIECES) * (10 * length)


def _visible(text: str) -> str:
    """Return a text without white space and characters that have no shape of their own."""
    return "".join(c for c in text if unicodedata.category(c)[0] not in "CZ")


def check_tokens(text: str) -> None:
    """Raise `AssertionError` if the words of a text are not where they say they are."""
    tokens = tokenize(text)
    position = 0
    for token in tokens:
        assert text[token.start : token.end], f"empty: {text!r}"
        assert token.start >= position, f"overlap: {text!r}"
        assert not _visible(text[position : token.start]), f"lost text: {text!r}"
        position = token.end
    assert not _visible(text[position:]), f"lost text at the end: {text!r}"
    assert [token.text for token in tokens] == split_words(text), f"other words: {text!r}"


def check_sentences(text: str) -> None:
    """Raise `AssertionError` if the sentences of a text are not where they say they are."""
    position = 0
    for sentence in split_sentences(text):
        end = sentence.start + len(sentence.text)
        assert text[sentence.start : end] == sentence.text, f"moved: {text!r}"
        assert sentence.start >= position, f"overlap: {text!r}"
        assert not _visible(text[position : sentence.start]), f"lost text: {text!r}"
        position = end
    assert not _visible(text[position:]), f"lost text at the end: {text!r}"


def check_growth(source: random.Random) -> str | None:
    """Return what is wrong if a text of twice the size takes far more than twice the time."""
    unit = "".join(source.choices(PIECES, k=source.choice((1, 1, 2, 3))))
    tail = source.choice(("", "", source.choice(PIECES)))
    for function in (tokenize, split_sentences):
        size, last = 20_000, 0.0
        while size <= 320_000:
            taken = _processor_time(function, unit * (size // len(unit)) + tail)
            if last > SMALLEST_SECONDS and taken > GROWTH * last:
                again = _processor_time(function, unit * (size // len(unit)) + tail)
                if again > GROWTH * last:
                    return (
                        f"{function.__name__} of {unit!r} repeated to {size:,} characters takes "
                        f"{again:.2f} s, half of it {last:.2f} s"
                    )
            if taken > 5:
                return f"{function.__name__} of {unit!r}, {size:,} characters: {taken:.1f} s"
            last, size = taken, 2 * size
    return None


def _processor_time(function: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    result = function(text)
    if not isinstance(result, list):
        list(result)  # type: ignore[call-overload]
    return time.process_time() - start


def text_case(kind: str, seed: int, elmo: Elmo) -> Case:
    """Return a function that does a case of a kind."""

    def case(number: int, outcomes: Counter[str]) -> str | None:
        source = random.Random(f"{seed} {kind} {number}")
        if kind == "growth":
            return check_growth(source)
        text = hostile_text(source)
        if kind == "tokenize":
            return outcome_of(lambda: check_tokens(text), outcomes)
        if kind == "sentences":
            return outcome_of(lambda: check_sentences(text), outcomes)
        return outcome_of(lambda: elmo.embed_text(text), outcomes)

    return case


KINDS = {"tokenize": 1.0, "sentences": 1.0, "embed": 0.05, "growth": 0.002}
"""The kinds of cases, and what share of `--cases` is of each."""


def attack_kind(tally: Tally, kind: str, seed: int, numbers: range) -> None:
    """Do cases of one kind."""
    elmo = Elmo(tiny_model(), threads=1)
    run_cases(tally, kind, text_case(kind, seed, elmo), numbers)


def main() -> None:
    """Attack with all kinds, or those of the command line."""
    arguments = parse_arguments(__doc__, list(KINDS), 5000, numbered=True)
    tally = Tally("text", arguments.seed, arguments.seconds)
    for kind in choose(list(KINDS), arguments.only):
        cases = arguments.cases if arguments.only else max(1, int(arguments.cases * KINDS[kind]))
        numbers = range(arguments.first, arguments.first + cases)
        attack_kind(tally, kind, arguments.seed, numbers)
    tally.finish()


if __name__ == "__main__":
    main()
