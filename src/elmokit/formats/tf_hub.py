"""Reading the ELMo modules of TensorFlow Hub: `google/elmo/1`, `/2` and `/3`.

A module is a directory, or a tar.gz of it, with

    saved_model.pb, tfhub_module.pb     the graph, which is not read
    variables/variables.index           the tensors (see `tf_bundle.py`)
    variables/variables.data-00000-of-00001

The variables are those of bilm-tf under `bilm/`, and four numbers under `aggregation/` that combine
the layers: `weights` (3), before their softmax, and `scaling`. (Names as TensorFlow prints them
when it loads the module: github.com/tensorflow/hub, issue 88.) Nothing says how the network is
built, so its sizes come from the tensors, and what these do not show from the published model that
the module was made from: ReLU, both clips at 3, a skip connection, 50 characters per word.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import expected_shapes
from elmokit.errors import FormatError
from elmokit.formats.detect import VARIABLES
from elmokit.formats.source import ModelSource
from elmokit.formats.stored_arrays import AnyArray, StoredArray, StoredArrays
from elmokit.formats.tf_bundle import TensorBundle
from elmokit.formats.tf_checkpoint import (
    CHARACTER_TABLE,
    CellNaming,
    check_rest,
    checkpoint_layout,
    find_naming,
    find_scope,
    take_arrays,
)
from elmokit.text.characters import BYTE_CHARACTERS

CLIP = 3.0
"""Clip of the cells and of the projections in the published models."""


def read(source: ModelSource) -> BiLM:
    """Read a module, given its directory `variables`."""
    bundle = TensorBundle(source, VARIABLES)
    scope = find_scope(bundle, {"char_cnn": {}})
    naming = find_naming(bundle, scope)
    rows, _ = _matrix_shape(bundle, scope + CHARACTER_TABLE)
    # Row 0 of the table is the mask of bilm-tf, where there is one more row than characters.
    characters = rows - 1 if rows == BYTE_CHARACTERS + 1 else rows
    config = BiLMConfig.from_options(
        _options(bundle, scope, naming),
        cnn_projection=f"{scope}CNN_proj/W_proj" in bundle,
        lstm_projection=f"{scope}{naming.cell(0, 0, 2)}/{naming.projection}" in bundle,
        characters=characters,
    )
    table = checkpoint_layout(config, naming, scope)
    check_rest(bundle, scope, table)
    shapes = expected_shapes(config)
    weights: dict[str, AnyArray] = {}
    for entry in table:
        skip = rows - characters if entry.name == scope + CHARACTER_TABLE else 0
        weights |= take_arrays(entry, shapes, bundle, skip)
    return BiLM(config, StoredArrays(weights), mix=_mix(bundle, scope))


def _options(bundle: TensorBundle, scope: str, naming: CellNaming) -> dict[str, Any]:
    """Return what options.json would say, from the shapes of the tensors."""

    def count(pattern: str) -> int:
        matches = (re.fullmatch(re.escape(scope) + pattern, name) for name in bundle.names)
        found = {int(match[1]) for match in matches if match}
        if found != set(range(len(found))):
            raise FormatError(f"{bundle.where} lacks some of its tensors {scope}{pattern}")
        return len(found)

    filters = []
    for i in range(count(r"CNN/W_cnn_(\d{1,3})")):
        shape = bundle.shape(f"{scope}CNN/W_cnn_{i}")
        if len(shape) != 4:
            raise FormatError(f"{bundle.where}: {scope}CNN/W_cnn_{i} has the shape {shape}")
        filters.append([shape[1], shape[3]])
    cell = scope + naming.cell(0, 0, 2)
    _, gates = _matrix_shape(bundle, f"{cell}/{naming.kernel}")
    _, dim = _matrix_shape(bundle, scope + CHARACTER_TABLE)
    cells = gates // 4
    projection = f"{cell}/{naming.projection}"
    width = _matrix_shape(bundle, projection)[1] if projection in bundle else cells
    layers = re.escape(naming.cell(0, 10, 2)).replace("10", r"(\d{1,2})")
    return {
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": dim},
            "filters": filters,
            "max_characters_per_token": 50,
            "n_characters": BYTE_CHARACTERS + 1,
            "n_highway": count(r"CNN_high_(\d{1,2})/W_carry"),
        },
        "lstm": {
            "cell_clip": CLIP,
            "dim": cells,
            "n_layers": count(layers + "/" + re.escape(naming.kernel)),
            "proj_clip": CLIP,
            "projection_dim": width,
            "use_skip_connections": True,
        },
    }


def _matrix_shape(bundle: TensorBundle, name: str) -> tuple[int, int]:
    """Return the number of rows and columns of a tensor; raise if it is no matrix."""
    shape = bundle.shape(name)
    if len(shape) != 2:
        raise FormatError(f"{bundle.where}: {name} has the shape {shape}; expected a matrix")
    return shape[0], shape[1]


def _mix(bundle: TensorBundle, scope: str) -> Mix | None:
    """Return the learned weights of the layers; None if the module has none."""
    root = scope.removesuffix("bilm/")
    scalars, gamma = (f"{root}aggregation/{name}" for name in ("weights", "scaling"))
    if scalars not in bundle or gamma not in bundle:
        return None
    values, scale = (_numbers(bundle.tensor(name)) for name in (scalars, gamma))
    if len(scale) != 1:
        raise FormatError(f"{bundle.where}: {gamma} has {len(scale)} values; expected one")
    return Mix(tuple(values.tolist()), float(scale[0]))


def _numbers(tensor: AnyArray) -> npt.NDArray[np.float64]:
    array = tensor.read() if isinstance(tensor, StoredArray) else tensor
    return np.asarray(array, np.float64).reshape(-1)
