"""TensorFlow checkpoints: equal to what TensorFlow reads, and clear words about damaged ones."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDEN, random_bilm, small_config

from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError, FormatError, ModelNotFound
from elmokit.formats import tf_checkpoint
from elmokit.formats.crc32c import DEGREE, crc32c, mask_checksum
from elmokit.formats.source import ModelSource
from elmokit.formats.stored_arrays import StoredArray
from elmokit.formats.tf_bundle import TensorBundle, slice_key
from elmokit.formats.tf_index import MAGIC, read_table

TF = GOLDEN / "tf"
MODELS = ("trained", "one_layer", "sharded", "sliced")
TRAINED = "model.ckpt-3"


def read(path: Path, chosen: str = "") -> BiLM:
    return tf_checkpoint.read(ModelSource(path), chosen)


def bent(data: bytes, place: int, bits: int = 0x10) -> bytes:
    """With one byte changed."""
    changed = bytearray(data)
    changed[place] ^= bits
    return bytes(changed)


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TF / "trained", tmp_path / "model"))


# -- a small writer: what TensorFlow writes, and what it would not --------------------------------


def number(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(**fields: int | bytes | list[bytes]) -> bytes:
    """A protocol buffer; `f1=…` is field 1. Four bytes in field 6 are a fixed32."""
    out = b""
    for name, values in fields.items():
        tag = int(name[1:]) << 3
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, int):
                out += number(tag) + number(value)
            elif name == "f6":
                out += number(tag | 5) + value
            else:
                out += number(tag | 2) + number(len(value)) + value
    return out


def entry(array: np.ndarray, offset: int, shard: int = 0, **changes: Any) -> bytes:
    raw = array.tobytes()
    fields: dict[str, Any] = {
        "f1": 1,
        "f2": message(f2=[message(f1=n) for n in array.shape]),
        "f3": shard,
        "f4": offset,
        "f5": len(raw),
        "f6": struct.pack("<I", mask_checksum(crc32c(raw))),
    }
    return message(**(fields | changes))


def block(entries: list[tuple[bytes, bytes]], share: bool = True) -> bytes:
    out, last, restarts = b"", b"", []
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % 16 == 0:
            restarts.append(len(out))
        elif share:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += number(shared) + number(len(key) - shared) + number(len(value))
        out += key[shared:] + value
        last = key
    restarts = restarts or [0]
    return out + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def table(blocks: list[bytes], compression: int = 0) -> bytes:
    """A file of these blocks, sealed with right checksums."""
    out = b""

    def add(content: bytes) -> bytes:
        nonlocal out
        handle = number(len(out)) + number(len(content))
        content += bytes([compression])
        out += content + struct.pack("<I", mask_checksum(crc32c(content)))
        return handle

    handles = [add(content) for content in blocks]
    meta = add(block([]))
    index = add(block([(b"%06d" % i, handle) for i, handle in enumerate(handles)], share=False))
    return out + (meta + index).ljust(40, b"\0") + struct.pack("<Q", MAGIC)


def write(
    directory: Path, tensors: Mapping[str, np.ndarray], prefix: str = "model.ckpt-1", **how: Any
) -> None:
    """A checkpoint of float32 tensors; `how` changes the entry of the tensor `how["of"]`."""
    data, entries = b"", [(b"", how.pop("header", message(f1=1, f3=message(f1=1))))]
    of = how.pop("of", None)
    for name in sorted(tensors):
        changes = how if name == of else {}
        entries.append((name.encode(), entry(tensors[name], len(data), **changes)))
        data += tensors[name].tobytes()
    half = len(entries) // 2
    index = table([block(entries[:half]), block(entries[half:])] if half else [block(entries)])
    directory.mkdir(exist_ok=True)
    (directory / f"{prefix}.index").write_bytes(index)
    (directory / f"{prefix}.data-00000-of-00001").write_bytes(data)


def tensors_of(bilm: BiLM, naming: tf_checkpoint.CellNaming, **how: Any) -> dict[str, np.ndarray]:
    return {
        row.name: np.concatenate([bilm.weights[name] for name in row.ours]).reshape(row.shape)
        for row in tf_checkpoint.checkpoint_layout(bilm.config, naming, **how)
    }


def training_options(bilm: BiLM) -> dict[str, Any]:
    options = bilm.config.to_options()
    options["char_cnn"]["n_characters"] -= 1
    return options


def write_model(directory: Path, **how: Any) -> BiLM:
    bilm = random_bilm(small_config())
    write(directory, tensors_of(bilm, tf_checkpoint.NAMINGS[0]), **how)
    (directory / "options.json").write_text(json.dumps(training_options(bilm)))
    return bilm


# -- as TensorFlow reads them ----------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_equal_to_what_tensorflow_reads(name: str) -> None:
    bilm = read(TF / name)
    values = np.load(TF / name / "values.npz")
    rows = tf_checkpoint.checkpoint_layout(bilm.config, words=len(values["lm/softmax/b"]))
    assert {row.name for row in rows} == set(values)
    for row in rows:
        ours = np.concatenate([bilm.weights[part] for part in row.ours]).reshape(row.shape)
        np.testing.assert_array_equal(ours, values[row.name])
    assert bilm.vocabulary is not None and len(bilm.vocabulary) == 16
    assert bilm.config.extra["n_negative_samples_batch"] == 5
    assert (bilm.config.lstm.projection, bilm.config.char_cnn.projection) == (
        (False, False) if name == "one_layer" else (True, True)
    )


def test_plain_tensors_stay_in_their_file() -> None:
    bundle = TensorBundle(ModelSource(TF / "trained"), TRAINED)
    assert isinstance(bundle.tensor("lm/softmax/W"), StoredArray)
    weights = read(TF / "trained").weights
    assert weights["softmax.weight"] is not weights["softmax.weight"]


def test_the_optimizer_is_in_the_file_and_left_alone() -> None:
    names = TensorBundle(ModelSource(TF / "trained"), TRAINED).names
    assert {"global_step", "lm/char_embed/Adagrad", "train_perplexity"} < set(names)


def test_it_embeds() -> None:
    vectors = Elmo(read(TF / "sharded")).embed([["she", "went", "сидит"]])
    assert vectors[0].shape == (3, 8) and np.isfinite(vectors[0]).all()


def test_the_same_from_an_archive(tmp_path: Path) -> None:
    for name in ("trained", "sharded"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            for file in (TF / name).iterdir():
                archive.write(file, f"folder/{file.name}")
        assert read(tmp_path / f"{name}.zip").fingerprint == read(TF / name).fingerprint


@pytest.mark.parametrize("naming", tf_checkpoint.NAMINGS)
@pytest.mark.parametrize("scope", ["lm/", "my/lm/", ""])
@pytest.mark.parametrize("layers", [1, 3])
def test_every_naming(tmp_path: Path, naming: Any, scope: str, layers: int) -> None:
    bilm = random_bilm(small_config(layers=layers))
    tensors = tensors_of(bilm, naming, scope=scope)
    if naming.many != naming.single:
        assert any("MultiRNNCell" in n or "multi_rnn_cell" in n for n in tensors) == (layers > 1)
    tensors |= {f"{name}/Adagrad": array * 0 for name, array in tensors.items()}
    write(tmp_path, tensors)
    (tmp_path / "options.json").write_text(json.dumps(training_options(bilm)))
    again = read(tmp_path)
    assert again.fingerprint == bilm.fingerprint and again.vocabulary is None
    assert "softmax.weight" not in again.weights


def test_n_characters_of_inference_is_fine_too(trained: Path) -> None:
    options = json.loads((trained / "options.json").read_text())
    options["char_cnn"]["n_characters"] = 262
    (trained / "options.json").write_text(json.dumps(options))
    assert read(trained).fingerprint == read(TF / "trained").fingerprint


def test_slices_of_full_dimensions(tmp_path: Path) -> None:
    """TensorFlow may leave the length of a dimension out: all of it."""
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    extents = [message(f1=[message(f1=a, f2=2), b""]) for a in (0, 2)]
    whole = message(f1=1, f2=message(f2=[message(f1=4), message(f1=3)]), f7=extents)
    keys = [slice_key("t", ((a, 2), (0, -1))) for a in (0, 2)]
    entries = [(b"", message(f1=1))]
    entries += [(key, entry(array[2 * i : 2 * i + 2], 24 * i)) for i, key in enumerate(keys)]
    (tmp_path / "x.index").write_bytes(table([block([*entries, (b"t", whole)])]))
    (tmp_path / "x.data-00000-of-00001").write_bytes(array.tobytes())
    np.testing.assert_array_equal(TensorBundle(ModelSource(tmp_path), "x").tensor("t"), array)


# -- which checkpoint ------------------------------------------------------------------------------


def copy_as(directory: Path, step: str) -> None:
    for file in list(directory.glob(f"{TRAINED}.*")):
        shutil.copy(file, directory / file.name.replace(TRAINED, f"model.ckpt{step}"))


def test_which_checkpoint(trained: Path) -> None:
    for step in ("-12", "-9", ""):
        copy_as(trained, step)

    def chosen(name: str = "") -> str:
        return tf_checkpoint.choose_checkpoint(ModelSource(trained), name)

    def say(text: str) -> None:
        (trained / "checkpoint").write_text(text)

    assert chosen() == "model.ckpt-3"  # as `checkpoint` says
    say('model_checkpoint_path: "/home/author/elmo/model.ckpt-9"\nall_model_checkpoint_paths: "x"')
    assert chosen() == "model.ckpt-9"
    say('model_checkpoint_path: "C:\\\\elmo\\\\model.ckpt-12"')
    assert chosen() == "model.ckpt-12"
    say('all_model_checkpoint_paths: "model.ckpt-9"')
    assert chosen() == "model.ckpt-12"
    (trained / "checkpoint").unlink()
    assert chosen() == "model.ckpt-12"
    assert chosen("model.ckpt-9.index") == chosen("model.ckpt-9.meta") == "model.ckpt-9"
    assert chosen("model.ckpt-9.data-00000-of-00001") == "model.ckpt-9"
    assert chosen("model.ckpt.index") == "model.ckpt"
    assert chosen("options.json") == "model.ckpt-12"
    with pytest.raises(ModelNotFound, match=r"no model\.ckpt-4\.index; found model\.ckpt"):
        chosen("model.ckpt-4.index")
    say('model_checkpoint_path: "model.ckpt-99"')
    with pytest.raises(ModelNotFound, match=r"names 'model\.ckpt-99', which does not exist"):
        chosen()


def test_a_single_checkpoint_needs_no_name(trained: Path) -> None:
    (trained / "checkpoint").write_text('model_checkpoint_path: "../../../etc/passwd"')
    assert tf_checkpoint.choose_checkpoint(ModelSource(trained)) == TRAINED
    (trained / "checkpoint").write_bytes(b"\xff\x00 not a text")
    assert tf_checkpoint.choose_checkpoint(ModelSource(trained)) == TRAINED


def test_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text("{}")
    with pytest.raises(ModelNotFound, match="has no checkpoint: it holds options"):
        read(tmp_path)


def test_options_are_needed(trained: Path) -> None:
    (trained / "options.json").rename(trained / "small_options.json")
    assert read(trained).parameters == 1927
    (trained / "other_options.json").write_text("{}")
    with pytest.raises(FormatError, match=r"expected one options\.json"):
        read(trained)
    for file in trained.glob("*.json"):
        file.unlink()
    with pytest.raises(ModelNotFound, match=r"has no options\.json"):
        read(trained)


# -- the vocabulary --------------------------------------------------------------------------------


def test_vocabulary_that_does_not_fit(trained: Path) -> None:
    (trained / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.warns(RuntimeWarning, match="not used: it has 3 words, the softmax has 16"):
        assert read(trained).vocabulary is None


def test_packed_vocabulary(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (trained / "vocab.txt").read_bytes()
    (trained / "vocab.txt").unlink()
    (trained / "vocab.txt.gz").write_bytes(gzip.compress(data))
    assert read(trained).vocabulary == read(TF / "trained").vocabulary
    with monkeypatch.context() as patch, pytest.raises(FormatError, match="unpacks from"):
        patch.setattr(tf_checkpoint, "SMALL_VOCABULARY", 0)
        (trained / "vocab.txt.gz").write_bytes(gzip.compress(b"word\n" * 10_000))
        read(trained)
    (trained / "vocab.txt.gz").write_bytes(gzip.compress(data)[:-12])
    with pytest.raises(FormatError, match="cannot be unpacked"):
        read(trained)


# -- something else --------------------------------------------------------------------------------


def test_no_bilm(tmp_path: Path) -> None:
    (tmp_path / "options.json").write_text(
        json.dumps(training_options(random_bilm(small_config())))
    )
    write(tmp_path, {f"bert/layer_{i}/kernel": np.ones(2, np.float32) for i in range(9)})
    with pytest.raises(FormatError, match=r"not a biLM.*bert/layer_0/kernel.* and 3 more"):
        read(tmp_path)
    write(tmp_path, {"lm/char_embed": np.ones((261, 5), np.float32)})
    with pytest.raises(FormatError, match=r"not a biLM: expected lm/RNN_0/rnn/multi_rnn_cell"):
        read(tmp_path)
    write(tmp_path, {f"{s}/char_embed": np.ones((261, 5), np.float32) for s in "ab"})
    with pytest.raises(FormatError, match="2 tensors named char_embed"):
        read(tmp_path)
    (tmp_path / "options.json").write_text('{"lstm": {}}')
    write(tmp_path, {"lm/embedding": np.ones(2, np.float32), "lm/softmax/b": np.ones(2, "f4")})
    with pytest.raises(FormatError, match="a language model that reads word ids"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n_layers": 3}, r"no tensor lm/RNN_0/rnn/multi_rnn_cell/cell_2"),
        ({"n_layers": 1}, "lstm.projection_dim|no tensor"),
        ({"dim": 7}, r"has the shape \(8, 24\); options.json requires \(8, 28\)"),
        ({"projection_dim": 3}, r"has the shape"),
    ],
)
def test_other_options(trained: Path, change: dict[str, int], says: str) -> None:
    options = json.loads((trained / "options.json").read_text())
    options["lstm"] |= change
    (trained / "options.json").write_text(json.dumps(options))
    with pytest.raises(ElmoError, match=says):
        read(trained)


def test_parts_left_over(tmp_path: Path) -> None:
    bilm = random_bilm(small_config(layers=3))
    write(tmp_path, tensors_of(bilm, tf_checkpoint.NAMINGS[0]))
    options = training_options(bilm)
    options["lstm"]["n_layers"] = 2
    (tmp_path / "options.json").write_text(json.dumps(options))
    with pytest.raises(FormatError, match=r"cell_2/lstm_cell.*do not belong to the network"):
        read(tmp_path)


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shard", [0, 1])
def test_missing_shard(tmp_path: Path, shard: int) -> None:
    model = Path(shutil.copytree(TF / "sharded", tmp_path / "m"))
    (model / f"model.ckpt-30.data-0000{shard}-of-00002").unlink()
    with pytest.raises(ModelNotFound, match=f"has no model.ckpt-30.data-0000{shard}-of-00002"):
        read(model)


@pytest.mark.parametrize("kept", [0, 1, 5000, 16063])
def test_truncated_data(trained: Path, kept: int) -> None:
    data = trained / f"{TRAINED}.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:kept])
    with pytest.raises(FormatError, match=r"bytes; its index requires 16,064\. It is truncated"):
        read(trained)


def test_a_flipped_bit_in_the_data(tmp_path: Path) -> None:
    bilm = write_model(tmp_path)
    file = tmp_path / "model.ckpt-1.data-00000-of-00001"
    data = file.read_bytes()
    for place in range(0, len(data), 401):
        file.write_bytes(bent(data, place))
        with pytest.raises(FormatError, match=r"the checksum of .* is wrong"):
            read(tmp_path)
    file.write_bytes(data + b"more")  # what nothing points to does not matter
    assert read(tmp_path).fingerprint == bilm.fingerprint


def test_a_flipped_bit_in_the_index(trained: Path) -> None:
    file = trained / f"{TRAINED}.index"
    data = file.read_bytes()
    before = read(trained).fingerprint
    harmless = 0
    for place in range(0, len(data), 3):
        file.write_bytes(bent(data, place))
        try:
            assert read(trained).fingerprint == before
            harmless += 1
        except FormatError as error:
            assert "damaged" in str(error) or "truncated" in str(error)
    # The block of statistics and the padding of the footer are not read.
    assert 0 < harmless < 25


def test_a_truncated_index(trained: Path) -> None:
    file = trained / f"{TRAINED}.index"
    data = file.read_bytes()
    for kept in range(0, len(data), 13):
        file.write_bytes(data[:kept])
        with pytest.raises(FormatError, match="not the index of a TensorFlow checkpoint"):
            read(trained)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"f1": 9}, "TensorFlow type 9; expected floats"),
        ({"f1": 14}, "TensorFlow type 14"),
        ({"f1": 2}, "requires 10440"),
        ({"f3": 1}, "data file 1 of 1"),
        ({"f3": -1}, "data file -1 of 1"),
        ({"f4": -8}, "at -8"),
        ({"f4": 1 << 60}, "its index requires 1,152,921"),
        ({"f5": 1 << 62}, "its index requires 4,611,686"),
        ({"f5": -4}, "with -4 bytes"),
        ({"f5": 16}, "has 16 bytes; its shape"),
        ({"f4": 4}, "the checksum of .* is wrong"),
        ({"f6": b"\0\0\0\0"}, "the checksum of .* is wrong"),
        ({"f2": message(f2=[message(f1=1 << 62), message(f1=5)])}, "has the size 4611686"),
        ({"f2": message(f2=[message(f1=-1)])}, "has the size 1844674"),
        ({"f2": message(f2=7)}, "it has an invalid entry"),
        ({"f2": b"\xff"}, "does not end"),
        ({"f2": b"\x0b"}, "it has an invalid entry"),
        ({"f7": [message(f1=[message(f2=9), message(f2=5)])]}, "do not fit together"),
        ({"f7": [message(f1=[message(f2=261)])]}, "do not fit together"),
        ({"f7": [b"", b""]}, "do not fit together"),
        ({"f7": [message(f1=[b"", b""])]}, "do not fit together"),
        ({"f7": [message(f1=[b"", b""])] * 2000}, "do not fit together"),
        ({"f2": message(f2=[message(f1=1 << 47)] * 400)}, "more than 16 dimensions"),
        ({"f7": [message(f1=[b""] * 70)]}, "more than 16 dimensions"),
    ],
)
def test_entries_that_cannot_be(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    write_model(tmp_path, of="lm/char_embed", **changes)
    with pytest.raises(FormatError, match=says):
        read(tmp_path)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (message(), "0 data files"),
        (message(f1=1 << 40), "1099511627776 data files"),
        (message(f1=b"1"), "data files"),
        (message(f1=1, f2=1), "big-endian"),
        (message(f1=1, f3=message(f1=2, f2=2)), "has version 2 of the checkpoint format"),
        (message(f1=3), r"has no model\.ckpt-1\.data-00000-of-00003"),
    ],
)
def test_headers_that_cannot_be(tmp_path: Path, header: bytes, says: str) -> None:
    write_model(tmp_path, header=header)
    with pytest.raises(FormatError, match=says):
        read(tmp_path)


def test_unaligned_tensors_become_aligned(tmp_path: Path) -> None:
    array = np.arange(5, dtype=np.float32)
    index = block([(b"", message(f1=1)), (b"t", entry(array, 3))])
    (tmp_path / "x.index").write_bytes(table([index]))
    (tmp_path / "x.data-00000-of-00001").write_bytes(b"abc" + array.tobytes())
    found = np.asarray(TensorBundle(ModelSource(tmp_path), "x").tensor("t"))
    np.testing.assert_array_equal(found, array)
    assert found.flags.aligned


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (table([block([(b"b", b""), (b"a", b"")])]), "'a' comes after b'b'"),
        (table([block([(b"a", b"")]), block([(b"a", b"")])]), "'a' comes after b'a'"),
        (table([block([(b"a", b"")])], compression=1), "compressed block"),
        (table([block([(b"k" * 5000, b"")])]), "out of bounds"),
        (table([b"\x05\x01\x00" + b"a" + struct.pack("<2I", 0, 1)]), "out of bounds"),
        (table([b"\x00\x01\x09" + b"a" + struct.pack("<2I", 0, 1)]), "out of bounds"),
        (table([struct.pack("<I", 1 << 31)]), "has no entries"),
        (table([b""]), "has no entries"),
        (table([struct.pack("<I", 0)]), "has no entries"),
        (b"\xff" * 40 + struct.pack("<Q", MAGIC), "does not end"),
        (b"\x00\x00\x10\x10".ljust(40, b"\0") + struct.pack("<Q", MAGIC), "only 48 bytes"),
    ],
)
def test_tables_that_cannot_be(file: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        read_table(file, "x.index")


def test_a_block_that_is_read_again_and_again() -> None:
    """Of few bytes per reference, so that a small file would take hours."""
    empty = struct.pack("<2I", 0, 1)
    data = empty + b"\0"
    data += struct.pack("<I", mask_checksum(crc32c(data)))
    handle = number(0) + number(len(empty))
    index = block([(b"", handle)] * 3) + b"\0"
    footer = number(0) * 2 + number(len(data)) + number(len(index) - 1)
    data += index + struct.pack("<I", mask_checksum(crc32c(index)))
    with pytest.raises(FormatError, match="refers to the block at 0 twice"):
        read_table(data + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC), "x.index")


def test_keys_that_share_nearly_everything() -> None:
    first = number(0) + number(4006) + number(0) + b"k" * 4000 + b"000000"
    others = (number(4000) + number(6) + number(0) + b"%06d" % i for i in range(1, 3000))
    with pytest.raises(FormatError, match="that is not the index of a biLM"):
        read_table(table([b"".join([first, *others, struct.pack("<2I", 0, 1)])]), "x.index")


def test_tensors_that_share_their_bytes(tmp_path: Path) -> None:
    array = np.zeros(100, np.float32)
    index = block([(b"", message(f1=1)), *((b"t%03d" % i, entry(array, 0)) for i in range(99))])
    (tmp_path / "x.index").write_bytes(table([index]))
    (tmp_path / "x.data-00000-of-00001").write_bytes(array.tobytes())
    with pytest.raises(FormatError, match=r"has 400 bytes, and its tensors have 39,600"):
        TensorBundle(ModelSource(tmp_path), "x")


def test_an_index_that_is_far_too_large(trained: Path) -> None:
    with (trained / f"{TRAINED}.index").open("r+b") as file:
        file.truncate((64 << 20) + 1)  # takes no room on disk
    with pytest.raises(FormatError, match="too large for the index"):
        read(trained)


def test_a_table_without_header(tmp_path: Path) -> None:
    (tmp_path / "x.index").write_bytes(table([block([(b"a", b"")])]))
    with pytest.raises(FormatError, match="has no header"):
        TensorBundle(ModelSource(tmp_path), "x")


@settings(max_examples=300)
@given(st.data())
def test_any_content_with_right_checksums(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Fuzz what the checksums would otherwise catch: an error of ours, or tensors."""
    original = [(key, value) for key, value in GOOD_ENTRIES]
    content = bytearray(block(original))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "fuzz"
    path.mkdir(exist_ok=True)
    (path / "x.index").write_bytes(table([bytes(content)]))
    (path / "x.data-00000-of-00001").write_bytes(GOOD_DATA)
    try:
        bundle = TensorBundle(ModelSource(path), "x")
        for name in bundle.names:
            if name.isascii():
                assert bundle.tensor(name).nbytes <= 8 * len(GOOD_DATA)
    except FormatError:
        pass


def _good() -> tuple[list[tuple[bytes, bytes]], bytes]:
    source = ModelSource(TF / "sliced")
    entries = read_table(source.read("model.ckpt-30.index"), "x")
    return list(entries.items()), source.read("model.ckpt-30.data-00000-of-00001")


GOOD_ENTRIES, GOOD_DATA = _good()


# -- the checksum ----------------------------------------------------------------------------------


def slow_crc(data: bytes) -> int:
    """By the definition, bit by bit."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def test_known_checksums() -> None:
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA  # of RFC 3720
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert mask_checksum(0) == 0xA282EAD8


def test_the_sparse_multiple() -> None:
    """x^6777 + x^484 + x^100 + 1 is 0 modulo x^32 + x^28 + … + 1."""
    power, powers = 1, []
    for _ in range(DEGREE + 1):
        powers.append(power)
        power <<= 1
        power ^= 0x11EDC6F41 if power >> 32 else 0
    assert powers[DEGREE] ^ powers[484] ^ powers[100] ^ 1 == 0


@pytest.mark.parametrize(
    "length", [1, 3, 7, 8, 9, DEGREE, DEGREE + 4, DEGREE + 5, 8 * DEGREE + 7, 8 * DEGREE + 8]
)
@pytest.mark.parametrize("start", [0, 5])
def test_checksums_of_all_lengths(length: int, start: int) -> None:
    data = np.random.default_rng(length).integers(0, 256, start + length, np.uint8)
    assert crc32c(data[start:]) == slow_crc(data[start:].tobytes())


def test_a_long_checksum() -> None:
    """Many folds of words, then of bytes."""
    data = np.random.default_rng(0).integers(0, 256, 200_001, np.uint8)
    assert crc32c(data) == slow_crc(data.tobytes())
