"""The Parquet layout as other programs see it, and damaged files."""

import json

import numpy as np
import pytest

from elmokit.errors import FormatError, InputError
from elmokit.vectors import load_vectors, parquet, save_vectors

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def sentences(count):
    for i in range(count):
        yield [f"w{i}.{k}" for k in range(i % 4)], np.full((3, i % 4, 2), i, np.float32)


@pytest.fixture
def path(tmp_path):
    save_vectors(sentences(12), tmp_path / "v.parquet", signature={"model": "é"})
    return tmp_path / "v.parquet"


def test_layout(path):
    table = pq.read_table(path)
    layers = ["layer_0", "layer_1", "layer_2"]
    assert table.column_names == ["index", "words", "shape", *layers, "words_json"]
    assert table["index"].to_pylist() == list(range(12))
    assert table["words"].to_pylist() == [words for words, _ in sentences(12)]
    assert table["shape"].to_pylist()[7] == [3, 3, 2]
    assert table["layer_1"].to_pylist()[7] == [[7.0, 7.0]] * 3
    assert table["layer_1"].type == pa.list_(pa.list_(pa.float32(), 2))
    assert table["words_json"].null_count == 12
    about = json.loads(table.schema.metadata[b"elmokit"])
    assert len(about.pop("job")) == len(about.pop("checksum")) == 64
    assert about == {"layout": 3, "signature": {"model": "é"}}


def test_one_layer(tmp_path):
    arrays = [np.arange(2 * t, dtype=np.float32).reshape(t, 2) for t in (2, 0, 3)]
    words = [list("abc")[: len(array)] for array in arrays]
    save_vectors(zip(words, arrays, strict=True), tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    assert table["vectors"].type == pa.list_(pa.list_(pa.float32(), 2))
    assert table["vectors"].to_pylist() == [array.tolist() for array in arrays]
    with load_vectors(tmp_path / "v.parquet") as vectors:
        assert [array.shape for array in vectors] == [(2, 2), (0, 2), (3, 2)]


def test_files_of_the_first_layout(path):
    """What version 0.1.0 wrote."""
    table = pq.read_table(path)
    flat = [array.reshape(-1).tolist() for _, array in sentences(12)]
    table = table.drop_columns(["layer_0", "layer_1", "layer_2"])
    table = table.add_column(3, "vectors", pa.array(flat, pa.list_(pa.float32())))
    about = {"elmokit": '{"layout": 1, "signature": {"model": "old"}}'}
    pq.write_table(table.replace_schema_metadata(about), path)
    with load_vectors(path) as vectors:
        assert vectors.signature == {"model": "old"}
        for i, (words, array) in enumerate(sentences(12)):
            assert vectors.words(i) == words
            np.testing.assert_array_equal(vectors[i], array)


def test_float16_is_stored_as_such(tmp_path):
    save_vectors(sentences(3), tmp_path / "v.parquet", dtype="float16")
    kind = pq.read_table(tmp_path / "v.parquet")["layer_0"].type
    assert kind == pa.list_(pa.list_(pa.float16(), 2))


def test_what_utf8_cannot_say_is_kept_beside(tmp_path):
    words = [["fine"], ["a\ud800", "b\x00"]]
    save_vectors([(w, np.ones((len(w), 1), np.float32)) for w in words], tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet")
    assert table["words"].to_pylist() == [["fine"], ["a\ufffd", "b\x00"]]
    assert table["words_json"].to_pylist() == [None, '["a\\ud800", "b\\u0000"]']
    with load_vectors(tmp_path / "v.parquet") as vectors:
        assert [vectors.words(0), vectors.words(1)] == words


@pytest.mark.parametrize(("bound", "value"), [("ROW_GROUP_BYTES", 150), ("ROW_GROUP_ROWS", 3)])
def test_row_groups_are_bounded(tmp_path, monkeypatch, bound, value):
    monkeypatch.setattr(parquet, bound, value)
    save_vectors(sentences(30), tmp_path / "v.parquet")
    file = pq.ParquetFile(tmp_path / "v.parquet")
    assert file.metadata.num_row_groups >= 10
    with load_vectors(tmp_path / "v.parquet") as vectors:
        expected = list(sentences(30))
        for i in [29, 0, 15, 1, 14, 16, *range(30)]:
            assert vectors.words(i) == expected[i][0]
            np.testing.assert_array_equal(vectors[i], expected[i][1])
        assert len(vectors._reader._cache) <= 2


def test_a_sentence_too_large_for_a_page_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SENTENCE_BYTES", 71)
    with pytest.raises(InputError, match=r"sentence 3 takes 72 bytes.* write \.h5 or \.npz"):
        save_vectors(sentences(12), tmp_path / "v.parquet")


def rewrite(path, name, values, position=3, kind=None):
    table = pq.read_table(path)
    column = table[name].to_pylist()
    column[position] = values
    index = table.column_names.index(name)
    array = pa.array(column, kind or table[name].type)
    pq.write_table(table.set_column(index, name, array), path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("index", 4),
        ("shape", [3, 3, 3]),
        ("shape", [18]),
        ("shape", [-3, -3, 2]),
        ("shape", [None, 3, 2]),
        ("shape", None),
        ("layer_1", [[1.0, 1.0]]),
        ("layer_1", None),
    ],
)
def test_a_row_that_does_not_fit_is_named(path, name, value):
    rewrite(path, name, value)
    vectors = load_vectors(path)
    assert vectors[2].shape == (3, 2, 2)
    with pytest.raises(FormatError, match=r"row 3 has .*do not match"):
        vectors[3]


@pytest.mark.parametrize(
    ("name", "value"),
    [("words", ["one"]), ("words", None), ("words_json", "["), ("words_json", '"text"')],
)
def test_words_that_do_not_fit_are_named(path, name, value):
    rewrite(path, name, value)
    with pytest.raises(FormatError, match="row 3"):
        load_vectors(path).words(3)


def test_other_tables_are_refused(path):
    table = pq.read_table(path)
    pq.write_table(table.drop_columns(["shape"]), path)
    with pytest.raises(FormatError, match=r"has the columns index, words, layer_0.*shape of"):
        load_vectors(path)
    pq.write_table(table.set_column(0, "index", table["words"]), path)
    with pytest.raises(FormatError, match="index of the type int64"):
        load_vectors(path)
    pq.write_table(table.append_column("words", table["words"]), path)  # twice
    with pytest.raises(FormatError, match="words of the type list"):
        load_vectors(path)
    for metadata in [None, {"elmokit": "{"}, {"elmokit": "{}"}, {"elmokit": "3"}]:
        pq.write_table(table.replace_schema_metadata(metadata), path)
        with pytest.raises(FormatError, match="no valid entry `elmokit`"):
            load_vectors(path)
    newer = {"elmokit": '{"layout": 99, "signature": {}}'}
    pq.write_table(table.replace_schema_metadata(newer), path)
    with pytest.raises(FormatError, match=r"layout 99.*pip install -U"):
        load_vectors(path)


def test_not_parquet_and_cut_off(path):
    whole = path.read_bytes()
    for content in [b"", b"hello", whole[: len(whole) // 2], whole[:-1]]:
        path.write_bytes(content)
        with pytest.raises(FormatError, match="cannot be read as a Parquet file"):
            load_vectors(path)


def test_a_damaged_row_group_is_named(path):
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    with pytest.raises(FormatError, match="its headers are damaged"):
        load_vectors(path)


def test_a_damaged_page_is_named(path):
    content = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    end = chunk.data_page_offset + chunk.total_compressed_size
    content[end - 4 : end] = b"\xff" * 4
    path.write_bytes(content)
    with pytest.raises(FormatError, match="sentence 0 cannot be read"):
        load_vectors(path)[0]
