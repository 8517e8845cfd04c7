"""Reading and writing models, one module per format. Nothing here uses the network.

The module of a format is imported when a file in that format is read or written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from elmokit.bilm.model import BiLM
from elmokit.errors import InputError
from elmokit.formats.detect import DetectedModel, detect_format
from elmokit.storage import explain_write_errors

WritableFormat = Literal["native", "allennlp"]
"""The formats that a model can be written in."""

__all__ = [
    "DetectedModel",
    "WritableFormat",
    "check_target",
    "choose_format",
    "detect_format",
    "read",
    "unsupported_parts",
    "write",
]


def read(path: str | Path) -> BiLM:
    """Read a model in any known format.

    Args:
        path: A directory, one file of a model, or a zip archive.
    """
    detected = detect_format(path)
    if detected.kind == "native":
        from elmokit.formats import native

        return native.read(detected)
    if detected.kind == "allennlp":
        from elmokit.formats import allennlp

        return allennlp.read(detected)
    if detected.kind == "tf_checkpoint":
        from elmokit.formats import tf_checkpoint

        return tf_checkpoint.read(detected.source, detected.weights)
    from elmokit.formats import many_langs

    return many_langs.read(detected.source)


def choose_format(path: str | Path, format: str | None = None) -> WritableFormat:
    """Return the format that `write` uses: `format` if given, else by the ending of the path."""
    if format is None:
        return "allennlp" if Path(path).suffix.lower() in (".hdf5", ".h5", ".zip") else "native"
    if format not in ("native", "allennlp"):
        raise InputError(f"format is {format!r}; expected 'native' or 'allennlp'")
    return format  # type: ignore[return-value]


def check_target(path: str | Path, format: str | None = None, overwrite: bool = False) -> None:
    """Raise `InputError` if a model cannot be written to a path, because something is there.

    Args:
        path: Where a model is to be written; see `write`.
        format: `"native"`, `"allennlp"` or None.
        overwrite: Whether what is there may be replaced.
    """
    choose_format(path, format)
    target = Path(path).expanduser()
    is_empty_directory = target.is_dir() and not any(target.iterdir())
    if not overwrite and target.exists() and not is_empty_directory:
        raise InputError(
            f"{path} exists; nothing was written. Give another name, or replace it with "
            "overwrite=True (--force)"
        )


def write(bilm: BiLM, path: str | Path, format: str | None = None) -> list[Path]:
    """Write a model and return the files that were written.

    Args:
        bilm: The model.
        path: A directory, `X.hdf5` (with `X_options.json` beside it) or `X.zip`.
        format: `"native"` or `"allennlp"`; by default the ending of the path decides.
    """
    from elmokit.formats import allennlp, native

    target = Path(path).expanduser()
    write_files = native.write if choose_format(target, format) == "native" else allennlp.write
    with explain_write_errors(path):
        if target.suffix.lower() == ".zip":
            return [_write_archive(bilm, target, write_files)]
        return write_files(bilm, target)


def _write_archive(
    bilm: BiLM, target: Path, write_files: Callable[[BiLM, Path], list[Path]]
) -> Path:
    import tempfile
    import zipfile

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=target.parent) as stage:
        packed = Path(stage) / target.name
        with zipfile.ZipFile(packed, "w") as archive:  # uncompressed: weights do not shrink
            for file in write_files(bilm, Path(stage) / "model"):
                archive.write(file, file.name)
        packed.replace(target)
    return target


def unsupported_parts(bilm: BiLM, path: str | Path, format: str | None = None) -> list[str]:
    """Return the parts of a model that the chosen format cannot store, such as `the softmax`."""
    if choose_format(path, format) == "native":
        return []
    from elmokit.formats import allennlp

    return allennlp.unsupported_parts(bilm)
