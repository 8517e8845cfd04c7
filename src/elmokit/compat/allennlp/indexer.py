"""AllenNLP's `batch_to_ids`, `ELMoCharacterMapper` and `ELMoTokenCharactersIndexer`.

The indexer has the methods of all versions of AllenNLP, so that a `TextField` of an installed
AllenNLP can use it. AllenNLP is not needed: where it takes a `Token`, a string does as well, and
where it takes a `Vocabulary`, anything does, since ELMo has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from elmokit.errors import InputTypeError
from elmokit.text import characters
from elmokit.text.characters import BOS, EOS, encode_sentences, encode_words

ELMO_TOKENS = "elmo_tokens"
"""Key of the character ids in the results of AllenNLP 1.0 and later."""


def batch_to_ids(batch: Sequence[Sequence[str]], max_characters: int = 50) -> Tensor:
    """Return the character ids (B, T, 50) of tokenized sentences; 0 is padding.

    Args:
        batch: Sentences, each a list of words.
        max_characters: Characters per word; not an argument of AllenNLP, whose models all have 50.
    """
    return torch.from_numpy(encode_sentences(batch, max_characters))


class _OnClassOrInstance:
    """A method that can be called on the class, too, which then makes an object for it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        return partial(self._function, owner() if instance is None else instance)


class ELMoCharacterMapper:
    """AllenNLP's map from a word to 50 character ids."""

    max_word_length = 50
    beginning_of_sentence_character = characters.BEGIN_SENTENCE
    end_of_sentence_character = characters.END_SENTENCE
    beginning_of_word_character = characters.BEGIN_WORD
    end_of_word_character = characters.END_WORD
    padding_character = characters.PADDING
    bos_token = BOS
    eos_token = EOS
    beginning_of_sentence_characters: list[int] = encode_words([BOS])[0][0].tolist()
    end_of_sentence_characters: list[int] = encode_words([EOS])[0][0].tolist()
    """Ids of the sentence marks, before 1 is added to all ids."""

    def __init__(self, tokens_to_add: Mapping[str, int] | None = None) -> None:
        """Set words that are one character of their own, with the ids of those characters."""
        self.tokens_to_add = dict(tokens_to_add or {})

    def _convert(self, word: str) -> list[int]:
        """Return the 50 character ids of a word, counted from 1, since 0 means no word."""
        ids_C = encode_words([word], self.max_word_length)[0][0]
        if word in self.tokens_to_add:
            ids_C = encode_words(["?"], self.max_word_length)[0][0]
            ids_C[1] = self.tokens_to_add[word]
        ids: list[int] = (ids_C + 1).tolist()
        return ids

    convert_word_to_char_ids = _OnClassOrInstance(_convert)


class ELMoTokenCharactersIndexer:
    """AllenNLP's indexer that turns tokens into character ids."""

    def __init__(
        self,
        namespace: str = "elmo_characters",
        tokens_to_add: Mapping[str, int] | None = None,
        token_min_padding_length: int = 0,
    ) -> None:
        """Create an indexer; the arguments are those of AllenNLP.

        Args:
            namespace: Has no effect: ELMo has no vocabulary.
            tokens_to_add: Words that are one character of their own, with its id.
            token_min_padding_length: Number of tokens to pad to at least.
        """
        self._namespace = namespace
        self._mapper = ELMoCharacterMapper(tokens_to_add)
        self._token_min_padding_length = token_min_padding_length

    def count_vocab_items(self, token: Any, counter: Any) -> None:
        """Do nothing: ELMo has no vocabulary."""

    def tokens_to_indices(
        self, tokens: Sequence[Any], vocabulary: Any = None, index_name: str = ELMO_TOKENS
    ) -> dict[str, list[list[int]]]:
        """Return the character ids of tokens or strings, under the key `index_name`."""
        return {index_name: [self.token_to_indices(token) for token in tokens]}

    def token_to_indices(self, token: Any, vocabulary: Any = None) -> list[int]:
        """Return the 50 character ids of a token or a string."""
        text = token if isinstance(token, str) else getattr(token, "text", None)
        if not isinstance(text, str):
            raise InputTypeError(
                f"token is {type(token).__name__} {token!r:.40}; expected a string, or an object "
                "with the attribute `text`"
            )
        ids: list[int] = self._mapper.convert_word_to_char_ids(text)
        return ids

    def get_empty_token_list(self) -> dict[str, list[Any]]:
        """Return what `tokens_to_indices` returns for no tokens."""
        return {ELMO_TOKENS: []}

    def get_keys(self, index_name: str) -> list[str]:
        """Return the keys of what `tokens_to_indices` returns (AllenNLP 0.8 and 0.9)."""
        return [index_name]

    def get_padding_lengths(self, indexed_tokens: Any) -> dict[str, int]:
        """Return the number of tokens under each key; nothing for the ids of one token."""
        if not isinstance(indexed_tokens, Mapping):
            return {}  # AllenNLP before 1.0 asks this of a token
        shortest = self._token_min_padding_length
        return {key: max(len(tokens), shortest) for key, tokens in indexed_tokens.items()}

    def as_padded_tensor_dict(
        self, tokens: Mapping[str, Sequence[list[int]]], padding_lengths: Mapping[str, int]
    ) -> dict[str, Tensor]:
        """Return the ids as tensors (T, 50), padded or cut to lengths (AllenNLP 1 and 2)."""
        return {
            key: torch.tensor(self._pad(ids, padding_lengths[key]), dtype=torch.long)
            for key, ids in tokens.items()
        }

    def as_padded_tensor(
        self,
        tokens: Mapping[str, Sequence[list[int]]],
        desired_num_tokens: Mapping[str, int],
        padding_lengths: Mapping[str, int],
    ) -> dict[str, Tensor]:
        """Return the ids as tensors (T, 50), padded or cut to the lengths (AllenNLP 0.9)."""
        return self.as_padded_tensor_dict(tokens, desired_num_tokens)

    def pad_token_sequence(
        self, tokens: Any, desired_num_tokens: Any, padding_lengths: Mapping[str, int]
    ) -> Any:
        """Return the ids, padded or cut to a length: lists by key, or one list (AllenNLP 0.8)."""
        if isinstance(tokens, Mapping):
            return {key: self._pad(ids, desired_num_tokens[key]) for key, ids in tokens.items()}
        return self._pad(tokens, desired_num_tokens)

    def _pad(self, ids: Sequence[list[int]], count: int) -> list[list[int]]:
        padding = [[0] * self._mapper.max_word_length] * (count - len(ids))
        return [*ids[:count], *padding]
