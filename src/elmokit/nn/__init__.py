"""The biLM in PyTorch, to learn with: the same weights as the engine, with gradients.

`ElmoEmbedding` is the layer that a task model uses; `Mix` and `Projection` make one vector of the
layers; `BiLMModule` is the network itself as a module. Needs torch, which embedding does not.
"""

from __future__ import annotations

from elmokit.errors import MissingExtra

try:
    import torch as _torch  # noqa: F401  only whether it is there
except ImportError as error:
    raise MissingExtra(
        f"elmokit.nn needs torch, which cannot be imported ({error}): pip install 'elmokit[train]'"
    ) from None

from elmokit.nn.batch import Batch, BatchMaker
from elmokit.nn.bilm import BiLMModule
from elmokit.nn.embedding import ElmoEmbedding, Embedded
from elmokit.nn.frozen import FrozenBiLM
from elmokit.nn.mix import Mix, Projection
from elmokit.nn.state import TensorState

__all__ = [
    "Batch",
    "BatchMaker",
    "BiLMModule",
    "ElmoEmbedding",
    "Embedded",
    "FrozenBiLM",
    "Mix",
    "Projection",
    "TensorState",
]
