"""Which kind of file a path is, by its suffix, and where its unfinished form lies."""

from pathlib import Path
from types import ModuleType

from elmokit.errors import InputError
from elmokit.vectors import hdf5, npz, parquet

FORMATS: dict[str, ModuleType] = {".h5": hdf5, ".hdf5": hdf5, ".npz": npz, ".parquet": parquet}


def format_of(path: Path) -> ModuleType:
    """The module that reads and writes such a file."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"{path} ends in {suffix!r}, expected one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


def partial(target: Path) -> Path:
    """Where the sentences of an unfinished file are kept."""
    return Path(f"{target}.partial")
