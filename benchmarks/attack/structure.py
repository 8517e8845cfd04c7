"""Lies inside intact containers: archives, compressed files, headers and tables that are valid.

Damage of the bytes of an archive is mostly noticed by its checksums. Here the container is taken
apart, something inside is changed, and everything is put together again as a program that means
harm would do it, with checksums that fit. `swap_file` puts something that is not a file in its
place.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import random
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mutations import NUMBERS, TOKENS, VALUES, mutate, mutate_json

from elmokit.formats import tf_index
from elmokit.formats.crc32c import crc32c, mask_checksum
from elmokit.formats.hdf5_input import lookup3

Mutator = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
NAMES = (
    *(
        "../canary",
        "/etc/passwd",
        "a/../../canary",
        "",
        ".",
        "..",
        "x" * 70_000,
        "a\0b",
        "\\x",
        "/",
    ),
    *("CON", "config.json", "0", "lengths.npy", "data.pkl", "manifest.json", "\ud800", "ü"),
)
"""Names of entries that lead elsewhere, or that no file system takes."""
DTYPES = (
    *("<f4", ">f4", "<f2", "<f8", "<i8", "|u1", "|b1", "<c16", "|O", "<U5", "|S0", "|V7", "<M8[s]"),
    *("<f16", "[('a', '<f4')]", "x", "", "<U0", ">i2", "(2,)<f4", "<f4,<f4", "O", "f" * 3000),
)
"""Types of numbers, of which few are numbers."""
SHAPES = (
    *("()", "(0,)", "(0, 0)", "(-1,)", "(3,)", "(1, 2, 3, 4)", "(1 << 40,)", "(99999999999, 4)"),
    *(
        "[2]",
        "2",
        "None",
        "(2.0,)",
        "('a',)",
        "(1,) * 99",
        "(True, 6)",
        "(0, 99999999999999999999)",
    ),
)


def restructure(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes | None:
    """Return a file with a lie inside it, or None if its container is not known here."""
    change = next((CONTAINERS[begin] for begin in CONTAINERS if data.startswith(begin)), None)
    if len(data) > 270 and data[257:262] == b"ustar":
        change = _tar
    elif data[-8:] == struct.pack("<Q", tf_index.MAGIC):
        change = _table
    elif change is None and len(data) > 8 and data[8:9] == b"{":
        change = _safetensors
    if change is not None:
        with contextlib.suppress(Exception):  # what is inside cannot be put together again
            return change(data, source, others)
    return None


def _zip(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change an entry, its name, its attributes, or the list of entries."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = [(info, archive.read(info)) for info in archive.infolist()]
    if not entries:
        return mutate(data, source, others)
    chosen = source.randrange(len(entries))
    info, content = entries[chosen]
    action = source.randrange(10)
    if action <= 4:
        inner = _inner(content, source, others)
        entries[chosen] = (info, inner)
    elif action == 5:
        del entries[chosen]
    elif action == 6:  # an entry twice, with other content
        entries.insert(source.randrange(len(entries) + 1), (info, mutate(content, source, others)))
    elif action == 7:
        info.filename = source.choice((*NAMES, info.filename.upper(), f"{info.filename}/x"))
    elif action == 8:
        info.external_attr = source.choice((0o120777, 0o010777, 0o040755, 0)) << 16
        info.extra = source.choice((b"", b"\1\0\x10\0" + bytes(16), b"\xff" * 40))
        info.flag_bits ^= source.choice((1, 8, 0x40, 0x800, 0x2000))
    else:
        source.shuffle(entries)
    out = io.BytesIO()
    method = source.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(out, "w") as archive:
        for info, content in entries:
            name = info.filename[:65_000]
            copy = zipfile.ZipInfo(name.encode("utf-8", "replace").decode() or "x")
            copy.external_attr, copy.extra = info.external_attr, info.extra
            copy.compress_type = method if action == 9 else zipfile.ZIP_STORED
            archive.writestr(copy, content)
    return out.getvalue()


def _inner(content: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the content of an entry: by its own structure, if it has one."""
    changed = restructure(content, source, others) if source.random() < 0.6 else None
    return mutate(content, source, others) if changed is None else changed


def _compressed(pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]) -> Mutator:
    def change(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
        inner = _inner(unpack(data), source, others)
        packed = pack(inner)
        action = source.randrange(8)
        if action == 0:  # compressed twice
            return pack(packed)
        if action == 1:  # two members, or rubbish behind the end
            return packed + source.choice((packed, pack(b""), b"\0" * 9, source.choice(TOKENS)))
        if action == 2:
            return pack(inner * source.choice((2, 50)))
        return packed

    return change


def _zstandard_pack(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _zstandard_unpack(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 24)


def _tar(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change an entry of a tar archive, its name, or its kind."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        entries = []
        for info in archive.getmembers():
            file = archive.extractfile(info) if info.isfile() else None
            entries.append((info, file.read() if file else b""))
    files = [i for i, (info, _) in enumerate(entries) if info.isfile()]
    if not files:
        return mutate(data, source, others)
    chosen = source.choice(files)
    info, content = entries[chosen]
    action = source.randrange(6)
    if action <= 2:
        entries[chosen] = (info, _inner(content, source, others))
    elif action == 3:
        info.name = source.choice(NAMES).encode("utf-8", "replace").decode()[:300]
    elif action == 4:
        info.type = source.choice((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, b"S", b"?"))
        info.linkname = source.choice(("../canary", "/etc/passwd", info.name))
    else:
        entries.append((info, mutate(content, source, others)))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=source.choice((0, 1, 2))) as archive:
        for info, content in entries:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def _safetensors(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the header of a safetensors file, and give the length that it has then."""
    (size,) = struct.unpack("<Q", data[:8])
    header, body = data[8 : 8 + size], data[8 + size :]
    if source.random() < 0.3:
        lied: bytes | None = mutate_json(header, source)
    else:
        content = json.loads(header)
        name = source.choice([key for key in content if key != "__metadata__"])
        key = source.choice(("dtype", "shape", "data_offsets"))
        content[name][key] = {
            "dtype": source.choice(("F16", "F64", "BF16", "I64", "U8", "BOOL", "F8_E4M3", "x", 1)),
            "shape": source.choice(
                ([], [0], [1], [1 << 62, 4], [-1], [2, 3], content[name]["shape"][::-1])
            ),
            "data_offsets": source.choice(([0, 0], [4, 0], [0, len(body)], [0, 1 << 60], [-4, 0])),
        }[key]
        if source.random() < 0.2:
            content[source.choice(("x", "", "softmax.bias", "a" * 9000))] = content.pop(name)
        lied = json.dumps(content).encode()
    header = lied or header
    if source.random() < 0.1:
        body = mutate(body, source, others)
    return struct.pack("<Q", len(header)) + header + body


def _npy(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change the header of a NumPy file: its type, order, shape, or what it is."""
    array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    body = array.tobytes()
    dtype = source.choice((array.dtype.str, source.choice(DTYPES)))
    shape = source.choice((str(array.shape), source.choice(SHAPES)))
    order = source.choice(("False", "True", "None", "0", "'x'"))
    descr = dtype if dtype.startswith("[") else repr(dtype)
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    if source.random() < 0.2:
        header = source.choice(
            ("{}", "1", header * 2, "__import__('os')", "(" * 400, "{'descr': []}", " " * 70_000)
        )
    text = header.encode("latin-1", "replace") + b"\n"
    if array.dtype == np.uint8 and source.random() < 0.5:  # lines of JSON
        lines = bytes(array).split(b"\n")
        lines[source.randrange(len(lines))] = source.choice((b"3", b"[1]", b"{}", b'"ab"', b""))
        body = b"\n".join(lines)
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(body)},), }}"
    version = source.choice((1, 1, 1, 2, 3, 0, 9))
    length = struct.pack(
        "<H" if version == 1 else "<I", len(text) & (0xFFFF if version == 1 else -1)
    )
    if source.random() < 0.2:
        body = body[: source.randrange(len(body) + 1)] if source.random() < 0.5 else body * 2
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + body


def _hdf5(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Replace a dataset, an attribute or strings of an HDF5 file, or change how it is stored."""
    import h5py

    if source.random() < 0.5:
        return _hdf5_metadata(data, source)
    buffer = io.BytesIO(data)
    with h5py.File(buffer, "r+") as file:
        names: list[str] = []
        file.visit(names.append)
        name = source.choice(names)
        item = file[name]
        if getattr(getattr(item, "dtype", None), "kind", "") == "O" and source.random() < 0.5:
            texts = ("3", "[1, 2]", "{}", "null", '"abc"', '{"a": 1e999}', "[" * 3000, "x" * 9999)
            item[source.randrange(item.size) if item.ndim else ()] = source.choice(texts)
        elif source.random() < 0.3 and len(item.attrs):
            key = source.choice(list(item.attrs))
            item.attrs[key] = source.choice(_hdf5_values(source))
        else:
            dataset = source.random() < 0.8
            shape = item.shape if isinstance(item, h5py.Dataset) else (2, 3)
            del file[name]
            if dataset:
                _hdf5_dataset(file, name, shape, source)
            else:
                _hdf5_other(file, name, source)
    return buffer.getvalue()


_HDF5_PARTS = re.compile(
    rb"\x89HDF|OHDR|OCHK|TREE|SNOD|HEAP|GCOL|BTHD|BTLF|BTIN|FRHP|FHDB|FHIB|\x01\x00[\x01-\x20]\x00\x01\x00\x00\x00"
)
"""How the parts of an HDF5 file begin; the last is a header without a name."""


def _hdf5_metadata(data: bytes, source: random.Random) -> bytes:
    """Change numbers in the structure of an HDF5 file, and give it checksums that fit."""
    places = [match.start() for match in _HDF5_PARTS.finditer(data)]
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 3))):
        width = source.choice((1, 1, 2, 4, 8))
        place = source.choice(places) + source.randrange(source.choice((16, 64, 300)))
        place = min(place, len(data) - width)
        old = int.from_bytes(changed[place : place + width], "little")
        number = source.choice(
            (old + 1, old - 1, old * 2, old ^ 1 << source.randrange(8), source.choice(NUMBERS))
        )
        if width == 8:  # mostly addresses
            number = source.choice((number, source.choice(places), source.randrange(len(data))))
        changed[place : place + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
    for place in places:
        size = {b"BTHD": 38, b"FRHP": 146}.get(data[place : place + 4], 0)
        if data[place : place + 4] == b"OHDR":
            flags = changed[place + 5]
            head = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
            width = 1 << (flags & 3)
            content = int.from_bytes(changed[place + head : place + head + width], "little")
            size = head + width + content + 4
        if 4 < size <= len(data) - place:
            end = place + size
            changed[end - 4 : end] = struct.pack("<I", lookup3(bytes(changed[place : end - 4])))
    return bytes(changed)


def _hdf5_values(source: random.Random) -> list[Any]:
    import h5py

    return [
        *("", "x", "{}", "[" * 2000, 0, -1, 1 << 62, 1.5, float("nan"), True, np.zeros((3, 0))),
        *(np.bytes_(b"\xff\xfe"), np.array(["a", "b"], dtype=h5py.string_dtype())),
        *(h5py.Empty("f"), np.zeros(2, [("a", "f4")]), np.float16(1), b"1" * 100),
    ]


def _hdf5_dataset(
    file: Any, name: str, shape: tuple[int, ...] | None, source: random.Random
) -> None:
    import h5py

    numbers = np.random.default_rng(source.randrange(1 << 30))
    shape = source.choice(
        (shape, (), (0,), (0, 3), (2, 3, 4), (1, 1, 1, 1), (7,), (shape or ())[::-1])
    )
    dtype = source.choice(
        (
            *("<f4", ">f4", "<f2", "<f8", "<i4", "|u1", "|b1", "<c8", "S3", "f16"),
            *(h5py.string_dtype(), h5py.vlen_dtype("f4"), np.dtype([("a", "f4"), ("b", "i2")])),
            *(h5py.enum_dtype({"A": 0, "B": 1}), h5py.ref_dtype, h5py.regionref_dtype, "V5"),
        )
    )
    if source.random() < 0.1:
        file[name] = h5py.Empty("f4")
        return
    options: dict[str, Any] = {}
    if shape and all(shape) and source.random() < 0.5:
        options = {"chunks": True, "maxshape": (None,) * len(shape)}
        options["compression"] = source.choice((None, "gzip", "lzf"))
        options["shuffle"], options["fletcher32"] = source.random() < 0.5, source.random() < 0.5
    dataset = file.create_dataset(name, shape, dtype, **options)
    if np.dtype(dtype).kind in "fiu" and source.random() < 0.7:
        values = numbers.normal(size=shape)
        dataset[...] = (
            np.full(shape, source.choice((np.nan, np.inf))) if source.random() < 0.1 else values
        )


def _hdf5_other(file: Any, name: str, source: random.Random) -> None:
    """Put something that is not a dataset in its place."""
    import h5py

    kind = source.randrange(6)
    if kind == 0:
        file.create_group(name)
    elif kind == 1:
        file[name] = h5py.SoftLink(source.choice((f"/{name}", "/", "/nowhere", "/0")))
    elif kind == 2:
        file[name] = h5py.ExternalLink("/etc/passwd", "/")
    elif kind == 3:
        file[name] = file["/"]  # a cycle of hard links
    elif kind == 4:
        file[name] = np.dtype("f4")  # a named type
    else:
        file[source.choice(("x", "10000000000", "-1", "00", "a/b/c", "1e3"))] = np.ones(
            (2, 3), "f4"
        )


def _parquet(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change a column, its type, the rows or the metadata of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    metadata = dict(table.schema.metadata or {})
    place = source.randrange(table.num_columns)
    name = table.column_names[place]
    action = source.randrange(7)
    if action == 0:
        table = table.drop_columns([name])
    elif action == 1:
        table = table.rename_columns(
            [
                source.choice(("x", "", name.upper(), "words")) if n == name else n
                for n in table.column_names
            ]
        )
    elif action == 2:
        count = table.num_rows
        column = source.choice(
            (
                pa.nulls(count),
                pa.array(["x"] * count),
                pa.array([None] * count, pa.list_(pa.float32())),
                pa.array([[1.0, None]] * count),
                pa.array([[[1.0], []]] * count),
                pa.array([b"\xff"] * count),
                pa.array([{"a": 1}] * count),
                pa.array([["a", None]] * count),
                pa.array([-1] * count),
                pa.array(["x"] * count).dictionary_encode(),
                pa.array([[np.nan] * 3] * count, pa.list_(pa.float16())),
            )
        )
        table = table.set_column(place, name, column)
    elif action == 3:
        table = table.slice(source.randrange(table.num_rows + 1))
    elif action == 4:
        table = pa.concat_tables([table, table.slice(0, 1)])
    elif action == 5 and metadata:
        key = source.choice(list(metadata))
        metadata[key] = mutate_json(metadata[key], source) or mutate(metadata[key], source)
        if source.random() < 0.2:
            del metadata[key]
    else:
        table = table.take(pa.array(source.choices(range(table.num_rows), k=table.num_rows)))
    out = io.BytesIO()
    group = source.choice((None, 1, 2))
    compression = source.choice(("snappy", "none", "gzip", "zstd"))
    pq.write_table(
        table.replace_schema_metadata(metadata), out, row_group_size=group, compression=compression
    )
    return out.getvalue()


def _spool(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Write an unfinished output whose header and records have checksums that fit."""
    begin = data.index(b"\n") + 1
    size, _ = struct.unpack_from("<QI", data, begin)
    header = data[begin + 12 : begin + 12 + size]
    if source.random() < 0.3:
        header = mutate_json(header, source) or header
    out = data[:begin] + struct.pack("<QI", len(header), zlib.crc32(header)) + header
    rest = data[begin + 12 + size :]
    place = 0
    while place + 36 <= len(rest):
        length, layers, words, dim = struct.unpack_from("<QQQQ", rest, place)
        body = max(layers, 1) * words * dim * 4
        record = rest[place + 36 : place + 36 + length + body]
        place += 36 + length + body
        text, array = record[:length], record[length:]
        if length and source.random() < 0.3:
            values = (
                "",
                1,
                None,
                [1],
                {"words": 1},
                {},
                [["a"]],
                {"words": ["a"] * words, "id": 3},
            )
            text = source.choice((json.dumps(source.choice(values)).encode(), mutate(text, source)))
        if source.random() < 0.1:
            layers, words, dim = (source.choice((0, 1, 3, 1 << 40, 1 << 63)) for _ in range(3))
        fields = struct.pack("<QQQQ", len(text), layers, words, dim)
        crc = zlib.crc32(array, zlib.crc32(text, zlib.crc32(fields)))
        out += fields + struct.pack("<I", crc) + text + array
    return out


def _table(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Change bytes in the blocks of a TensorFlow index, and give every block its checksum."""
    footer = data[-tf_index.FOOTER_BYTES : -8]
    _, end = tf_index._handle(footer, 0, "")
    index, _ = tf_index._handle(footer, end, "")
    entries = tf_index._entries(tf_index._block(data, *index, ""), "")
    blocks = [index, *(tf_index._handle(value, 0, "")[0] for _, value in entries)]
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        start, size = source.choice(blocks)
        place = start + source.randrange(size)
        number = source.choice(NUMBERS)
        value = source.choice((bytes([changed[place] ^ 1 << source.randrange(8)]), b"\xff" * 9))
        value = source.choice((value, number.to_bytes(9, "little").rstrip(b"\0") or b"\0"))
        value = value[: start + size - place]
        changed[place : place + len(value)] = value
    for start, size in blocks:
        end = start + size
        checksum = mask_checksum(crc32c(bytes(changed[start : end + 1])))
        changed[end + 1 : end + 5] = struct.pack("<I", checksum)
    return bytes(changed)


def _text(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes:
    """Return a text in another encoding, with other ends of lines, or far longer lines."""
    text = data.decode("utf-8", "replace")
    action = source.randrange(7)
    if action == 0:
        return text.encode(source.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig")), "replace")
    if action == 1:
        return text.encode("latin-1", "replace") + b"\xe9\n"
    if action == 2:
        return text.replace("\n", source.choice(("\r", "\r\n", "\u2028", "\0", "\v", ""))).encode()
    lines = text.split("\n")
    place = source.randrange(len(lines))
    if action == 3:
        lines[place] = lines[place] * source.choice((100, 5000))
    elif action == 4:
        source.shuffle(lines)
    elif action == 5:
        parts = lines[place].split("\t" if "\t" in lines[place] else " ")
        column = source.randrange(len(parts))
        value = source.choice([str(value) for value in VALUES if not isinstance(value, list)])
        parts[column : column + source.randrange(2)] = [value[:200]]
        lines[place] = ("\t" if "\t" in lines[place] else " ").join(parts)
    else:
        lines[place:place] = lines[place : place + 3] * source.choice((1, 200))
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def mutate_text(data: bytes, source: random.Random) -> bytes | None:
    """Return a text that is changed as a whole; None if the data is not text."""
    if b"\0" in data[:1000] or not data:
        return None
    return _text(data, source, ())


CONTAINERS: dict[bytes, Mutator] = {
    b"PK\3\4": _zip,
    b"\x1f\x8b": _compressed(gzip.compress, gzip.decompress),
    b"BZh": _compressed(bz2.compress, bz2.decompress),
    b"\xfd7zXZ": _compressed(lzma.compress, lzma.decompress),
    b"\x28\xb5\x2f\xfd": _compressed(_zstandard_pack, _zstandard_unpack),
    b"\x93NUMPY": _npy,
    b"\x89HDF": _hdf5,
    b"PAR1": _parquet,
    b"elmokit spool": _spool,
}
"""What a file begins with, and how it is changed inside."""


def swap_file(path: Path, source: random.Random) -> None:
    """Put something else in the place of a file: a pipe, a directory, a link, or nothing."""
    path.unlink()
    kind = source.randrange(7)
    if kind == 0:
        os.mkfifo(path)  # opening it would wait for ever
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(path)
    elif kind == 3:
        path.symlink_to("/dev/zero")
    elif kind == 4:
        path.symlink_to("/nowhere")
    elif kind == 5:
        path.write_bytes(b"")
        path.chmod(0)
