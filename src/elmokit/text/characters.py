"""Encoding words as the character ids that a biLM reads, in one of two schemes.

*Bytes*, as in bilm-tf and AllenNLP: a word is its UTF-8 bytes between two marks,
`[258, bytes…, 259]`, cut to the model's maximum length and padded with 260. The sentence marks
`<S>` and `</S>` are `[258, 256, 259]` and `[258, 257, 259]`.

*Code points*, as in ELMoForManyLangs: the same, but a character is a Unicode code point, and its
id is its index in the model's own alphabet, which also has entries for the marks.

Knows nothing about weights or vocabularies.
Shape letters: U words, C characters, B sentences, T words of the longest sentence.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from elmokit.text.dictionary import Dictionary

BEGIN_SENTENCE, END_SENTENCE = 256, 257
BEGIN_WORD, END_WORD = 258, 259
PADDING = 260
BYTE_CHARACTERS = 261
"""Number of rows of a character table: 256 bytes and five marks."""

BOS, EOS = "<S>", "</S>"
"""The sentence marks as words. In a text they stand for the marks, as in bilm-tf and AllenNLP."""

NAMED_BOS, NAMED_EOS, NAMED_UNKNOWN = "<bos>", "<eos>", "<oov>"
ALPHABET_MARKS = (NAMED_BOS, NAMED_EOS, "<bow>", "<eow>", NAMED_UNKNOWN, "<pad>")
"""The entries of a code-point alphabet that are marks rather than characters."""

CharacterIds = tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]
"""Character ids (U, C), and the length of each word before its padding (U,)."""


class CharacterEncoder(Protocol):
    """Encodes words as character ids, with the settings of one model."""

    @property
    def marks(self) -> tuple[str, str]:
        """The words that mark the beginning and the end of a sentence."""

    @property
    def padding(self) -> int:
        """The id that fills the row after the end of a word."""

    @property
    def unit(self) -> str:
        """What a word is made of, in the plural: `bytes` or `characters`."""

    @property
    def longest_word(self) -> int:
        """Maximum length of a word in that unit; only the beginning of a longer one is read."""

    def encode(self, words: Sequence[str]) -> CharacterIds:
        """Return the character ids of words, and the length of each before its padding."""

    def length(self, word: str) -> int:
        """Return the length of a word in the unit of the encoder."""


class ByteEncoder:
    """Encodes words as UTF-8 bytes."""

    marks = (BOS, EOS)
    padding = PADDING
    unit = "bytes"

    def __init__(self, max_characters: int) -> None:
        """Set the maximum length of a word in bytes, including its two marks."""
        self._max_characters = max_characters
        self.longest_word = max_characters - 2

    def encode(self, words: Sequence[str]) -> CharacterIds:
        """Return the byte ids of words, and the length of each before its padding."""
        return encode_words(words, self._max_characters)

    def length(self, word: str) -> int:
        """Return the number of bytes of a word in UTF-8."""
        return len(word.encode("utf-8", "ignore"))


class CodePointEncoder:
    """Encodes words as Unicode code points of an alphabet; all others get one common id."""

    marks = (NAMED_BOS, NAMED_EOS)
    unit = "characters"

    def __init__(self, alphabet: Dictionary, max_characters: int) -> None:
        """Prepare the encoder.

        Args:
            alphabet: The characters that have an id, with all of `ALPHABET_MARKS`.
            max_characters: Maximum length of a word in characters, including its two marks.
        """
        bos, eos, bow, eow, unknown, self.padding = (alphabet.index_of(m) for m in ALPHABET_MARKS)
        self._marks = {NAMED_BOS: bos, NAMED_EOS: eos}
        # ELMoForManyLangs begins a word with the mark that it calls the end of a word, and ends it
        # with the other. Its models were trained that way.
        self._begin, self._end = eow, bow
        self._max_characters = max_characters
        self.longest_word = max_characters - 2
        self._id_of = np.full(sys.maxunicode + 1, unknown, np.int16)
        for i, entry in enumerate(alphabet):
            if len(entry) == 1:
                self._id_of[ord(entry)] = i

    def encode(self, words: Sequence[str]) -> CharacterIds:
        """Return the character ids of words, and the length of each before its padding."""
        room = self._max_characters - 2
        # A sentence mark is one character, whose id is set below.
        pieces = ["?" if word in self._marks else word[:room] for word in words]
        points = "".join(pieces).encode("utf-32-le", "surrogatepass")
        flat = self._id_of[np.frombuffer(points, "<u4")]
        ids_UC, lengths_U = _lay_out(
            flat, list(map(len, pieces)), self._max_characters, self._begin, self._end, self.padding
        )
        for row, word in enumerate(words):
            if word in self._marks:
                ids_UC[row, 1] = self._marks[word]
        return ids_UC, lengths_U

    def length(self, word: str) -> int:
        """Return the number of code points of a word."""
        return len(word)


def encode_words(words: Sequence[str], max_characters: int = 50) -> CharacterIds:
    """Return the byte ids (U, C) of words, and the length of each before its padding (U,)."""
    room = max_characters - 2  # the two marks of a word
    # "ignore" drops lone surrogates, which have no UTF-8 form, as the original code does.
    pieces = [word.encode("utf-8", "ignore")[:room] for word in words]
    sentence_marks = [row for row, word in enumerate(words) if word in (BOS, EOS)]
    for row in sentence_marks:
        pieces[row] = b"?"  # one character, whose id is set below, since it is not a byte
    flat = np.frombuffer(b"".join(pieces), np.uint8)
    ids_UC, lengths_U = _lay_out(
        flat, list(map(len, pieces)), max_characters, BEGIN_WORD, END_WORD, PADDING
    )
    for row in sentence_marks:
        ids_UC[row, 1] = BEGIN_SENTENCE if words[row] == BOS else END_SENTENCE
    return ids_UC, lengths_U


def _lay_out(
    flat: npt.NDArray[np.integer],
    counts: list[int],
    max_characters: int,
    begin: int,
    end: int,
    padding: int,
) -> CharacterIds:
    """Place the characters of all words, given one word after another, in one row per word."""
    counts_U = np.array(counts, np.int64)
    every_U = np.arange(len(counts))
    rows = np.repeat(every_U, counts_U)
    columns = np.arange(len(flat)) - np.repeat(np.cumsum(counts_U) - counts_U, counts_U) + 1

    ids_UC = np.full((len(counts), max_characters), padding, dtype=np.int16)
    ids_UC[rows, columns] = flat
    ids_UC[:, 0] = begin
    ids_UC[every_U, counts_U + 1] = end
    return ids_UC, counts_U + 2


def encode_sentences(
    sentences: Sequence[Sequence[str]], max_characters: int = 50
) -> npt.NDArray[np.int64]:
    """Return byte ids (B, T, C) for inference: shifted by 1, so that 0 means "no word".

    Sentence marks are not added. AllenNLP calls this function `batch_to_ids`.
    """
    longest = max((len(sentence) for sentence in sentences), default=0)
    ids_BTC = np.zeros((len(sentences), longest, max_characters), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        ids_UC, _ = encode_words(sentence, max_characters)
        ids_BTC[row, : len(sentence)] = ids_UC + 1
    return ids_BTC
