"""Files that are valid as containers, and say what no program that wrote them would say.

`mutations.py` and `structure.py` change one thing at random. Here each lie is one that readers are
known to trip over: numbers that JSON allows and nobody expects, tensors that overlap, columns of
types that nobody stores, entries of an archive that claim each other's bytes.
"""

from __future__ import annotations

import io
import json
import random
import re
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

NUMBERS = (
    *("1e999", "-1e999", "1E+400", "0e-9999", "-0", "-0.0", "NaN", "Infinity", "-Infinity", "1.0"),
    *("1e3", "4.9e-324", "9" * 4000, "-" + "9" * 5000, "0." + "1" * 3000, "18446744073709551616"),
    *("9007199254740993", "2147483648", "-2147483649", "true", "null", '"1"', "[1]", "1e-7", "00"),
)
"""Numbers as JSON texts have them, and things in the place of numbers."""
STRINGS = (
    *(r"\ud800", r"\udfff\ud800", r"\u0000", r"a\nb", r"\u202e", r"\u2028", r"\ufeff", "ü" * 3000),
    *(r"__class__", r"../../x", r"file:///etc/passwd", r"{0.__class__}", r"%s%n", r"a\u0301", ""),
)
"""Content of strings as JSON texts have it."""
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_PAIR = re.compile(
    rb'"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|true|false|null)'
)


def lie_in_json(data: bytes, source: random.Random) -> bytes | None:
    """Return a JSON text with another number, another string, a pair twice, or another encoding.

    The text is changed as text, so that it may say what no writer of JSON would. None if the text
    has nothing of the chosen kind.
    """
    action = source.randrange(8)
    if action <= 2:
        return _replace(_NUMBER, source.choice(NUMBERS).encode(), data, source)
    if action == 3:
        text = source.choice(STRINGS).encode()
        return _replace(_STRING, b'"' + text + b'"', data, source)
    if action == 4:  # the same key twice, anywhere; with the same value, or another one
        match = _choose(_PAIR, data, source)
        if match is None:
            return None
        twice = match[0]
        if source.random() < 0.5:
            twice = _STRING.match(twice)[0] + b": " + source.choice(NUMBERS).encode()  # type: ignore[index]
        return data[: match.start()] + twice + b", " + data[match.start() :]
    if action == 5:
        text = data.decode("utf-8", "replace")
        encoding = source.choice(("utf-8-sig", "utf-16", "utf-16-le", "utf-32-be", "cp500"))
        return text.encode(encoding, "replace")
    if action == 6:
        before, behind = source.choice(
            ((b" " * 100_000, b""), (b"\n\t\r", b"\n"), (b"", b"\0"), (b"", b"{}"), (b"", b","))
        )
        return before + data + behind
    depth = source.choice((49, 51, 200, 990, 2000))
    nested = b"[" * depth + b"]" * depth
    if source.random() < 0.5:
        nested = b'{"a":' * depth + b"1" + b"}" * depth
    return _replace(_NUMBER, nested, data, source)


def _choose(
    pattern: re.Pattern[bytes], data: bytes, source: random.Random
) -> re.Match[bytes] | None:
    found = list(pattern.finditer(data[: 1 << 16]))
    return source.choice(found) if found else None


def _replace(
    pattern: re.Pattern[bytes], by: bytes, data: bytes, source: random.Random
) -> bytes | None:
    match = _choose(pattern, data, source)
    return None if match is None else data[: match.start()] + by + data[match.end() :]


def lie_in_safetensors(data: bytes, source: random.Random) -> bytes:
    """Return a safetensors file whose tensors overlap, leave holes, or have other sizes."""
    (size,) = struct.unpack("<Q", data[:8])
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    body = data[8 + size :]
    tensors = [value for key, value in header.items() if key != "__metadata__"]
    one, two = source.choice(tensors), source.choice(tensors)
    action = source.randrange(9)
    if action == 0:  # two tensors at one place
        one["data_offsets"], one["shape"], one["dtype"] = (
            two["data_offsets"],
            two["shape"],
            two["dtype"],
        )
    elif action == 1:  # not where a number may begin
        body = b"\0" + body
        for tensor in tensors:
            tensor["data_offsets"] = [offset + 1 for offset in tensor["data_offsets"]]
    elif action == 2:  # a hole
        body = body + bytes(16)
    elif action == 3:  # no numbers, but many of them
        one["shape"] = source.choice(([0, 1 << 62], [1 << 62, 0, 1 << 62], [0] * 99, [1] * 5000))
        one["data_offsets"] = [one["data_offsets"][0]] * 2
    elif action == 4:  # products that overflow
        one["shape"] = source.choice(([1 << 32, 1 << 32], [1 << 63, 2], [(1 << 64) - 1, 1]))
    elif action == 5:
        header["__metadata__"] = source.choice(({"a": 1}, [], "x", {"": ""}, {"a" * 9999: "b"}))
    elif action == 6:  # another order of names; nobody may depend on it
        header = dict(source.sample(list(header.items()), len(header)))
    elif action == 7:
        one["dtype"] = source.choice(("F64", "BF16", "F4", "C64", "I16", "f32", "F8_E5M2", None))
    else:
        header[source.choice(("", "\ud800", "a\nb", "..", "softmax.weight"))] = one
    text = json.dumps(header).encode()
    text += b" " * source.choice((0, -len(text) % 8, 3, 70_000))
    return struct.pack("<Q", len(text)) + text + body


def lie_in_directory_of_zip(data: bytes, source: random.Random) -> bytes | None:
    """Return a zip archive whose list of entries says something else than its entries."""
    places = [match.start() for match in re.finditer(b"PK\1\2", data)]
    end = data.rfind(b"PK\5\6")
    if not places or end < 0:
        return None
    changed = bytearray(data)
    place = source.choice(places)
    other = source.choice(places)
    action = source.randrange(9)
    if action == 8:  # packed with LZMA, with properties that are none
        struct.pack_into("<H", changed, place + 10, 14)
        (start,) = struct.unpack_from("<I", data, place + 42)
        start += 30 + sum(struct.unpack_from("<HH", data, start + 26))
        changed[start : start + 9] = b"\x09\x14\5\0" + source.randbytes(5)
    elif action == 0:  # methods: stored, deflated, bzip2, lzma, zstandard, xz, encrypted, none
        method = source.choice((0, 8, 9, 12, 14, 93, 95, 99, 1, 65535))
        struct.pack_into("<H", changed, place + 10, method)
    elif action == 1:
        flags = source.choice((1, 1 << 3, 1 << 5, 1 << 6, 1 << 11, 1 << 13, 0xFFFF))
        struct.pack_into("<H", changed, place + 8, flags)
    elif action == 2:  # sizes
        number = source.choice((0, 1, 0xFFFFFFFF, 0xFFFFFFFE, 1 << 31, 1 << 20))
        struct.pack_into("<I", changed, place + source.choice((20, 24)), number)
    elif action == 3:  # two entries of the same bytes
        changed[place + 42 : place + 46] = data[other + 42 : other + 46]
    elif action == 4:  # where an entry begins
        number = source.choice((0, 1, end, len(data), 0xFFFFFFFF, source.randrange(len(data))))
        struct.pack_into("<I", changed, place + 42, number)
    elif action == 5:  # numbers of entries, size and place of the list
        number = source.choice((0, 1, 0xFFFF, 0x7FFF))
        struct.pack_into("<H", changed, end + source.choice((4, 6, 8, 10)), number)
    elif action == 6:
        number = source.choice((0, 1, 0xFFFFFFFF, len(data)))
        struct.pack_into("<I", changed, end + source.choice((12, 16)), number)
    else:  # a comment that looks like another end
        comment = bytes(changed[end:])[:22]
        struct.pack_into("<H", changed, end + 20, len(comment))
        changed += comment
    return bytes(changed)


def lie_in_hdf5(data: bytes, source: random.Random) -> bytes:
    """Return an HDF5 file that is stored otherwise, or has a dataset that nobody would store."""
    import h5py

    out = io.BytesIO()
    action = source.randrange(8)
    options: dict[str, Any] = {}
    if action == 0:
        options = {"libver": source.choice(("latest", ("v110", "latest"), ("earliest", "v108")))}
    elif action == 1:
        options = {"userblock_size": source.choice((512, 1024, 4096))}
    elif action == 2:
        options = {"fs_strategy": "page", "fs_page_size": 4096, "libver": "latest"}
    with h5py.File(io.BytesIO(data), "r") as old, h5py.File(out, "w", **options) as new:
        for name in old:
            old.copy(name, new)
        for key, value in old.attrs.items():
            new.attrs[key] = value
        names: list[str] = []
        new.visititems(lambda name, item: names.append(name) if hasattr(item, "shape") else None)
        if action >= 3 and names:
            _replace_dataset(new, source.choice(names), action, source)
    return out.getvalue()


def _replace_dataset(file: Any, name: str, action: int, source: random.Random) -> None:
    import h5py

    old = file[name]
    value, attributes = old[()], dict(old.attrs)
    shape, dtype = np.shape(value), old.dtype
    del file[name]
    if action == 3:  # nothing is stored; the fill value is everything
        fill = None if dtype.kind == "O" else source.choice((0, 1))
        made = file.create_dataset(name, shape, dtype, fillvalue=fill)
    elif action == 4 and shape and all(shape):  # filters, which lose bits or do not exist
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk(tuple(source.randint(1, size) for size in shape))
        number = source.choice((1, 2, 3, 32000, 32015, 305))
        properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (4,))
        space = h5py.h5s.create_simple(shape)
        kind = h5py.h5t.py_create(dtype, logical=True)
        h5py.h5d.create(file.id, name.encode(), kind, space, properties)
        made = file[name]
        # Not through the filter: the library may crash here, where it writes.
        chunk = np.ascontiguousarray(value).tobytes() if dtype.kind != "O" else bytes(16)
        made.id.write_direct_chunk((0,) * len(shape), chunk[: source.choice((0, 1, 9, 999_999))])
    elif action == 5:  # a kind of number that nobody uses
        kinds = ("<f2", ">f8", "<f16", "<i1", "<u8", "|V16", "(3,)<f4", "<c8", "|S5")
        made = file.create_dataset(name, shape, np.dtype(source.choice(kinds)))
    elif action == 6:  # far more is claimed
        limits = (None,) * max(1, len(shape))
        first = source.choice((0, 1, 1 << 20, 1 << 40))
        chunks = (1,) * max(1, len(shape))
        made = file.create_dataset(name, (first, *shape[1:]), "f4", maxshape=limits, chunks=chunks)
    else:  # very many attributes, in dense storage
        made = file.create_dataset(name, data=value, dtype=dtype)
        for number in range(200):
            made.attrs[f"a{number}"] = "x" * 300
    for key, attribute in attributes.items():
        made.attrs[key] = attribute


def lie_in_parquet(data: bytes, source: random.Random) -> bytes:
    """Return a Parquet file with a column of a type that nobody stores, or other footers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    metadata = dict(table.schema.metadata or {})
    place = source.randrange(table.num_columns)
    name, count = table.column_names[place], table.num_rows
    numbers = list(range(count))
    columns: list[Any] = [
        pa.array([[["a"], None, []]] * count),
        pa.array([{"list": [{"x": 1.0}]}] * count),
        pa.array([[("k", 1), ("k", 2)]] * count, pa.map_(pa.string(), pa.int32())),
        pa.array([[1.0, 2.0]] * count, pa.list_(pa.float32(), 2)),
        pa.array([None] * count, pa.list_(pa.float32(), 1000)),
        pa.array([[0.5]] * count, pa.large_list(pa.float64())),
        pa.array(["x" * 300] * count, pa.large_string()),
        pa.array([b"x" * 8] * count, pa.binary(8)),
        pa.array(numbers, pa.timestamp("ns")),
        pa.array(numbers, pa.duration("s")),
        pa.array(numbers).cast(pa.decimal128(30, 5)),
        pa.array([None, True] * count)[:count],
        pa.array([float("nan")] * count, pa.float16()),
        pa.array([(1 << 63) - 1] * count, pa.int64()),
        pa.array([(1 << 64) - 1] * count, pa.uint64()),
        pa.array(["\0"] * count).dictionary_encode(),
    ]
    action = source.randrange(6)
    if action <= 2:
        table = table.set_column(place, name, source.choice(columns))
    elif action == 3:  # a name twice
        table = table.append_column(name, table.column(place))
    elif action == 4:
        table = table.append_column(source.choice(("", "a.b", "x" * 9999)), table.column(place))
    else:
        key = source.choice([b"ARROW:schema", b"pandas", *metadata])
        metadata[key] = source.choice((b"", b"AAAA", b"{}", b"\xff" * 50, b"x" * 100_000))
    out = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(metadata),
        out,
        version=source.choice(("1.0", "2.6")),
        use_dictionary=source.random() < 0.5,
        store_schema=source.random() < 0.7,
        write_statistics=source.random() < 0.5,
        data_page_version=source.choice(("1.0", "2.0")),
        use_byte_stream_split=False,
        compression=source.choice(("none", "brotli", "lz4", "snappy")),
    )
    return out.getvalue()


def lie(data: bytes, source: random.Random, others: Sequence[bytes]) -> bytes | None:
    """Return a file with a lie of the kind that fits it; None if no kind does."""
    if data[:1] in (b"{", b"["):
        return lie_in_json(data, source)
    if data.startswith(b"PK\3\4"):
        return lie_in_directory_of_zip(data, source)
    if data.startswith(b"\x89HDF"):
        return lie_in_hdf5(data, source)
    if data.startswith(b"PAR1"):
        return lie_in_parquet(data, source)
    if len(data) > 8 and data[8:9] == b"{":
        return lie_in_safetensors(data, source)
    return None
