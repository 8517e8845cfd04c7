"""Writing the HDF5 layout of `allennlp elmo` and bilm-tf: one dataset per sentence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from elmokit.bilm.weights import FloatArray
from elmokit.errors import InputError
from elmokit.formats.hdf5_writing import create_hdf5
from elmokit.storage import atomic_write


def write_vectors(
    path: Path, datasets: Iterable[tuple[str, FloatArray]], index: object = None
) -> None:
    """Write arrays by name; the file appears when it is complete.

    Args:
        path: File to write.
        datasets: Names and arrays.
        index: Written as JSON to `sentence_to_index`, unless it is None.
    """
    import h5py

    with atomic_write(path) as temporary, create_hdf5(temporary) as file:
        for key, array in datasets:
            try:
                file.create_dataset(key, data=array, dtype="float32")
            except (ValueError, OSError) as error:
                raise InputError(
                    f"{key!r:.80} cannot be the name of an HDF5 dataset ({error}); "
                    "set use_sentence_keys=False"
                ) from None
        if index is not None:
            named = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
            named[0] = json.dumps(index)
