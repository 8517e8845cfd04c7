"""Embedding text into a file of vectors in one call, as `elmo embed --out` does."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import elmokit
from elmokit.elmo import Elmo, LayerChoice, Pooling, Sentence, pool_vectors
from elmokit.errors import FormatError, InputError
from elmokit.text.fasta import read_fasta
from elmokit.text.files import TextFile
from elmokit.vectors.file_formats import VectorFormat, VectorLayout, format_for, partial_path
from elmokit.vectors.spool import job_hash
from elmokit.vectors.writer import make_header, open_writer, record_sentence

RowUnit = Literal["sentences", "words"]
"""What a row of a file is."""


class EmbeddingSummary(NamedTuple):
    """How much a call of `embed_to_file` has written."""

    sentences: int
    """Number of sentences in the file."""
    words: int
    """Number of words in the file."""
    resumed: int
    """Number of sentences that an earlier run had already stored."""


def embed_to_file(
    elmo: Elmo,
    sentences: Iterable[Sentence],
    path: str | Path,
    *,
    layers: LayerChoice = "mix",
    dtype: str = "float32",
    rows: RowUnit = "sentences",
    row_numbers: Iterable[int] | None = None,
    pooling: Pooling | None = None,
    normalize: bool = False,
    restart: bool = False,
    overwrite: bool = False,
    on_sentence: Callable[[Sequence[str]], None] = lambda words: None,
) -> EmbeddingSummary:
    """Embed sentences into a file, in bounded memory.

    If it is interrupted, call it again with the same arguments: it continues where it stopped. If
    it has finished, nothing is done; a file of other sentences or settings is an error. The command
    `elmo embed --out` does this.

    Args:
        elmo: The model.
        sentences: Strings, or lists of words; may be a generator.
        path: The file to write, which ends in `.h5`, `.npz` or `.parquet`.
        layers: Layers to store: `"mix"`, `"sum"`, `"all"`, `"top"` or a layer number.
        dtype: Precision in the file: `"float32"` or `"float16"`.
        rows: `"sentences"`: one array per sentence. `"words"`: a Parquet table with one row per
            word: sentence, position, word, start, end, text, vector.
        row_numbers: Number of the input row that each sentence is from, for the column `row` of a
            table: where texts were split into sentences, it joins the vectors with the texts.
        pooling: `"mean"` or `"max"` over the words: one vector per sentence. In Parquet it is a
            table: sentence, text, word_count, vector. A sentence without words is all zeros.
        normalize: Scale every vector to length 1, after pooling.
        restart: Discard what an interrupted run has stored.
        overwrite: Replace the file if it exists.
        on_sentence: Called with the words of each sentence after it is stored.
    """
    elmo.words(sentences)  # raises if they are not a list of sentences
    is_table = Path(path).suffix == ".parquet" and (rows == "words" or pooling is not None)
    if row_numbers is not None and not is_table:
        raise InputError(
            "row_numbers are a column of a table: write to a .parquet file with rows='words', or "
            "with pooling"
        )
    return _embed(
        elmo,
        _number_rows(sentences, row_numbers),
        path,
        _Settings(layers, dtype, rows, pooling, normalize, restart, overwrite),
        on_sentence,
        row_numbers=row_numbers is not None,
    )


def embed_fasta_to_file(
    elmo: Elmo,
    fasta: str | Path | TextFile,
    path: str | Path,
    *,
    layers: LayerChoice = "sum",
    dtype: str = "float32",
    rows: RowUnit = "sentences",
    pooling: Pooling | None = None,
    normalize: bool = False,
    id_field: int | None = None,
    restart: bool = False,
    overwrite: bool = False,
    on_sentence: Callable[[Sequence[str]], None] = lambda words: None,
) -> EmbeddingSummary:
    """Embed the proteins of a FASTA file into a file in which they are found by their ids.

    A residue is a word, and a protein is a sentence; everything else is as in `embed_to_file`. The
    command `elmo embed --fasta` does this.

    Args:
        elmo: The model.
        fasta: The FASTA file, compressed or not; `"-"` is stdin.
        path: The file to write, which ends in `.h5`, `.npz` or `.parquet`.
        layers: Layers to store: `"sum"`, `"mix"`, `"all"`, `"top"` or a layer number.
        dtype: Precision in the file: `"float32"` or `"float16"`.
        rows: `"sentences"`: one array per protein. `"words"`: a Parquet table with one row per
            residue: id, sentence, position, word, vector.
        pooling: `"mean"` or `"max"` over the residues: one vector per protein, all zeros for a
            protein without residues. With the default layers, `"mean"` is what SeqVec does.
        normalize: Scale every vector to length 1, after pooling.
        id_field: Number of the field of the header, divided at `|` and counted from 0, that is the
            id; None for the first word.
        restart: Discard what an interrupted run has stored.
        overwrite: Replace the file if it exists.
        on_sentence: Called with the residues of each protein after it is stored.
    """
    elmo.warn_unless_proteins()
    records = read_fasta(fasta, id_field=id_field)
    inputs = (_Input(list(r.sequence), r.sequence, r.id) for r in records)
    settings = _Settings(layers, dtype, rows, pooling, normalize, restart, overwrite)
    return _embed(elmo, inputs, path, settings, on_sentence, ids=True)


class _Input(NamedTuple):
    """A sentence, its text, its id and the number of its row."""

    sentence: Sentence
    text: str | None = None
    id: str | None = None
    row: int | None = None


class _Settings(NamedTuple):
    """What to compute, and how to store it."""

    layers: LayerChoice
    dtype: str
    rows: RowUnit
    pooling: Pooling | None
    normalize: bool
    restart: bool
    overwrite: bool


def _embed(
    elmo: Elmo,
    inputs: Iterable[_Input],
    path: str | Path,
    settings: _Settings,
    on_sentence: Callable[[Sequence[str]], None],
    ids: bool = False,
    row_numbers: bool = False,
) -> EmbeddingSummary:
    """Embed sentences into a file, after those that an interrupted run has stored."""
    layers, pooling, normalize = settings.layers, settings.pooling, settings.normalize
    layout = _choose_layout(settings.rows, pooling)
    waiting: deque[_Input] = deque()  # the inputs whose words were read, but not yet embedded

    def sentences() -> Iterator[Sentence]:
        for item in inputs:
            waiting.append(item._replace(sentence=""))
            yield item.sentence

    all_words = iter(elmo.words(sentences()))
    signature = embedding_signature(elmo, layers, pooling, normalize)
    if row_numbers:
        signature["row_numbers"] = True
    target = Path(path)
    finished = target.is_file() and not partial_path(target).exists()
    if finished and not (settings.overwrite or settings.restart):
        file_format = format_for(target, layout)
        file_format.check_installed()
        header = make_header(file_format, signature, settings.dtype, layout, ids)
        records = _records(all_words, waiting, header, on_sentence)
        return _check_finished(target, file_format, header, records)
    sentence_count = word_count = 0
    with open_writer(
        path,
        signature=signature,
        dtype=settings.dtype,
        restart=settings.restart,
        overwrite=settings.overwrite,
        layout=layout,
        ids=ids,
    ) as out:
        for words in islice(all_words, out.done):
            _, text, id, row = waiting.popleft()
            out.skip(words, text, id, row)
            if elmo.state == "carry":
                elmo.embed([words])  # already stored, but later sentences need its state
            on_sentence(words)
            sentence_count, word_count = sentence_count + 1, word_count + len(words)

        for words, vectors in elmo.items(all_words, layers):
            _, text, id, row = waiting.popleft()
            out.write(words, pool_vectors(vectors, pooling, normalize), text, id, row)
            on_sentence(words)
            sentence_count, word_count = sentence_count + 1, word_count + len(words)
        resumed = out.done
    return EmbeddingSummary(sentence_count, word_count, resumed)


def _number_rows(
    sentences: Iterable[Sentence], row_numbers: Iterable[int] | None
) -> Iterator[_Input]:
    """Yield each sentence with its text and the number of its row, if they are known."""
    rows = None if row_numbers is None else iter(row_numbers)
    for sentence in sentences:
        row = None
        if rows is not None and (row := next(rows, None)) is None:
            raise InputError("there are more sentences than row_numbers; expected one for each")
        yield _Input(sentence, sentence if isinstance(sentence, str) else None, None, row)


def _records(
    all_words: Iterable[Sequence[str]],
    waiting: deque[_Input],
    header: Mapping[str, Any],
    on_sentence: Callable[[Sequence[str]], None],
) -> Iterator[tuple[int, bytes]]:
    """Yield the number of words of each sentence, and what a file stores about it."""
    for position, words in enumerate(all_words):
        _, text, id, row = waiting.popleft()
        yield len(words), record_sentence(words, text, position, header, id, row)
        on_sentence(words)


def _check_finished(
    target: Path,
    file_format: VectorFormat,
    header: Mapping[str, Any],
    records: Iterator[tuple[int, bytes]],
) -> EmbeddingSummary:
    """Return the summary of a file that an equal run wrote; raise `InputError` for another file."""
    other = InputError(
        f"{target} exists and holds other sentences or was made with other settings; write to "
        "another file, or replace it with overwrite=True (--force)"
    )
    try:
        reader = file_format.open_file(target)
    except FormatError:
        raise other from None
    job, stored = reader.job, reader.signature
    reader.close()
    if job is None or stored != header["signature"]:
        raise other
    counts: list[int] = []

    def read() -> Iterator[bytes]:
        for count, record in records:
            counts.append(count)
            yield record

    if job_hash(header, read()) != job:
        raise other
    return EmbeddingSummary(len(counts), sum(counts), len(counts))


def _choose_layout(rows: RowUnit, pooling: Pooling | None) -> VectorLayout:
    if rows not in get_args(RowUnit):
        raise InputError(f"rows is {rows!r}; expected 'sentences' or 'words'")
    if pooling is None:
        return "words" if rows == "words" else "arrays"
    if pooling not in get_args(Pooling):
        raise InputError(f"pooling is {pooling!r}; expected 'mean' or 'max', or None")
    if rows == "words":
        raise InputError(
            f"pooling is {pooling!r} and rows is 'words', but pooling makes one row per sentence; "
            "give one of the two"
        )
    return "pooled"


def embedding_signature(
    elmo: Elmo, layers: LayerChoice, pooling: Pooling | None, normalize: bool
) -> dict[str, Any]:
    """Return everything that determines the vectors, apart from the text."""
    signature: dict[str, Any] = {
        "elmokit": elmokit.__version__,
        "model": elmo.bilm.fingerprint,
        "layers": layers,
        "state": elmo.state,
        "dtype": elmo.dtype,
    }
    if pooling is not None:
        signature["pooling"] = pooling
    if normalize:
        signature["normalize"] = True
    if layers == "mix":
        signature["mix"] = {"scalars": list(elmo.mix.scalars), "gamma": elmo.mix.gamma}
    if elmo.state == "settled":
        settled = hashlib.sha256(elmo.settled.hidden.tobytes() + elmo.settled.cell.tobytes())
        signature["settled"] = settled.hexdigest()
    return signature
