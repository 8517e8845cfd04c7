"""A corpus in Parquet, asked by SQL.

Every word of a corpus becomes a row of a Parquet file, with its sentence and its vector, and
DuckDB finds the uses of "bank" that are nearest to one of them: no vector database, no server.

    pip install 'elmokit[parquet]' duckdb
    python examples/parquet_duckdb.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb

from elmokit import Elmo, embed_to_file

DATA = Path(__file__).parent / "data"
lines = (DATA / "bank.tsv").read_text(encoding="utf-8").splitlines()
corpus = [line.split("\t")[1] for line in lines if "\t" in line]

with tempfile.TemporaryDirectory() as folder:
    table = Path(folder) / "words.parquet"
    summary = embed_to_file(Elmo.load(), corpus, table, layers=1, rows="words", normalize=True)
    print(f"{summary.sentences} sentences, {summary.words} words")

    answers = duckdb.sql(
        f"""
        SELECT b.text, list_cosine_similarity(a.vector, b.vector) AS similarity
        FROM '{table}' a JOIN '{table}' b ON a.word = b.word
        WHERE a.word = 'bank' AND a.sentence = 0 AND b.sentence <> 0
        ORDER BY similarity DESC LIMIT 5
        """
    ).fetchall()
    print(f"nearest to: {corpus[0]}")
    for text, similarity in answers:
        print(f"    {similarity:.2f}  {text}")

    ((kinds,),) = duckdb.sql(f"SELECT count(DISTINCT lower(word)) FROM '{table}'").fetchall()
    print(f"{kinds} distinct words")
