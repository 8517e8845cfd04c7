"""scikit-learn: `ElmoVectorizer`, a transformer from texts to sentence vectors.

    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from elmokit.integrations.sklearn import ElmoVectorizer

    classifier = make_pipeline(ElmoVectorizer(layers=1), LogisticRegression(max_iter=1000))

It learns nothing: `transform` is `Elmo.encode`, with or without `fit`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo, LayerChoice, Pooling, Sentence
from elmokit.errors import InputError, InputTypeError
from elmokit.extras import require
from elmokit.integrations.loaded_models import load_shared

require("sklearn", "vectorizers for scikit-learn")

from sklearn.base import (  # noqa: E402
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """One vector per text: the vectors of its words, averaged, as in `Elmo.encode`.

    Args:
        model: Name or path of a model, or an `Elmo`; see `Elmo.load`. A model is loaded once per
            process, however often the vectorizer is cloned or unpickled.
        layers: Layer to average: `"mix"`, `"top"` or a number from 0 (the word vectors).
        pooling: `"mean"` or `"max"` over the words. A text without words is all zeros.
        dtype: `"float32"`, or `"bfloat16"` or `"int8"`, which are faster and less exact. The
            vectors are float32.
        batch: Number of texts that are embedded together; by default the engine decides by their
            lengths. Fewer need less memory; the vectors are the same.
        threads: Number of threads; None for as many as the process may use. Give 1 where
            `n_jobs` of scikit-learn uses all cores.
    """

    def __init__(
        self,
        model: str | Path | Elmo = "builtin",
        *,
        layers: LayerChoice = "mix",
        pooling: Pooling = "mean",
        dtype: str = "float32",
        batch: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.layers = layers
        self.pooling = pooling
        self.dtype = dtype
        self.batch = batch
        self.threads = threads

    def fit(self, X: Iterable[Sentence], y: object = None) -> Self:
        """Check parameters and texts, and return the vectorizer; nothing is learned."""
        self._encode([])
        rows = _rows(X)
        if not isinstance(X, Iterator):  # a generator is read only once, by `transform`
            deque(rows, maxlen=0)
        return self

    def transform(self, X: Iterable[Sentence]) -> FloatArray:
        """Return the vectors of the texts, (N, D) float32.

        Args:
            X: Strings, or lists of words: a list, a generator, an array, a Series of pandas or
                Polars, or a table with one column.
        """
        return self._encode(_rows(X))

    def _encode(self, rows: Iterable[Sentence]) -> FloatArray:
        whole = isinstance(self.batch, (int, np.integer)) and not isinstance(self.batch, bool)
        if self.batch is not None and (not whole or self.batch < 1):
            raise InputError(f"batch is {self.batch!r}; expected 1 or more, or None")
        elmo, texts = self._elmo, iter(rows)
        parts = [elmo.encode([], self.pooling, self.layers)]  # checks the parameters first
        while batch := list(islice(texts, self.batch)):
            parts.append(elmo.encode(batch, self.pooling, self.layers))
        return np.concatenate(parts)

    @property
    def _elmo(self) -> Elmo:
        return load_shared(self.model, self.dtype, self.threads)

    @property
    def _n_features_out(self) -> int:
        """Number of columns, for `get_feature_names_out`."""
        return self._elmo.dim

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        tags.requires_fit = False
        return tags


def _rows(X: Any) -> Iterable[Sentence]:
    """Return an iterator over the texts, which raises an error at the first that is not one."""
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable):
        raise InputTypeError(
            f"X is {type(X).__name__}; expected a list of texts. For a single one: [text]"
        )
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) > 1:
        if len(shape) > 2 or shape[1] != 1:
            raise InputError(f"X has shape {shape}; expected one column of texts, as X['text']")
        X = np.asarray(X)[:, 0]
    return (_check_text(text, i) for i, text in enumerate(X))


def _check_text(text: Any, row: int) -> Sentence:
    words: Sentence = text
    if isinstance(words, (str, Sequence, np.ndarray)) and not isinstance(words, bytes):
        return words
    missing = text is None or isinstance(text, float) or type(text).__name__ == "NAType"
    raise InputTypeError(
        f"row {row} of X is {type(text).__name__} {text!r:.40}; expected a string or a list of "
        "words" + (". Drop such rows, or fill them: X.fillna('')" if missing else "")
    )
