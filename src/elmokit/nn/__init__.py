"""The biLM in PyTorch, for training: the same weights as the engine's, with gradients.

    from elmokit.nn import ElmoEmbedding
    elmo = ElmoEmbedding("path/to/model", mixes=2, dropout=0.5)

`ElmoEmbedding` is the layer that a task model uses; `LearnedMix` and `LayerProjection` combine the
layers into one vector per word; `BiLMModule` is the network itself as a module. Needs torch, which
embedding with `elmokit.Elmo` does not; torch is imported at the first use of a name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.nn.batch import Batch, Batcher
    from elmokit.nn.bilm import BiLMModule
    from elmokit.nn.embedding import ElmoEmbedding, EmbeddingOutput
    from elmokit.nn.frozen import FrozenBiLM
    from elmokit.nn.mix import LayerProjection, LearnedMix
    from elmokit.nn.state import TensorState

__all__ = [
    "Batch",
    "Batcher",
    "BiLMModule",
    "ElmoEmbedding",
    "EmbeddingOutput",
    "FrozenBiLM",
    "LayerProjection",
    "LearnedMix",
    "TensorState",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Batch": "elmokit.nn.batch",
        "Batcher": "elmokit.nn.batch",
        "BiLMModule": "elmokit.nn.bilm",
        "ElmoEmbedding": "elmokit.nn.embedding",
        "EmbeddingOutput": "elmokit.nn.embedding",
        "FrozenBiLM": "elmokit.nn.frozen",
        "LayerProjection": "elmokit.nn.mix",
        "LearnedMix": "elmokit.nn.mix",
        "TensorState": "elmokit.nn.state",
    },
    renamed={
        "BatchMaker": "Batcher",
        "Embedded": "EmbeddingOutput",
        "Mix": "LearnedMix",
        "Projection": "LayerProjection",
    },
)
