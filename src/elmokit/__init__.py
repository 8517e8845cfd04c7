"""elmokit: the modern ELMo. Text in, contextual word vectors out.

    from elmokit import Elmo
    elmo = Elmo.load("path/to/model")
    vectors = elmo.embed(["She went to the bank .", "The river bank was muddy ."])

Names are imported at first use, so that `import elmokit` takes milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmokit._exports import lazy_exports

__version__ = "0.1.0"

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig
    from elmokit.bilm.mix import Mix
    from elmokit.bilm.model import BiLM
    from elmokit.elmo import Elmo
    from elmokit.errors import (
        ConfigError,
        ElmoError,
        FormatError,
        InputError,
        InputTypeError,
        MissingExtra,
        ModelNotFound,
        TrainingError,
        WeightsError,
    )

__all__ = [
    "BiLM",
    "BiLMConfig",
    "ConfigError",
    "Elmo",
    "ElmoError",
    "FormatError",
    "InputError",
    "InputTypeError",
    "MissingExtra",
    "Mix",
    "ModelNotFound",
    "TrainingError",
    "WeightsError",
    "__version__",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "BiLM": "elmokit.bilm.model",
        "BiLMConfig": "elmokit.bilm.config",
        "ConfigError": "elmokit.errors",
        "Elmo": "elmokit.elmo",
        "ElmoError": "elmokit.errors",
        "FormatError": "elmokit.errors",
        "InputError": "elmokit.errors",
        "InputTypeError": "elmokit.errors",
        "MissingExtra": "elmokit.errors",
        "Mix": "elmokit.bilm.mix",
        "ModelNotFound": "elmokit.errors",
        "TrainingError": "elmokit.errors",
        "WeightsError": "elmokit.errors",
    },
)
