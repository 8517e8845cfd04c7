"""Drop-in replacements for AllenNLP's `Elmo`, `ElmoTokenEmbedder` and `ElmoEmbedder`.

    from elmokit.compat.allennlp import Elmo, batch_to_ids   # was: allennlp.modules.elmo

Arguments, shapes, values and state-dict names are those of AllenNLP 2.10.1, and of 0.9 for
`ElmoEmbedder`, which later versions removed. As in AllenNLP, the LSTM's state is carried from call
to call, in training too, so that a sentence's vectors depend on what was embedded before. The
differences are listed in docs/migration.md. For new code, `elmokit.Elmo` and
`elmokit.nn.ElmoEmbedding` are better: their vectors depend on the sentence alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

if TYPE_CHECKING:
    from elmokit.compat.allennlp.bilm import _ElmoBiLm
    from elmokit.compat.allennlp.elmo import Elmo, ElmoTokenEmbedder, ScalarMix, batch_to_ids
    from elmokit.compat.allennlp.embedder import ElmoEmbedder

__all__ = [
    "Elmo",
    "ElmoEmbedder",
    "ElmoTokenEmbedder",
    "ScalarMix",
    "_ElmoBiLm",  # private in AllenNLP too, but widely used
    "batch_to_ids",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Elmo": "elmokit.compat.allennlp.elmo",
        "ElmoEmbedder": "elmokit.compat.allennlp.embedder",
        "ElmoTokenEmbedder": "elmokit.compat.allennlp.elmo",
        "ScalarMix": "elmokit.compat.allennlp.elmo",
        "_ElmoBiLm": "elmokit.compat.allennlp.bilm",
        "batch_to_ids": "elmokit.compat.allennlp.elmo",
    },
)
