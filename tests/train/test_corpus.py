"""Reading a corpus: what was written comes back, and what is damaged is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.json_text import seal
from elmokit.train.build import CorpusOptions, build_corpus
from elmokit.train.corpus import Corpus, WordList

SENTENCES = [f"word{i % 7} of sentence number {i} " + "more " * (i % 5) for i in range(300)]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(SENTENCES), encoding="utf-8")
    return path


def build(text: Path, out: Path, **changes: object) -> Corpus:
    options = CorpusOptions(form="tokenized", held_out=0, size=12)
    return build_corpus([str(text)], out, options, processes=1, chunk_bytes=900, **changes)


@pytest.fixture(params=[1 << 20, 400], ids=["one shard", "shards"])
def corpus(request: pytest.FixtureRequest, text: Path, tmp_path: Path) -> Corpus:
    return build(text, tmp_path / "corpus", shard_tokens=request.param)


def test_what_was_written_comes_back(corpus: Corpus) -> None:
    assert (corpus.train.sentences, corpus.train.tokens) == (
        300,
        sum(map(len, map(str.split, SENTENCES))),
    )
    assert len(corpus.train) == 300
    np.testing.assert_array_equal(corpus.train.lengths, [len(s.split()) for s in SENTENCES])
    order = np.random.default_rng(0).permutation(300)
    for indices in (order, order[:7], [5, 5, 299, 0], np.array([3], np.int32)):
        ids, lengths = corpus.train.gather(indices)
        assert ids.dtype == lengths.dtype == np.int32
        cuts = np.cumsum(lengths)[:-1]
        sentences = [[corpus.words[i] for i in part.tolist()] for part in np.split(ids, cuts)]
        assert sentences == [SENTENCES[i].split() for i in np.asarray(indices).tolist()]


def test_gather_nothing_and_too_much(corpus: Corpus) -> None:
    ids, lengths = corpus.train.gather([])
    assert ids.shape == lengths.shape == (0,)
    for bad in ([300], [-1], [0, 5, 400]):
        with pytest.raises(IndexError, match="has 300"):
            corpus.train.gather(bad)


def test_words_and_counts(corpus: Corpus) -> None:
    words = [word for sentence in SENTENCES for word in sentence.split()]
    assert len(corpus.vocabulary) == 12
    assert corpus.words[:12] == list(corpus.vocabulary)
    assert sorted(corpus.words) == sorted({"<S>", "</S>", "<UNK>", *words})
    assert corpus.counts.tolist() == [words.count(word) for word in corpus.words]
    rest = [(-words.count(word), word) for word in corpus.words[12:]]
    assert rest == sorted(rest)
    assert corpus.special_ids == (0, 1, 2)


def test_shards_are_files_that_numpy_reads(corpus: Corpus) -> None:
    shards = corpus.metadata["train"]["shards"]
    ids = [np.load(corpus.path / f"train-{i:05d}.npy", mmap_mode="r") for i in range(len(shards))]
    assert sum(map(len, ids)) == corpus.train.tokens
    assert all(len(array) <= 400 for array in ids) == (len(ids) > 1)
    whole, _ = corpus.train.gather(range(300))
    np.testing.assert_array_equal(np.concatenate(ids), whole)


def test_shards_do_not_change_the_text(text: Path, tmp_path: Path) -> None:
    whole = build(text, tmp_path / "a")
    parts = build(text, tmp_path / "b", shard_tokens=400)
    assert len(parts.metadata["train"]["shards"]) > 2
    for one, other in zip(*(c.train.gather(range(300)) for c in (whole, parts)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_words_behave_like_a_list(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    expected = ["<S>", "naïve", "", "日本", "a b", *map(str, range(70_000))]
    path.write_text("".join(f"{word}\n" for word in expected), encoding="utf-8")
    words = WordList(path)
    assert len(words) == len(expected)
    assert list(words) == expected
    for cut in (slice(0, 4), slice(2, 2), slice(3, 1), slice(-2, None), slice(0, 9, 2)):
        assert words[cut] == expected[cut]
    assert (words[1], words[-1], words[2]) == ("naïve", "69999", "")
    assert "日本" in words
    with pytest.raises(IndexError):
        words[len(expected)]
    path.write_bytes(b"")
    assert list(WordList(path)) == []
    path.write_bytes(b"no end")
    with pytest.raises(FormatError, match="last line is incomplete"):
        WordList(path)


# -- what cannot be opened -------------------------------------------------------------------------


def test_no_corpus(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"nowhere does not exist; .*elmo corpus"):
        Corpus.open(tmp_path / "nowhere")
    with pytest.raises(FormatError, match=r"has no corpus\.json"):
        Corpus.open(tmp_path)
    file = tmp_path / "file"
    file.write_text("text")
    with pytest.raises(FormatError, match="is not a directory"):
        Corpus.open(file)


def change(corpus: Corpus, **values: object) -> None:
    path = corpus.path / "corpus.json"
    about = json.loads(path.read_text("utf-8"))
    for name, value in values.items():
        about[name] = value(about[name]) if callable(value) else value
    path.write_text(json.dumps(seal(about)), "utf-8")


def test_a_newer_version(corpus: Corpus) -> None:
    change(corpus, version=3)
    with pytest.raises(FormatError, match=r"version 3; .* reads up to version 2: pip install -U"):
        Corpus.open(corpus.path)


@pytest.mark.parametrize("content", ["{", "[]", '{"version": "one"}', '{"version": 1}', "\xff"])
def test_a_damaged_manifest(corpus: Corpus, content: str) -> None:
    (corpus.path / "corpus.json").write_text(content, "latin1")
    with pytest.raises(FormatError, match=r"corpus\.json"):
        Corpus.open(corpus.path)


def test_a_manifest_without_a_part(corpus: Corpus) -> None:
    change(corpus, train=lambda train: {"sentences": 1})
    with pytest.raises(FormatError, match="is damaged: KeyError"):
        Corpus.open(corpus.path)


@pytest.mark.parametrize("name", ["words.txt", "vocab.txt", "counts.npy", "train-00000.npy"])
def test_a_file_that_is_missing_or_cut(corpus: Corpus, name: str) -> None:
    path = corpus.path / name
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(FormatError, match=rf"{name} has .* bytes, but corpus.json says"):
        Corpus.open(corpus.path)
    path.unlink()
    with pytest.raises(FormatError, match=f"lacks {name}"):
        Corpus.open(corpus.path)


def test_arrays_that_do_not_fit(corpus: Corpus) -> None:
    path = corpus.path / "train-00000.lengths.npy"
    lengths = np.load(path)
    lengths[0] += 1
    np.save(path, lengths)
    rewrite(corpus, path.name, path.read_bytes())
    with pytest.raises(FormatError, match="do not add up to its words"):
        Corpus.open(corpus.path)
    np.save(path, lengths.astype(np.int64)[: len(lengths) // 2])
    rewrite(corpus, path.name, path.read_bytes())
    with pytest.raises(FormatError, match="1 dimensions of int64; expected 1 of int32"):
        Corpus.open(corpus.path)


def rewrite(corpus: Corpus, name: str, data: bytes) -> None:
    (corpus.path / name).write_bytes(data)
    entry = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    change(corpus, files=lambda files: files | {name: entry})


def test_lists_that_do_not_fit(corpus: Corpus) -> None:
    words = (corpus.path / "words.txt").read_bytes()
    rewrite(corpus, "words.txt", words + b"one more\n")
    with pytest.raises(FormatError, match="expected the last two to be equal"):
        Corpus.open(corpus.path)
    rewrite(corpus, "words.txt", words)
    rewrite(corpus, "vocab.txt", b"<S>\n</S>\nthe\n")
    with pytest.raises(FormatError, match=r"vocab\.txt lacks <UNK>"):
        Corpus.open(corpus.path)


def test_shards_that_do_not_fit(corpus: Corpus) -> None:
    def wrong(train: dict[str, list[dict[str, int]]]) -> object:
        train["shards"][0]["sentences"] += 1
        return train

    change(corpus, train=wrong)
    with pytest.raises(FormatError, match=r"train-00000\.npy has .* sentences; corpus\.json says"):
        Corpus.open(corpus.path)
    rewrite(corpus, "train-00000.npy", b"no array")
    with pytest.raises(FormatError, match=r"train-00000\.npy is damaged"):
        Corpus.open(corpus.path)


def test_verify_finds_a_changed_bit(corpus: Corpus) -> None:
    corpus.verify()
    path = corpus.path / "train-00000.npy"
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"train-00000\.npy is damaged: its checksum differs"):
        Corpus.open(corpus.path).verify()


def test_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import elmokit.train.build, elmokit.train.corpus, elmokit.cli.corpus"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
