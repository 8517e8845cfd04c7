"""The group `elmokit` in weights.hdf5: what AllenNLP's format has no place for.

    elmokit/settled/hidden, elmokit/settled/cell    initial state of every sentence
    elmokit/mix/scalars, elmokit/mix/gamma          weights of the layers
    attributes `fingerprint` and `content`          of the model that the file was made from

Each part is there only if the model has it. AllenNLP, bilm-tf and simple_elmo open the datasets
that they know by their names, so they ignore the group.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM, ExportOrigin
from elmokit.bilm.state import State
from elmokit.errors import FormatError
from elmokit.formats.hdf5 import HDF5Dataset, HDF5Group
from elmokit.formats.hdf5_writing import create_group, write_dataset

GROUP = "elmokit"
"""Name of the group."""
HIDDEN, CELL = f"{GROUP}/settled/hidden", f"{GROUP}/settled/cell"
SCALARS, GAMMA = f"{GROUP}/mix/scalars", f"{GROUP}/mix/gamma"
RESERVED_NAMES = (GROUP, HIDDEN, CELL, SCALARS, GAMMA)
"""Names that no other dataset of the file may have."""
LARGEST_BYTES = 1 << 24
"""Size in bytes at most of a dataset of the group."""


class GroupContent(NamedTuple):
    """What the group of a file holds; None for parts that the file does not have."""

    settled: State | None
    """Initial state of every sentence."""
    mix: Mix | None
    """Weights of the layers."""
    origin: ExportOrigin | None
    """The complete model that the file was made from."""


def take_group(hdf5: HDF5Group, datasets: dict[str, HDF5Dataset], file: str) -> GroupContent:
    """Read the group, and remove its datasets from `datasets`.

    Args:
        hdf5: The root group of the file.
        datasets: All datasets of the file by their names.
        file: Name of the file for messages.
    """
    settled = mix = None
    state = _take_pair(datasets, HIDDEN, CELL, file)
    if state is not None:
        settled = State(*state)
    layers = _take_pair(datasets, SCALARS, GAMMA, file)
    if layers is not None:
        mix = Mix(tuple(np.ravel(layers[0]).tolist()), float(np.ravel(layers[1])[0]))
    return GroupContent(settled, mix, _read_origin(hdf5, file))


def _take_pair(
    datasets: dict[str, HDF5Dataset], first: str, second: str, file: str
) -> tuple[Any, Any] | None:
    found = {name: datasets.pop(name) for name in (first, second) if name in datasets}
    if not found:
        return None
    if len(found) == 1:
        raise FormatError(f"{file} has {min(found)} alone; expected {first} and {second}")
    for name, dataset in found.items():
        if dataset.dtype.kind != "f" or not 0 < dataset.nbytes <= LARGEST_BYTES:
            raise FormatError(
                f"{file}: {name} holds {dataset.dtype} of shape {dataset.shape}; expected floats"
            )
    return found[first].read(), found[second].read()


def _read_origin(hdf5: HDF5Group, file: str) -> ExportOrigin | None:
    group = hdf5.find(GROUP)
    if group is None:
        return None
    found = [group.attribute(name) for name in ExportOrigin._fields]
    if found == [None, None]:
        return None
    for name, value in zip(ExportOrigin._fields, found, strict=True):
        if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{64}", value):
            raise FormatError(
                f"{file}: the attribute {name} of the group {GROUP} is {value!r:.80}; expected a "
                "SHA-256"
            )
    return ExportOrigin(*found)


def write_group(hdf5: Any, bilm: BiLM, content: str) -> None:
    """Write the group, unless the model has nothing that belongs there.

    Args:
        hdf5: The file, open for writing.
        bilm: The model.
        content: Hash of the architecture and the weights as they are in the file.
    """
    if bilm.settled is None and bilm.mix is None and content == bilm.fingerprint:
        return
    group = create_group(hdf5, GROUP)
    if bilm.settled is not None:
        write_dataset(hdf5, HIDDEN, bilm.settled.hidden)
        write_dataset(hdf5, CELL, bilm.settled.cell)
    if bilm.mix is not None:
        write_dataset(hdf5, SCALARS, np.array(bilm.mix.scalars))
        write_dataset(hdf5, GAMMA, np.array([bilm.mix.gamma]))
    if content != bilm.fingerprint:
        group.attrs.update(ExportOrigin(bilm.fingerprint, content)._asdict())
