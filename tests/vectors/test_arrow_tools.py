"""Our Parquet files in the tools that people query them with; run by `.ci/parts/arrow`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.conftest import small_config

from elmokit import Elmo, embed_to_file
from elmokit.bilm.random import random_bilm

pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")

SENTENCES = ["the bank of the river", "", "a bank"]
WORDS = [sentence.split() for sentence in SENTENCES]


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_bilm(small_config()))


@pytest.fixture(params=["float32", "float16"])
def file(request: pytest.FixtureRequest, elmo: Elmo, tmp_path: Path) -> str:
    """One row per sentence."""
    embed_to_file(elmo, SENTENCES, tmp_path / "rows.parquet", dtype=request.param)
    return str(tmp_path / "rows.parquet")


@pytest.fixture(params=["float32", "float16"])
def means(request: pytest.FixtureRequest, elmo: Elmo, tmp_path: Path) -> str:
    """One vector per sentence."""
    path = tmp_path / "means.parquet"
    embed_to_file(elmo, SENTENCES, path, dtype=request.param, pooling="mean")
    return str(path)


@pytest.fixture
def expected(elmo: Elmo) -> np.ndarray:
    return np.concatenate(elmo.embed(SENTENCES))


def test_polars(file: str, means: str, expected: np.ndarray, elmo: Elmo) -> None:
    polars = pytest.importorskip("polars", reason="needs polars: pip install polars")
    table = polars.read_parquet(file)
    rows = table.filter(polars.col("words").list.len() > 0).explode(["words", "vectors"])
    assert rows["words"].to_list() == [word for words in WORDS for word in words]
    assert np.allclose(rows["vectors"].to_numpy().astype("f4"), expected, atol=2e-3)
    assert polars.read_parquet(means)["vector"].to_numpy().shape == (3, elmo.dim)


def test_duckdb(file: str, means: str, expected: np.ndarray, elmo: Elmo) -> None:
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
    query = f"SELECT unnest(words), unnest(vectors) FROM '{file}' ORDER BY index"
    rows = duckdb.sql(query).fetchall()
    assert [word for word, _ in rows] == [word for words in WORDS for word in words]
    assert np.allclose(np.array([vector for _, vector in rows]), expected, atol=2e-3)
    cast = f"vector::FLOAT[{elmo.dim}]"
    query = f"SELECT array_cosine_similarity({cast}, {cast}) FROM '{means}' WHERE sentence = 0"
    assert duckdb.sql(query).fetchall()[0][0] == pytest.approx(1)


def test_pandas(file: str, means: str, elmo: Elmo) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    table = pandas.read_parquet(file)
    assert np.stack(table["vectors"][0]).shape == (5, elmo.dim)
    assert np.stack(pandas.read_parquet(means)["vector"]).shape == (3, elmo.dim)


def test_lancedb(file: str, means: str, expected: np.ndarray, tmp_path: Path) -> None:
    lancedb = pytest.importorskip("lancedb", reason="needs lancedb: pip install lancedb")
    parquet = pytest.importorskip("pyarrow.parquet")
    database = lancedb.connect(tmp_path / "lance")
    table = database.create_table("means", data=parquet.read_table(means))
    mean = expected[:5].mean(axis=0)
    assert table.search(mean, vector_column_name="vector").limit(1).to_list()[0]["sentence"] == 0
    rows = parquet.read_table(file)
    table = database.create_table("rows", data=rows)
    search = table.search(expected[5:], vector_column_name="vectors").metric("cosine")
    assert search.limit(1).to_list()[0]["index"] == 2
