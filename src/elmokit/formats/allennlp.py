"""Reading and writing `options.json` + `weights.hdf5`, the files of bilm-tf and AllenNLP.

`hdf5_layout` maps their datasets to our arrays. The settled state and the mix are in a group of
their own (`hdf5_group.py`), which other readers ignore. The softmax is not stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.model import BiLM, hash_content
from elmokit.bilm.weights import DIRECTIONS, SOFTMAX, expected_shapes
from elmokit.errors import FormatError, InputError
from elmokit.formats.detect import PLAIN_NAMES, DetectedModel
from elmokit.formats.hdf5 import HDF5Dataset, HDF5Group, open_hdf5, read_array
from elmokit.formats.hdf5_group import GROUP, RESERVED_NAMES, take_group, write_group
from elmokit.formats.hdf5_writing import create_hdf5, write_dataset
from elmokit.formats.stored_arrays import AnyArray, StoredArrays, WeightsFile, divide
from elmokit.formats.tar_archive import LARGEST_RATIO
from elmokit.staging import replace_files
from elmokit.text.vocabulary import Vocabulary

LARGEST_EXTRA = 1 << 28
"""Size in bytes at most of a dataset that is not part of the layout."""


class DatasetMapping(NamedTuple):
    """A dataset in the file, and the arrays of ours that are concatenated in it."""

    name: str
    """Name of the dataset."""
    ours: tuple[str, ...]
    """Names of our arrays, in the order of the rows of the dataset."""
    shape: tuple[int, ...]
    """Shape of the dataset."""


def hdf5_layout(config: BiLMConfig) -> list[DatasetMapping]:
    """Return the datasets of an HDF5 file with the names of our arrays."""
    cnn, lstm = config.char_cnn, config.lstm
    table: list[tuple[str, tuple[str, ...]]] = [("char_embed", ("characters.embedding",))]
    for i in range(len(cnn.filters)):
        table.append((f"CNN/W_cnn_{i}", (f"characters.convolution.{i}.weight",)))
        table.append((f"CNN/b_cnn_{i}", (f"characters.convolution.{i}.bias",)))
    for k in range(cnn.highways):
        for gate in ("carry", "transform"):
            table.append((f"CNN_high_{k}/W_{gate}", (f"characters.highway.{k}.{gate}.weight",)))
            table.append((f"CNN_high_{k}/b_{gate}", (f"characters.highway.{k}.{gate}.bias",)))
    if cnn.projection:
        table.append(("CNN_proj/W_proj", ("characters.projection.weight",)))
        table.append(("CNN_proj/b_proj", ("characters.projection.bias",)))
    for side, direction in enumerate(DIRECTIONS):
        for layer in range(lstm.layers):
            cell, name = _cell(side, layer), f"{direction}.{layer}"
            table.append((f"{cell}/W_0", (f"{name}.input.weight", f"{name}.recurrent.weight")))
            table.append((f"{cell}/B", (f"{name}.bias",)))
            if lstm.projection:
                table.append((f"{cell}/W_P_0", (f"{name}.projection.weight",)))

    shapes = expected_shapes(config)
    datasets = []
    for name, ours in table:
        rows = sum(shapes[part][0] for part in ours)
        shape = (rows, *shapes[ours[0]][1:])
        datasets.append(DatasetMapping(name, ours, (1, *shape) if "W_cnn" in name else shape))
    return datasets


def _cell(side: int, layer: int) -> str:
    return f"RNN_{side}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def read(detected: DetectedModel) -> BiLM:
    """Read a pair of options and weights, with the vocabulary if there is one."""
    source = detected.source
    options = source.read_json(detected.options)
    file = source.describe(detected.weights)
    try:
        with source.open(detected.weights) as raw:
            hdf5 = open_hdf5(raw, file)
            datasets = _datasets(hdf5, file)
            config = _config(options, datasets)
            path = source.locate(detected.weights)
            stored = None if path is None else WeightsFile(path)
            shapes = expected_shapes(config)
            weights: dict[str, AnyArray] = {}
            for entry in hdf5_layout(config):
                weights |= _take(entry, shapes, datasets, file, stored)
            own = take_group(hdf5, datasets, file)
            extra = {name: _read_extra(dataset, file) for name, dataset in datasets.items()}
    except OSError as error:
        raise FormatError(f"{file} cannot be read: {error}") from None
    vocabulary = None
    if detected.vocabulary is not None:
        vocabulary = Vocabulary.parse(
            source.read(detected.vocabulary), source.describe(detected.vocabulary)
        )
    return BiLM(
        config,
        StoredArrays(weights),
        vocabulary,
        own.settled,
        own.mix,
        extra=extra,
        origin=own.origin,
    )


def read_lstm_weights(path: Path, config: BiLMConfig) -> dict[str, npt.NDArray[Any]]:
    """Read only the weights of the LSTMs from an HDF5 file, by their canonical names."""
    try:
        with path.open("rb") as raw:
            datasets = _datasets(open_hdf5(raw, str(path)), str(path))
            shapes = expected_shapes(config)
            weights: dict[str, AnyArray] = {}
            for entry in hdf5_layout(config):
                if entry.name.startswith("RNN_"):
                    weights |= _take(entry, shapes, datasets, str(path), None)
            return dict(StoredArrays(weights))
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error}") from None


def _datasets(hdf5: HDF5Group, file: str) -> dict[str, HDF5Dataset]:
    """Return all datasets by their path; raise `FormatError` if they would fill the memory."""
    datasets = hdf5.walk()
    total = sum(dataset.nbytes for dataset in datasets.values())
    if total > LARGEST_RATIO * hdf5.file_size + LARGEST_EXTRA:
        raise FormatError(
            f"{file} has {hdf5.file_size:,} bytes and claims {total:,} bytes of numbers; weights "
            "never compress that well"
        )
    return datasets


def _config(options: Mapping[str, Any], datasets: Mapping[str, HDF5Dataset]) -> BiLMConfig:
    """Return the architecture, from options.json and from what only the weights show."""
    embedding = datasets.get("char_embed")
    rows = embedding.shape[0] if embedding is not None and embedding.shape else None
    char_cnn = options.get("char_cnn")
    stated = char_cnn.get("n_characters") if isinstance(char_cnn, dict) else None
    fits = isinstance(stated, int) and rows is not None and rows in (stated, stated - 1)
    return BiLMConfig.from_options(
        options,
        cnn_projection="CNN_proj/W_proj" in datasets,
        lstm_projection=f"{_cell(0, 0)}/W_P_0" in datasets,
        characters=rows if fits else None,
    )


def _take(
    entry: DatasetMapping,
    shapes: Mapping[str, tuple[int, ...]],
    datasets: dict[str, HDF5Dataset],
    file: str,
    stored: WeightsFile | None,
) -> dict[str, AnyArray]:
    dataset = datasets.pop(entry.name, None)
    if dataset is None:
        raise FormatError(
            f"{file} has no dataset {entry.name}, which options.json requires; do the two files "
            "belong together?"
        )
    if dataset.shape != entry.shape:
        raise FormatError(
            f"{file}: {entry.name} has the shape {dataset.shape}; options.json requires "
            f"{entry.shape}"
        )
    if dataset.dtype.kind != "f" or dataset.dtype.itemsize > 8:
        raise FormatError(f"{file}: {entry.name} holds {dataset.dtype}; expected floats")
    return divide(read_array(dataset, stored), {name: shapes[name] for name in entry.ours})


def _read_extra(dataset: HDF5Dataset, file: str) -> npt.NDArray[Any]:
    if dataset.dtype.kind not in "fiub" or dataset.nbytes > LARGEST_EXTRA:
        raise FormatError(
            f"{file}: {dataset.name} ({dataset.dtype}, {dataset.nbytes:,} bytes) is not part of a "
            "biLM; remove it from the file"
        )
    return dataset.read()


# -- writing -----------------------------------------------------------------------------------


def unsupported_parts(bilm: BiLM) -> list[str]:
    """Return the parts of a model that this format cannot store."""
    return ["the softmax"] if SOFTMAX[0] in bilm.weights else []


def write(bilm: BiLM, path: Path) -> list[Path]:
    """Write a pair of options and weights, and return the files.

    An older pair is replaced in one step: a process that is killed leaves the old one or the new
    one.

    Args:
        bilm: The model.
        path: A directory, or `X.hdf5`, which gets `X_options.json` beside it.
    """
    options = json.dumps(bilm.config.to_options(), indent=2, sort_keys=True) + "\n"
    weights = path if path.suffix.lower() in (".hdf5", ".h5") else path / "weights.hdf5"
    if weights.is_dir():
        raise InputError(f"{weights} is a directory; expected the name of a file to write")
    directory, weights_name = weights.parent, weights.name
    prefix = "" if weights_name in PLAIN_NAMES else weights.stem.removesuffix("_weights") + "_"
    files = {prefix + "options.json": options.encode()}
    if bilm.vocabulary is not None:
        files[prefix + "vocab.txt"] = bilm.vocabulary.dump()
    # A vocabulary beside older weights belongs to them; one that lies there alone is the user's.
    members = (prefix + "vocab.txt",) if weights.exists() else ()
    with replace_files(directory, weights_name, members) as stage:
        _write_hdf5(bilm, stage / weights_name)
        for name, data in files.items():
            (stage / name).write_bytes(data)
    return [directory / name for name in (*files, weights_name)]


def _write_hdf5(bilm: BiLM, path: Path) -> None:
    stored: dict[str, npt.NDArray[Any]] = {}
    with create_hdf5(path) as hdf5:
        for entry in hdf5_layout(bilm.config):
            parts = [_widen(bilm.weights[name]) for name in entry.ours]
            write_dataset(hdf5, entry.name, np.concatenate(parts).reshape(entry.shape))
            stored |= zip(entry.ours, parts, strict=True)
        for name, array in bilm.extra.items():
            if name not in RESERVED_NAMES:
                _write_extra(hdf5, name, array)
        write_group(hdf5, bilm, hash_content(bilm.config, stored))


def _write_extra(hdf5: Any, name: str, array: npt.NDArray[Any]) -> None:
    try:
        if "\0" in name or name.startswith(GROUP + "/"):
            raise ValueError("its name is reserved")
        write_dataset(hdf5, name, array)
    except (ValueError, TypeError, KeyError) as error:  # a name that another array needs
        raise InputError(
            f"the model has an array {name!r:.100}, which an HDF5 file cannot hold beside its "
            f"weights ({error}); save it in elmokit's own format, by giving a directory"
        ) from None


def _widen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array in single precision if it has half.

    AllenNLP adds 1 to the forget gate's bias in the file's own precision, and would round it.
    """
    return array.astype(np.promote_types(array.dtype, np.float32), copy=False)
