"""The scripts that make and measure the built-in model, on a model and texts of a few words."""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import REPOSITORY, random_bilm, small_config

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.lm import perplexity
from elmokit.probe.neighbors.word_use import embed_word
from elmokit.text.vocabulary import Vocabulary

TEXT = "The bank of the river was wide. A play was shown.\n\nThey play by the bank every day.\n"
WORDS = ["<S>", "</S>", "<UNK>", "the", ".", "bank", "play", "was"]


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "runs" / "builtin"))
    monkeypatch.setattr(
        "elmokit.probe.tags.linear.FEWEST_STEPS", 25
    )  # two words are soon told apart


@pytest.fixture
def bilm() -> BiLM:
    """A model that predicts words, as a run leaves it."""
    config = small_config()
    source = np.random.default_rng(0)
    softmax = {
        "softmax.weight": source.standard_normal((len(WORDS), 6)).astype(np.float32),
        "softmax.bias": source.standard_normal(len(WORDS)).astype(np.float32),
    }
    whole = random_bilm(config)
    vocabulary = Vocabulary.parse(("\n".join(WORDS) + "\n").encode(), "test")
    weights = {**whole.weights, **softmax}
    return replace(whole, weights=weights, vocabulary=vocabulary, settled=State.zeros(config))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Plain and compressed, unpacked and packed: all forms are read."""
    place = tmp_path / "data"
    place.mkdir()
    (place / "lm-en-test.txt").write_text(TEXT)
    (place / "lm-en-train.txt").write_text(TEXT * 2)
    (place / "lm-en-valid.txt.xz").write_bytes(lzma.compress(TEXT.encode()))
    (place / "lm-biomed-test.txt").write_text("Cells divide by the river.\n")
    with tarfile.open(place / "pos-ewt.tar.xz", "w:xz") as archive:
        for name, times in (("train", 250), ("dev", 5), ("test", 5)):
            content = b"It\tPRON\tPRP\nis\tAUX\tVBZ\n\n" * times
            entry = tarfile.TarInfo(f"pos-ewt/{name}.tsv")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return place


def test_texts_are_read_as_the_command_reads_them(data: Path) -> None:
    data_files = import_module("data_files")
    plain, packed = (
        list(data_files.read_sentences(data, f"lm-en-{name}")) for name in ("test", "valid")
    )
    assert plain == packed
    assert plain[1] == ["A", "play", "was", "shown", "."] and len(plain) == 3
    assert list(data_files.sentences_with_word(data, "lm-en-train", "play", 3)) == [
        *plain[1:],
        plain[1],
    ]
    assert list(data_files.sentences_with_word(data, "lm-en-test", "play", 3)) == plain[1:]
    with pytest.raises(InputError, match=r"no lm-fr\.txt or lm-fr\.txt\.xz"):
        list(data_files.read_sentences(data, "lm-fr"))


def test_measure_and_tables(bilm: BiLM, data: Path) -> None:
    measure, tables = import_module("measure"), import_module("tables")
    model = Elmo(bilm)
    found = measure.measure(model, data, adapted=model, log=lambda line: None)
    assert json.loads(json.dumps(found)) == found
    expected = perplexity(model, import_module("data_files").read_sentences(data, "lm-en-test"))
    assert found["perplexity"] == expected.to_dict()
    assert found["running"]["signature"]["state"] == "carry"
    assert found["running"]["words"] == expected.words
    assert found["running"]["mean"] != expected.mean
    assert found["tags"]["words"] == {"train": 500, "dev": 10, "test": 10}
    assert found["tags"]["most frequent"]["XPOS"] == {"dev": 1.0, "test": 1.0}
    for kind in ("trained", "untrained"):
        assert len(found["tags"][kind]) == 8
        assert all(score["accuracy"]["dev"] == 1.0 for score in found["tags"][kind])
        assert [layer["layer"] for layer in found["senses"]["bank"][kind]] == [0, 1, 2]
    for query in found["neighbors"]:
        for one in query["nearest"]["this word"]:
            assert one["words"][one["place"]] == query["word"]
        assert [len(each) for each in query["nearest"].values()] == [3, 3]
    for perplexities in found["adaptation"].values():
        assert perplexities["before"] == perplexities["after"]
    assert found["signature"]["model"] == bilm.fingerprint
    assert len(found["signature"]["data"]) == 7
    text = tables.all_tables(found)
    assert f"{expected.forward:.1f}" in text
    assert "| XPOS, dev | trained | **100.0** | 100.0 | 100.0 | 100.0 | 100.0 |" in text
    assert "made a spectacular **play** on Alusik" in text
    widths = {line.count("|") for line in tables.tags_table(found["tags"]).splitlines()}
    assert len(widths) == 1


def test_pack(bilm: BiLM, data: Path, tmp_path: Path) -> None:
    pack = import_module("pack")
    formats.write(bilm, tmp_path / "run")
    before, after, files = pack.pack(tmp_path / "run", tmp_path / "out")
    packed = formats.read(tmp_path / "out")
    assert packed.fingerprint == after.fingerprint != before.fingerprint == bilm.fingerprint
    assert all(array.dtype == np.float16 for array in packed.weights.values())
    assert packed.vocabulary is not None and packed.settled is not None
    assert all(file.stat().st_mode & 0o044 == 0o044 for file in files)
    found = pack.compare_perplexity(before, after, data)
    assert found["float16"]["mean"] == pytest.approx(found["float32"]["mean"], rel=1e-2)
    assert found["float16"]["mean"] != found["float32"]["mean"]


def test_what_cannot_be_packed(bilm: BiLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = import_module("pack")
    formats.write(random_bilm(small_config()), tmp_path / "mute")
    with pytest.raises(InputError, match="lacks its vocabulary"):
        pack.pack(tmp_path / "mute", tmp_path / "out")
    huge = {**bilm.weights, "softmax.bias": np.full(len(WORDS), 1e6, np.float32)}
    with pytest.raises(InputError, match=r"softmax\.bias has the value 1e\+06"):
        pack.to_float16(replace(bilm, weights=huge))
    formats.write(bilm, tmp_path / "run")
    monkeypatch.setattr(pack, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match="at most 1,000"):
        pack.pack(tmp_path / "run", tmp_path / "large")


def test_eight_bits_are_near(bilm: BiLM) -> None:
    rows = import_module("pack").with_8_bit_softmax(bilm).weights["softmax.weight"]
    exact = bilm.weights["softmax.weight"]
    step = np.abs(exact).max(axis=1, keepdims=True) / 127
    assert (np.abs(rows - exact) <= step / 2 + 1e-6).all() and (rows != exact).any()


def test_average(bilm: BiLM, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    average = import_module("average")
    other = replace(bilm, weights={name: 3 * array for name, array in bilm.weights.items()})
    for name, array in average.average(bilm, other, 0.75).weights.items():
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, 2.5 * bilm.weights[name], rtol=1e-6)
    for path, model in (("start", bilm), ("end", other)):
        formats.write(model, tmp_path / path)
    places = [str(tmp_path / name) for name in ("start", "end", "out")]
    argv = ["average.py", *places[:2], "--share", "1", "--out", places[2]]
    monkeypatch.setattr("sys.argv", argv)
    average.main()
    assert formats.read(tmp_path / "out").fingerprint == other.fingerprint
    monkeypatch.setattr("sys.argv", [argv[0], str(tmp_path / "missing"), *argv[2:]])
    with pytest.raises(SystemExit, match=r"average: .*missing"):
        average.main()

    report = tmp_path / "averaged.json"
    chosen = ["--data", str(data), "--report", str(report), "--out", str(tmp_path / "chosen")]
    monkeypatch.setattr("sys.argv", [*argv[:3], *chosen])
    average.main()
    found = json.loads(report.read_text())
    assert [row["share"] for row in found["shares"]] == list(average.SHARES)
    products = [row["single"]["mean"] * row["running"]["mean"] for row in found["shares"]]
    assert found["share"] == average.SHARES[int(np.argmin(products))]
    expected = average.average(bilm, other, found["share"])
    assert formats.read(tmp_path / "chosen").fingerprint == expected.fingerprint
    assert all(row["running"]["signature"]["state"] == "carry" for row in found["shares"])
    monkeypatch.setattr("sys.argv", argv[:3] + argv[-2:])
    with pytest.raises(SystemExit):
        average.main()


def test_what_cannot_be_averaged(bilm: BiLM) -> None:
    average = import_module("average").average
    with pytest.raises(InputError, match=r"share is 1\.5"):
        average(bilm, bilm, 1.5)
    with pytest.raises(InputError, match="vocabularies"):
        average(bilm, replace(bilm, vocabulary=None), 0.5)
    fewer = {name: array for name, array in bilm.weights.items() if "softmax" not in name}
    with pytest.raises(InputError, match="differ in their weights"):
        average(bilm, replace(bilm, weights=fewer), 0.5)


def trained(tmp_path: Path) -> tuple[Path, Path]:
    """A corpus, and a run on it of a few steps."""
    from elmokit.train.budget import Budget
    from elmokit.train.build import CorpusOptions, build_corpus
    from elmokit.train.pretraining import pretrain
    from elmokit.train.recipe import RECIPES

    text = tmp_path / "text.txt"
    text.write_text(TEXT * 20)
    valid = tmp_path / "valid.txt"
    valid.write_text(TEXT)
    corpus, run = tmp_path / "corpus", tmp_path / "run"
    build_corpus([str(text)], corpus, CorpusOptions(size=12), valid=[str(valid)], processes=1)
    recipe = RECIPES["recommended"].replace(batch=200, text="passages", passage=3)
    pretrain(corpus, run, config=small_config(), recipe=recipe, budget=Budget(tokens=1500))
    return corpus, run


def test_from_a_run_to_its_card(tmp_path: Path, data: Path) -> None:
    corpus, run = trained(tmp_path)
    # The newest checkpoint of a run that has ended is its model.
    seen, progress = import_module("snapshot").snapshot(run, corpus)
    assert seen.fingerprint == formats.read(run).fingerprint and progress["tokens"] >= 1500

    card, measure = import_module("card"), import_module("measure")
    _, after, files = import_module("pack").pack(run, tmp_path / "model")
    measured: dict[str, Any] = measure.measure(Elmo(after), data, log=lambda line: None)
    from elmokit.train.corpus import Corpus

    packed = {"bytes": sum(file.stat().st_size for file in files)}
    text = card.make_card(after, run, Corpus.open(corpus), measured, packed)
    assert after.fingerprint in text and "cc-by-sa-3.0" in text
    assert f"{progress['tokens']:,} (" in text
    assert "$" not in text
    assert "passages of 1 to 3 consecutive sentences" in text
    assert "| `2x11_6_17cnn_1xhighway`, 3 layers of 12 |" in text
    assert f"{measured['perplexity']['forward']:.1f}" in text
    assert "biomedical articles" not in text  # nothing was adapted
    with pytest.raises(InputError, match="another model"):
        card.make_card(formats.read(run), run, Corpus.open(corpus), measured, packed)


CORPUS = ["The bank of the river .", "A bank lends money .", "Nothing here .", "Bank on it ."]


def search(elmo: Elmo, layer: str | int = "top") -> Any:
    return import_module("corpus_search").CorpusSearch(elmo, CORPUS, layer=layer)


def test_the_nearest_uses_have_the_largest_cosines(elmo: Elmo) -> None:
    vector = embed_word(elmo, "bank", "My bank lends me money .").vector
    found = search(elmo).search(vector, 4)
    uses = []
    for words, vectors in elmo.items(CORPUS, "top"):
        for position, other in enumerate(vectors):
            cosine = vector @ other / np.linalg.norm(vector) / np.linalg.norm(other)
            uses.append((cosine, list(words), position))
    uses.sort(key=lambda use: -use[0])
    assert [(n.words, n.position) for n in found] == [use[1:] for use in uses[:4]]
    cosines = [use[0] for use in uses[:4]]
    np.testing.assert_allclose([n.similarity for n in found], cosines, atol=1e-5)


def test_a_sentence_can_be_excluded(elmo: Elmo) -> None:
    words, position, vector = embed_word(elmo, "bank", CORPUS[1])
    found = search(elmo).search(vector, 100, exclude=words)
    assert len(found) == 6 + 3 + 4
    assert all(list(n.words) != elmo.tokenize(CORPUS[1]) for n in found)
    best = search(elmo).search(vector, 1)[0]
    assert best.words == elmo.tokenize(CORPUS[1]) and best.position == position == 1
    assert best.similarity == pytest.approx(1.0, abs=1e-6)


def test_uses_of_one_word(elmo: Elmo) -> None:
    uses = search(elmo)
    assert len(uses) == 6 + 5 + 3 + 4
    vector = np.ones(elmo.dim, np.float32)
    found = uses.search(vector, 100, word="bank")
    every = uses.search(vector, 100)
    assert found == [n for n in every if n.words[n.position] in ("bank", "Bank")]
    assert len(found) == 3
    assert uses.search(vector, word="absent") == []
    with pytest.raises(InputError, match="number is 0"):
        uses.search(vector, 0)


def test_layer_0_knows_no_context(elmo: Elmo) -> None:
    vector = embed_word(elmo, "bank", "One bank .", layer=0).vector
    found = search(elmo, 0).search(vector, 2, word="bank")
    assert [n.similarity for n in found] == pytest.approx([1.0, 1.0], abs=1e-6)
    with pytest.raises(InputError, match="all"):
        search(elmo, "all")
