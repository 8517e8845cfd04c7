"""The .npz layout as NumPy and zipfile see it, and damaged files."""

import json
import struct
import zipfile

import numpy as np
import pytest

from elmokit.errors import FormatError
from elmokit.vectors import load_vectors, save_vectors


def sentences(count):
    for i in range(count):
        yield [f"w{i}.{k}" for k in range(i % 4)], np.full((3, i % 4, 2), i, np.float32)


@pytest.fixture
def path(tmp_path):
    save_vectors(sentences(12), tmp_path / "v.npz", signature={"model": "é"})
    return tmp_path / "v.npz"


def test_numpy_reads_it_without_pickle(path):
    with np.load(path, allow_pickle=False) as file:
        assert file.files == [
            *map(str, range(12)),
            "lengths",
            "words",
            "signature",
            "job",
            "layout",
        ]
        for i, (words, array) in enumerate(sentences(12)):
            np.testing.assert_array_equal(file[str(i)], array, strict=True)
            assert json.loads(bytes(file["words"]).splitlines()[i]) == words
        assert file["lengths"].tolist() == [i % 4 for i in range(12)]
        assert json.loads(str(file["signature"])) == {"model": "é"}
        assert file["layout"] == 1


def test_zipfile_finds_nothing_wrong(path):
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert all(info.file_size == info.compress_size > 0 for info in file.infolist())
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_the_headers_before_the_entries_agree_with_the_directory(path):
    """Python reads only the directory, other programs read these."""
    content = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        for info in file.infolist():
            name = info.filename.encode()
            head = content[info.header_offset :][: 30 + len(name) + 20]
            assert head[:4] == b"PK\x03\x04" and head[30 : 30 + len(name)] == name
            assert struct.unpack("<I", head[14:18]) == (info.CRC,)
            extra = struct.unpack("<HHQQ", head[30 + len(name) :])
            assert extra == (1, 16, info.file_size, info.file_size)


def test_more_entries_than_a_plain_zip_can_count(tmp_path):
    count = 66_000
    array = np.zeros((0, 1), np.float32)
    save_vectors((([], array) for _ in range(count)), tmp_path / "v.npz")
    with zipfile.ZipFile(tmp_path / "v.npz") as file:
        assert len(file.namelist()) == count + 5
        assert file.read(f"{count - 1}.npy").startswith(b"\x93NUMPY")


def test_words_out_of_order(path):
    vectors = load_vectors(path)
    expected = [words for words, _ in sentences(12)]
    for i in [11, 0, 7, 7, 3, 10]:
        assert vectors.words(i) == expected[i]


def test_numpys_own_files_are_read_in_the_order_of_numbers(tmp_path):
    for write in [np.savez, np.savez_compressed]:
        arrays = {str(i): np.full((2, 3), i, np.float16) for i in reversed(range(12))}
        write(tmp_path / "v.npz", **arrays)
        with load_vectors(tmp_path / "v.npz") as vectors:
            assert [int(array[0, 0]) for array in vectors] == list(range(12))
            assert vectors.words(0) is None and vectors.signature is None


def test_a_compressed_copy_reads_the_same(path, tmp_path):
    with (
        zipfile.ZipFile(path) as old,
        zipfile.ZipFile(tmp_path / "c.npz", "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    for (words, array), (found_words, found) in zip(
        sentences(12), load_vectors(tmp_path / "c.npz").items(), strict=True
    ):
        assert words == found_words
        np.testing.assert_array_equal(array, found)


def rewrite(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"3": None}, "holds 11 sentences, but 12 according to the index; number 3 is missing"),
        ({"12": np.ones((1, 2))}, "holds 13 sentences, but 12 according to the index"),
        ({"lengths": np.array(3)}, "index cannot be read"),
        ({"signature": np.array("{")}, "index cannot be read"),
        ({"signature": None}, "index cannot be read"),
        ({"layout": np.array(99)}, "layout 99.*pip install -U"),
        ({"layout": np.array([{}], dtype=object)}, "index cannot be read"),
    ],
)
def test_a_broken_index_is_found_on_opening(path, changes, message):
    rewrite(path, **changes)
    with pytest.raises(FormatError, match=message):
        load_vectors(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3, np.float32), "sentence 3 is float32 of shape .3,"),
        (np.ones((3, 3, 2), np.int32), "sentence 3 is int32"),
        (np.ones((3, 2, 2), np.float32), "sentence 3 .*has 3 words according to the index"),
        (np.array([[{}]], dtype=object), "sentence 3 of 12 cannot be read: .*pickle"),
    ],
)
def test_a_broken_sentence_is_named(path, array, message):
    rewrite(path, **{"3": array})
    vectors = load_vectors(path)
    assert vectors[2].shape == (3, 2, 2)
    with pytest.raises(FormatError, match=message):
        vectors[3]


@pytest.mark.parametrize("text", [b"[]\n" * 11, b"[]\n" * 12, b"[\n" * 12, b""])
def test_broken_words_are_named(path, text):
    rewrite(path, words=np.frombuffer(text, np.uint8))
    with pytest.raises(FormatError, match="sentence 3"):
        load_vectors(path).words(3)


def test_a_changed_byte_is_noticed(path):
    content = bytearray(path.read_bytes())
    content[content.index(np.full(4, 3, np.float32).tobytes())] ^= 1
    path.write_bytes(content)
    vectors = load_vectors(path)
    with pytest.raises(FormatError, match="sentence 3 of 12 cannot be read: Bad CRC"):
        vectors[3]


def test_not_a_zip_and_cut_off(path):
    whole = path.read_bytes()
    for content in [b"", b"hello", whole[: len(whole) // 2], whole[:-1]]:
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"cannot be read as an \.npz file"):
            load_vectors(path)
