"""A batch of sentences on its way into a network: distinct words, and where each of them stands.

Made from words or from the character ids that AllenNLP and bilm-tf take. A sentence is read
between its two marks. Knows nothing about weights.

Shape letters: B sentences, T words of the longest, C characters, U distinct words,
N all words of the batch, the sentences one after another, marks included.
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


class BatchMaker:
    """Sentences to batches, as one model reads them."""

    def __init__(self, bilm: BiLM) -> None:
        """Takes the model's characters and known words; its weights are of no interest."""
        self._cnn = bilm.config.char_cnn
        self._characters = bilm.characters
        self._lexicon = bilm.lexicon
        self._marks_2C, _ = self._characters.encode(self._characters.marks)

    def of_words(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """From words as strings."""
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
                        f"sentence {i} holds {type(word).__name__} {word!r:.40}; "
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
            self._entries(words),
        )

    def _entries(self, words: Sequence[str]) -> IntArray | None:
        """The rows of the words in the table of known ones; see `engine/lexicon.py`."""
        if self._lexicon is None:
            return None
        unknown, longest = self._lexicon.find(NAMED_UNKNOWN), self._cnn.max_characters - 2
        rows = [self._lexicon.find(word[:longest], unknown) for word in words]
        return np.array(rows, np.int64)

    def of_ids(self, ids_BTC: Tensor | npt.NDArray[Any]) -> Batch:
        """From character ids shifted by 1, where 0 is no word (`batch_to_ids`)."""
        if self._lexicon is not None:
            raise InputError("this model also knows whole words: give it words, not characters")
        ids = ids_BTC.detach().cpu().numpy() if isinstance(ids_BTC, Tensor) else ids_BTC
        longest, characters = self._cnn.max_characters, self._cnn.characters
        if ids.ndim != 3 or ids.shape[2] != longest:
            raise InputError(
                f"the character ids have the shape {ids.shape}; this model reads words of "
                f"{longest} characters: expected (B, T, {longest})"
            )
        if ids.dtype.kind not in "iu":
            raise InputTypeError(f"the character ids are {ids.dtype}; expected whole numbers")
        if ids.size and not (ids.min() >= 0 and ids.max() <= characters):
            raise InputError(
                f"the character ids go from {ids.min()} to {ids.max()}; expected 1 to "
                f"{characters}, and 0 where there is no word"
            )
        lengths_B = _lengths(ids, self._characters.padding)
        rows = [self._marks_2C[:1]]  # so that an empty batch has something to join
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
    """The characters of each distinct word, not shifted."""
    characters_U: IntArray
    """How many of them there are before nothing but padding follows."""
    index_N: IntArray
    """For each word, its row of the table."""
    lengths: tuple[int, ...]
    """How many words each sentence has, without its marks."""
    steps: int
    """T: at least the longest of the lengths; the width of padded results."""
    words: tuple[str, ...] | None = None
    """The distinct words as strings, if the batch was made of strings."""
    entries_U: IntArray | None = None
    """Their rows in the model's table of known words, if it has one."""

    def __len__(self) -> int:
        """B."""
        return len(self.lengths)

    @cached_property
    def packing(self) -> Packing:
        """The order in which a network reads; the batch must have a sentence."""
        return pack([length + 2 for length in self.lengths])

    def mask(self, marks: bool = False) -> Tensor:
        """(B, T), or (B, T+2) with the marks: where there is a word."""
        extra = 2 if marks else 0
        lengths_B = torch.tensor(self.lengths, dtype=torch.long) + extra
        return torch.arange(self.steps + extra) < lengths_B[:, None]

    def pad(self, layers_LND: Tensor, marks: bool = False) -> Tensor:
        """(…, N, D) to (…, B, T, D), zero where there is no word; `marks` keeps theirs, T+2."""
        places, slots = self._places[marks]
        steps = self.steps + (2 if marks else 0)
        *more, _, width = layers_LND.shape
        kept = layers_LND.index_select(-2, places.to(layers_LND.device))
        out = layers_LND.new_zeros(*more, len(self) * steps, width)
        out = out.index_copy(-2, slots.to(layers_LND.device), kept)
        return out.view(*more, len(self), steps, width)

    @cached_property
    def _places(self) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Which of the N words are kept, and where in B·T they go: without and with marks."""
        lengths_B = np.array(self.lengths, np.int64) + 2
        sentence = np.repeat(np.arange(len(self)), lengths_B)
        step = np.arange(lengths_B.sum()) - np.repeat(np.cumsum(lengths_B) - lengths_B, lengths_B)
        inside = np.flatnonzero((step > 0) & (step < lengths_B[sentence] - 1))
        without = inside, sentence[inside] * self.steps + step[inside] - 1
        whole = np.arange(len(step)), sentence * (self.steps + 2) + step
        (a, b), (c, d) = (map(torch.from_numpy, pair) for pair in (without, whole))
        return (a, b), (c, d)


def count_characters(ids_UC: npt.NDArray[np.int16], padding: int) -> IntArray:
    """(U,) how many characters each word has before nothing but padding follows."""
    counted_UC = (ids_UC != padding) * np.arange(1, ids_UC.shape[1] + 1)
    most_U: IntArray = counted_UC.max(axis=1, initial=0)
    return most_U


def _lengths(ids_BTC: npt.NDArray[Any], padding: int) -> IntArray:
    """The words of each sentence, or an error where the ids are not words and then nothing."""
    there_BTC = ids_BTC > 0
    word_BT = there_BTC.any(axis=2)
    lengths_B: IntArray = word_BT.sum(axis=1)
    holes = (word_BT != (np.arange(word_BT.shape[1]) < lengths_B[:, None])).any(axis=1)
    if holes.any():
        raise InputError(
            f"sentence {int(holes.argmax())} of the character ids has a word after a place without "
            "one; expected the words first, then zeros"
        )
    ragged = word_BT & ~there_BTC.all(axis=2)
    if ragged.any():
        sentence, word = np.argwhere(ragged)[0].tolist()
        raise InputError(
            f"sentence {sentence}, word {word} of the character ids holds 0, which means no word; "
            f"a word is filled up with {padding + 1}"
        )
    return lengths_B
