"""Files to a biLM and back, one file a format. Nothing here touches a network.

A format is imported when a file of it is read: a start should cost what it uses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from elmokit.bilm.model import BiLM
from elmokit.errors import InputError
from elmokit.formats.detect import Found, detect

Writable = Literal["native", "allennlp"]

__all__ = [
    "Found",
    "Writable",
    "detect",
    "left_behind",
    "read",
    "write",
    "writes_as",
]


def read(path: str | Path) -> BiLM:
    """Read a model: a directory, one file of it, or a zip archive, of any format we know."""
    found = detect(path)
    if found.kind == "native":
        from elmokit.formats import native

        return native.read(found)
    if found.kind == "allennlp":
        from elmokit.formats import allennlp

        return allennlp.read(found)
    if found.kind == "tf_checkpoint":
        from elmokit.formats import tf_checkpoint

        return tf_checkpoint.read(found.source, found.weights)
    from elmokit.formats import many_langs

    return many_langs.read(found.source)


def writes_as(path: str | Path, format: str | None = None) -> Writable:
    """The format that `write` would choose: the one asked for, or by the path's ending."""
    if format is None:
        return "allennlp" if Path(path).suffix.lower() in (".hdf5", ".h5", ".zip") else "native"
    if format not in ("native", "allennlp"):
        raise InputError(f"format is {format!r}; expected 'native' or 'allennlp'")
    return format  # type: ignore[return-value]


def write(bilm: BiLM, path: str | Path, format: str | None = None) -> list[Path]:
    """Write a model and return the files: a directory, or `X.hdf5` with its options, or `X.zip`."""
    from elmokit.formats import allennlp, native

    place = Path(path).expanduser()
    write_files = native.write if writes_as(place, format) == "native" else allennlp.write
    if place.suffix.lower() != ".zip":
        return write_files(bilm, place)
    import tempfile
    import zipfile

    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".writing-", dir=place.parent) as stage:
        packed = Path(stage) / place.name
        with zipfile.ZipFile(packed, "w") as archive:  # stored: weights do not compress
            for file in write_files(bilm, Path(stage) / "model"):
                archive.write(file, file.name)
        packed.replace(place)
    return [place]


def left_behind(bilm: BiLM, path: str | Path, format: str | None = None) -> list[str]:
    """What of a model the chosen format cannot hold."""
    if writes_as(path, format) == "native":
        return []
    from elmokit.formats import allennlp

    return allennlp.left_behind(bilm)
