"""Vectors as JSON, one object per line, as `elmo embed --json` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from elmokit.bilm.weights import FloatArray


def print_vectors(fields: dict[str, Any], vectors: FloatArray) -> None:
    """Print one line: the fields, then the shape and the values of an array."""
    import json

    line = fields | {"shape": list(vectors.shape), "vectors": _rounded(vectors.tolist())}
    click.echo(json.dumps(line))


def _rounded(values: Any) -> Any:
    if isinstance(values, list):
        return [_rounded(value) for value in values]
    return float(f"{values:.9g}")  # nine digits identify a float32
