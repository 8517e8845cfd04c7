"""Small valid files of every format, and how each is read: what `files.py` damages.

A seed is a file or a directory, and a function that reads all of it as a user of the library would.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import random
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from elmokit import Elmo, formats, inspect_model, load_vectors
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.random import random_bilm
from elmokit.bilm.state import State
from elmokit.formats import token_cache
from elmokit.formats.onnx.metadata import make_metadata
from elmokit.formats.torch_file import read_tensors
from elmokit.json_text import seal
from elmokit.text.vocabulary import Vocabulary
from elmokit.vectors import embed_to_file, open_writer

GOLDEN = Path(__file__).parents[2] / "tests" / "golden"
TINY = BiLMConfig(
    char_cnn=CharCNNConfig(
        filters=((1, 4), (2, 5)), highways=1, embedding_dim=4, max_characters=12
    ),
    lstm=LSTMConfig(cells=12, width=6),
)
SENTENCES = [["a", "cat", "sat"], [], ["it", "rains", "\ud800"], ["naïve", "übermut", "."]]
EMBED_SHARE = 0.02
"""Share of the models that could be read which also embed a sentence."""
CONVERT_SHARE = 0.1
"""Share of those that are also written in the format of AllenNLP."""


@dataclass(frozen=True)
class Seed:
    """A valid file or directory, and how to read it."""

    path: Path
    """The file or directory."""
    read: Callable[[Path], object]
    """Reads all of it."""
    sign: Callable[[Path, str], None] | None = None
    """Makes the checksum of a file, given by name, fit its damaged content."""


Maker = Callable[[Path], Seed]


def tiny_model(seed: int = 0) -> BiLM:
    """Return a model of a few hundred numbers that has everything a file can hold."""
    bilm = random_bilm(TINY, seed=seed)
    numbers = np.random.default_rng(seed)
    state = State.zeros(TINY)
    state.cell[:] = numbers.normal(size=state.cell.shape)
    return BiLM(
        replace(TINY, extra={"note": "ü"}),
        dict(bilm.weights)
        | {
            "softmax.weight": numbers.normal(size=(5, 6)).astype(np.float32),
            "softmax.bias": np.zeros(5, np.float32),
        },
        Vocabulary(["<S>", "</S>", "<UNK>", "cat", "naïve"]),
        state,
        Mix((0.1, 0.2, 0.3), 1.5),
    )


# -- models ------------------------------------------------------------------------------------


def read_model(path: Path) -> None:
    """Read a model with all its arrays; embed with some of those that can be read, and convert."""
    bilm = formats.read(path)
    checked = hashlib.sha256()
    for array in bilm.weights.values():
        checked.update(np.ascontiguousarray(array).data)
    if checked.digest()[0] < 256 * EMBED_SHARE:
        Elmo(bilm, threads=1).embed([["a", "cat"]])
    if bilm.alphabet is None and checked.digest()[1] < 256 * CONVERT_SHARE:
        with tempfile.TemporaryDirectory(dir=path.parent) as directory:
            formats.write(bilm, Path(directory) / "x.hdf5")


def native(directory: Path) -> Seed:
    """A directory of elmokit's own format."""
    formats.write(tiny_model(), directory / "native")
    return Seed(directory / "native", read_model, _sign_native)


def _sign_native(directory: Path, name: str) -> None:
    if name == "manifest.json":
        return
    manifest = json.loads((directory / "manifest.json").read_text())
    data = (directory / name).read_bytes()
    manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (directory / "manifest.json").write_text(json.dumps(manifest))


def native_zip(directory: Path) -> Seed:
    """The same in a zip archive."""
    formats.write(random_bilm(TINY), directory / "model.zip", "native")
    return Seed(directory / "model.zip", read_model)


def allennlp(directory: Path) -> Seed:
    """A pair of options.json and weights.hdf5."""
    (directory / "pair").mkdir()
    formats.write(tiny_model(), directory / "pair" / "weights.hdf5")
    return Seed(directory / "pair", read_model)


def allennlp_zip(directory: Path) -> Seed:
    """The same in a zip archive."""
    formats.write(tiny_model(), directory / "pair.zip")
    return Seed(directory / "pair.zip", read_model)


def _golden(name: str, *ignored: str) -> Maker:
    def make(directory: Path) -> Seed:
        target = directory / "model"
        shutil.copytree(GOLDEN / name, target, ignore=shutil.ignore_patterns("*.npz", *ignored))
        return Seed(target, read_model)

    return make


def tf_hub_tar(directory: Path) -> Seed:
    """A module of TensorFlow Hub as it is downloaded."""
    with tarfile.open(directory / "module.tar.gz", "w:gz") as archive:
        archive.add(GOLDEN / "tf_hub" / "module", ".")
    return Seed(directory / "module.tar.gz", read_model)


def tf_hub_plain_tar(directory: Path) -> Seed:
    """The same without compression, so that damage reaches what is inside."""
    with tarfile.open(directory / "module.tar", "w") as archive:
        archive.add(GOLDEN / "tf_hub" / "module", ".")
    return Seed(directory / "module.tar", read_model)


def _torch(name: str) -> Maker:
    def make(directory: Path) -> Seed:
        shutil.copy(GOLDEN / "many_langs" / "models" / "no_words" / name, directory)
        return Seed(directory / name, lambda path: read_tensors(path.open("rb"), str(path)))

    return make


def torch_zip(directory: Path) -> Seed:
    """A file of torch.save since version 1.6, small."""
    import torch

    state = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.int8)}
    torch.save(state, directory / "state.pth")
    return Seed(directory / "state.pth", lambda path: read_tensors(path.open("rb"), str(path)))


def torch_legacy(directory: Path) -> Seed:
    """A file of torch.save before version 1.6, small."""
    import torch

    state = {"a": torch.arange(6.0).reshape(2, 3).T, "b": torch.ones(4, dtype=torch.float16)}
    torch.save(state, directory / "state.pkl", _use_new_zipfile_serialization=False)
    return Seed(directory / "state.pkl", lambda path: read_tensors(path.open("rb"), str(path)))


def _read_token_cache(path: Path) -> None:
    cache = token_cache.read(path / "tokens.hdf5", path / "tokens.vocab.txt")
    cache.look_up(list(cache), lambda words: np.zeros((len(words), cache.width), np.float32))


def token_cache_file(directory: Path) -> Seed:
    """A token cache and its vocabulary."""
    words = ["<S>", "</S>", "<UNK>", "cat", "sat"]
    vectors = np.arange(30, dtype=np.float32).reshape(5, 6)
    (directory / "cache").mkdir()
    token_cache.write(directory / "cache" / "tokens.hdf5", words, vectors)
    return Seed(directory / "cache", _read_token_cache)


def onnx(directory: Path) -> Seed:
    """The skeleton of an ONNX file with our metadata."""

    def field(number: int, content: bytes) -> bytes:
        length, size = b"", len(content)
        while size > 0x7F:
            length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    metadata = json.dumps(make_metadata(tiny_model(), "float32", "mit")).encode()
    entry = field(1, b"elmokit") + field(2, metadata)
    data = b"\x08\x08" + field(2, b"somebody") + field(7, b"\xff" * 50) + field(14, entry)
    (directory / "model.onnx").write_bytes(data)
    return Seed(directory / "model.onnx", inspect_model)


# -- vectors -----------------------------------------------------------------------------------


def _read_vectors(path: Path) -> None:
    with load_vectors(path) as vectors:
        for i in range(len(vectors)):
            vectors.words(i), vectors[i]
        vectors.ids  # noqa: B018


def _vectors(name: str, **options: object) -> Maker:
    def make(directory: Path) -> Seed:
        elmo = Elmo(tiny_model(), threads=1)
        embed_to_file(elmo, SENTENCES, directory / name, **options)  # type: ignore[arg-type]
        return Seed(directory / name, _read_vectors)

    return make


def _named_vectors(name: str) -> Maker:
    def make(directory: Path) -> Seed:
        with open_writer(directory / name, signature={"model": "x"}, ids=True) as out:
            for number, words in enumerate(SENTENCES[:3]):
                vectors = np.full((len(words), 4), number, np.float32)
                out.write(words, vectors, id=f"P{number}")
        return Seed(directory / name, _read_vectors)

    return make


def chunked_vectors(directory: Path) -> Seed:
    """An HDF5 file whose vectors are stored in packed chunks."""
    import h5py

    with h5py.File(directory / "chunked.hdf5", "w") as file:
        for i, filters in enumerate(({}, {"compression": "gzip"}, {"shuffle": True})):
            array = np.arange(60, dtype=np.float32).reshape(3, 5, 4)
            checked = {"fletcher32": i > 0, **filters}
            file.create_dataset(str(i), data=array, chunks=(2, 3, 4), **checked)
    return Seed(directory / "chunked.hdf5", _read_vectors)


def allennlp_vectors(directory: Path) -> Seed:
    """An HDF5 file of vectors that another program wrote."""
    import h5py

    with h5py.File(directory / "plain.hdf5", "w") as file:
        for i in range(3):
            file[str(i)] = np.ones((3, i + 1, 4), np.float32)
        text = json.dumps({"a": "0", "b b": "1", "c c c": "2"})
        file.create_dataset("sentence_to_index", (1,), h5py.string_dtype())[0] = text
    return Seed(directory / "plain.hdf5", _read_vectors)


def savez_vectors(directory: Path) -> Seed:
    """A compressed .npz file that NumPy wrote."""
    arrays = {str(i): np.ones((3, i + 1, 4), np.float32) for i in range(3)}
    np.savez_compressed(directory / "plain.npz", **arrays)  # type: ignore[arg-type]
    return Seed(directory / "plain.npz", _read_vectors)


def spool(directory: Path) -> Seed:
    """What an interrupted `elmo embed` leaves."""
    from elmokit.vectors.spool import SPOOL_MAGIC, Spool

    header = {"dtype": "float32", "format": "npz", "signature": {"model": "x"}}
    path = directory / "out.npz.partial"
    log = Spool(path, header)
    for i in range(4):
        log.append(json.dumps(["w"] * i).encode(), np.ones((i, 3), np.float32))
    log.end()
    log.close()
    assert path.read_bytes().startswith(SPOOL_MAGIC)

    def read(path: Path) -> None:
        opened = Spool(path, header)
        try:
            list(opened.records()), list(opened.sentences()), opened.job()
        finally:
            opened.close()

    return Seed(path, read)


# -- what elmokit keeps ------------------------------------------------------------------------


def index(directory: Path) -> Seed:
    """An index of the uses of words."""
    from elmokit.probe import Index

    text = [["a", "cat", "sat"], ["the", "cat", "ran", "."], ["a", "cat", "sat"]]
    Index.build(Elmo(tiny_model(), threads=1), text, directory / "index", graph_from=3)

    def read(path: Path) -> None:
        opened = Index.open(path)
        query = np.ones(opened.manifest["dim"], np.float32)
        opened.search(query, 3), opened.search(query, 3, word="cat", exact=True)
        opened.nearest_words(query, "cat", 3)

    def sign(path: Path, name: str) -> None:
        if name in ("graph.json", "graph.usearch"):
            content = json.loads((path / "graph.json").read_text())
            content["crc32"] = zlib.crc32((path / "graph.usearch").read_bytes())
            _seal(path / "graph.json", content)
            return
        content = json.loads((path / "manifest.json").read_text())
        if name in content["crc32"]:
            content["crc32"][name] = zlib.crc32((path / name).read_bytes())
        _seal(path / "manifest.json", content)

    return Seed(directory / "index", read, sign)


def corpus(directory: Path) -> Seed:
    """A training corpus."""
    from elmokit.train import build_corpus
    from elmokit.train.corpus import Corpus

    source = random.Random(0)
    lines = [" ".join(source.choices("ant bee cat dog elk".split(), k=4)) for _ in range(60)]
    (directory / "text.txt").write_text("\n".join(lines) + "\n")
    build_corpus([str(directory / "text.txt")], directory / "corpus", processes=1)

    def read(path: Path) -> None:
        opened = Corpus.open(path)
        opened.special_ids, list(opened.words), opened.counts.sum()
        for split in filter(None, (opened.train, opened.valid)):
            ids, _ = split.gather(range(len(split)))
            opened.words[int(ids[0])]

    def sign(path: Path, name: str) -> None:
        content = json.loads((path / "corpus.json").read_text())
        if name != "corpus.json":
            data = (path / name).read_bytes()
            entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            content["files"][name] = entry
        _seal(path / "corpus.json", content)

    return Seed(directory / "corpus", read, sign)


def measurement(directory: Path) -> Seed:
    """A measurement of `elmo probe`."""
    from elmokit.probe.results import load_measurement, render_tables

    source = Path(__file__).parents[2] / "src" / "elmokit" / "builtin" / "measured" / "pos.json"
    shutil.copy(source, directory / "pos.json")

    def read(path: Path) -> None:
        render_tables(load_measurement(path))

    def sign(path: Path, name: str) -> None:
        _seal(path, json.loads(path.read_text()))

    return Seed(directory / "pos.json", read, sign)


def checkpoint(directory: Path) -> Seed:
    """A checkpoint of a training run."""
    import torch

    from elmokit.train import checkpoint as checkpoints

    arrays = {"parameters": torch.arange(12.0), "random": torch.arange(5, dtype=torch.uint8)}
    checkpoints.save(directory, 7, arrays, {"progress": {"step": 7}, "losses": [1.5, 2.5]})

    def sign(path: Path, name: str) -> None:
        file = path / checkpoints.VALUES
        content = json.loads(file.read_text())
        if name == checkpoints.ARRAYS:
            content["arrays"] = hashlib.sha256((path / name).read_bytes()).hexdigest()
        _seal(file, content)

    return Seed(directory / "step-00000007", checkpoints.load, sign)


def static_task_model(directory: Path) -> Seed:
    """A trained task model with static word vectors."""
    from elmokit.tasks.static import StaticVectors

    vectors = np.arange(8, dtype=np.float32).reshape(2, 4)
    return task_model(directory, StaticVectors.from_words(["cat", "sat"], vectors, "x.txt"))


def shards(directory: Path) -> Seed:
    """A sharded job: its plan, and a finished shard."""
    from elmokit.vectors import ShardFile, load_plan, plan_shards, run_shard, verify_shards

    (directory / "text.txt").write_text("a cat sat\nit rains\nnaïve\n")
    Elmo(tiny_model()).save(directory / "bilm")
    elmo = Elmo.load(directory / "bilm", threads=1)
    plan = plan_shards(elmo, directory / "text.txt", directory / "job", shards=2)
    run_shard(plan, 0, elmo)

    def read(path: Path) -> None:
        found = load_plan(path)
        verify_shards(found)
        for file in sorted((path / "shards").glob("*.npz")):
            with ShardFile(file) as shard:
                for name in shard.names:
                    shard.array(name).sum()
                    list(shard.lines(name))

    def sign(path: Path, name: str) -> None:
        if name == "plan.json":
            _seal(path / name, json.loads((path / name).read_text()))

    return Seed(directory / "job", read, sign)


def task_model(directory: Path, words: object = ("cat", "sat")) -> Seed:
    """A trained task model."""
    import torch

    from elmokit.tasks import Settings, load
    from elmokit.tasks.trained import Trained

    elmo = Elmo(random_bilm(TINY), threads=1)
    elmo.save(directory / "bilm")
    sizes = {"hidden": 4, "filters": 3, "characters": 3}
    settings = Settings(task="ner", elmo=str(directory / "bilm"), vectors="none", sizes=sizes)
    torch.manual_seed(0)
    labels = {"types": ["LOC", "PER"]}
    known = list(words) if isinstance(words, tuple) else words
    trained = Trained.assemble(settings, labels, known, elmo)  # type: ignore[arg-type]
    trained.save(directory / "task")

    def read(path: Path) -> None:
        load(path, elmo).predict("a cat")

    def sign(path: Path, name: str) -> None:
        content = json.loads((path / "task.json").read_text())
        if name != "task.json":
            data = (path / name).read_bytes()
            entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            content["files"][name] = entry
        _seal(path / "task.json", content)

    return Seed(directory / "task", read, sign)


def _seal(path: Path, content: dict[str, object]) -> None:
    path.write_text(json.dumps(seal(content)))


# -- data sets and text ------------------------------------------------------------------------


def _text(name: str, text: str | bytes, read: Callable[[Path], object]) -> Maker:
    def make(directory: Path) -> Seed:
        data = text.encode() if isinstance(text, str) else text
        (directory / name).write_bytes(data)
        return Seed(directory / name, read)

    return make


def _task(task: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        from elmokit.tasks import read as read_task

        return read_task(task, path)

    return read


def _read_semcor(path: Path) -> object:
    from elmokit.probe.senses.semcor import read_semcor

    return read_semcor([path])


def evaluation_set(directory: Path) -> Seed:
    """A test set of word senses."""
    from elmokit.probe.senses.evaluation_sets import read_evaluation_set

    (directory / "senses").mkdir()
    (directory / "senses" / "x.data.xml").write_text(EVALUATION_SET)
    (directory / "senses" / "x.gold.key.txt").write_text(
        "d0.s0.t0 gas%1:27:00::\nd0.s0.t1 odd%5:00:00:strange:00 odd%3:00:00::\n"
    )
    return Seed(directory / "senses", lambda path: read_evaluation_set(path / "x.data.xml"))


def wordnet(directory: Path) -> Seed:
    """The files of WordNet."""
    from elmokit.probe.senses.wordnet import read_wordnet

    (directory / "wordnet").mkdir()
    for name, text in WORDNET.items():
        (directory / "wordnet" / name).write_text("  1 A license\n" + text)
    return Seed(directory / "wordnet", read_wordnet)


def _read_tagged(path: Path) -> object:
    from elmokit.probe.tags.data import read_tagged

    return read_tagged(path)


def _read_pairs(path: Path) -> object:
    from elmokit.probe.similarity.pairs import read_pairs

    return read_pairs(path, format=None)


def wic(directory: Path) -> Seed:
    """Pairs of sentences with one word, and their answers."""
    from elmokit.probe.similarity.pairs import read_pairs

    (directory / "wic").mkdir()
    (directory / "wic" / "dev.data.txt").write_text(
        "place\tN\t2-6\tDo you place him high ?\tThere was hardly a good place to sit .\n"
        "bank\tN\t5-1\tWe sat on the grassy bank .\tThe bank lent it to me .\n"
    )
    (directory / "wic" / "dev.gold.txt").write_text("T\nF\n")
    return Seed(directory / "wic", lambda path: read_pairs(path / "dev.data.txt"))


def _read_targets(path: Path) -> object:
    from elmokit.probe.change.targets import read_targets

    return read_targets(path)


def _read_fasta(path: Path) -> object:
    from elmokit.text.fasta import check_fasta

    return check_fasta(path), check_fasta(path, id_field=1)


def _read_lines(path: Path) -> object:
    from elmokit.text.files import TextFile

    return list(TextFile(str(path)).lines())


def _read_static(path: Path) -> object:
    from elmokit.vectors.static import read_static

    return read_static(path)


def parquet_text(directory: Path) -> Seed:
    """A Parquet file of text."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from elmokit.text.files import TextFile

    table = pa.table({"text": ["A cat sat.", None, "It rained."], "n": [1, 2, 3]})
    pq.write_table(table, directory / "text.parquet")
    return Seed(directory / "text.parquet", lambda path: list(TextFile(str(path), "text").texts()))


def parquet_headers(directory: Path) -> Seed:
    """A Parquet file, of which only the headers are read."""
    from elmokit.text.parquet_pages import check_memory

    path = parquet_text(directory).path
    return Seed(path, lambda path: check_memory(str(path)))


def _zst(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


SEMCOR = """\
<contextfile concordance=brown>
<context filename=br-a01 paras=yes>
<p pnum=1>
<s snum=1>
<wf cmd=ignore pos=DT>The</wf>
<wf cmd=done rdf=group pos=NNP lemma=group wnsn=1 lexsn=1:03:00:: pn=group>Grand_Jury</wf>
<wf cmd=done pos=VB lemma=say wnsn=1 lexsn=2:32:00::>said</wf>
<punc>``</punc>
<wf cmd=done pos=NN lemma=year wnsn=2;1 lexsn=1:28:02::;1:28:01::>year</wf>
</s>
</p>
</context>
</contextfile>
"""
EVALUATION_SET = """\
<?xml version="1.0" encoding="UTF-8" ?>
<corpus lang="en" source="x">
<text id="d0">
<sentence id="d0.s0">
<wf lemma="the" pos="DET">The</wf>
<instance id="d0.s0.t0" lemma="gas" pos="NOUN">gases</instance>
<wf lemma="&amp;" pos=".">&amp;</wf>
<instance id="d0.s0.t1" lemma="Odd" pos="ADJ">odd</instance>
</sentence>
</text>
</corpus>
"""
WORDNET = {
    "index.noun": "bank n 2 1 @ 2 2 00000200 00000100  \n",
    "data.noun": '00000100 14 n 01 bank 0 001 @ 00000200 n 0000 | money; "a | bank"  \n'
    "00000200 17 n 02 Bank 1 side_of_a_river a 000 | land  \n",
    "index.verb": "bank v 1 0 1 0 00000500  \n",
    "data.verb": "00000500 40 v 01 bank 0 000 01 + 08 00 | put money away  \n",
    "index.adj": "quick a 2 1 & 2 2 00000400 00000300  \nfast a 1 1 & 1 1 00000600  \n",
    "data.adj": "00000300 00 a 01 quick(p) 0 000 | one  \n"
    "00000400 00 s 01 quick 1 002 + 00000100 n 0101 & 00000600 a 0000 | two  \n"
    "00000600 00 a 01 Fast(a) 2 001 & 00000400 s 0000 | three  \n",
    "index.adv": "",
    "data.adv": "",
    "index.sense": "bank%1:14:00:: 00000100 2 20\nquick%5:00:01:fast:02 00000400 1 9\n",
}
NER = "-DOCSTART- -X- O O\n\nAda NNP B-NP B-PER\nsaw VBD B-VP O\nParis NNP B-NP B-LOC\n. . O O\n"
COREF = """\
#begin document (bc/cctv/00/cctv_0001); part 002
bc/cctv 2 0 He       PRP  (TOP(S(NP*) - - - Speaker#1 * (ARG0*) (12)
bc/cctv 2 1 and      CC   *           - - - Speaker#1 * *       -
bc/cctv 2 2 John     NNP  (NP*        - - - Speaker#1 * *       (12|(7
bc/cctv 2 3 's       POS  *           - - - Speaker#1 * *       12)
bc/cctv 2 4 wife     NN   *)          - - - Speaker#1 * *       7)

#end document
"""
SRL = """\
#begin document (x); part 000
x 0 0 She PRP (S* - - - - * (ARG0*) -
x 0 1 gave VBD * give 01 - - * (V*) -
x 0 2 up RP *) - - - - * (ARG1*) -

#end document
"""
SRL_JSON = json.dumps(
    {"words": ["She", "gave", "up"], "preds": [{"i": 1, "tags": ["B-ARG0", "B-V", "O"]}]}
)
NLI = json.dumps({"gold_label": "entailment", "sentence1": "It rains.", "sentence2": "Wet!"})
QA = json.dumps(
    {
        "version": "1.1",
        "data": [
            {
                "title": "Apollo",
                "paragraphs": [
                    {
                        "context": "The Apollo program ran long. NASA stopped it.",
                        "qas": [
                            {
                                "id": "q1",
                                "question": "Who stopped?",
                                "answers": [{"text": "NASA", "answer_start": 29}],
                            }
                        ],
                    }
                ],
            }
        ],
    }
)
TREES = "(3 (2 (2 A) (3 good)) (2 (2 film) (2 .)))\n(1 (2 Not) (1 bad))\n(2 -LRB-)\n"
CONLLU = (
    "# text = A cat\n1\tA\ta\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t0\troot\t_\t_\n"
)
SCWS = (
    "1\tBrazil\tn\tnut\tn\tHe was sent to <b> Brazil </b> . It was far .\t"
    "a variety of <b> nut </b>s .\t1.1\t0.0\t1.0\t2.3\n"
)
PAIR = json.dumps(
    {
        **{"word": "can", "sentence1": "We cannot go.", "sentence2": "Who can?", "label": True},
        **{"start1": 3, "end1": 9, "start2": 4, "end2": 7},
    }
)
FASTA = ">sp|P12345|X a protein\nMKTAYIAKQR\nQISFV*\n; comment\n>tr|Q9|Y\nmkv-x.\n"
LINES = "A cat sat.\r\n\nIt rained – naïve…\n\x85next\n"

LIGHT: dict[str, Maker] = {
    "semcor": _text("br-a01", SEMCOR, _read_semcor),
    "evaluation-set": evaluation_set,
    "wordnet": wordnet,
    "ner": _text("ner.conll", NER, _task("ner")),
    "coref": _text("coref.conll", COREF, _task("coref")),
    "srl": _text("srl.conll", SRL, _task("srl")),
    "srl-json": _text("srl.jsonl", SRL_JSON + "\n", _task("srl")),
    "nli": _text("nli.jsonl", NLI + "\n" + NLI + "\n", _task("nli")),
    "qa": _text("qa.json", QA, _task("qa")),
    "trees": _text("trees.txt", TREES, _task("sentiment")),
    "tags": _text("tags.conllu", CONLLU, _read_tagged),
    "wic": wic,
    "pairs-json": _text("pairs.jsonl", PAIR + "\n", _read_pairs),
    "scws": _text("ratings.txt", SCWS, _read_pairs),
    "targets": _text("targets.txt", "cat\t0.5\ndog,dogs\t0.25\n", _read_targets),
    "fasta": _text("proteins.fasta", FASTA, _read_fasta),
    "text": _text("text.txt", LINES, _read_lines),
    "text-gz": _text("text.gz", gzip.compress(LINES.encode()), _read_lines),
    "text-xz": _text("text.xz", lzma.compress(LINES.encode()), _read_lines),
    "text-bz2": _text("text.bz2", bz2.compress(LINES.encode()), _read_lines),
    "text-zst": lambda directory: _text("text.zst", _zst(LINES.encode()), _read_lines)(directory),
    "static": _text("vectors.txt", "2 3\ncat 0.5 1 2\nsat 1e-3 2 -3\n", _read_static),
    "torch-zip": torch_zip,
    "torch-legacy": torch_legacy,
    "onnx": onnx,
    "spool": spool,
    "npz": _vectors("v.npz"),
    "npz-plain": savez_vectors,
    "npz-ids": _named_vectors("v.npz"),
    "measurement": measurement,
    "checkpoint": checkpoint,
    "tf": _golden("tf/one_layer"),
    "tf-sliced": _golden("tf/sliced"),
    "tf-sharded": _golden("tf/sharded"),
    "many-langs": _golden("many_langs/models/no_words", "native"),
}
"""Kinds of which thousands are read per second."""
HEAVY: dict[str, Maker] = {
    "native": native,
    "native-zip": native_zip,
    "allennlp": allennlp,
    "allennlp-zip": allennlp_zip,
    "tf-hub-tar-gz": tf_hub_tar,
    "tf-hub-tar": tf_hub_plain_tar,
    "torch-model": _torch("token_embedder.pkl"),
    "token-cache": token_cache_file,
    "h5": _vectors("v.h5"),
    "h5-plain": allennlp_vectors,
    "h5-ids": _named_vectors("v.h5"),
    "h5-chunks": chunked_vectors,
    "parquet": _vectors("v.parquet"),
    "parquet-words": _vectors("v.parquet", rows="words"),
    "parquet-pooled": _vectors("v.parquet", pooling="mean"),
    "parquet-ids": _named_vectors("v.parquet"),
    "parquet-text": parquet_text,
    "parquet-headers": parquet_headers,
    "index": index,
    "corpus": corpus,
    "task-model": task_model,
    "task-model-static": static_task_model,
    "shards": shards,
}
"""Kinds that a library reads, or that consist of several files."""
SEEDS = {**LIGHT, **HEAVY}
