"""The file formats of vectors: which one a path has, and what each of them offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from elmokit.errors import InputError
from elmokit.vectors import hdf5, npz, parquet
from elmokit.vectors.spool import Spool, VectorArray
from elmokit.vectors.tables import TABLES


class VectorReader(Protocol):
    """An open file of vectors."""

    path: Path
    """Path of the file."""
    count: int
    """Number of sentences."""
    signature: dict[str, Any] | None
    """What determined the vectors; None for a file from another program."""
    job: str | None
    """Hash of the settings and sentences of the run that wrote the file; None if unknown."""

    def array(self, position: int) -> VectorArray:
        """Return the vectors of a sentence."""

    def words(self, position: int) -> list[str] | None:
        """Return the words of a sentence; None if the file does not hold them."""

    def ids(self) -> list[str] | None:
        """Return the ids of all sentences; None if they have none."""

    def close(self) -> None:
        """Close the file."""


class VectorFormat(Protocol):
    """A file format, implemented by a module."""

    NAME: str
    """Name of the format in the header of a spool."""

    def check_installed(self) -> None:
        """Raise `MissingExtra` if a package that the format needs is not installed."""

    def write(self, path: Path, spool: Spool) -> None:
        """Write the sentences of a complete spool to a file."""

    def open_file(self, path: Path) -> VectorReader:
        """Open a file to read it."""


FORMATS: dict[str, VectorFormat] = {
    ".h5": hdf5,
    ".hdf5": hdf5,
    ".npz": npz,
    ".parquet": parquet,
}
"""The format of each file name ending."""


VectorLayout = Literal["arrays", "words", "pooled"]
"""What a file holds: an array per sentence, a row per word, or one vector per sentence."""


def format_for(path: Path, layout: VectorLayout = "arrays") -> VectorFormat:
    """Return the format of a file by its name, and by the layout in which it is written."""
    suffix = path.suffix.lower()
    if layout not in get_args(VectorLayout):
        raise InputError(f"layout is {layout!r}; expected 'arrays', 'words' or 'pooled'")
    if layout == "words" and suffix != ".parquet":
        raise InputError(
            f"{path}: a table with one row per word is written to a file named *.parquet"
        )
    if layout != "arrays" and suffix == ".parquet":
        return TABLES[layout]
    if suffix not in FORMATS:
        found = f"ends in {suffix!r}" if suffix else "has no file name ending"
        raise InputError(f"{path} {found}; expected one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


def partial_path(target: Path) -> Path:
    """Return the path of the spool that holds the sentences of an unfinished file."""
    return Path(f"{target}.partial")
