"""flair: `ElmoTokenEmbeddings`, alone or in `StackedEmbeddings`.

    from flair.embeddings import StackedEmbeddings, WordEmbeddings

    from elmokit.integrations.flair import ElmoTokenEmbeddings

    embeddings = StackedEmbeddings([WordEmbeddings("glove"), ElmoTokenEmbeddings(layers="all")])

flair's own `ELMoEmbeddings` needs an AllenNLP of 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from elmokit.elmo import Elmo, LayerChoice
from elmokit.extras import require
from elmokit.integrations.saved_model import SavedModel

require("flair", "embeddings for flair")

import flair  # noqa: E402
import torch  # noqa: E402
from flair.data import Sentence as FlairSentence  # noqa: E402
from flair.embeddings import TokenEmbeddings  # noqa: E402
from flair.embeddings.base import register_embeddings  # noqa: E402


class _ModelBytes(bytes):
    """A saved model. Unpickling it imports this module, so that flair knows the class below."""


@register_embeddings
class ElmoTokenEmbeddings(TokenEmbeddings):
    """Frozen ELMo vectors of the words of a sentence.

    Args:
        model: Name or path of a model, or an `Elmo`; see `Elmo.load`. A saved tagger contains the
            model, unless it was given by its name.
        layers: `"mix"`, `"top"`, a number, or `"all"` for all layers side by side, as in flair's
            own ELMo.
        dtype: `"float32"`, or `"bfloat16"` or `"int8"`, which are faster and less exact.
        threads: Number of threads; by default as many as the process may use.
    """

    def __init__(
        self,
        model: str | Path | Elmo = "builtin",
        *,
        layers: LayerChoice = "mix",
        dtype: str = "float32",
        threads: int | None = None,
    ) -> None:
        self._start(SavedModel(model, dtype, threads), layers)

    def _start(self, source: SavedModel, layers: LayerChoice) -> None:
        super().__init__()
        source.elmo.layer_selector(layers)  # raises for a wrong choice
        self.source = source
        self.layers = layers
        self.name = f"elmokit-{source.elmo.bilm.fingerprint[:12]}-{layers}"
        self.static_embeddings = True
        self.eval()

    @property
    def embedding_length(self) -> int:
        """Size of the vector of a word."""
        elmo = self.source.elmo
        return elmo.dim * (elmo.layers if self.layers == "all" else 1)

    def _add_embeddings_internal(self, sentences: Sequence[FlairSentence]) -> None:
        words = [[token.text for token in sentence] for sentence in sentences]
        for sentence, array in zip(
            sentences, self.source.elmo.embed(words, self.layers), strict=True
        ):
            if self.layers == "all":  # (L+1, T, D) to (T, (L+1)·D)
                array = array.transpose(1, 0, 2).reshape(len(sentence), -1)
            vectors = torch.from_numpy(array).to(flair.device)
            for token, vector in zip(sentence, vectors, strict=True):
                token.set_embedding(self.name, vector)

    def to_params(self) -> dict[str, Any]:
        """Return what flair saves with a model."""
        return {
            "model": _ModelBytes(self.source.to_bytes()),
            "layers": self.layers,
            "dtype": self.source.dtype,
            "threads": self.source.threads,
        }

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Return the embeddings that `to_params` has described."""
        source = SavedModel("builtin", params["dtype"], params["threads"])
        source.from_bytes(params["model"])
        embeddings = cls.__new__(cls)
        embeddings._start(source, params["layers"])
        return embeddings

    def __str__(self) -> str:
        return self.name
