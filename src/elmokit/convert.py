"""Converting a model from one format to another, as `elmo convert` does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from elmokit import formats
from elmokit.elmo import Elmo


class ConvertedModel(NamedTuple):
    """What a conversion has written."""

    files: list[Path]
    """The files of the new model."""
    left_out: list[str]
    """Parts of the model that the new format cannot store, such as `the softmax`."""


def convert_model(
    source: str | Path,
    target: str | Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
    dtype: str | None = None,
) -> ConvertedModel:
    """Convert a model to another format; it gives the same vectors there, bit for bit.

    Settled state, mix and fingerprint stay the same too; AllenNLP's format has no place for a
    softmax. An ONNX file is for other programs: onnxruntime computes the same vectors to 1e-5. The
    command `elmo convert` does this.

    Args:
        source: The model: a directory, one file of a model, a zip archive, or a name.
        target: Where to write: a directory, `X.hdf5` (with `X_options.json` beside it), `X.zip` or
            `X.onnx` (with `X.onnx.json` beside it, which says how to feed it).
        format: `"native"` (elmokit's own), `"allennlp"` (options.json and weights.hdf5) or
            `"onnx"`. By default the ending of `target` decides: .hdf5, .h5 and .zip are AllenNLP's.
        overwrite: Write even if `target` exists.
        dtype: How an ONNX file stores the weights, `"float32"` or `"float16"`; by default as the
            model does. They are float32 when the network runs.
    """
    formats.check_target(target, format, overwrite, dtype=dtype)  # before the model is loaded
    elmo = Elmo.load(source)
    files = elmo.save(target, format, dtype=dtype)
    return ConvertedModel(files, formats.unsupported_parts(elmo.bilm, target, format))
