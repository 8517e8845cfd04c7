"""Writing a model as an ONNX file, for onnxruntime in any language.

`model.onnx` holds the network (`graph.py`), `model.onnx.json` says how to feed it (`metadata.py`).
Weights that do not fit into one ONNX file, which ends at 2 GB, go to `model.onnx.data`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import elmokit
from elmokit.bilm.model import BiLM
from elmokit.errors import InputError
from elmokit.extras import require
from elmokit.formats.onnx.graph import IR_VERSION, OPSET, Array, StoredDtype, build_graph
from elmokit.formats.onnx.metadata import METADATA_KEY, make_metadata
from elmokit.staging import replace_files

LARGEST_FILE = 2_000_000_000
"""Bytes of weights that are put into the ONNX file itself; protobuf ends at 2^31."""
ALIGNMENT = 4096
"""Arrays in the data file begin at multiples of this, so that they can be memory-mapped."""


def onnx_file(target: Path) -> Path:
    """Return the ONNX file to write: the target if it is named so, else one in that directory."""
    return target if target.suffix.lower() == ".onnx" else target / "model.onnx"


def sidecar_files(target: Path) -> tuple[Path, Path]:
    """Return where the metadata and, for a large model, the weights of an export are."""
    target = onnx_file(target)
    return target.with_name(f"{target.name}.json"), target.with_name(f"{target.name}.data")


def write(
    bilm: BiLM, target: Path, *, dtype: StoredDtype | None = None, license: str | None = None
) -> list[Path]:
    """Write an ONNX file and its metadata, and return the files.

    Older files are replaced in one step: a process that is killed leaves the old ones or the new
    ones.

    Args:
        bilm: The model, with its settled state.
        target: The ONNX file, or a directory for `model.onnx`.
        dtype: How matrices are stored; None for the type that they have in the model.
        license: License of the model for the metadata, if it is known.
    """
    onnx = require("onnx", "ONNX files")
    target = onnx_file(target)
    if target.is_dir():
        raise InputError(
            f"{target} is a directory; expected the name of a file, such as model.onnx"
        )
    if bilm.settled is None:
        raise InputError(
            "an ONNX file contains the settled state, which this model has not computed yet; "
            "write it with Elmo(bilm).save(path)"
        )
    graph, arrays = build_graph(onnx.helper, bilm, bilm.settled, dtype)
    half = any(array.dtype == np.float16 for array in arrays.values())
    metadata = make_metadata(bilm, "float16" if half else "float32", license)
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="elmokit",
        producer_version=elmokit.__version__,
        doc_string="ELMo: word vectors from characters. The metadata say how to feed it.",
    )
    onnx.helper.set_model_props(model, {METADATA_KEY: json.dumps(metadata)})
    description, data = sidecar_files(target)
    members = [target.name, description.name, data.name]
    with replace_files(target.parent, target.name, members) as stage:
        if sum(array.nbytes for array in arrays.values()) > LARGEST_FILE:
            _store_beside(onnx, model, arrays, stage / data.name)
        else:
            _store_inside(onnx, model, arrays)
        (stage / target.name).write_bytes(model.SerializeToString())
        text = json.dumps(metadata, indent=2) + "\n"
        (stage / description.name).write_text(text, encoding="utf-8")
        written = [name for name in members if (stage / name).exists()]
    return [target.parent / name for name in written]


def _store_inside(onnx: Any, model: Any, arrays: dict[str, Array]) -> None:
    for name, array in arrays.items():
        _add_tensor(onnx, model, name, array).raw_data = _little_endian(array).tobytes()


def _store_beside(onnx: Any, model: Any, arrays: dict[str, Array], path: Path) -> None:
    """Write the arrays to a file of their own, to which the model refers by name."""
    with path.open("wb") as file:
        for name, array in arrays.items():
            tensor = _add_tensor(onnx, model, name, array)
            if array.nbytes < ALIGNMENT:  # shapes must be known before other files are read
                tensor.raw_data = _little_endian(array).tobytes()
                continue
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            tensor.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": path.name, "offset": file.tell(), "length": array.nbytes}
            for key, value in place.items():
                entry = tensor.external_data.add()
                entry.key, entry.value = key, str(value)
            file.write(_little_endian(array).tobytes())


def _add_tensor(onnx: Any, model: Any, name: str, array: Array) -> Any:
    tensor = model.graph.initializer.add()
    tensor.name = name
    tensor.data_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor.dims.extend(array.shape)
    return tensor


def _little_endian(array: Array) -> Array:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
