"""Batches of sentences for a network: a table of distinct words, and the row of each word in it.

Batches are made from words, or from the character ids that AllenNLP and bilm-tf take. A network
reads a sentence between its two marks, `<S>` and `</S>`. Knows nothing about weights.

Shape letters: B sentences, T words of the longest, C characters, U distinct words,
N all words of the batch, one sentence after another, marks included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from elmokit.bilm.model import BiLM
from elmokit.engine.batching import IntArray, Packing, pack
from elmokit.errors import InputError, InputTypeError
from elmokit.text.characters import NAMED_UNKNOWN


class Batcher:
    """Converts sentences to batches with the characters and known words of one model."""

    def __init__(self, bilm: BiLM) -> None:
        """Take the character set and the lexicon of a model; its weights are not used."""
        self._cnn = bilm.config.char_cnn
        self._characters = bilm.characters
        self._lexicon = bilm.lexicon
        self._marks_2C, _ = self._characters.encode(self._characters.marks)

    def from_words(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """Return a batch of sentences that are lists of words."""
        begin, end = self._characters.marks
        number: dict[str, int] = {}
        flat: list[int] = []
        for i, sentence in enumerate(sentences):
            if isinstance(sentence, (str, bytes)) or not isinstance(sentence, Sequence):
                raise InputTypeError(
                    f"sentence {i} is {type(sentence).__name__} {sentence!r:.40}; "
                    "expected a list of words"
                )
            for word in (begin, *sentence, end):
                if not isinstance(word, str):
                    raise InputTypeError(
                        f"sentence {i} contains {type(word).__name__} {word!r:.40}; "
                        "expected words as strings"
                    )
                flat.append(number.setdefault(word, len(number)))
        words = tuple(number)
        ids_UC, characters_U = self._characters.encode(words)
        lengths = tuple(map(len, sentences))
        return Batch(
            ids_UC,
            characters_U,
            np.array(flat, np.int64),
            lengths,
            max(lengths, default=0),
            words,
            self._lexicon_entries(words),
        )

    def _lexicon_entries(self, words: Sequence[str]) -> IntArray | None:
        """Return the rows of the words in the table of known words; see `engine/lexicon.py`."""
        if self._lexicon is None:
            return None
        unknown, longest = self._lexicon.index_of(NAMED_UNKNOWN), self._cnn.max_characters - 2
        rows = [self._lexicon.index_of(word[:longest], unknown) for word in words]
        return np.array(rows, np.int64)

    def from_character_ids(self, ids_BTC: Tensor | npt.NDArray[Any]) -> Batch:
        """Return a batch of character ids shifted by 1, where 0 means no word (`batch_to_ids`)."""
        if self._lexicon is not None:
            raise InputError(
                "this model also has vectors of whole words; give it words, not character ids"
            )
        ids = ids_BTC.detach().cpu().numpy() if isinstance(ids_BTC, Tensor) else ids_BTC
        longest, characters = self._cnn.max_characters, self._cnn.characters
        if ids.ndim != 3 or ids.shape[2] != longest:
            raise InputError(
                f"the character ids have the shape {ids.shape}; expected (B, T, {longest}), since "
                f"this model reads words of {longest} characters"
            )
        if ids.dtype.kind not in "iu":
            raise InputTypeError(f"the character ids are {ids.dtype}; expected integers")
        if ids.size and not (ids.min() >= 0 and ids.max() <= characters):
            raise InputError(
                f"the character ids go from {ids.min()} to {ids.max()}; expected 1 to "
                f"{characters}, and 0 where there is no word"
            )
        lengths_B = _sentence_lengths(ids, self._characters.padding)
        rows = [self._marks_2C[:1]]  # so that an empty batch has something to concatenate
        for sentence, length in zip(ids, lengths_B, strict=True):
            rows += [self._marks_2C[:1], sentence[:length].astype(np.int16) - 1, self._marks_2C[1:]]
        ids_UC, index = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
        return Batch(
            ids_UC,
            count_characters(ids_UC, self._characters.padding),
            index.ravel()[1:],
            tuple(lengths_B.tolist()),
            ids.shape[1],
        )


@dataclass(frozen=True)
class Batch:
    """Sentences as rows of a table of distinct words."""

    ids_UC: npt.NDArray[np.int16]
    """Character ids of each distinct word, not shifted."""
    characters_U: IntArray
    """Number of characters of each distinct word before its padding."""
    index_N: IntArray
    """Row of each word in the table."""
    lengths: tuple[int, ...]
    """Number of words of each sentence, without its marks."""
    steps: int
    """Width T of padded results: the longest length, or more."""
    words: tuple[str, ...] | None = None
    """Distinct words as strings, if the batch was made of strings."""
    entries_U: IntArray | None = None
    """Rows of the distinct words in the model's table of known words, if it has one."""

    def __len__(self) -> int:
        """Return the number of sentences, B."""
        return len(self.lengths)

    @cached_property
    def packing(self) -> Packing:
        """Order in which a network reads the words; needs at least one sentence."""
        return pack([length + 2 for length in self.lengths])

    def mask(self, marks: bool = False) -> Tensor:
        """Return where there is a word: (B, T), or (B, T+2) with the sentence marks."""
        extra = 2 if marks else 0
        lengths_B = torch.tensor(self.lengths, dtype=torch.long) + extra
        return torch.arange(self.steps + extra) < lengths_B[:, None]

    def pad(self, layers_LND: Tensor, marks: bool = False) -> Tensor:
        """Arrange (…, N, D) as (…, B, T, D), with zeros where there is no word.

        Args:
            layers_LND: Vectors of all words of the batch.
            marks: Keep the vectors of the sentence marks; the result then is (…, B, T+2, D).
        """
        rows, slots = self._padding[marks]
        steps = self.steps + (2 if marks else 0)
        *leading, _, width = layers_LND.shape
        selected = layers_LND.index_select(-2, rows.to(layers_LND.device))
        out = layers_LND.new_zeros(*leading, len(self) * steps, width)
        out = out.index_copy(-2, slots.to(layers_LND.device), selected)
        return out.view(*leading, len(self), steps, width)

    @cached_property
    def _padding(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Rows of N to keep and their slots in B·T: without the marks, and with them."""
        lengths_B = np.array(self.lengths, np.int64) + 2
        sentence = np.repeat(np.arange(len(self)), lengths_B)
        step = np.arange(lengths_B.sum()) - np.repeat(np.cumsum(lengths_B) - lengths_B, lengths_B)
        inside = np.flatnonzero((step > 0) & (step < lengths_B[sentence] - 1))
        without = inside, sentence[inside] * self.steps + step[inside] - 1
        whole = np.arange(len(step)), sentence * (self.steps + 2) + step
        (a, b), (c, d) = (map(torch.from_numpy, pair) for pair in (without, whole))
        return (a, b), (c, d)


def count_characters(ids_UC: npt.NDArray[np.int16], padding: int) -> IntArray:
    """Return the number of characters of each word before its padding, (U,)."""
    positions_UC = (ids_UC != padding) * np.arange(1, ids_UC.shape[1] + 1)
    counts_U: IntArray = positions_UC.max(axis=1, initial=0)
    return counts_U


def _sentence_lengths(ids_BTC: npt.NDArray[Any], padding: int) -> IntArray:
    """Return the number of words of each sentence; raise unless words come first, then zeros."""
    nonzero_BTC = ids_BTC > 0
    word_BT = nonzero_BTC.any(axis=2)
    lengths_B: IntArray = word_BT.sum(axis=1)
    holes = (word_BT != (np.arange(word_BT.shape[1]) < lengths_B[:, None])).any(axis=1)
    if holes.any():
        raise InputError(
            f"sentence {int(holes.argmax())} of the character ids has a word after an empty "
            "position; expected the words first, then zeros"
        )
    ragged = word_BT & ~nonzero_BTC.all(axis=2)
    if ragged.any():
        sentence, word = np.argwhere(ragged)[0].tolist()
        raise InputError(
            f"sentence {sentence}, word {word} of the character ids contains 0, which means no "
            f"word; pad words with {padding + 1}"
        )
    return lengths_B
