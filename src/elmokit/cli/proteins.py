"""Proteins instead of sentences in `elmo embed --fasta`: their options, their check, and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from elmokit.cli.json_lines import print_vectors

if TYPE_CHECKING:
    from elmokit.elmo import Elmo, LayerChoice, Pooling
    from elmokit.text.files import TextFile


class FastaInput(NamedTuple):
    """A FASTA file, and which field of its headers is the id."""

    file: TextFile
    id_field: int | None


def refuse_text_options(options: Mapping[str, object]) -> None:
    """Raise `UsageError` if an option is given that is about sentences."""
    given = [name for name, value in options.items() if value]
    if given:
        raise click.UsageError(f"--fasta cannot be combined with {', '.join(given)}")


def check_proteins(proteins: FastaInput) -> None:
    """Read the whole file once, so that a mistake in its last line does not cost hours.

    Nothing is checked if it is stdin, which can be read only once.
    """
    from elmokit.text.fasta import check_fasta
    from elmokit.text.files import STDIN

    if proteins.file.name != STDIN:
        check_fasta(proteins.file.name, id_field=proteins.id_field)


def load_proteins(model: str, state: str, dtype: str, threads: int | None) -> Elmo:
    """Load a model for proteins: it need not say that it is one, since a FASTA file was given."""
    from elmokit import formats
    from elmokit.elmo import Elmo, locate_model

    bilm = formats.read(locate_model(model))  # weights stay in the file: twice costs little
    proteins = True if bilm.vocabulary is None and not bilm.reads_residues else None
    return Elmo.load(model, state=state, dtype=dtype, threads=threads, proteins=proteins)


def print_proteins(
    elmo: Elmo,
    proteins: FastaInput,
    layers: LayerChoice,
    pool: Pooling | None,
    normalize: bool,
) -> None:
    """Print one JSON object per protein."""
    from elmokit.elmo import pool_vectors

    vectors = elmo.embed_fasta(proteins.file, layers, pooling=pool, id_field=proteins.id_field)
    for index, (identifier, array) in enumerate(vectors):
        fields = {"index": index, "id": identifier}
        print_vectors(fields, pool_vectors(array, None, normalize))
