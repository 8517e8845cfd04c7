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
    source: str | Path, target: str | Path, *, format: str | None = None, overwrite: bool = False
) -> ConvertedModel:
    """Convert a model to another format; it gives the same vectors there, bit for bit.

    Settled state, mix and fingerprint stay the same too; AllenNLP's format has no place for a
    softmax. The command `elmo convert` does this.

    Args:
        source: The model: a directory, one file of a model, a zip archive, or a name.
        target: Where to write: a directory, `X.hdf5` (with `X_options.json` beside it) or `X.zip`.
        format: `"native"` (elmokit's own) or `"allennlp"` (options.json and weights.hdf5). By
            default the ending of `target` decides: .hdf5, .h5 and .zip are AllenNLP's.
        overwrite: Write even if `target` exists.
    """
    formats.check_target(target, format, overwrite)  # fail before the model is loaded
    elmo = Elmo.load(source)
    files = elmo.save(target, format)
    return ConvertedModel(files, formats.unsupported_parts(elmo.bilm, target, format))
