"""What attacks have found, each as small as possible: all of it is refused with our exceptions."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import h5py
import numpy as np
import pytest

from elmokit import load_vectors
from elmokit.errors import ElmoError, FormatError
from elmokit.vectors.writer import open_writer

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'elmokit[parquet]'")
pq = pytest.importorskip("pyarrow.parquet")


def change_json(path: Path, change: Callable[[dict[str, object]], object], seal: bool) -> None:
    from elmokit.json_text import seal as add_checksum

    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(add_checksum(content) if seal else content))


def replace_dataset(path: Path, name: str, make: Callable[[h5py.File], object]) -> None:
    with h5py.File(path, "r+") as file:
        del file[name]
        make(file)


def weights_of_long_doubles(path: Path) -> None:
    with h5py.File(path / "weights.hdf5", "r") as file:
        shape = file["char_embed"].shape
    replace_dataset(
        path / "weights.hdf5",
        "char_embed",
        lambda file: file.create_dataset("char_embed", shape, np.longdouble),
    )


def checkpoint_of_float8(path: Path) -> None:
    data = (path / "state.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header["random"]["dtype"] = "F8_E4M3"
    text = json.dumps(header).encode()
    (path / "state.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])


def replace_tensors(path: Path, **tensors: np.ndarray) -> None:
    from safetensors.numpy import save_file

    save_file(tensors, path)


def settled_state_without_rows(path: Path) -> None:
    hidden, cell = np.zeros((2, 2, 0, 6), np.float32), np.zeros((2, 2, 0, 12), np.float32)
    replace_tensors(path / "settled.safetensors", hidden=hidden, cell=cell)


def settled_state_of_a_trillion_empty_rows(path: Path) -> None:
    empty = np.zeros((2, 2, 10**12, 0), np.float32)
    replace_tensors(path / "settled.safetensors", hidden=empty, cell=empty.copy())


def mix_of_text(path: Path) -> None:
    mix = {"scalars": "123", "gamma": "1"}
    change_json(path / "config.json", lambda content: content.update(mix=mix), seal=False)


def manifest_of_a_hundred_more_files(path: Path) -> None:
    empty = {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    files = {f"x{i}": empty for i in range(100)}
    for name in files:
        (path / name).write_bytes(b"")
    change_json(path / "manifest.json", lambda content: content["files"].update(files), seal=False)


def words_that_are_not_utf8(path: Path) -> None:
    data = (path / "words.txt").read_bytes()
    (path / "words.txt").write_bytes(data.replace(b"ant", b"\xffnt"))


def index_without_a_version(path: Path) -> None:
    change_json(path / "manifest.json", lambda content: content.pop("version"), seal=True)


def array_of_an_impossible_shape(path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 99999999999999999999), }\n"
    array = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
    out = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            new.writestr(name, array if name == "layout.npy" else old.read(name))
    path.write_bytes(out.getvalue())


def shapes_of_text(path: Path) -> None:
    table = pq.read_table(path)
    column = pa.array([["a", "b"]] * len(table))
    place = table.column_names.index("shape")
    pq.write_table(table.set_column(place, "shape", column), path)


def sentences_of_objects(path: Path) -> None:
    table = pq.read_table(path)
    place = table.column_names.index("sentence")
    pq.write_table(table.set_column(place, "sentence", pa.array([{"a": 1}] * len(table))), path)


def rows_of_a_list(path: Path) -> None:
    table = pq.read_table(path)
    metadata = json.loads(table.schema.metadata[b"elmokit"]) | {"rows": ["words"]}
    pq.write_table(table.replace_schema_metadata({"elmokit": json.dumps(metadata)}), path)


def record_of_an_impossible_shape(path: Path) -> None:
    fields = struct.pack("<QQQQ", 2, 0, 0, 1 << 63)
    record = fields + struct.pack("<I", zlib.crc32(b"[]", zlib.crc32(fields))) + b"[]"
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data, data.index(b"\n") + 1)
    start = data.index(b"\n") + 1 + 12 + size
    path.write_bytes(data[:start] + record)


def settings_of_a_task_that_are_none(path: Path) -> None:
    change_json(path / "task.json", lambda content: content.update(settings=True), seal=True)


def checksums_that_are_a_group(path: Path) -> None:
    name = "elmokit/checksums"
    replace_dataset(path / "tokens.hdf5", name, lambda file: file.create_group(name))


def checksum_that_is_a_number(path: Path) -> None:
    with h5py.File(path / "tokens.hdf5", "r+") as file:
        file["elmokit/checksums"].attrs["checksum"] = 1 << 62


def numbers_of_thousands_of_digits(path: Path) -> None:
    path.write_text(path.read_text().replace("(12)", f"({'9' * 5000})"))


def positions_of_thousands_of_digits(path: Path) -> None:
    data = path / "dev.data.txt"
    data.write_text(data.read_text().replace("2-6", f"2-{'9' * 5000}"))


def hexadecimal_numbers_of_thousands_of_digits(path: Path) -> None:
    (path / "index.sense").unlink()  # otherwise the keys are there
    data = path / "data.noun"
    data.write_text(data.read_text().replace("bank 0 001", f"bank {'f' * 5000} 001"))


def strings_of_no_type(path: Path) -> None:
    """Say that strings of variable length are something that does not exist."""
    data = path.read_bytes()
    assert b"\x19\x01\x01\0\x10\0\0\0" in data
    path.write_bytes(data.replace(b"\x19\x01\x01\0\x10\0\0\0", b"\x19\x09\x01\0\x10\0\0\0"))


def word_ids_without_words(path: Path) -> None:
    ids = np.load(path / "train-00000.npy")
    ids[0] = 1 << 30
    np.save(path / "train-00000.npy", ids)


def column_of_another_type(path: Path) -> None:
    """Say that the integers of the column `sentence` are something that does not exist."""
    data = path.read_bytes()
    place = data.index(b"\x15\x04\x19\x25\x06\0\x19\x18\x08sentence")
    path.write_bytes(data[: place + 1] + b"\x24" + data[place + 2 :])


def rewrite_in_chunks(path: Path, name: str, filters: list[tuple[int, tuple[int, ...]]]) -> None:
    """Replace a dataset by one of a single chunk, which is one byte that filters have packed."""
    with h5py.File(path, "r+") as file:
        value = file[name][...]
        del file[name]
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_chunk(value.shape)
        for number, values in filters:
            properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, values)
        space, kind = h5py.h5s.create_simple(value.shape), h5py.h5t.py_create(value.dtype)
        made = h5py.h5d.create(file.id, name.encode(), kind, space, properties)
        made.write_direct_chunk((0,) * value.ndim, b"x")


def chunk_that_is_too_short(path: Path) -> None:
    rewrite_in_chunks(path, "1", [(2, (4,))])


def chunk_that_is_no_gzip(path: Path) -> None:
    rewrite_in_chunks(path, "1", [(1, (4,))])


def chunk_of_an_unknown_filter(path: Path) -> None:
    rewrite_in_chunks(path, "1", [(32015, ())])


def clip_that_no_float_can_hold(path: Path) -> None:
    options = json.loads((path / "options.json").read_text())
    options["lstm"]["cell_clip"] = 10**400
    (path / "options.json").write_text(json.dumps(options))


def entry_of_no_lzma(path: Path) -> None:
    """Say that the last entry of an archive is packed with LZMA, with properties that none has."""
    data = bytearray(path.read_bytes())
    place = data.rfind(b"PK\1\2")
    struct.pack_into("<H", data, place + 10, 14)
    (start,) = struct.unpack_from("<I", data, place + 42)
    name, extra = struct.unpack_from("<HH", data, start + 26)
    begin = start + 30 + name + extra
    data[begin : begin + 9] = b"\x09\x14\x05\0\xff\0\0\0\1"
    path.write_bytes(data)


def replace_in_npz(path: Path, name: str, array: np.ndarray) -> None:
    with np.load(path) as old:
        arrays = dict(old)
    np.savez(path, **(arrays | {name: array}))


def words_that_are_numbers(path: Path) -> None:
    with np.load(path) as old:
        lines = bytes(old["words"]).splitlines()
    text = b"\n".join([b"3"] * len(lines)) + b"\n"
    replace_in_npz(path, "words", np.frombuffer(text, np.uint8))


def lengths_of_two_axes(path: Path) -> None:
    replace_in_npz(path, "lengths", np.zeros((4, 2), np.int32))


def lengths_of_text(path: Path) -> None:
    replace_in_npz(path, "lengths", np.array(["a"] * 4))


def ids_of_other_sentences(path: Path) -> None:
    replace_in_npz(path, "ids", np.array(["a"]))


def entry_that_hides_the_next(path: Path) -> None:
    """The comment of an entry in the directory is as long as the entry after it, `job`."""
    data = bytearray(path.read_bytes())
    hidden = data.rindex(b"job.npy") - 46
    before = data.rindex(b"PK\1\2", 0, hidden)
    (name, extra) = struct.unpack_from("<HH", data, hidden + 28)
    struct.pack_into("<H", data, before + 32, 46 + name + extra)
    path.write_bytes(data)


def bomb_of_zeros(path: Path) -> None:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        head = io.BytesIO()
        shape = {"descr": "<f4", "fortran_order": False, "shape": (1, 1 << 26)}
        np.lib.format.write_array_header_1_0(head, shape)
        with archive.open("3.npy", "w") as entry:
            entry.write(head.getvalue())
            for _ in range(256):
                entry.write(bytes(1 << 20))


def replace_column(path: Path, name: str, column: object) -> None:
    table = pq.read_table(path)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, column), path)


def vectors_of_text(path: Path) -> None:
    shapes = pq.read_table(path).column("shape").to_pylist()
    column = [["x"] * int(np.prod(shape)) for shape in shapes]
    replace_column(path, "vectors", pa.array(column, pa.list_(pa.string())))


def vectors_with_holes(path: Path) -> None:
    shapes = pq.read_table(path).column("shape").to_pylist()
    column = [[None] * int(np.prod(shape)) for shape in shapes]
    replace_column(path, "vectors", pa.array(column, pa.list_(pa.float32())))


def words_that_are_none(path: Path) -> None:
    words = pq.read_table(path).column("words").to_pylist()
    column = [[None] * len(sentence) for sentence in words]
    replace_column(path, "words", pa.array(column, pa.list_(pa.string())))


def ids_that_are_none(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.append_column("id", pa.nulls(len(table), pa.string())), path)


def ids_twice(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.append_column("id", table.column("id")), path)


def change_rows(path: Path, rows: int) -> None:
    """Say in the footer that the file has another number of rows."""
    data = path.read_bytes()
    count = pq.read_metadata(path).num_rows
    old = b"\x16" + bytes([2 * count]) + b"\x19\x1c"  # a number, and a list of one row group
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, b"\x16" + bytes([2 * rows]) + b"\x19\x1c"))


def more_rows_than_there_are(path: Path) -> None:
    change_rows(path, 60)


def change_sentences(path: Path, count: object) -> None:
    from elmokit.json_text import seal

    table = pq.read_table(path)
    metadata = json.loads(table.schema.metadata[b"elmokit"])
    metadata = seal(metadata | {"sentences": count})
    pq.write_table(table.replace_schema_metadata({"elmokit": json.dumps(metadata)}), path)


def more_sentences_than_fit(path: Path) -> None:
    change_sentences(path, 10**15)


def words_of_a_table_that_are_none(path: Path) -> None:
    replace_column(path, "word", pa.nulls(len(pq.read_table(path)), pa.string()))


def vectors_of_a_table_that_are_none(path: Path) -> None:
    column = pq.read_table(path).column("vector")
    replace_column(path, "vector", pa.nulls(len(column), column.type))


FOUND: list[tuple[str, Callable[[Path], None]]] = [
    ("allennlp", clip_that_no_float_can_hold),
    ("allennlp", weights_of_long_doubles),
    ("checkpoint", checkpoint_of_float8),
    ("coref", numbers_of_thousands_of_digits),
    ("wic", positions_of_thousands_of_digits),
    ("wordnet", hexadecimal_numbers_of_thousands_of_digits),
    ("corpus", words_that_are_not_utf8),
    ("corpus", word_ids_without_words),
    ("h5-plain", chunk_of_an_unknown_filter),
    ("h5-plain", chunk_that_is_no_gzip),
    ("h5-plain", chunk_that_is_too_short),
    ("h5-plain", strings_of_no_type),
    ("index", index_without_a_version),
    ("native", settled_state_without_rows),
    ("native", settled_state_of_a_trillion_empty_rows),
    ("native", mix_of_text),
    ("native", manifest_of_a_hundred_more_files),
    ("npz", array_of_an_impossible_shape),
    ("npz", words_that_are_numbers),
    ("npz", lengths_of_two_axes),
    ("npz", lengths_of_text),
    ("npz", ids_of_other_sentences),
    ("npz", entry_that_hides_the_next),
    ("npz-plain", entry_of_no_lzma),
    ("npz-plain", bomb_of_zeros),
    ("parquet", vectors_of_text),
    ("parquet", vectors_with_holes),
    ("parquet", words_that_are_none),
    ("parquet", ids_that_are_none),
    ("parquet", more_rows_than_there_are),
    ("parquet-ids", ids_twice),
    ("parquet-words", more_sentences_than_fit),
    ("parquet-words", words_of_a_table_that_are_none),
    ("parquet-words", vectors_of_a_table_that_are_none),
    ("parquet", shapes_of_text),
    ("parquet-pooled", sentences_of_objects),
    ("parquet-words", column_of_another_type),
    ("parquet-words", rows_of_a_list),
    ("spool", record_of_an_impossible_shape),
    ("task-model", settings_of_a_task_that_are_none),
    ("token-cache", checksums_that_are_a_group),
    ("token-cache", checksum_that_is_a_number),
]


@pytest.mark.parametrize(
    ("kind", "damage"), FOUND, ids=lambda value: getattr(value, "__name__", value)
)
def test_it_is_refused(
    import_attack: Callable[[str], ModuleType],
    kind: str,
    damage: Callable[[Path], None],
    tmp_path: Path,
) -> None:
    seed = import_attack("seeds").SEEDS[kind](tmp_path)
    seed.read(seed.path)
    damage(seed.path)
    names = {
        "checkpoint": ["state.safetensors"],
        "corpus": ["words.txt", "train-00000.npy"],
        "native": ["config.json", "settled.safetensors"],
    }
    for name in names.get(kind, ()):
        seed.sign(seed.path, name)
    with pytest.raises(ElmoError):
        seed.read(seed.path)


@pytest.mark.parametrize(
    "name", ["char_embed", "", "CNN", "char_embed/x", ".", "/", "a\0b", "elmokit/mix"]
)
def test_an_array_whose_name_another_one_needs(
    import_attack: Callable[[str], ModuleType], tmp_path: Path, name: str
) -> None:
    from dataclasses import replace

    from elmokit import formats

    bilm = replace(import_attack("seeds").tiny_model(), extra={name: np.ones(3, np.float32)})
    with pytest.raises(ElmoError, match="which an HDF5 file cannot hold"):
        formats.write(bilm, tmp_path / "x.hdf5")


def test_a_small_zip_archive_of_a_large_file(tmp_path: Path) -> None:
    from elmokit import formats

    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("options.json", "w") as entry:
            for _ in range(100):
                entry.write(b" " * (1 << 20))
        archive.writestr("weights.hdf5", b"")
    data = bytearray((tmp_path / "x.zip").read_bytes())
    struct.pack_into("<I", data, data.index(b"PK\1\2") + 20, 1 << 30)  # its compressed size
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(ElmoError, match="weights never compress that well"):
        formats.read(tmp_path / "x.zip")


def test_a_tar_archive_of_holes_is_refused(
    import_attack: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    from elmokit import formats

    data = import_attack("crafted").sparse_entry(b"saved_model.pb", 1 << 26)
    (tmp_path / "holes.tar").write_bytes(data + bytes(1024))
    with pytest.raises(ElmoError, match="holes in it"):
        formats.read(tmp_path / "holes.tar")


def test_a_footer_that_says_that_there_are_no_rows(tmp_path: Path) -> None:
    from elmokit.text.parquet import read_text_column

    pq.write_table(pa.table({"text": ["a", "b"]}), tmp_path / "t.parquet")
    change_rows(tmp_path / "t.parquet", 0)
    rows = list(read_text_column(str(tmp_path / "t.parquet"), None))
    assert [row for row, _ in rows] in ([], ["a", "b"])


@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "gzip"}, {"compression": "gzip", "shuffle": True, "fletcher32": True}],
)
def test_chunks_that_fit_are_read(options: dict[str, object], tmp_path: Path) -> None:
    vectors = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        file.create_dataset("0", data=vectors, chunks=(2, 3, 4), **options)
    with load_vectors(tmp_path / "v.hdf5") as found:
        assert np.array_equal(found[0], vectors)


@pytest.mark.parametrize(
    ("name", "damaged"), [(b"3.npy", b"3.np\x01"), (b"words.npy", b"w/rds.npy")]
)
def test_npz_entries_under_another_name(tmp_path: Path, name: bytes, damaged: bytes) -> None:
    """Of zipfile, which takes the names of the directory; sentences or words would be missing."""
    path = tmp_path / "v.npz"
    with open_writer(path) as out:
        for k in range(4):
            out.write([f"w{k}"], np.full((3, 1, 2), k, np.float32))
    path.write_bytes(path.read_bytes().replace(name, damaged))
    with pytest.raises(FormatError, match="it has an entry"):
        load_vectors(path)
