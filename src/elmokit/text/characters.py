"""Words to the bytes that a biLM reads, in the scheme that all published ELMo models share.

A word is its UTF-8 bytes between two marks: `[258, bytes…, 259]`, cut to the model's maximum
length, then filled with 260. The sentence marks `<S>` and `</S>` are `[258, 256, 259]` and
`[258, 257, 259]`. Knows nothing about weights or vocabularies.

Shape letters: U words, C characters, B sentences, T words of the longest sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

BEGIN_SENTENCE, END_SENTENCE = 256, 257
BEGIN_WORD, END_WORD = 258, 259
PADDING = 260
BYTE_CHARACTERS = 261
"""Rows of a character table: 256 bytes and the five marks."""

BOS, EOS = "<S>", "</S>"
"""The sentence marks as words. Typed in a text they mean the marks, as in bilm-tf and AllenNLP."""


def encode_words(
    words: Sequence[str], max_characters: int = 50
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64]]:
    """Words to character ids (U, C), and how many of each row are not padding (U,)."""
    room = max_characters - 2  # the two marks of a word
    # "ignore" drops lone surrogates, which have no UTF-8 form, as the original code does.
    pieces = [word.encode("utf-8", "ignore")[:room] for word in words]
    sentence_marks = [row for row, word in enumerate(words) if word in (BOS, EOS)]
    for row in sentence_marks:
        pieces[row] = b"?"  # one character; which one is said below, for it is no byte

    # One flat buffer of all bytes, scattered to its rows at once.
    flat = np.frombuffer(b"".join(pieces), np.uint8)
    counts_U = np.fromiter(map(len, pieces), np.int64, len(pieces))
    every_U = np.arange(len(pieces))
    rows = np.repeat(every_U, counts_U)
    columns = np.arange(len(flat)) - np.repeat(np.cumsum(counts_U) - counts_U, counts_U) + 1

    ids_UC = np.full((len(pieces), max_characters), PADDING, dtype=np.int16)
    ids_UC[rows, columns] = flat
    ids_UC[:, 0] = BEGIN_WORD
    ids_UC[every_U, counts_U + 1] = END_WORD
    for row in sentence_marks:
        ids_UC[row, 1] = BEGIN_SENTENCE if words[row] == BOS else END_SENTENCE
    return ids_UC, counts_U + 2


def encode_sentences(
    sentences: Sequence[Sequence[str]], max_characters: int = 50
) -> npt.NDArray[np.int64]:
    """Sentences to the ids that networks take at inference (B, T, C): shifted by 1, 0 is no word.

    The sentence marks are not added. This is what AllenNLP calls `batch_to_ids`.
    """
    longest = max((len(sentence) for sentence in sentences), default=0)
    ids_BTC = np.zeros((len(sentences), longest, max_characters), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        ids_UC, _ = encode_words(sentence, max_characters)
        ids_BTC[row, : len(sentence)] = ids_UC + 1
    return ids_BTC
