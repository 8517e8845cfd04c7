"""Converting a model from one format to another, as `elmo convert` does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from elmokit import formats
from elmokit.elmo import Elmo
from elmokit.errors import InputError


class ConvertedModel(NamedTuple):
    """What a conversion has written."""

    files: list[Path]
    """The files of the new model."""
    left_out: list[str]
    """Parts of the model that the new format cannot store, such as `the softmax`."""


def convert_model(
    source: str | Path, target: str | Path, *, format: str | None = None, overwrite: bool = False
) -> ConvertedModel:
    """Convert a model to another format; its weights stay the same, bit for bit.

    The command `elmo convert` does this.

    Args:
        source: The model: a directory, one file of a model, a zip archive, or a name.
        target: Where to write: a directory, `X.hdf5` (with `X_options.json` beside it) or `X.zip`.
        format: `"native"` (elmokit's own) or `"allennlp"` (options.json and weights.hdf5). By
            default the ending of `target` decides: .hdf5, .h5 and .zip are AllenNLP's.
        overwrite: Write even if `target` exists.
    """
    formats.choose_format(target, format)  # fail before the model is loaded
    path = Path(target).expanduser()
    is_empty_directory = path.is_dir() and not any(path.iterdir())
    if not overwrite and path.exists() and not is_empty_directory:
        raise InputError(
            f"{target} exists; nothing was written. Give another name, or replace it with "
            "overwrite=True (--force)"
        )
    elmo = Elmo.load(source)
    files = elmo.save(target, format)
    return ConvertedModel(files, formats.unsupported_parts(elmo.bilm, target, format))
