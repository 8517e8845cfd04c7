"""Reading and writing models, one module per format. Nothing here uses the network.

The module of a format is imported when a file in that format is read or written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.errors import FormatError, InputError
from elmokit.formats.detect import DetectedModel, detect_format
from elmokit.staging import staging_directory
from elmokit.storage import explain_write_errors, sync_file

WritableFormat = Literal["native", "allennlp", "onnx"]
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
    if detected.kind == "tf_hub":
        from elmokit.formats import tf_hub

        return tf_hub.read(detected.source)
    if detected.kind == "onnx":
        raise FormatError(
            f"{detected.source.describe(detected.weights)} is an ONNX file: run it with "
            "onnxruntime (docs/onnx.md), or load the model that it was made from. `elmo inspect` "
            "describes it"
        )
    from elmokit.formats import many_langs

    return many_langs.read(detected.source)


def choose_format(path: str | Path, format: str | None = None) -> WritableFormat:
    """Return the format that `write` uses: `format` if given, else by the ending of the path."""
    if format is None:
        ending = Path(path).suffix.lower()
        if ending == ".onnx":
            return "onnx"
        return "allennlp" if ending in (".hdf5", ".h5", ".zip") else "native"
    if format not in get_args(WritableFormat):
        raise InputError(f"format is {format!r}; expected 'native', 'allennlp' or 'onnx'")
    return format  # type: ignore[return-value]


def check_target(
    path: str | Path,
    format: str | None = None,
    overwrite: bool = False,
    *,
    dtype: str | None = None,
) -> None:
    """Raise `InputError` if a model cannot be written to a path, because something is there.

    Args:
        path: Where a model is to be written; see `write`.
        format: `"native"`, `"allennlp"`, `"onnx"` or None.
        overwrite: Whether what is there may be replaced.
        dtype: How matrices are stored; see `write`.
    """
    chosen = choose_format(path, format)
    target = Path(path).expanduser()
    if chosen != "onnx" and dtype is not None:
        raise InputError(
            f"dtype is {dtype!r}, but only ONNX files can store weights in another type; leave it "
            "out, or give a target such as model.onnx"
        )
    is_empty_directory = target.is_dir() and not any(target.iterdir())
    if not overwrite and target.exists() and not is_empty_directory:
        raise InputError(
            f"{path} exists; nothing was written. Give another name, or replace it with "
            "overwrite=True (--force)"
        )
    if chosen == "onnx":
        _check_onnx(target, dtype, overwrite)


def _check_onnx(target: Path, dtype: str | None, overwrite: bool) -> None:
    from elmokit.extras import require
    from elmokit.formats.onnx.files import sidecar_files

    require("onnx", "ONNX files")
    if dtype not in (None, "float32", "float16"):
        raise InputError(f"dtype is {dtype!r}; an ONNX file stores 'float32' or 'float16'")
    if target.suffix.lower() in (".zip", ".hdf5", ".h5"):
        raise InputError(f"{target} is not the name of an ONNX file; expected one like model.onnx")
    taken = [file for file in sidecar_files(target) if file.exists()]
    if taken and not overwrite:
        raise InputError(
            f"{taken[0]} exists; nothing was written. Give another name, or replace it with "
            "overwrite=True (--force)"
        )


def write(
    bilm: BiLM,
    path: str | Path,
    format: str | None = None,
    *,
    dtype: str | None = None,
    license: str | None = None,
) -> list[Path]:
    """Write a model and return the files that were written.

    Args:
        bilm: The model.
        path: A directory, `X.hdf5` (with `X_options.json` beside it), `X.zip` or `X.onnx`.
            In the format `"onnx"` a directory gets a file `model.onnx`.
        format: `"native"`, `"allennlp"` or `"onnx"`; by default the ending of the path decides.
        dtype: How an ONNX file stores matrices, `"float32"` or `"float16"`; by default as the
            model does.
        license: License of the model, for the metadata of an ONNX file.
    """
    from elmokit.formats import allennlp, native

    target = Path(path).expanduser()
    chosen = choose_format(target, format)
    check_target(path, format, overwrite=True, dtype=dtype)
    if chosen == "onnx":
        from elmokit.formats.onnx import files

        stored: Any = dtype
        with explain_write_errors(path):
            return files.write(bilm, target, dtype=stored, license=license)
    write_files = native.write if chosen == "native" else allennlp.write
    with explain_write_errors(path):
        if target.suffix.lower() == ".zip":
            return [_write_archive(bilm, target, write_files)]
        return write_files(bilm, target)


def _write_archive(
    bilm: BiLM, target: Path, write_files: Callable[[BiLM, Path], list[Path]]
) -> Path:
    import zipfile

    with staging_directory(target) as stage:
        packed = stage / target.name
        with zipfile.ZipFile(packed, "w") as archive:  # uncompressed: weights do not shrink
            for file in write_files(bilm, stage / "model"):
                archive.write(file, file.name)
        sync_file(packed)
        packed.replace(target)
    return target


def unsupported_parts(bilm: BiLM, path: str | Path, format: str | None = None) -> list[str]:
    """Return the parts of a model that the chosen format cannot store, such as `the softmax`."""
    chosen = choose_format(path, format)
    if chosen == "native":
        return []
    if chosen == "onnx":
        return ["the softmax"] if SOFTMAX[0] in bilm.weights else []
    from elmokit.formats import allennlp

    return allennlp.unsupported_parts(bilm)
