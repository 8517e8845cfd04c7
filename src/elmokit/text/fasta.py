"""Protein sequences in FASTA files, one at a time.

    >sp|P0DTC2|SPIKE_SARS2 Spike glycoprotein        a header: the id is its first word
    MFVFLVLLPLVSSQCVNLTTRTQLPPAYTNSFTRGVYYPDKVFRSSVLHSTQDLFLPFFS
    NVTWFHAIHVSGTNGTKRFDNPVLPFNDGVYFASTEKSNIIRGWIFGTTLDSKTQSLLIV

A sequence may have any number of lines. Residues become upper case and white space is dropped, as
SeqVec did; nothing else is changed, so that rare and unknown residues (U, O, B, Z, J, X), stops (*)
and gaps (- and .) are residues like any other. Lines that begin with `;` are comments. Errors name
the line. Knows nothing about models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elmokit.errors import InputError
from elmokit.text.files import TextFile, display_name

LONGEST_SEQUENCE = 1_000_000
"""Residues of a sequence at most. The longest known protein has 45,212."""
LONGEST_ID = 1000
"""Characters of an id at most."""
_NO_RESIDUE = re.compile(r"[^A-Za-z*.\-]")


class FastaRecord(NamedTuple):
    """A protein of a FASTA file."""

    id: str
    """The first word of the header, or the field of it that was asked for."""
    description: str
    """The header without `>`."""
    sequence: str
    """The residues, in upper case."""
    line: int
    """Number of the line of the header, counting from 1."""


def read_fasta(
    file: str | Path | TextFile, *, id_field: int | None = None
) -> Iterator[FastaRecord]:
    """Yield the proteins of a FASTA file in order, in bounded memory.

    Args:
        file: Path of the file, compressed or not; `"-"` is stdin.
        id_field: Number of the field of the header, divided at `|` and counted from 0, that is the
            id; None for the first word. UniProt's accession is field 1.

    Raises:
        InputError: The file is not FASTA, or two proteins have the same id; the message names the
            line.
    """
    source = file if isinstance(file, TextFile) else TextFile(str(file))
    name = display_name(source.name)
    lines_of_ids: dict[int, int] = {}  # hashes take less memory than ids
    header: FastaRecord | None = None
    parts: list[str] = []
    length = 0
    for number, text in source.lines():
        if text.startswith(";") or not (line := text.strip()):
            continue
        if line.startswith(">"):
            if header is not None:
                yield header._replace(sequence="".join(parts))
            header = _parse_header(line, id_field, name, number)
            before = lines_of_ids.setdefault(hash(header.id), number)
            if before != number:
                raise InputError(
                    f"{name}, line {number}: the id {header.id!r} was given in line {before} "
                    "already; every protein needs an id of its own"
                    + ("" if id_field is None else ". Choose another --id-field, or none")
                )
            parts, length = [], 0
            continue
        if header is None:
            raise InputError(
                f"{name}, line {number}: found {line[:40]!r} before any header; a FASTA file "
                "begins with a line like '>P12345 name of the protein'"
            )
        parts.append(_parse_residues(line, name, number))
        length += len(parts[-1])
        if length > LONGEST_SEQUENCE:
            raise InputError(
                f"{name}, line {number}: the sequence of {header.id!r} has more than "
                f"{LONGEST_SEQUENCE:,} residues, as no protein has. Is it DNA? Translate it first"
            )
    if header is not None:
        yield header._replace(sequence="".join(parts))


def _parse_header(line: str, id_field: int | None, name: str, number: int) -> FastaRecord:
    # SeqVec removes every ">" as well, and divides the whole header.
    description = line.replace(">", "").strip()
    if id_field is None:
        identifier = description.split(maxsplit=1)[0] if description else ""
    else:
        fields = description.split("|")
        if not 0 <= id_field < len(fields):
            raise InputError(
                f"{name}, line {number}: the header {line[:60]!r} has no field {id_field} (counted "
                f"from 0, divided at '|'); it has {len(fields)}. Leave out --id-field to use its "
                "first word"
            )
        identifier = fields[id_field].strip()
    if not identifier:
        raise InputError(f"{name}, line {number}: the header {line[:60]!r} has no id")
    if len(identifier) > LONGEST_ID:
        raise InputError(
            f"{name}, line {number}: the id {identifier[:40]!r}… has {len(identifier):,} "
            f"characters; expected at most {LONGEST_ID}"
        )
    return FastaRecord(identifier, description, "", number)


def _parse_residues(line: str, name: str, number: int) -> str:
    residues = "".join(line.split())
    if not residues.isascii() or not residues.isalpha():
        wrong = _NO_RESIDUE.search(residues)
        if wrong is not None:
            raise InputError(
                f"{name}, line {number}: {wrong[0]!r} is not a residue; expected letters, '*' for "
                "a stop, or '-' and '.' for gaps"
            )
    return residues.upper()


def check_fasta(path: str | Path, *, id_field: int | None = None) -> tuple[int, int]:
    """Return the number of proteins and of residues of a FASTA file, after checking all of it.

    Args:
        path: Path of the file.
        id_field: Field of the header that is the id; see `read_fasta`.
    """
    proteins = residues = 0
    for record in read_fasta(path, id_field=id_field):
        proteins += 1
        residues += len(record.sequence)
    if not proteins:
        raise InputError(
            f"{display_name(str(path))} has no proteins; a FASTA file begins with a line like "
            "'>P12345 name of the protein'"
        )
    return proteins, residues
