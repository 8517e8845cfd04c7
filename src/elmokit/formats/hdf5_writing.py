"""Creating HDF5 files on disks that may be full.

Where a write fails, HDF5 tries again when the file is closed and when the process ends, prints
tracebacks and may crash. So it writes to a Python file here, which notes the first failure, takes
everything after it without storing it, and raises the failure in the end.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt


class _Output:
    """A file for HDF5 whose writes never fail; `failure` is the first that should have."""

    def __init__(self, raw: io.FileIO) -> None:
        self._raw = raw
        self._position = self._end = 0
        self.failure: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._end}[whence]
        self._position = start + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._attempt(lambda: self._write_all(view))
        self._position += len(view)
        self._end = max(self._end, self._position)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        self._raw.seek(self._position)
        self._raw.readinto(view)
        self._position += len(view)
        return len(view)

    def truncate(self, size: int) -> int:
        self._attempt(lambda: self._raw.truncate(size))
        self._end = size
        return size

    def flush(self) -> None:
        """Do nothing, since nothing is buffered."""

    def _write_all(self, view: memoryview) -> None:
        self._raw.seek(self._position)
        while len(view):  # one call may write less than all
            view = view[self._raw.write(view) :]

    def _attempt(self, action: Callable[[], object]) -> None:
        if self.failure is None:
            try:
                action()
            except OSError as error:
                self.failure = error


def without_times(kind: str) -> Any:
    """Return properties of an object that stores no time, so that equal content is equal bytes.

    Args:
        kind: `"FILE_CREATE"`, `"GROUP_CREATE"` or `"DATASET_CREATE"`.
    """
    import h5py

    properties = h5py.h5p.create(getattr(h5py.h5p, kind))
    properties.set_obj_track_times(False)
    return properties


def create_group(file: Any, name: str) -> Any:
    """Create a group without the time at the top of a file, and return it."""
    import h5py

    return h5py.Group(h5py.h5g.create(file.id, name.encode(), gcpl=without_times("GROUP_CREATE")))


def write_dataset(file: Any, name: str, array: npt.NDArray[Any]) -> None:
    """Write an array without the time, so that equal models are equal files."""
    file.create_dataset(name, data=array, track_times=False)


@contextmanager
def create_hdf5(path: Path, *, library: tuple[int, int] | None = None) -> Iterator[Any]:
    """Create an HDF5 file and give it as `h5py.File`; raise `OSError` if the disk is full.

    Args:
        path: The file; an older one is replaced.
        library: Oldest and newest version of the file format, constants of `h5py.h5f`.
    """
    with io.FileIO(path, "w+") as raw:
        output = _Output(raw)
        try:
            with _create(output, path, library) as file:
                yield file
        except Exception:
            if output.failure is None:
                raise
        if output.failure is not None:
            raise output.failure


def _create(output: _Output, path: Path, library: tuple[int, int] | None) -> Any:
    # A function of its own, because a list of properties that still exists when Python ends, in the
    # traceback of an error, makes HDF5 crash.
    import h5py

    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, output)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    if library is not None:
        access.set_libver_bounds(*library)
    creation = without_times("FILE_CREATE")
    return h5py.File(
        h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, fcpl=creation, fapl=access)
    )
