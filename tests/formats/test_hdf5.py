"""Our reader of HDF5 against h5py, and against files that no program would write."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Callable

import h5py
import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.formats.hdf5 import open_hdf5
from elmokit.formats.hdf5_input import lookup3

TYPES = ("<f2", ">f4", "<f8", "<i1", ">i4", "<u8", "?", "S7")


def make(fill: Callable[[h5py.File], object], **options: object) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w", **options) as file:
        fill(file)
    return out.getvalue()


def various(file: h5py.File) -> None:
    """Everything that is read, except for chunks."""
    numbers = np.random.default_rng(0)
    for i in range(300):  # more than a group holds in its header
        file[str(i)] = numbers.normal(size=(i % 3, 4)).astype(np.float32)
    group = file.create_group("a/b/c")
    for i, kind in enumerate(TYPES):
        array = (numbers.normal(size=(3, 2)) * 9).astype(kind)
        made = group.create_dataset(f"type {i}", data=array)
        for value in (np.float32(2), "hü", np.bytes_(b"abc"), np.arange(5), True):
            made.attrs[str(type(value))] = value
    group["scalar"] = 5.0
    for i in range(30):
        group["scalar"].attrs[str(i)] = i
    texts = ["a", "", "ü" * 1000] * 50
    group.create_dataset("strings", data=texts, dtype=h5py.string_dtype())
    group.create_dataset("compact", (3,), "f4", track_times=False)[...] = 1
    file["soft"] = h5py.SoftLink("/0")
    file["again"] = file["a"]  # a group with two names, and one that holds itself
    group["up"] = file["a"]


def in_chunks(file: h5py.File) -> None:
    numbers = np.random.default_rng(0)
    for number, options in enumerate(itertools.product((None, "gzip"), (0, 1), (0, 1))):
        named = dict(zip(("compression", "shuffle", "fletcher32"), options, strict=True))
        array = numbers.integers(0, 9, size=(37, 5, 3)).astype("<f4")
        file.create_dataset(f"a{number}", data=array, chunks=(4, 5, 2), **named)
        line = numbers.integers(0, 9, size=701).astype("<i2")
        file.create_dataset(f"b{number}", data=line, chunks=(5,), maxshape=(None,), **named)
    texts = ["a", "bb", "ccc"] * 20
    file.create_dataset("s", data=texts, dtype=h5py.string_dtype(), chunks=(7,), compression="gzip")


@pytest.mark.parametrize(
    ("fill", "options"),
    [
        (various, {}),
        (various, {"libver": ("v108", "v108")}),
        (various, {"libver": "latest"}),
        (various, {"userblock_size": 1024}),
        (in_chunks, {}),
        (in_chunks, {"libver": ("v108", "v108")}),
    ],
)
def test_h5py_and_we_read_the_same(
    fill: Callable[[h5py.File], object], options: dict[str, object]
) -> None:
    data = make(fill, **options)
    root = open_hdf5(io.BytesIO(data), "x.hdf5")
    found = root.walk()
    with h5py.File(io.BytesIO(data), "r") as file:
        assert sorted(root) == sorted(file) and len(root) == len(file)
        datasets: dict[str, h5py.Dataset] = {}
        file.visititems(
            lambda name, item: datasets.update({name: item} if hasattr(item, "shape") else {})
        )
        assert len(found) == len(datasets)
        for name, theirs in datasets.items():
            ours = root.open(name)
            assert ours.shape == theirs.shape
            assert theirs.dtype.kind == "O" or ours.dtype == theirs.dtype
            assert np.array_equal(ours.read(), theirs[()])
            if theirs.shape:
                assert np.array_equal(ours.read(slice(1, 3)), theirs[1:3])
            if theirs.nbytes and ours.offset is not None:
                assert ours.offset == theirs.id.get_offset()
            for key, value in theirs.attrs.items():
                assert np.array_equal(ours.attribute(key), value)
            assert ours.attribute("nothing") is None
    assert "nothing" not in root and root.find("a/nothing") is None


def test_large_attributes_are_read() -> None:
    def fill(file: h5py.File) -> None:
        file.attrs["long"], file.attrs["list"] = np.bytes_(b"x" * 200_000), np.arange(20_000.0)

    root = open_hdf5(io.BytesIO(make(fill, libver=("v108", "v108"))), "x.hdf5")
    assert root.attribute("long") == b"x" * 200_000
    assert np.array_equal(root.attribute("list"), np.arange(20_000.0))


def test_checksum() -> None:
    assert lookup3(b"") == 0xDEADBEEF  # the examples of Bob Jenkins' lookup3.c
    assert lookup3(b"Four score and seven years ago") == 0x17770551


def refuse(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        for dataset in open_hdf5(io.BytesIO(data), "x.hdf5").walk().values():
            dataset.read()


@pytest.mark.parametrize(
    "kind",
    [
        *("<c8", "V5", "(2,)<f4", np.longdouble, h5py.ref_dtype, h5py.regionref_dtype),
        *(np.dtype([("a", "f4")]), h5py.vlen_dtype("f4"), h5py.opaque_dtype("M8[s]")),
    ],
)
def test_types_that_are_not_numbers_or_strings_are_refused(kind: object) -> None:
    refuse(
        make(lambda file: file.create_dataset("0", (2,), kind)), "there is data of the kind|IEEE"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "lzf"}, "the filter 32000"),
        ({"scaleoffset": 2}, "the filter 6"),
        ({}, "not all of its numbers were written"),
    ],
)
def test_chunks_of_other_kinds_are_refused(options: dict[str, object], message: str) -> None:
    refuse(make(lambda f: f.create_dataset("0", (9,), "f4", chunks=(2,), **options)), message)


def test_arrays_that_were_never_written_are_refused() -> None:
    refuse(make(lambda file: file.create_dataset("0", (9,), "f4")), "were never written")
    refuse(make(lambda file: file.create_dataset("0", data=h5py.Empty("f4"))), "is empty")


def test_named_types_and_new_chunks_are_refused() -> None:
    def fill(file: h5py.File) -> None:
        file["type"] = np.dtype("f4")
        file.create_dataset("0", (2,), file["type"])

    refuse(make(fill), "shares its type")
    chunked = make(lambda f: f.create_dataset("0", data=np.ones(9), chunks=(2,)), libver="latest")
    refuse(chunked, "libver='latest'")


def simple() -> bytes:
    return make(lambda file: file.create_dataset("0", data=np.arange(9, dtype="<f4"), chunks=(2,)))


def test_a_tree_that_leads_back_to_itself_is_refused() -> None:
    data = bytearray(simple())
    node = data.index(b"TREE\1")
    data[node + 5] = 1  # a node above itself
    for entry in range(5):
        struct.pack_into("<Q", data, node + 24 + entry * 32 + 24, node)
    refuse(bytes(data), "leads back to itself|branches of different length")
    data[node + 6 : node + 8] = b"\xff\xff"
    refuse(bytes(data), "bytes are expected|leads back|branches")


def test_chunks_that_share_their_bytes_are_refused() -> None:
    def fill(file: h5py.File) -> None:
        array = np.zeros((4000, 4000), "<f4")
        file.create_dataset("0", data=array, chunks=(10, 4000), compression="gzip")

    data = bytearray(make(fill))
    place = 0
    while (place := data.find(b"TREE\1\0", place)) >= 0:
        (count,) = struct.unpack_from("<H", data, place + 6)
        for entry in range(count):  # every chunk claims nearly all of the file
            struct.pack_into("<I", data, place + 24 + entry * 40, 8_000)
        place += 1
    refuse(bytes(data), "overlap")


def test_strings_that_share_their_bytes_are_refused() -> None:
    def fill(file: h5py.File) -> None:
        texts = ["x" * 60_000, *["y"] * 500]
        file.create_dataset("0", data=texts, dtype=h5py.string_dtype())

    data = bytearray(make(fill))
    root = open_hdf5(io.BytesIO(data), "x.hdf5")
    start = root.open("0").offset
    assert start is not None
    data[start : start + 16 * 501] = data[start : start + 16] * 501
    refuse(bytes(data), "its strings are larger than the file")


def test_headers_that_share_their_bytes_end() -> None:
    """Each message of a header says that it goes on with all of the others."""
    data = bytearray(make(lambda file: None))
    root = struct.unpack_from("<Q", data, 64)[0]
    messages = b"".join(
        struct.pack("<HHIQQ", 0x10, 16, 0, root + 16, 24 * 2000) for _ in range(2000)
    )
    data[root + 8 : root + 12] = struct.pack("<I", len(messages))
    data[root + 16 :] = messages
    struct.pack_into("<Q", data, 40, len(data))
    refuse(bytes(data), "the header of an object has more than")


@pytest.mark.parametrize("libver", ["earliest", ("v108", "v108")])
def test_every_byte_that_is_damaged_is_refused_or_harmless(libver: object) -> None:
    """Nothing but `FormatError` is raised."""

    def fill(file: h5py.File) -> None:
        file["a/0"] = np.arange(6, dtype=np.float32)
        file.create_dataset("s", data=["a", "b"], dtype=h5py.string_dtype())
        file["s"].attrs["t"] = "text"

    def content(data: bytes) -> list[object]:
        root = open_hdf5(io.BytesIO(data), "x.hdf5")
        datasets = {name: dataset.read().tolist() for name, dataset in root.walk().items()}
        return [datasets, root.open("s").attribute("t")]

    data = make(fill, libver=libver)
    before, refused = content(data), 0
    for place in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        try:
            content(bytes(damaged))
        except FormatError:
            refused += 1
    assert refused > 100 and before[1] == "text"
