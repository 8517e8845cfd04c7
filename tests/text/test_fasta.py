"""FASTA files as they come: wrapped, compressed, commented, wrong."""

from __future__ import annotations

import gzip
import lzma
import tracemalloc
from pathlib import Path

import pytest

from elmokit.errors import InputError
from elmokit.text import fasta
from elmokit.text.fasta import check_fasta, read_fasta

FILE = """\
; a comment
>sp|P1|ONE_HUMAN The first protein
MKTAYIAKQR
QISFVKSHFS

>sp|P2|TWO lower case, spaces, gaps, a stop
mktay iakqr
uzobxj-.*
>sp|P3|NONE without residues
>sp|P4|LAST
W"""


def write(tmp_path: Path, text: str | bytes, name: str = "proteins.fasta") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_records(tmp_path: Path) -> None:
    records = list(read_fasta(write(tmp_path, FILE)))
    assert [r.id for r in records] == ["sp|P1|ONE_HUMAN", "sp|P2|TWO", "sp|P3|NONE", "sp|P4|LAST"]
    assert [r.sequence for r in records] == [
        "MKTAYIAKQRQISFVKSHFS",
        "MKTAYIAKQRUZOBXJ-.*",
        "",
        "W",
    ]
    assert records[0].description == "sp|P1|ONE_HUMAN The first protein"
    assert [r.line for r in records] == [2, 6, 9, 10]
    assert check_fasta(tmp_path / "proteins.fasta") == (4, 40)


def seqvec(path: Path, id_field: int = 1) -> dict[str, str]:
    """What SeqVec's `read_fasta` makes of a file, in other words."""
    found: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if line.startswith(">"):
            header = line.replace(">", "").strip()
            key = header if id_field == -1 else header.split("|")[id_field]
            found[key] = ""
        else:
            found[key] += "".join(line.split()).upper()
    return found


def test_sequences_are_those_of_seqvec(tmp_path: Path) -> None:
    path = write(tmp_path, FILE.partition("\n")[2])  # it does not know comments
    ours = {record.id: record.sequence for record in read_fasta(path, id_field=1)}
    assert ours == seqvec(path)
    assert list(ours) == ["P1", "P2", "P3", "P4"]


@pytest.mark.parametrize("change", ["crlf", "gz", "xz", "bom", "no end"])
def test_the_same_in_other_clothes(tmp_path: Path, change: str) -> None:
    expected = list(read_fasta(write(tmp_path, FILE)))
    data = FILE.encode()
    name = "other.fasta"
    if change == "crlf":
        data = data.replace(b"\n", b"\r\n")
    elif change == "gz":
        data, name = gzip.compress(data), "other.fasta.gz"
    elif change == "xz":
        data, name = lzma.compress(data), "other"
    elif change == "bom":
        data = b"\xef\xbb\xbf" + data
    else:
        data += b"\n\n\n"
    assert list(read_fasta(write(tmp_path, data, name))) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MKT\n>a\n", r"proteins\.fasta, line 1: found 'MKT' before any header"),
        (">a\nMK\n>\nMK", "line 3: the header '>' has no id"),
        (">a\nMK\n>b\nMK\n\n>a x\nM", "line 6: the id 'a' was given in line 1 already"),
        (">a\nMK\n1 MKT", "line 3: '1' is not a residue"),
        (">a\nMÄ", "line 2: 'Ä' is not a residue"),
        (">a\nMK>b\n", "line 2: '>' is not a residue"),
        (f">{'a' * 2000}\nM", "the id 'a.* has 2,000 characters; expected at most 1000"),
    ],
)
def test_mistakes_are_reported_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_fasta(write(tmp_path, text))


def test_fields_of_a_header(tmp_path: Path) -> None:
    path = write(tmp_path, ">a|b|c d\nM\n>a\nM")
    with pytest.raises(InputError, match=r"line 3: the header '>a' has no field 1 .*it has 1"):
        list(read_fasta(path, id_field=1))
    path = write(tmp_path, ">x|same|c\nM\n>y|same|c\nM")
    with pytest.raises(InputError, match=r"'same' was given in line 1.*another --id-field"):
        list(read_fasta(path, id_field=1))


def test_a_file_without_proteins(tmp_path: Path) -> None:
    for text in ("; nothing", "\n\n"):
        with pytest.raises(InputError, match="has no proteins"):
            check_fasta(write(tmp_path, text))


def test_a_genome_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fasta, "LONGEST_SEQUENCE", 100)
    with pytest.raises(InputError, match=r"line 3: the sequence of 'chr1' has more than 100"):
        check_fasta(write(tmp_path, ">chr1\n" + "ACGT" * 20 + "\n" + "ACGT" * 20))


def test_a_large_file_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.fasta"
    with path.open("w") as out:
        for i in range(300):
            out.write(f">p{i}\n" + "MKTAYIAKQR" * (3500 if i % 50 == 0 else 30) + "\n")
    tracemalloc.start()
    assert sum(len(record.sequence) for record in read_fasta(path)) == 6 * 35_000 + 294 * 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 << 20
