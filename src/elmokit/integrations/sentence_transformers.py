"""sentence-transformers: ELMo as the first module of a `SentenceTransformer`, also for MTEB.

    from sentence_transformers import SentenceTransformer

    from elmokit.integrations.sentence_transformers import ElmoModule

    model = SentenceTransformer(modules=[ElmoModule()])
    vectors = model.encode(["She went to the bank ."])      # equal to Elmo.encode

A saved model is loaded with `SentenceTransformer(path, trust_remote_code=True)`, which lets
sentence-transformers import this class.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from elmokit.elmo import Elmo, LayerChoice, Pooling
from elmokit.errors import InputTypeError
from elmokit.extras import require
from elmokit.integrations.loaded_models import load_shared

require("sentence_transformers", "modules for sentence-transformers")

import torch  # noqa: E402
from sentence_transformers.base.modules import InputModule  # noqa: E402


class ElmoModule(InputModule):
    """Frozen ELMo: one vector per word, and one per text, pooled as in `Elmo.encode`.

    Modules behind it find the vectors of the words in `token_embeddings`, as after a transformer:
    `Pooling` replaces the pooling that was chosen here.

    Args:
        model: Name or path of a model, or an `Elmo`; see `Elmo.load`.
        layers: Layer to pool: `"mix"`, `"top"` or a number from 0 (the word vectors).
        pooling: `"mean"` or `"max"` over the words. A text without words is all zeros.
        dtype: `"float32"`, or `"bfloat16"` or `"int8"`, which are faster and less exact.
        max_seq_length: Number of words after which a text is cut; None for no limit.
        threads: Number of threads; by default as many as the process may use.
    """

    config_file_name = "elmo_module.json"
    config_keys = ("layers", "pooling", "dtype", "max_seq_length")
    save_in_root = False

    def __init__(
        self,
        model: str | Path | Elmo = "builtin",
        *,
        layers: LayerChoice = "mix",
        pooling: Pooling = "mean",
        dtype: str = "float32",
        max_seq_length: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.elmo = load_shared(model, dtype, threads)
        self.elmo.encode([], pooling, layers)  # raises for a wrong choice
        self.layers = layers
        self.pooling = pooling
        self.dtype = self.elmo.dtype
        self.max_seq_length = max_seq_length

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Split the texts into words."""
        words = []
        for i, text in enumerate(inputs):
            if not isinstance(text, str):
                raise InputTypeError(f"text {i} is {type(text).__name__}; expected a string")
            words.append(self.elmo.tokenize((prompt or "") + text)[: self.max_seq_length])
        lengths = torch.tensor([len(sentence) for sentence in words])
        positions = torch.arange(max([1, *map(len, words)]))
        return {"words": words, "attention_mask": (positions < lengths[:, None]).long()}

    def forward(self, features: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Add the vectors of words and texts to the features."""
        mask = features["attention_mask"]
        tokens = np.zeros((*mask.shape, self.elmo.dim), np.float32)
        texts = np.zeros((len(mask), self.elmo.dim), np.float32)
        for i, vectors in enumerate(self.elmo.embed(features["words"], self.layers)):
            if len(vectors):
                tokens[i, : len(vectors)] = vectors
                texts[i] = vectors.mean(axis=0) if self.pooling == "mean" else vectors.max(axis=0)
        features["token_embeddings"] = torch.from_numpy(tokens).to(mask.device)
        features["sentence_embedding"] = torch.from_numpy(texts).to(mask.device)
        return features

    def get_embedding_dimension(self) -> int:
        """Return the size of a vector."""
        return self.elmo.dim

    def save(self, output_path: str, *args: Any, **options: Any) -> None:
        """Save the model and the choice of layers and pooling in a directory."""
        self.elmo.save(output_path)
        self.save_config(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Load what `save` has written, from a directory or from the Hugging Face Hub."""
        places = {k: v for k, v in options.items() if k in _HUB_OPTIONS}
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **places)
        directory = cls.load_dir_path(model_name_or_path, subfolder=subfolder, **places)
        return cls(directory, **config)


_HUB_OPTIONS = ("token", "cache_folder", "revision", "local_files_only")
