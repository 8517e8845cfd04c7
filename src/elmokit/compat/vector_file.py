"""Writing the HDF5 layout of `allennlp elmo` and bilm-tf: one dataset per sentence."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from elmokit.bilm.weights import FloatArray
from elmokit.errors import InputError


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

    with tempfile.TemporaryDirectory(prefix=".writing-", dir=path.parent) as folder:
        stage = Path(folder) / path.name
        with h5py.File(stage, "w") as file:
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
        os.replace(stage, path)
