"""Tables of vectors as other programs see them, read back, resumed, and damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo, embed_to_file, load_vectors
from elmokit.errors import FormatError, InputError
from elmokit.vectors import VectorWriter, open_writer, tables

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TEXTS = ["The bank  lent money.", "", "Don't!", ["as", "it", "is"], "", "我去 bank"] * 4


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load(GOLDEN / "models" / "plain")


def test_one_row_per_word(elmo: Elmo, tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    summary = embed_to_file(elmo, TEXTS, path, rows="words")
    table = pq.read_table(path)
    assert table.column_names == "sentence position word start end text vector".split()
    assert table.schema.field("vector").type == pa.list_(pa.float32(), elmo.dim)
    assert len(table) == summary.words
    expected = elmo.embed(TEXTS)
    for row in table.to_pylist():
        assert row["text"][row["start"] : row["end"]] == row["word"]
        assert row["vector"] == expected[row["sentence"]][row["position"]].tolist()
    assert table["text"].to_pylist()[0] == TEXTS[0]
    assert "as it is" in table["text"].to_pylist(), "words are joined by spaces"


@pytest.mark.parametrize("group_bytes", [1, 5000, 1 << 25])
@pytest.mark.parametrize("layers", ["mix", "all"])
def test_words_are_read_back(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers, group_bytes: int
) -> None:
    monkeypatch.setattr(tables, "TABLE_GROUP_BYTES", group_bytes)
    path = tmp_path / "v.parquet"
    embed_to_file(elmo, TEXTS, path, rows="words", layers=layers)
    with load_vectors(path) as stored:
        assert len(stored) == len(TEXTS)
        assert stored.signature["layers"] == layers
        for found, expected in zip(stored, elmo.embed(TEXTS, layers), strict=True):
            assert found.tolist() == expected.tolist() and found.shape == expected.shape
        assert [stored.words(i) for i in range(6)] == [list(w) for w in elmo.words(TEXTS[:6])]
    names = pq.read_schema(path).names
    assert ("vector" in names) == (layers == "mix") and ("layer_2" in names) == (layers == "all")


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_one_row_per_sentence(elmo: Elmo, tmp_path: Path, pooling) -> None:
    path = tmp_path / "v.parquet"
    embed_to_file(elmo, TEXTS, path, pooling=pooling)
    table = pq.read_table(path)
    assert table.column_names == ["sentence", "text", "word_count", "vector"]
    assert table["sentence"].to_pylist() == list(range(len(TEXTS)))
    assert table["word_count"].to_pylist()[:4] == [5, 0, 3, 3]
    expected = elmo.encode(TEXTS, pooling)
    assert np.array_equal(np.array(table["vector"].to_pylist(), np.float32), expected)
    with load_vectors(path) as stored:
        assert np.array_equal(np.stack(list(stored)), expected) and stored.words(0) is None


@pytest.mark.parametrize("suffix", ["h5", "npz", "parquet"])
def test_vectors_of_length_one(elmo: Elmo, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"v.{suffix}"
    embed_to_file(elmo, TEXTS, path, normalize=True)
    lengths = np.concatenate([np.linalg.norm(v, axis=-1) for v in load_vectors(path)])
    assert np.allclose(lengths, 1, atol=1e-6)
    pooled = tmp_path / "pooled.parquet"
    embed_to_file(elmo, ["A bank.", ""], pooled, normalize=True, pooling="mean", dtype="float16")
    one, zeros = load_vectors(pooled)
    assert one.dtype == np.float16 and np.linalg.norm(one.astype(float)) == pytest.approx(1, 1e-3)
    assert not zeros.any()


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("options", [{"rows": "words"}, {"pooling": "mean"}])
def test_nothing_to_store(elmo: Elmo, tmp_path: Path, count: int, options: dict) -> None:
    embed_to_file(elmo, [""] * count, tmp_path / "v.parquet", **options)
    with load_vectors(tmp_path / "v.parquet") as stored:
        assert len(stored) == count == len(list(stored))


@pytest.mark.parametrize("options", [{"rows": "words"}, {"pooling": "max", "normalize": True}])
def test_an_interrupted_table_continues(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict
) -> None:
    path, whole = tmp_path / "v.parquet", tmp_path / "whole.parquet"
    embed_to_file(elmo, TEXTS, whole, **options)
    write, calls = VectorWriter.write, []

    def interrupted(self: VectorWriter, *sentence: object) -> None:
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        write(self, *sentence)  # type: ignore[arg-type]

    monkeypatch.setattr(VectorWriter, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embed_to_file(elmo, TEXTS, path, **options)
    monkeypatch.setattr(VectorWriter, "write", write)
    with pytest.raises(InputError, match="other settings"):
        embed_to_file(elmo, TEXTS, path)
    with pytest.raises(InputError, match=r"sentence 0 .* differs"):
        embed_to_file(elmo, ["The bank lent money.", *TEXTS[1:]], path, **options)
    assert embed_to_file(elmo, TEXTS, path, **options).resumed == 8
    assert path.read_bytes() == whole.read_bytes()


def test_a_lone_surrogate_does_not_shift_the_offsets(elmo: Elmo, tmp_path: Path) -> None:
    embed_to_file(elmo, [["a\ud800", "b"]], tmp_path / "v.parquet", rows="words")
    rows = pq.read_table(tmp_path / "v.parquet").to_pylist()
    assert [(row["word"], row["start"], row["end"]) for row in rows] == [
        ("a\ufffd", 0, 2),
        ("b", 3, 4),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "word"}, "rows is 'word'"),
        ({"pooling": "sum"}, "pooling is 'sum'"),
        ({"rows": "words", "pooling": "mean"}, "one row per sentence; give one of the two"),
    ],
)
def test_wrong_options(elmo: Elmo, tmp_path: Path, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        embed_to_file(elmo, TEXTS, tmp_path / "v.parquet", **options)


@pytest.mark.parametrize("name", ["v.h5", "v.npz"])
def test_tables_are_parquet(elmo: Elmo, tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"one row per word is written to .*\.parquet"):
        embed_to_file(elmo, TEXTS, tmp_path / name, rows="words")
    assert not list(tmp_path.iterdir())


def test_words_that_are_not_in_the_text(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="'c' is not in the text 'a b'"),
        open_writer(tmp_path / "v.parquet", layout="words") as out,
    ):
        out.write(["a", "c"], np.ones((2, 3), np.float32), "a b")


def test_a_newer_or_damaged_table(elmo: Elmo, tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    embed_to_file(elmo, TEXTS, path, rows="words")
    table = pq.read_table(path)
    metadata = json.loads(table.schema.metadata[b"elmokit"])
    newer = {"elmokit": json.dumps(metadata | {"layout": 9})}
    pq.write_table(table.replace_schema_metadata(newer), path)
    with pytest.raises(FormatError, match="layout 9"):
        load_vectors(path)
    pq.write_table(table.drop_columns(["vector"]), path)
    with pytest.raises(FormatError, match="expected sentence and vector"):
        load_vectors(path)
    pq.write_table(table.replace_schema_metadata({"elmokit": '{"rows": "words"}'}), path)
    with pytest.raises(FormatError, match="damaged"):
        load_vectors(path)


@pytest.mark.parametrize("options", [{"rows": "words"}, {"pooling": "mean"}])
def test_the_row_that_a_sentence_is_from(elmo: Elmo, tmp_path: Path, options: dict) -> None:
    path = tmp_path / "v.parquet"
    texts, rows = ["A bank.", "It is.", "Yes."], [4, 4, 7]
    embed_to_file(elmo, texts, path, row_numbers=rows, **options)
    table = pq.read_table(path)
    assert table.column_names[:2] == ["sentence", "row"]
    assert {(r["sentence"], r["row"], r["text"]) for r in table.to_pylist()} == {
        (k, row, text) for k, (row, text) in enumerate(zip(rows, texts, strict=True))
    }
    with load_vectors(path) as stored:
        assert len(stored) == 3


def test_row_numbers_that_do_not_fit(elmo: Elmo, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more sentences than row_numbers"):
        embed_to_file(elmo, TEXTS, tmp_path / "v.parquet", rows="words", row_numbers=[1, 2])
    with pytest.raises(InputError, match="rows='words'"):
        embed_to_file(elmo, TEXTS, tmp_path / "v.h5", row_numbers=[1, 2])


def test_vectors_of_strings_that_repeat(elmo: Elmo, tmp_path: Path) -> None:
    """A dictionary of strings has no type in NumPy."""
    path = tmp_path / "v.parquet"
    embed_to_file(elmo, [["a", "b"]], path, rows="words")
    table = pq.read_table(path)
    strings = pa.array([["x", "x"]] * 2, pa.list_(pa.string()))
    pq.write_table(table.set_column(table.column_names.index("vector"), "vector", strings), path)
    with pytest.raises(FormatError, match="expected floats"):
        load_vectors(path)
