"""The HDF5 layout, AllenNLP's plain one, and damaged files."""

import json
import random

import h5py
import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.vectors import hdf5, load_vectors, open_writer, save_vectors


def sentences(count, dim=4):
    for i in range(count):
        words = [f"w{i}.{k}" for k in range(i % 4)]
        yield words, np.full((3, i % 4, dim), i, np.float32)


@pytest.fixture
def path(tmp_path):
    save_vectors(sentences(12), tmp_path / "v.h5", signature={"model": "m"})
    return tmp_path / "v.h5"


def test_layout(path):
    with h5py.File(path) as file:
        assert sorted(file) == sorted([*map(str, range(12)), "elmokit", "sentence_to_index"])
        assert file["11"].shape == (3, 3, 4) and file["11"].dtype == "<f4"
        assert (file["11"][()] == 11).all()
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
        assert index["w11.0 w11.1 w11.2"] == "11"
        assert index[""] == "8"  # the last of equal sentences, as in AllenNLP's dict
        assert list(file["elmokit/lengths"]) == [i % 4 for i in range(12)]
        assert json.loads(file["elmokit/words"][2]) == ["w2.0", "w2.1"]
        assert h5py.check_string_dtype(file["elmokit/words"].dtype).encoding == "utf-8"
        assert json.loads(file["elmokit"].attrs["signature"]) == {"model": "m"}
        assert file["elmokit"].attrs["layout"] == 1  # without ids


def content_of(path):
    with load_vectors(path) as vectors:
        rows = [(words, array.dtype, array.tolist()) for words, array in vectors.items()]
        return vectors.signature, vectors.ids, rows


@pytest.mark.parametrize("ids", [False, True])
def test_flipped_bits_are_noticed(tmp_path, ids):
    path = tmp_path / "v.h5"
    with open_writer(path, signature={"model": "m"}, ids=ids) as out:
        for i, (words, array) in enumerate(sentences(5)):
            out.write(words, array, id=f"P{i}" if ids else None)
    wanted, whole = content_of(path), path.read_bytes()
    refused = 0
    for place in random.Random(0).sample(range(len(whole)), 100):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert content_of(path) == wanted, place
        except FormatError:
            refused += 1
    assert refused > 10
    for array in (np.full((3, 1, 4), 1, np.float32), np.full((3, 1, 4), 7, np.float16)):
        path.write_bytes(whole)
        with h5py.File(path, "r+") as file:
            del file["1"]
            file["1"] = array
        if array.dtype == np.float32:
            assert content_of(path) == wanted
        else:
            with pytest.raises(FormatError, match="checksum of the vectors of sentence 1"):
                content_of(path)


def test_a_changed_index_is_noticed(path):
    with h5py.File(path, "r+") as file:
        file["elmokit"].attrs["signature"] = json.dumps({"model": "other"})
    with pytest.raises(FormatError, match="checksum of its index"):
        load_vectors(path)


def test_files_without_checksums_are_read(path):
    wanted = content_of(path)
    with h5py.File(path, "r+") as file:
        del file["elmokit/checksums"], file["elmokit"].attrs["checksum"]
        for name in ("signature", "job"):  # as earlier versions wrote them
            file["elmokit"].attrs[name] = file["elmokit"].attrs[name].decode()
    assert content_of(path) == wanted
    assert load_vectors(path)._reader.job is not None


def test_a_heap_that_never_ends_is_refused(path):
    # The HDF5 library would loop for ever.
    data = path.read_bytes()
    entry = data.index(b"GCOL\1\0\0\0") + 16
    path.write_bytes(data[:entry] + bytes(16) + data[entry + 16 :])
    with load_vectors(path) as vectors, pytest.raises(FormatError, match="a string has 0 bytes"):
        vectors.words(0)


def test_a_long_signature_fits(tmp_path):
    signature = {"long": "x" * 200_000}  # beyond the 64 kB of a plain HDF5 attribute
    save_vectors(sentences(2), tmp_path / "v.h5", signature=signature)
    assert load_vectors(tmp_path / "v.h5").signature == signature


def test_sentence_to_index_is_left_out_when_it_grows_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "SENTENCE_INDEX_BYTES", 1000)
    save_vectors(sentences(5), tmp_path / "small.h5")
    save_vectors(sentences(12), tmp_path / "large.h5")
    assert "sentence_to_index" in h5py.File(tmp_path / "small.h5")
    assert "sentence_to_index" not in h5py.File(tmp_path / "large.h5")
    assert load_vectors(tmp_path / "large.h5").words(11) == ["w11.0", "w11.1", "w11.2"]


def test_many_batches_of_words(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "_BATCH_BYTES", 500)
    save_vectors(sentences(33), tmp_path / "v.h5")
    with load_vectors(tmp_path / "v.h5") as vectors:
        assert [vectors.words(i) for i in range(33)] == [words for words, _ in sentences(33)]
        assert len(vectors) == 33


def plain(path, texts, with_index=True, **changes):
    """What AllenNLP's `elmo` command writes."""
    with h5py.File(path, "w") as file:
        for i, text in enumerate(texts):
            shape = (3, len(text.split()), 4)
            file.create_dataset(str(i), shape, dtype="float32", data=np.full(shape, i))
        if with_index:
            index = file.create_dataset("sentence_to_index", (1,), h5py.special_dtype(vlen=str))
            index[0] = json.dumps({text: str(i) for i, text in enumerate(texts)})
    return path


def test_allennlp_files_are_read_in_the_order_of_numbers(tmp_path):
    texts = [f"line {i} é" for i in range(23)]
    with load_vectors(plain(tmp_path / "v.hdf5", texts)) as vectors:
        assert vectors.signature is None
        assert [int(array[0, 0, 0]) for array in vectors] == list(range(23))
        assert [vectors.words(i) for i in range(23)] == [text.split() for text in texts]


def test_allennlp_files_do_not_tell_all_words(tmp_path):
    vectors = load_vectors(plain(tmp_path / "v.hdf5", ["the same", "other", "the same"]))
    assert [words for words, _ in vectors.items()] == [None, ["other"], ["the", "same"]]
    vectors = load_vectors(plain(tmp_path / "w.hdf5", ["the same", "other"], with_index=False))
    assert [words for words, _ in vectors.items()] == [None, None]
    with h5py.File(plain(tmp_path / "x.hdf5", ["a b"]), "r+") as file:
        file["sentence_to_index"][0] = json.dumps({"a b c": "0"})
    assert load_vectors(tmp_path / "x.hdf5").words(0) is None


def test_one_layer_of_allennlp(tmp_path):
    with h5py.File(tmp_path / "v.hdf5", "w") as file:
        file["0"] = np.ones((5, 4), np.float32)
    assert load_vectors(tmp_path / "v.hdf5")[0].shape == (5, 4)


def edit(path, change):
    with h5py.File(path, "r+") as file:
        change(file)


def replace(file, name, value):
    del file[name]
    file[name] = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.__delitem__("3"), "holds vectors of 11 sentences .* 12 according to"),
        (lambda f: f.__delitem__("elmokit/lengths"), "elmokit/lengths is missing"),
        (lambda f: f.__delitem__("elmokit/words"), "elmokit/words is missing"),
        (lambda f: f["elmokit"].attrs.__delitem__("signature"), "index cannot be read"),
        (lambda f: f["elmokit"].attrs.__setitem__("signature", "{"), "index cannot be read"),
        (lambda f: f["elmokit"].attrs.__setitem__("layout", 99), "layout 99.*pip install -U"),
        (lambda f: replace(f, "elmokit/words", np.zeros(3)), r"words of the shape \(3,\)"),
    ],
)
def test_a_broken_index_is_found_on_opening(path, change, message):
    edit(path, change)
    with pytest.raises(FormatError, match=message):
        load_vectors(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.move("3", "x"), "sentence 3 of 12 cannot be read"),
        (
            lambda f: replace(f, "3", np.ones((3, 2, 4), np.float32)),
            "sentence 3 .* has 3 words according to the index",
        ),
        (lambda f: replace(f, "3", np.ones(3, np.float32)), "sentence 3 is float32 of shape .3,"),
        (lambda f: replace(f, "3", np.ones((3, 3, 4), np.int32)), "sentence 3 is int32"),
        (lambda f: replace(f, "3", "text"), "sentence 3 is object"),
        (lambda f: (f.__delitem__("3"), f.create_group("3")), "sentence 3 of 12 cannot be read"),
    ],
)
def test_a_broken_sentence_is_named(path, change, message):
    edit(path, change)
    vectors = load_vectors(path)
    assert vectors[2].shape == (3, 2, 4)
    with pytest.raises(FormatError, match=message):
        vectors[3]


@pytest.mark.parametrize("text", ["[", '["one"]', "3", "[1, 2, 3]", '"abc"', '{"a": 1}'])
def test_broken_words_are_named(path, text):
    edit(path, lambda f: f["elmokit/words"].__setitem__(3, text))
    with pytest.raises(FormatError, match="sentence 3"):
        load_vectors(path).words(3)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: replace(f, "elmokit/lengths", np.zeros((12, 2), np.int32)),
        lambda f: replace(f, "elmokit/lengths", np.zeros(12, np.float32)),
        lambda f: f["elmokit"].attrs.__setitem__("signature", "[]"),
        lambda f: f["elmokit"].attrs.__setitem__("job", 3),
    ],
)
def test_an_index_of_something_else_is_refused(path, change):
    with h5py.File(path, "r+") as file:
        del file["elmokit/checksums"], file["elmokit"].attrs["checksum"]
        change(file)
    with pytest.raises(FormatError, match="is damaged"):
        load_vectors(path)


@pytest.mark.parametrize("ids", [np.array([b"a"]), np.array([[b"a", b"b"]]), np.array([1, 2])])
def test_ids_of_other_sentences_are_refused(tmp_path, ids):
    with open_writer(tmp_path / "v.h5", ids=True) as writer:
        for i in range(2):
            writer.write(["w"], np.ones((1, 4), np.float32), id=f"id {i}")
    edit(tmp_path / "v.h5", lambda f: replace(f, "elmokit/ids", ids))
    with load_vectors(tmp_path / "v.h5") as vectors, pytest.raises(FormatError, match="ids"):
        vectors.ids  # noqa: B018


def test_not_hdf5_and_cut_off(path):
    whole = path.read_bytes()
    for content in [b"", b"hello", whole[: len(whole) // 2], whole[:-1]]:
        path.write_bytes(content)
        with pytest.raises(FormatError, match="cannot be read as HDF5"):
            load_vectors(path)


def test_plain_files_that_cannot_be_ordered(tmp_path):
    path = plain(tmp_path / "v.hdf5", ["a", "b", "c"])
    edit(path, lambda f: f.__delitem__("1"))
    with pytest.raises(FormatError, match="2 sentences up to number 2, but not number 1"):
        load_vectors(path)
    for key in ["a sentence", "01", "²"]:
        edit(plain(path, ["a"]), lambda f, key=key: f.__setitem__(key, np.ones((1, 2))))
        with pytest.raises(FormatError, match=f"the key '{key}'; expected line numbers"):
            load_vectors(path)
    edit(plain(path, ["a"]), lambda f: f["sentence_to_index"].__setitem__(0, "nonsense"))
    with pytest.raises(FormatError, match="index cannot be read"):
        load_vectors(path)


def test_a_plain_file_with_an_empty_index(tmp_path):
    with h5py.File(tmp_path / "plain.hdf5", "w") as file:
        file["0"] = np.ones((2, 3), np.float32)
        file.create_dataset("sentence_to_index", (0,), h5py.string_dtype())
    with pytest.raises(FormatError, match="its index cannot be read"):
        load_vectors(tmp_path / "plain.hdf5")


@pytest.mark.parametrize("kind", ["external link", "soft link", "external data", "virtual"])
def test_nothing_is_read_from_other_files(tmp_path, kind):
    secret, path = tmp_path / "secret.h5", tmp_path / "vectors.h5"
    with h5py.File(secret, "w") as file:
        file["0"] = np.ones((2, 3), np.float32)
    with h5py.File(path, "w") as file:
        if kind == "external link":
            file["0"] = h5py.ExternalLink(str(secret), "/0")
        elif kind == "soft link":
            file["0"] = h5py.SoftLink("/0")
        elif kind == "external data":
            stored = [(str(secret), 0, 24)]
            file.create_dataset("0", (2, 3), np.float32, external=stored)
        else:
            layout = h5py.VirtualLayout((2, 3), np.float32)
            layout[:] = h5py.VirtualSource(str(secret), "0", (2, 3))
            file.create_virtual_dataset("0", layout)
    with load_vectors(path) as vectors, pytest.raises(FormatError, match=r"link|another file"):
        vectors[0]


def test_a_dataset_that_claims_more_than_it_has_takes_no_memory(tmp_path):
    path = tmp_path / "vectors.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("0", (1 << 40, 4), np.float32, chunks=(1, 4))
    with (
        load_vectors(path) as vectors,
        pytest.raises(FormatError, match="not all of its numbers"),
    ):
        vectors[0]
