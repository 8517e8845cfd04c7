"""The room as its user sees it: what goes in comes out, in every format, and faults are named."""

import re
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elmokit.errors import ElmoError, InputError, MissingExtra
from elmokit.vectors import hdf5, load_vectors, open_writer, parquet, save_vectors

SUFFIXES = [".h5", ".hdf5", ".npz", ".parquet"]


def sentences(count, layers=3, dim=5, seed=0):
    random = np.random.default_rng(seed)
    for i in range(count):
        shape = (layers, i % 4, dim) if layers else (i % 4, dim)
        yield [f"w{i}.{k}" for k in range(i % 4)], random.normal(size=shape).astype(np.float32)


def equal(path, pairs, dtype=np.float32):
    with load_vectors(path) as vectors:
        assert len(vectors) == len(pairs)
        for (words, array), (found_words, found) in zip(pairs, vectors.items(), strict=True):
            assert found_words == words
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, array.astype(dtype), strict=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("layers", [0, 1, 3])
def test_what_goes_in_comes_out_in_order(tmp_path, suffix, layers):
    # More than ten: HDF5 and ZIP would sort "10" before "2".
    pairs = list(sentences(25, layers))
    path = tmp_path / f"v{suffix}"
    assert save_vectors(pairs, path, signature={"model": "m", "layers": [1, 2]}) == 25
    equal(path, pairs)
    assert load_vectors(path).signature == {"model": "m", "layers": [1, 2]}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


words_strategy = st.lists(st.text(st.characters(codec=None), max_size=4), max_size=4)


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".parquet"])
@settings(max_examples=40, deadline=None)
@example([["\ud800", "\x00", "\udfff x", "", " ", "\n", "😀", '"', "\u2028"]], 2, 3)
@example([[], []], 0, 1)
@example([], 0, 1)
@given(st.lists(words_strategy, max_size=4), st.integers(0, 3), st.integers(1, 3))
def test_any_words_and_shapes(suffix, texts, layers, dim):
    # JSON knows no difference between a surrogate pair and the character that it spells.
    texts = [[re.sub("[\ud800-\udbff](?=[\udc00-\udfff])", "", w) for w in ws] for ws in texts]
    shapes = [((layers,) if layers else ()) + (len(words), dim) for words in texts]
    random = np.random.default_rng(0)
    pairs = [
        (words, random.normal(size=shape).astype(np.float32))
        for words, shape in zip(texts, shapes, strict=True)
    ]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"v{suffix}"
        save_vectors(pairs, path)
        equal(path, pairs)


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".parquet"])
def test_a_surrogate_pair_comes_back_as_its_character_and_resumes(tmp_path, suffix):
    path = tmp_path / f"v{suffix}"
    pair = (["\ud83d\ude00"], np.ones((1, 2), np.float32))
    interrupt(path, [pair])
    assert save_vectors([pair], path) == 1
    assert load_vectors(path).words(0) == ["😀"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bits_are_kept(tmp_path, suffix):
    odd = np.array([[np.nan, np.inf, -0.0, 1e-45, 3.4e38]], np.float32)
    save_vectors([(["w"], odd)], tmp_path / f"v{suffix}")
    assert load_vectors(tmp_path / f"v{suffix}")[0].tobytes() == odd.tobytes()


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".parquet"])
def test_equal_input_gives_equal_bytes(tmp_path, suffix):
    one, two = tmp_path / f"1{suffix}", tmp_path / f"2{suffix}"
    save_vectors(sentences(12), one)
    time.sleep(1.1)  # HDF5 and ZIP can store times, in seconds
    save_vectors(sentences(12), two)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_float16(tmp_path, suffix):
    path = tmp_path / f"v{suffix}"
    pairs = list(sentences(12))
    save_vectors(pairs, path, dtype="float16")
    equal(path, pairs, np.float16)


@pytest.mark.parametrize("value", [65520.0, -1e30, np.nan, np.inf])
def test_float16_refuses_what_it_cannot_hold(tmp_path, value):
    bad = np.array([[1.0, value]], np.float32)
    with pytest.raises(InputError, match=r"sentence 1 has the value .*float16 cannot represent"):
        save_vectors([(["a"], np.full((1, 2), 65504, np.float32)), (["b"], bad)], tmp_path / "v.h5",
             dtype="float16")  # fmt: skip
    assert not (tmp_path / "v.h5").exists()


def test_float16_that_comes_broken_is_refused_too(tmp_path):
    with pytest.raises(InputError, match=r"sentence 0 has the value nan.*the vectors are invalid"):
        save_vectors(
            [(["a"], np.array([[np.nan]], np.float16))], tmp_path / "v.h5", dtype="float16"
        )


def test_float64_is_narrowed_only_where_it_fits(tmp_path):
    save_vectors([(["a"], np.array([[0.5]]))], tmp_path / "v.npz")
    assert load_vectors(tmp_path / "v.npz")[0].dtype == np.float32
    with pytest.raises(InputError, match=r"1e\+300, which float32 cannot represent"):
        save_vectors([(["a"], np.array([[1e300]]))], tmp_path / "w.npz")


def test_any_memory_order_is_stored_the_same(tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    odd = [np.asfortranarray(array), array.astype(">f4"), np.repeat(array, 2, 2)[:, :, ::2]]
    save_vectors([(["a", "b"], each) for each in odd], tmp_path / "v.npz")
    for found in load_vectors(tmp_path / "v.npz"):
        np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("words", "array", "message"),
    [
        (["a"], np.ones((1, 4), np.float32), "sentence 1 .*shape .1, 4.*before it .T, 3"),
        (["a"], np.ones((2, 1, 3), np.float32), r"sentence 1 .*before it \(T, 3\)"),
        (["a", "b"], np.ones((1, 3), np.float32), "sentence 1 has 2 words, but vectors for 1"),
        (["a"], np.ones(3, np.float32), "sentence 1 has vectors of shape"),
        (["a"], np.ones((0, 1, 3), np.float32), "sentence 1 has vectors of shape"),
        (["a"], np.ones((1, 3), np.int32), "sentence 1: the vectors are int32"),
        (["a"], [[1.0, 2.0, 3.0]], "sentence 1: the vectors are list"),
        ("a", np.ones((1, 3), np.float32), "sentence 1 is 'a'; expected its words"),
        ([b"a"], np.ones((1, 3), np.float32), "sentence 1 is .b'a'.; expected its words"),
        (None, np.ones((1, 3), np.float32), "sentence 1 is None; expected its words"),
    ],
)
def test_wrong_sentences_are_named(tmp_path, words, array, message):
    with (
        pytest.raises(InputError, match=message),
        open_writer(tmp_path / "v.h5") as out,
    ):
        out.write(["a"], np.ones((1, 3), np.float32))
        out.write(words, array)


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("v.txt", {}, r"'.txt'; expected one of .h5, .hdf5, .npz, .parquet"),
        ("v", {}, "expected one of"),
        ("missing/v.h5", {}, "does not exist; create it"),
        ("v.h5", {"dtype": "float64"}, "'float64'; expected one of 'float32', 'float16'"),
        ("v.h5", {"signature": {"a": object()}}, "cannot be stored as JSON"),
        ("v.h5", {"signature": {"a": float("nan")}}, "cannot be stored as JSON"),
        ("directory.h5", {}, "is a directory"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, path, options, message):
    (tmp_path / "directory.h5").mkdir()
    with pytest.raises(InputError, match=message):
        open_writer(tmp_path / path, **options)
    assert [p.name for p in tmp_path.iterdir()] == ["directory.h5"]


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(InputError, match="expected one of"):
        load_vectors(tmp_path / "v.txt")
    with pytest.raises(InputError, match=r"v\.h5 does not exist or is not a file$"):
        load_vectors(tmp_path / "v.h5")
    interrupt(tmp_path / "v.h5", list(sentences(3)))
    with pytest.raises(InputError, match="it is unfinished: run the same command again"):
        load_vectors(tmp_path / "v.h5")


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".parquet"])
def test_vectors_are_a_good_sequence(tmp_path, suffix):
    pairs = list(sentences(25))
    arrays = [array for _, array in pairs]
    save_vectors(pairs, tmp_path / f"v{suffix}")
    vectors = load_vectors(tmp_path / f"v{suffix}")
    for key in [0, 24, -1, -25, np.int64(11)]:
        np.testing.assert_array_equal(vectors[key], arrays[key])
        assert vectors.words(key) == pairs[key][0]
    for key in [25, -26]:
        with pytest.raises(IndexError):
            vectors[key]
        with pytest.raises(IndexError):
            vectors.words(key)
    for key in [slice(3, 12), slice(None, None, -1), slice(-3, None), slice(30, 40)]:
        view = vectors[key]
        assert len(view) == len(arrays[key])
        for found, expected in zip(view, arrays[key], strict=True):
            np.testing.assert_array_equal(found, expected)
    assert vectors[2:20][::3].words(-1) == pairs[2:20][::3][-1][0]
    assert [a.shape for a in reversed(vectors)] == [a.shape for a in reversed(arrays)]
    assert repr(vectors).endswith("25 sentences)")
    changed = vectors[1]
    changed[:] = 7  # what a user does with an array does not reach the file or the next reader
    np.testing.assert_array_equal(vectors[1], arrays[1])
    view = vectors[1:]
    vectors.close()
    for use in [lambda: vectors[0], lambda: view[0], lambda: vectors.words(0)]:
        with pytest.raises(InputError, match="is closed"):
            use()


def interrupt(path, pairs, **options):
    """A run that stored some sentences and was stopped."""
    with pytest.raises(KeyboardInterrupt), open_writer(path, **options) as out:
        for words, array in pairs:
            out.write(words, array)
        raise KeyboardInterrupt


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("stop", [1, 7, 12])
def test_interrupted_and_continued_gives_the_same_bytes(tmp_path, suffix, stop):
    path, whole = tmp_path / f"v{suffix}", tmp_path / f"whole{suffix}"
    pairs = list(sentences(12))
    save_vectors(pairs, whole)
    interrupt(path, pairs[:stop])
    assert not path.exists()
    with open_writer(path) as out:
        assert out.done == stop
        for words, _ in pairs[:stop]:
            out.skip(words)
        for words, array in pairs[stop:]:
            out.write(words, array)
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, whole.name])


def test_another_signature_is_refused_by_its_keys(tmp_path):
    path = tmp_path / "v.h5"
    pairs = list(sentences(5))
    interrupt(path, pairs[:3], signature={"model": "a", "same": 1, "old": None})
    with pytest.raises(InputError) as caught:
        save_vectors(pairs, path, signature={"model": "b", "same": 1, "new": 2}, dtype="float16")
    message = str(caught.value)
    assert 'model was "a", is "b"' in message
    assert "old was null, is absent" in message
    assert "new was absent, is 2" in message
    assert """the file's dtype was "float32", is "float16\"""" in message
    assert "same" not in message.split("(")[1].split(")")[0]
    assert "restart=True" in message and "--restart" in message
    # Refusing destroyed nothing, and restart is what it says.
    with open_writer(path, signature={"model": "a", "same": 1, "old": None}) as out:
        assert out.done == 3
        for words, _ in pairs[:3]:
            out.skip(words)
    interrupt(tmp_path / "w.h5", pairs[:3], signature={"model": "a"})
    save_vectors(pairs, tmp_path / "w.h5", signature={"model": "b"}, restart=True)
    assert load_vectors(tmp_path / "w.h5").signature == {"model": "b"}
    equal(tmp_path / "w.h5", pairs)


def test_long_signatures_that_differ_at_their_end_are_shown_to_differ(tmp_path):
    interrupt(tmp_path / "v.h5", list(sentences(3)), signature={"mix": [0] * 999 + [1]})
    with pytest.raises(InputError, match=r"mix was .*crc (\w+).*, is .*crc (?!\1)"):
        open_writer(tmp_path / "v.h5", signature={"mix": [0] * 999 + [2]})


def test_a_run_that_stored_nothing_leaves_nothing(tmp_path):
    with pytest.raises(RuntimeError), open_writer(tmp_path / "v.h5", signature={"m": 1}):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_changed_input_is_named(tmp_path):
    path = tmp_path / "v.h5"
    pairs = list(sentences(8))
    interrupt(path, pairs[:6])
    changed = [*pairs[:5], (["other"], pairs[5][1]), *pairs[6:]]
    with pytest.raises(InputError, match=r"sentence 5 .*found \['other'\], stored \['w5.0'\]"):
        save_vectors(changed, path)
    with pytest.raises(InputError, match=r"ended after 4 sentences, .*stored 6"):
        save_vectors(pairs[:4], path)
    with (
        pytest.raises(InputError, match="only 1 of them were skipped"),
        open_writer(path) as out,
    ):
        out.skip(pairs[0][0])
        out.write(*pairs[1])
    with pytest.raises(InputError, match="not stored yet"), open_writer(path) as out:
        for words, _ in pairs[:7]:
            out.skip(words)
    with pytest.raises(InputError, match=r"sentence 6 .*before it \(3, T, 5\)"):
        save_vectors([*pairs[:6], ([], np.ones((0, 5), np.float32))], path)
    save_vectors(pairs, path)
    equal(path, pairs)


def test_a_finished_file_is_replaced_only_when_allowed(tmp_path):
    path = tmp_path / "v.npz"
    old, new = list(sentences(5)), list(sentences(7, seed=1))
    save_vectors(old, path)
    for options in [{}, {"restart": True}]:
        with pytest.raises(InputError, match=r"exists; .*overwrite=True"):
            save_vectors(new, path, **options)
        assert [p.name for p in tmp_path.iterdir()] == ["v.npz"]
    interrupt(path, new[:3], overwrite=True)
    equal(path, old)  # untouched until the new one is whole
    for options in [{}, {"restart": True}]:
        with pytest.raises(InputError, match="exists"):
            save_vectors(new, path, **options)
    with open_writer(path, overwrite=True) as out:
        assert out.done == 3  # the refusals cost nothing
        for words, _ in new[:3]:
            out.skip(words)
        for words, array in new[3:]:
            out.write(words, array)
    equal(path, new)


def test_two_writers_do_not_interleave(tmp_path):
    pytest.importorskip("fcntl")
    path = tmp_path / "v.h5"
    pairs = list(sentences(4))
    with open_writer(path) as out:
        out.write(*pairs[0])
        with pytest.raises(InputError, match="another process"):
            open_writer(path, restart=True)
        with pytest.raises(InputError, match="another process"):
            open_writer(path, overwrite=True)
        for pair in pairs[1:]:
            out.write(*pair)
    equal(path, pairs)


def peaks(path, count):
    """The most memory that writing took, and that reading took."""
    words = ["a", "b", "c", "d"]
    array = np.ones((3, 4, 64), np.float32)
    tracemalloc.start()
    try:
        with open_writer(path) as out:
            for i in range(count):
                words[0] = f"w{i}"
                out.write(words, array)
        writing = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        with load_vectors(path) as vectors:
            assert sum(a.shape[1] for a in vectors) == 4 * count
        return writing, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".h5", ".npz", ".parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, suffix):
    # Bounds that the short run reaches too; the data of the long one is 25 MB.
    monkeypatch.setattr(hdf5, "SENTENCE_INDEX_BYTES", 50_000)
    monkeypatch.setattr(hdf5, "_BATCH_BYTES", 50_000)
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 1 << 20)
    peaks(tmp_path / f"warm{suffix}", 10)
    short = peaks(tmp_path / f"short{suffix}", 1_000)
    long = peaks(tmp_path / f"long{suffix}", 8_000)
    assert long[0] < short[0] + 200_000
    # What there is of a file as a whole: the names of the entries, or the footer with its groups.
    table = {".h5": 0, ".npz": 7_000 * 700, ".parquet": 24 * 15_000}[suffix]
    assert long[1] < short[1] + table + 200_000


def test_importing_the_room_is_light():
    code = "import sys, elmokit.vectors; print({'h5py', 'pyarrow'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_without_pyarrow_the_pip_command_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elmokit\[parquet\]'") as caught:
        open_writer(tmp_path / "v.parquet")
    assert isinstance(caught.value, ElmoError)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "v.parquet").write_bytes(b"")
    with pytest.raises(MissingExtra):
        load_vectors(tmp_path / "v.parquet")
