"""elmokit: the modern ELMo. Text in, contextual word vectors out.

    from elmokit import Elmo
    elmo = Elmo.load("path/to/model")
    vectors = elmo.embed(["She went to the bank .", "The river bank was muddy ."])

Names are loaded when they are first used, so that `import elmokit` takes milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from elmokit.bilm.config import BiLMConfig
    from elmokit.bilm.mix import Mix
    from elmokit.bilm.model import BiLM
    from elmokit.elmo import Elmo
    from elmokit.errors import ElmoError

_HOMES = {
    "BiLM": "elmokit.bilm.model",
    "BiLMConfig": "elmokit.bilm.config",
    "Elmo": "elmokit.elmo",
    "ElmoError": "elmokit.errors",
    "Mix": "elmokit.bilm.mix",
}

__all__ = ["BiLM", "BiLMConfig", "Elmo", "ElmoError", "Mix", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'elmokit' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
