"""AllenNLP's ELMo, over ours: `Elmo`, `batch_to_ids`, `ElmoTokenEmbedder`, `ElmoEmbedder`.

    from elmokit.compat.allennlp import Elmo, batch_to_ids   # was: allennlp.modules.elmo

Arguments, shapes, values and state-dict names are those of AllenNLP 2.10.1, and of 0.9 for
`ElmoEmbedder`, which later versions dropped. As there, the LSTM's state is carried from call to
call, in training too: a sentence's vectors depend on what was embedded before it. What is not the
same, and why, stands in docs/migration.md. New code is better served by `elmokit.Elmo` and
`elmokit.nn.ElmoEmbedding`, whose vectors depend on the sentence alone.
"""

from __future__ import annotations

import elmokit.nn  # noqa: F401  says what to install where torch is missing
from elmokit.compat.allennlp.bilm import _ElmoBiLm
from elmokit.compat.allennlp.elmo import Elmo, ElmoTokenEmbedder, ScalarMix, batch_to_ids
from elmokit.compat.allennlp.embedder import ElmoEmbedder

__all__ = [
    "Elmo",
    "ElmoEmbedder",
    "ElmoTokenEmbedder",
    "ScalarMix",
    "_ElmoBiLm",  # private there too, and yet much used
    "batch_to_ids",
]
