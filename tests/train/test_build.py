"""Making a corpus: sentences, words, numbers, held-out lines; the same however it is made."""

from __future__ import annotations

import gzip
import hashlib
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import elmokit
from elmokit.errors import FormatError, InputError
from elmokit.text.vocabulary import Vocabulary
from elmokit.train.build import CorpusOptions, build_corpus
from elmokit.train.chunks import MAX_SENTENCE_WORDS, hash_line
from elmokit.train.corpus import Corpus, Split

TEXT = """\
Mr. Smith didn't go to the bank. He sat by the river!

"Why?" she asked. The bank was closed (again).
The end.
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Two thousand lines of two sentences; every word is somewhere in a line of its own too."""
    rng = random.Random(1)
    words = [f"w{i}" for i in range(500)]
    path = tmp_path / "large.txt"
    lines = [
        " ".join(rng.choices(words, k=8)) + " . The " + " ".join(rng.choices(words, k=4)) + " ."
        for _ in range(2000)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def build(texts: Path | list[Path], out: Path, **changes: object) -> Corpus:
    names = [str(path) for path in (texts if isinstance(texts, list) else [texts])]
    fields = CorpusOptions.__dataclass_fields__
    options = {name: value for name, value in changes.items() if name in fields}
    others = {name: value for name, value in changes.items() if name not in fields}
    if "valid" not in others:
        options.setdefault("held_out", 0)
    return build_corpus(names, out, CorpusOptions(**options), **{"processes": 1} | others)


def sentences(corpus: Corpus, split: Split | None = None) -> list[str]:
    split = split or corpus.train
    ids, lengths = split.gather(range(split.sentences))
    words = [corpus.words[i] for i in ids.tolist()]
    ends = np.cumsum(lengths).tolist()
    return [" ".join(words[end - n : end]) for end, n in zip(ends, lengths.tolist(), strict=True)]


# -- sentences and words ---------------------------------------------------------------------------


def test_running_text(text: Path, tmp_path: Path) -> None:
    assert sentences(build(text, tmp_path / "out")) == [
        "Mr. Smith did n't go to the bank .",
        "He sat by the river !",
        '" Why ? "  she asked .'.replace("  ", " "),
        "The bank was closed ( again ) .",
        "The end .",
    ]


def test_a_sentence_a_line(text: Path, tmp_path: Path) -> None:
    assert sentences(build(text, tmp_path / "out", form="lines")) == [
        "Mr. Smith did n't go to the bank . He sat by the river !",
        '" Why ? " she asked . The bank was closed ( again ) .',
        "The end .",
    ]


def test_tokenized_is_taken_as_it_is(text: Path, tmp_path: Path) -> None:
    lines = [" ".join(line.split()) for line in TEXT.splitlines() if line]
    assert sentences(build(text, tmp_path / "out", form="tokenized")) == lines


def test_wrapped_text(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text(
        "A sentence that\r\ngoes on here. And\r\nanother one.\r\n\r\nNext\n", newline=""
    )
    assert sentences(build(path, tmp_path / "out", form="wrapped")) == [
        "A sentence that goes on here .",
        "And another one .",
        "Next",
    ]
    about = build(path, tmp_path / "as-lines").metadata
    assert (about["lines"], about["broken_lines"]) == (4, 2)


def test_marks_that_are_typed_are_the_marks(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("<S> a b </S>\n<S> </S>\na </S> <UNK> <S> b\n")
    corpus = build(path, tmp_path / "out", form="tokenized")
    assert sentences(corpus) == ["a b", "a </S> <UNK> <S> b"]
    ids, _ = corpus.train.gather([1])
    assert ids.tolist() == [3, 1, 2, 0, 4]
    assert list(corpus.words) == ["<S>", "</S>", "<UNK>", "a", "b"]
    assert corpus.counts.tolist() == [1, 1, 1, 2, 2]
    assert corpus.metadata["train"]["unlisted"] == 0


def test_long_sentences_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "x"
    lengths = [MAX_SENTENCE_WORDS, MAX_SENTENCE_WORDS + 1, 2 * MAX_SENTENCE_WORDS, 3]
    path.write_text("".join("a " * n + "\n" for n in lengths))
    corpus = build(path, tmp_path / "out", form="tokenized")
    n = MAX_SENTENCE_WORDS
    assert corpus.train.lengths.tolist() == [n, n, 1, n, n, 3]
    assert corpus.metadata["cut_sentences"] == 2


# -- the vocabulary and the list of words ----------------------------------------------------------


def test_vocabulary_by_size_and_minimum_count(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("d c c b b b a a a a e\n")

    def vocabulary(**options: int) -> list[str]:
        corpus = build(path, tmp_path / "out", form="tokenized", force=True, **options)
        assert corpus.words[: len(corpus.vocabulary)] == list(corpus.vocabulary)
        assert sorted(corpus.words)[3:] == list("abcde"), "all words can be read"
        return list(corpus.vocabulary)[3:]

    assert vocabulary() == list("abcde")
    assert vocabulary(size=5) == ["a", "b"]
    assert vocabulary(min_count=2) == ["a", "b", "c"]
    assert vocabulary(min_count=2, size=5) == ["a", "b"]
    assert vocabulary(min_count=4, size=5) == ["a"]
    with pytest.raises(
        InputError,
        match="of 5 words the most frequent occurs 4 times; expected at least one word of 5",
    ):
        vocabulary(min_count=5)


def test_default_size(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(" ".join(map(str, range(30_100))))
    assert len(build(path, tmp_path / "out", form="tokenized").vocabulary) == 30_000
    corpus = build(path, tmp_path / "all", form="tokenized", min_count=1)
    assert len(corpus.vocabulary) == 30_103


@pytest.mark.parametrize("as_file", [True, False])
def test_a_vocabulary_that_exists(text: Path, tmp_path: Path, as_file: bool) -> None:
    # Its own order, marks elsewhere, a word that does not occur and one that is there twice.
    words = ["</S>", "the", "<S>", "<UNK>", "absent", "bank", "the"]
    given: Vocabulary | Path = Vocabulary(words)
    if as_file:
        given = tmp_path / "vocab.txt"
        given.write_text("\n".join(words) + "\n")
    corpus = build(text, tmp_path / "out", vocabulary=given)
    assert list(corpus.vocabulary) == corpus.words[:7] == words
    assert (corpus.path / "vocab.txt").read_text() == "\n".join(words) + "\n"
    assert corpus.special_ids == (2, 0, 3)
    assert sentences(corpus)[0] == "Mr. Smith did n't go to the bank ."
    assert corpus.counts[:7].tolist() == [0, 2, 0, 0, 0, 2, 0]
    assert corpus.metadata["train"]["oov_rate"] == 1 - 4 / corpus.train.tokens


def test_a_vocabulary_without_marks(text: Path, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="lacks </S>, <UNK>; expected"):
        build(text, tmp_path / "out", vocabulary=Vocabulary(["<S>", "the"]))
    with pytest.raises(InputError, match="size and min_count have no effect"):
        build(text, tmp_path / "out", vocabulary=Vocabulary(["<S>"]), size=7)


def test_out_of_vocabulary_rates(text: Path, tmp_path: Path) -> None:
    valid = tmp_path / "valid.txt"
    valid.write_text("the river the sea")
    corpus = build(text, tmp_path / "out", valid=[str(valid)], form="tokenized", size=4)
    assert list(corpus.vocabulary)[3:] == ["The"]
    assert corpus.metadata["train"]["oov_rate"] == 1 - 2 / corpus.train.tokens
    assert corpus.valid is not None
    assert corpus.metadata["valid"]["oov_rate"] == 1
    assert sentences(corpus, corpus.valid) == ["the river the sea"]
    assert corpus.counts[list(corpus.words).index("sea")] == 0, "counts are of train alone"
    assert corpus.counts.sum() == corpus.train.tokens


def test_rare_words_beyond_the_limit_are_unknown(tmp_path: Path) -> None:
    path, valid = tmp_path / "x", tmp_path / "valid"
    path.write_text("a a a b b c c d e f <UNK>\n")
    valid.write_text("z f a\n")
    corpus = build(
        path, tmp_path / "out", form="tokenized", size=5, words=8, valid=[str(valid)], force=True
    )
    # c is next; f and z because held-out text has them; d and e not.
    assert list(corpus.words)[3:] == ["a", "b", "c", "f", "z"]
    assert sentences(corpus) == ["a a a b b c c <UNK> <UNK> f <UNK>"]
    assert corpus.counts.tolist() == [0, 0, 3, 3, 2, 2, 1, 0]
    assert corpus.metadata["train"]["unlisted"] == 2
    assert corpus.metadata["valid"]["unlisted"] == 0


# -- held-out lines --------------------------------------------------------------------------------


def held_out_of(corpus: Corpus) -> Counter[str]:
    assert corpus.valid is not None
    return Counter(sentences(corpus, corpus.valid))


def test_held_out_lines_depend_on_their_content_alone(large: Path, tmp_path: Path) -> None:
    corpus = build(large, tmp_path / "a", held_out=5, chunk_bytes=9000)
    held_out = held_out_of(corpus)
    assert 60 < held_out.total() / 2 < 140, "about 5 % of 2000 lines"
    whole = Counter(sentences(build(large, tmp_path / "whole")))
    assert held_out + Counter(sentences(corpus)) == whole, "nothing is lost or doubled"
    assert corpus.counts.sum() == corpus.train.tokens
    words = Counter(word for sentence in sentences(corpus) for word in sentence.split())
    assert corpus.counts.tolist() == [words[word] for word in corpus.words]

    lines = large.read_text().split("\n")
    random.Random(2).shuffle(lines)
    shuffled = tmp_path / "shuffled.txt"
    shuffled.write_text("\r\n".join(lines))
    assert held_out_of(build(shuffled, tmp_path / "b", held_out=5)) == held_out
    # Less is a part of more.
    assert held_out_of(build(large, tmp_path / "c", held_out=2)) < held_out


def test_equal_lines_are_on_one_side(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("".join(f"line {i % 100}\n" for i in range(1000)))
    corpus = build(path, tmp_path / "out", held_out=20, chunk_bytes=800)
    held_out = held_out_of(corpus)
    assert set(held_out.values()) == {10}
    assert not held_out & Counter(sentences(corpus))


def test_text_is_never_held_out_as_a_whole(tmp_path: Path) -> None:
    line = next(line for i in range(99) if hash_line(line := f"line {i}") < 2**63)
    path = tmp_path / "x"
    path.write_text(f"{line}\n" * 3)
    corpus = build(path, tmp_path / "one", held_out=50)
    assert (corpus.train.sentences, corpus.valid) == (3, None)
    assert corpus.counts.sum() == 6
    path.write_text(f"{line}\n" * 3 + "".join(f"other {i}\n" for i in range(20)))
    assert held_out_of(build(path, tmp_path / "more", held_out=50))[line] == 3


def test_given_held_out_text_is_not_trained_on(large: Path, tmp_path: Path) -> None:
    valid = tmp_path / "valid.txt"
    valid.write_text("Held out .")
    corpus = build(tmp_path, tmp_path / "out", valid=[str(valid)])
    assert corpus.valid is not None
    assert sentences(corpus, corpus.valid) == ["Held out ."]
    assert "Held out ." not in sentences(corpus)
    assert corpus.train.sentences == 4000
    assert [source["split"] for source in corpus.metadata["sources"]] == ["train", "valid"]
    with pytest.raises(InputError, match="no text to train on"):
        build(valid, tmp_path / "other", valid=[str(valid)])


# -- the same however it is made -------------------------------------------------------------------


def test_processes_do_not_change_the_result(large: Path, tmp_path: Path) -> None:
    one = build(large, tmp_path / "one", held_out=3, chunk_bytes=8000)
    two = build(large, tmp_path / "two", held_out=3, chunk_bytes=8000, processes=2)
    assert one.fingerprint == two.fingerprint
    for path in one.path.iterdir():
        assert path.read_bytes() == (two.path / path.name).read_bytes(), path.name


def test_chunks_do_not_change_the_text(large: Path, tmp_path: Path) -> None:
    prints = {
        build(large, tmp_path / str(size), chunk_bytes=size).fingerprint
        for size in (700, 5000, 1 << 20)
    }
    assert len(prints) == 1


def test_the_fingerprint_is_of_the_content(large: Path, tmp_path: Path) -> None:
    plain = build(large, tmp_path / "plain")
    packed = tmp_path / "large.gz"
    packed.write_bytes(gzip.compress(large.read_bytes()))
    assert build(packed, tmp_path / "packed").fingerprint == plain.fingerprint
    large.write_text(large.read_text() + "\nMore.")
    assert build(large, tmp_path / "more").fingerprint != plain.fingerprint


def test_many_small_files_share_chunks(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(30):
        (folder / f"{i:02}").write_text(f"text {i}")
    (folder / "empty").touch()
    made: list[int] = []
    corpus = build(folder, tmp_path / "out", on_chunk=lambda *told: made.append(told[0]))
    assert sentences(corpus) == [f"text {i}" for i in range(30)]
    assert len(made) == 1
    assert len(corpus.metadata["sources"]) == 31


def test_the_manifest_says_where_it_comes_from(text: Path, tmp_path: Path) -> None:
    about = build(text, tmp_path / "out", size=9).metadata
    assert about["sources"] == [
        {
            "name": str(text),
            "split": "train",
            "bytes": len(TEXT),
            "sha256": hashlib.sha256(TEXT.encode()).hexdigest(),
        }
    ]
    assert about["elmokit"] == elmokit.__version__
    assert (about["options"]["size"], about["options"]["vocabulary"]) == (9, "made")
    assert (about["vocabulary"], about["valid"]) == (9, None)
    assert about["train"]["tokens"] == 33
    assert about["train"]["distinct"] == about["words"] - 3


def test_progress_is_told_in_bytes_and_words(large: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int | None, int]] = []
    corpus = build(
        large, tmp_path / "out", chunk_bytes=9000, on_chunk=lambda *args: told.append(args)
    )
    size = large.stat().st_size
    assert [total for _, total, _ in told] == [size] * len(told)
    assert len(told) > 5
    assert told == sorted(told)
    assert (told[-1][0], told[-1][2]) == (size, corpus.train.tokens)


# -- what goes wrong -------------------------------------------------------------------------------


def test_empty_text_is_refused(text: Path, tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    for content in ("", "\n \n\n"):
        path.write_text(content)
        with pytest.raises(InputError, match=r"no words in .*empty\.txt"):
            build(path, tmp_path / "out")
        with pytest.raises(InputError, match=r"no words in .*empty\.txt"):
            build(text, tmp_path / "out", valid=[str(path)])


def test_the_corpus_is_not_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one text")
    for _ in range(2):
        corpus = build(tmp_path, tmp_path / "out", force=True)
        assert sentences(corpus) == ["one text"]


@pytest.mark.parametrize("processes", [1, 2])
def test_interrupted_it_leaves_nothing(large: Path, tmp_path: Path, processes: int) -> None:
    def interrupt(position: int, total: int | None, words: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(large, tmp_path / "out", on_chunk=interrupt, chunk_bytes=9000, processes=processes)
    assert [path.name for path in tmp_path.iterdir()] == ["large.txt"]


def test_an_error_in_a_worker_names_file_and_line(large: Path, tmp_path: Path) -> None:
    large.write_bytes(large.read_bytes() + b"\nna\xefve\n")
    with pytest.raises(InputError, match=r"large\.txt, line 2001 is not UTF-8"):
        build(large, tmp_path / "out", chunk_bytes=9000, processes=2)
    assert [path.name for path in tmp_path.iterdir()] == ["large.txt"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size is 0"),
        ({"min_count": -1}, "min_count is -1"),
        ({"size": 10, "words": 9}, "words is 9; expected at least"),
        ({"held_out": 51}, "held_out is 51"),
        ({"form": "html"}, "form is 'html'"),
    ],
)
def test_options_that_cannot_be(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CorpusOptions(**options)  # type: ignore[arg-type]
