"""Reading datasets of untrusted HDF5 files: on demand if possible, never from other files."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from elmokit.errors import FormatError
from elmokit.formats.stored_arrays import AnyArray, StoredArray, WeightsFile


def check_no_external_data(dataset: Any, file: str, name: str) -> None:
    """Raise `FormatError` if a dataset stores its numbers in another file."""
    if dataset.external is not None or dataset.is_virtual:
        raise FormatError(
            f"{file}: {name} stores its numbers in another file; elmokit reads nothing outside the "
            "model file. Copy the numbers into the file"
        )


def check_no_external_links(group: Any, file: str) -> None:
    """Raise `FormatError` if a group, or a group below it, has a link to another file.

    Args:
        group: An open HDF5 file, or a group of it.
        file: Name of the file for error messages.
    """
    import h5py

    seen = set()  # hard links can form a cycle
    groups = [group]
    while groups:
        group = groups.pop()
        if group.id in seen:
            continue
        seen.add(group.id)
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                path = f"{group.name}/{name}".lstrip("/")
                raise FormatError(
                    f"{file}: {path} is an external link to another file ({link.filename}); "
                    "elmokit reads nothing outside the model file. Copy the data into the file"
                )
            if isinstance(link, h5py.HardLink) and group.get(name, getclass=True) is h5py.Group:
                groups.append(group[name])


def read_array(dataset: Any, file: WeightsFile | None) -> AnyArray:
    """Return where a dataset is in its file if it is contiguous there, else its content.

    Args:
        dataset: An open HDF5 dataset.
        file: The file; None to read the numbers into memory.
    """
    start = dataset.id.get_offset()
    end = 0 if start is None else start + dataset.nbytes
    if file is None or not 0 < end <= file.size:
        array: npt.NDArray[Any] = dataset[...]
        return array
    return StoredArray(file, start, dataset.dtype, dataset.shape)
