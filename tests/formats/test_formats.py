"""Files to models and back: what is lost (nothing), what is refused, what an error says."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bilm.test_config import configs
from tests.conftest import GOLDEN, random_bilm, small_config

from elmokit import formats
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.errors import ElmoError, FormatError, InputError, ModelNotFound
from elmokit.formats import native
from elmokit.text.vocabulary import Vocabulary

PLAIN = GOLDEN / "models" / "plain"


def full_model() -> BiLM:
    """A model that has everything a file can hold."""
    bilm = random_bilm(small_config())
    random = np.random.default_rng(1)
    state = State.zeros(bilm.config)
    state.cell[:] = random.normal(size=state.cell.shape)
    return BiLM(
        replace(bilm.config, extra={"dropout": 0.1, "lstm": {"note": "ü"}}),
        dict(bilm.weights)
        | {
            "softmax.weight": random.normal(size=(4, 6)).astype(np.float32),
            "softmax.bias": np.zeros(4, np.float32),
        },
        Vocabulary(["<S>", "</S>", "<UNK>", "naïve"]),
        state,
        Mix((0.1, 0.2, 0.3), 1.5),
        {"other/numbers": np.arange(5)},
    )


def datasets(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every dataset of an HDF5 file to the last bit."""
    found = {}

    def visit(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype.str, item.shape, item[...].tobytes())

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def same_bits(a: BiLM, b: BiLM) -> bool:
    return set(a.weights) == set(b.weights) and all(
        a.weights[n].dtype == b.weights[n].dtype
        and a.weights[n].tobytes() == b.weights[n].tobytes()
        for n in a.weights
    )


# -- round trips -----------------------------------------------------------------------------------


def test_native_holds_everything(tmp_path: Path) -> None:
    bilm = full_model()
    formats.write(bilm, tmp_path / "m")
    again = formats.read(tmp_path / "m")
    assert again.config == bilm.config
    assert same_bits(again, bilm)
    assert again.vocabulary == bilm.vocabulary
    assert again.mix == bilm.mix
    assert again.settled is not None and bilm.settled is not None
    assert (again.settled.cell == bilm.settled.cell).all()
    assert again.extra["other/numbers"].tolist() == [0, 1, 2, 3, 4]
    assert again.fingerprint == bilm.fingerprint


@pytest.mark.parametrize("name", sorted(p.name for p in (GOLDEN / "models").iterdir()))
def test_hdf5_to_native_to_hdf5_is_bit_equal(name: str, tmp_path: Path) -> None:
    source = GOLDEN / "models" / name
    formats.write(formats.read(source), tmp_path / "native")
    formats.write(formats.read(tmp_path / "native"), tmp_path / "back", format="allennlp")
    assert datasets(tmp_path / "back" / "weights.hdf5") == datasets(source / "weights.hdf5")
    assert formats.read(tmp_path / "back").config == formats.read(source).config


@given(configs, st.sampled_from([np.float16, np.float32, np.float64]))
def test_any_architecture_and_precision(
    tmp_path_factory: pytest.TempPathFactory, config: BiLMConfig, dtype: type
) -> None:
    tmp_path = tmp_path_factory.mktemp("any")
    bilm = random_bilm(config)
    bilm = BiLM(config, {name: array.astype(dtype) for name, array in bilm.weights.items()})
    formats.write(bilm, tmp_path / "a.hdf5")
    through_hdf5 = formats.read(tmp_path / "a.hdf5")
    # AllenNLP computes with a file's biases in their own precision, which half is too little for.
    wide = np.promote_types(dtype, np.float32)
    widened = BiLM(config, {name: array.astype(wide) for name, array in bilm.weights.items()})
    assert through_hdf5.config == config and same_bits(through_hdf5, widened)
    formats.write(bilm, tmp_path / "b")
    through_native = formats.read(tmp_path / "b")
    assert through_native.config == config and same_bits(through_native, bilm)
    shutil.rmtree(tmp_path)


def test_foreign_datasets_and_options_survive(tmp_path: Path) -> None:
    shutil.copytree(PLAIN, tmp_path / "m")
    with h5py.File(tmp_path / "m" / "weights.hdf5", "a") as file:
        file["note/numbers"] = np.arange(3)
    options = json.loads((tmp_path / "m" / "options.json").read_text())
    options |= {"n_train_tokens": 5, "char_cnn": options["char_cnn"] | {"max": [1]}}
    (tmp_path / "m" / "options.json").write_text(json.dumps(options))
    formats.write(formats.read(tmp_path / "m"), tmp_path / "native")
    formats.write(formats.read(tmp_path / "native"), tmp_path / "back", "allennlp")
    assert datasets(tmp_path / "back" / "weights.hdf5") == datasets(tmp_path / "m" / "weights.hdf5")
    assert json.loads((tmp_path / "back" / "options.json").read_text()) == options


def test_what_allennlp_cannot_hold_is_said() -> None:
    assert formats.unsupported_parts(full_model(), "x.hdf5") == ["the softmax"]
    assert formats.unsupported_parts(full_model(), "x") == []
    assert formats.unsupported_parts(random_bilm(small_config()), "x", "allennlp") == []


@pytest.mark.parametrize("out", ["m", "m.hdf5", "m.zip"])
@pytest.mark.parametrize("zero", [False, True])
def test_allennlp_keeps_state_mix_and_fingerprint(tmp_path: Path, out: str, zero: bool) -> None:
    bilm = full_model()
    half = {name: array.astype(np.float16) for name, array in bilm.weights.items()}
    bilm = replace(bilm, weights=half)
    if zero:
        bilm = replace(bilm, settled=State.zeros(bilm.config))
    formats.write(bilm, tmp_path / out, "allennlp")
    again = formats.read(tmp_path / out)
    assert again.settled is not None and bilm.settled is not None
    assert again.settled.is_zero == zero
    np.testing.assert_array_equal(again.settled.hidden, bilm.settled.hidden)
    np.testing.assert_array_equal(again.settled.cell, bilm.settled.cell)
    assert again.mix == bilm.mix
    assert again.extra.keys() == {"other/numbers"}
    assert "softmax.weight" not in again.weights
    assert again.fingerprint == bilm.fingerprint, "though widened, and without the softmax"
    for further in ("native", "allennlp"):
        formats.write(again, tmp_path / further, further)
        last = formats.read(tmp_path / further)
        assert last.fingerprint == bilm.fingerprint
        assert pickle.loads(pickle.dumps(last)).fingerprint == bilm.fingerprint


def test_a_changed_export_has_a_fingerprint_of_its_own(tmp_path: Path) -> None:
    bilm = full_model()
    formats.write(bilm, tmp_path / "m", "allennlp")
    with h5py.File(tmp_path / "m" / "weights.hdf5", "a") as file:
        file["char_embed"][0, 0] += 1
    changed = formats.read(tmp_path / "m")
    assert changed.fingerprint != bilm.fingerprint
    formats.write(changed, tmp_path / "again")
    assert formats.read(tmp_path / "again").fingerprint == changed.fingerprint


def test_other_readers_find_what_they_always_found(tmp_path: Path) -> None:
    """AllenNLP, bilm-tf and simple_elmo open datasets by name; those are as without the group."""
    bilm = full_model()
    formats.write(bilm, tmp_path / "m", "allennlp")
    formats.write(replace(bilm, settled=None, mix=None), tmp_path / "plain", "allennlp")
    found = datasets(tmp_path / "m" / "weights.hdf5")
    plain = datasets(tmp_path / "plain" / "weights.hdf5")
    assert {name: found[name] for name in plain} == plain
    assert {name.split("/")[0] for name in found.keys() - plain.keys()} == {"elmokit"}
    options = [(tmp_path / name / "options.json").read_text() for name in ("m", "plain")]
    assert options[0] == options[1]


def test_a_damaged_group(tmp_path: Path) -> None:
    for damage, message in (
        (lambda f: f.__delitem__("elmokit/settled/cell"), "hidden alone; expected"),
        (
            lambda f: f["elmokit"].attrs.update(fingerprint="x"),
            "fingerprint of .* is 'x'",
        ),
        (lambda f: f["elmokit"].attrs.__delitem__("content"), "content of the group .* is None"),
        (lambda f: f["elmokit/settled/cell"].write_direct(np.full((2, 2, 1, 11), np.nan)), "NaN"),
        (lambda f: f.move("elmokit/mix/gamma", "elmokit/mix/g"), "scalars alone"),
    ):
        formats.write(full_model(), tmp_path / "m", "allennlp")
        with h5py.File(tmp_path / "m" / "weights.hdf5", "a") as file:
            damage(file)
        with pytest.raises(ElmoError, match=message):
            formats.read(tmp_path / "m")


@pytest.mark.parametrize("format", ["native", "allennlp"])
def test_weights_are_neither_mapped_nor_kept(tmp_path: Path, format: str) -> None:
    """A mapped file that somebody truncates would kill the process."""
    formats.write(full_model(), tmp_path / "m", format)
    weights = formats.read(tmp_path / "m").weights
    array = weights["forward.0.bias"]
    assert array is not weights["forward.0.bias"]
    base: Any = array
    while isinstance(base, np.ndarray):
        assert not isinstance(base, np.memmap)
        base = base.base
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


# -- where a model may be --------------------------------------------------------------------------


def test_a_path_may_be_a_directory_a_file_or_an_archive(tmp_path: Path) -> None:
    bilm = full_model()
    formats.write(bilm, tmp_path / "n")
    formats.write(bilm, tmp_path / "a", "allennlp")
    formats.write(bilm, tmp_path / "a.zip")
    formats.write(bilm, tmp_path / "n.zip", "native")
    with zipfile.ZipFile(tmp_path / "nested.zip", "w") as archive:
        for file in (tmp_path / "a").iterdir():
            archive.write(file, f"144/{file.name}")
    places = ["n", "n/config.json", "n/model.safetensors", "n/manifest.json", "n.zip"]
    places += ["a", "a/options.json", "a/weights.hdf5", "a.zip", "nested.zip"]
    for place in places:
        again = formats.read(tmp_path / place)
        assert again.weights["forward.0.bias"].tolist() == bilm.weights["forward.0.bias"].tolist()
        assert again.vocabulary == bilm.vocabulary, place
        expected = "native" if place.startswith("n") and place != "nested.zip" else "allennlp"
        assert formats.detect_format(tmp_path / place).kind == expected


def test_several_pairs_in_one_directory(tmp_path: Path) -> None:
    """As downloads lie side by side: X_options.json belongs to X_weights.hdf5."""
    small, large = random_bilm(small_config()), random_bilm(small_config(cells=13))
    formats.write(small, tmp_path / "elmo_small_weights.hdf5")
    formats.write(large, tmp_path / "elmo_large_weights.hdf5")
    assert (tmp_path / "elmo_small_options.json").exists()
    for name, bilm in (("small", small), ("large", large)):
        for part in ("weights.hdf5", "options.json"):
            assert formats.read(tmp_path / f"elmo_{name}_{part}").config == bilm.config
    with pytest.raises(FormatError, match=r"several models or parts .* give the path of"):
        formats.detect_format(tmp_path)


def test_a_token_cache_beside_the_weights_is_not_the_weights(tmp_path: Path) -> None:
    shutil.copytree(PLAIN, tmp_path / "m")
    with h5py.File(tmp_path / "m" / "vocab_embedding.hdf5", "w") as file:
        file["embedding"] = np.zeros((3, 4))
    assert formats.detect_format(tmp_path / "m").weights == "weights.hdf5"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "found no files; expected a directory or archive"),
        ({"README": b""}, "found README; expected"),
        ({"options.json": b"{}"}, "found options.json; expected"),
        ({"model.ckpt-1.index": b""}, "options.json"),
        ({"encoder.pkl": b"", "token_embedder.pkl": b""}, "config.json"),
    ],
)
def test_directories_that_are_something_else(tmp_path: Path, files: dict, message: str) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(FormatError, match=message):
        formats.read(tmp_path)


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("run.json", "elmo pretrain CORPUS --out"),
        ("finetune.json", "elmo finetune MODEL TEXT --out"),
    ],
)
def test_an_unfinished_training_run_says_how_to_continue(
    tmp_path: Path, file: str, command: str
) -> None:
    plan = pytest.importorskip("elmokit.train.run_plan")
    finetuning = pytest.importorskip("elmokit.train.finetuning")
    assert file in (plan.RUN, finetuning.SETTINGS)
    (tmp_path / plan.TRAINING).mkdir()
    (tmp_path / plan.TRAINING / file).write_text("{}")
    with pytest.raises(FormatError, match=rf"unfinished .* {command} {tmp_path} --resume"):
        formats.read(tmp_path)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="no such file or directory; expected"):
        formats.read(tmp_path / "none")
    (tmp_path / "model.bin").write_bytes(b"\x80\x02}q\x00.")
    with pytest.raises(FormatError, match="is not a model: it begins with"):
        formats.read(tmp_path / "model.bin")
    (tmp_path / "x.zip").write_bytes(b"PK\x05\x06" + b"\0" * 18)
    with pytest.raises(FormatError, match="found no files"):
        formats.read(tmp_path / "x.zip")


# -- damage ----------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    shutil.copytree(PLAIN, tmp_path / "pair")
    (tmp_path / "pair" / "vectors.npz").unlink()
    return tmp_path / "pair"


def change(pair: Path, action) -> None:
    with h5py.File(pair / "weights.hdf5", "a") as file:
        action(file)


def test_options_and_weights_that_do_not_belong_together(pair: Path) -> None:
    change(pair, lambda f: f.__delitem__("RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/B"))
    with pytest.raises(
        FormatError, match=r"has no dataset RNN_1/.*/Cell1/LSTMCell/B, which options"
    ):
        formats.read(pair)


def test_a_wrong_shape(pair: Path) -> None:
    def shrink(file: h5py.File) -> None:
        del file["CNN/b_cnn_0"]
        file["CNN/b_cnn_0"] = np.zeros(1, np.float32)

    change(pair, shrink)
    with pytest.raises(
        FormatError, match=r"CNN/b_cnn_0 has the shape \(1,\); options.json requires"
    ):
        formats.read(pair)


def test_a_wrong_type_and_nan(pair: Path) -> None:
    def replace_by(value: np.ndarray):
        def action(file: h5py.File) -> None:
            shape = file["CNN/b_cnn_0"].shape
            del file["CNN/b_cnn_0"]
            file["CNN/b_cnn_0"] = np.broadcast_to(value, shape)

        return action

    change(pair, replace_by(np.array(3)))
    with pytest.raises(FormatError, match="CNN/b_cnn_0 holds int64; expected floats"):
        formats.read(pair)
    change(pair, replace_by(np.array(np.nan, np.float32)))
    with pytest.raises(ElmoError, match="NaN or infinite"):
        formats.read(pair)


def test_numbers_in_another_file_are_not_followed(pair: Path, tmp_path: Path) -> None:
    shutil.copy(pair / "weights.hdf5", tmp_path / "secret.hdf5")

    def link(file: h5py.File) -> None:
        del file["char_embed"]
        file["char_embed"] = h5py.ExternalLink(str(tmp_path / "secret.hdf5"), "char_embed")

    change(pair, link)
    message = r"char_embed is an external link to another file .*secret.* nothing outside"
    with pytest.raises(FormatError, match=message):
        formats.read(pair)

    def link_group(file: h5py.File) -> None:
        del file["char_embed"], file["CNN"]
        file["char_embed"] = np.zeros((261, 4), np.float32)
        file["CNN"] = h5py.ExternalLink(str(tmp_path / "secret.hdf5"), "CNN")

    change(pair, link_group)
    with pytest.raises(FormatError, match="CNN is an external link to another file"):
        formats.read(pair)

    def external(file: h5py.File) -> None:
        del file["char_embed"], file["CNN"]
        (tmp_path / "raw").write_bytes(b"\0" * 261 * 4 * 4)
        file.create_dataset(
            "char_embed", (261, 4), "f4", external=[(str(tmp_path / "raw"), 0, 261 * 4 * 4)]
        )

    change(pair, external)
    with pytest.raises(FormatError, match="char_embed stores its numbers in another file"):
        formats.read(pair)


def test_truncated_and_foreign_hdf5(pair: Path) -> None:
    data = (pair / "weights.hdf5").read_bytes()
    for damaged in (data[: len(data) // 2], b"", b"not hdf5 at all", data[:8]):
        (pair / "weights.hdf5").write_bytes(damaged)
        with pytest.raises(FormatError, match=r"weights\.hdf5 cannot be read as HDF5"):
            formats.read(pair)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", "{}", '"x"', "[" * 100_000])
def test_damaged_options(pair: Path, text: str) -> None:
    (pair / "options.json").write_text(text)
    with pytest.raises(ElmoError, match="options"):
        formats.read(pair)


def test_native_damage_is_found(tmp_path: Path) -> None:
    formats.write(full_model(), tmp_path / "good")
    names = sorted(path.name for path in (tmp_path / "good").iterdir())
    optional = {"characters.json", "words.json"}  # of other architectures
    assert set(names) == set(native.NATIVE_NAMES) - optional
    for name in names:
        data = (tmp_path / "good" / name).read_bytes()
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 4
        for damaged in (data[:-2], bytes(flipped), None):
            shutil.rmtree(tmp_path / "bad", ignore_errors=True)
            shutil.copytree(tmp_path / "good", tmp_path / "bad")
            (tmp_path / "bad" / name).unlink()
            if damaged is not None:
                (tmp_path / "bad" / name).write_bytes(damaged)
            with pytest.raises(ElmoError, match=r"bad|manifest|config"):
                formats.read(tmp_path / "bad")


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    formats.write(full_model(), tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    (tmp_path / "m" / "manifest.json").write_text(json.dumps(manifest | {"version": 2}))
    with pytest.raises(FormatError, match=r"version 2 of the format.*pip install -U elmokit"):
        formats.read(tmp_path / "m")


def test_a_manifest_cannot_point_outside(tmp_path: Path) -> None:
    formats.write(full_model(), tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    manifest["files"]["../outside"] = {"bytes": 1, "sha256": ""}
    (tmp_path / "m" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "outside").write_text("x")
    with pytest.raises(FormatError, match=r"has no \.\./outside, which its manifest lists"):
        formats.read(tmp_path / "m")


# -- writing ---------------------------------------------------------------------------------------


def test_an_interrupted_write_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = random_bilm(small_config(), seed=1)
    formats.write(old, tmp_path / "m")
    formats.write(old, tmp_path / "m.hdf5")

    def broken(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    monkeypatch.setattr("h5py.Group.__setitem__", broken)
    for place in ("m", "m.hdf5"):
        with pytest.raises(OSError, match="No space left"):
            formats.write(random_bilm(small_config(), seed=2), tmp_path / place)
        assert formats.read(tmp_path / place).fingerprint == old.fingerprint
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"m", "m.hdf5", "m_options.json"}, "nothing else is left lying about"


def test_a_model_is_replaced_whole(tmp_path: Path) -> None:
    formats.write(full_model(), tmp_path / "m")
    (tmp_path / "m" / "README.md").write_text("mine")
    plain = random_bilm(small_config())
    formats.write(plain, tmp_path / "m")
    again = formats.read(tmp_path / "m")
    assert again.vocabulary is None and again.settled is None
    assert (tmp_path / "m" / "README.md").read_text() == "mine"
    assert not (tmp_path / "m" / "vocab.txt").exists(), "of the old model"


def test_what_is_not_ours_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    with pytest.raises(
        InputError, match=r"holds config\.json, but is not a model of elmokit; nothing was"
    ):
        formats.write(full_model(), tmp_path / "other")
    assert (tmp_path / "other" / "config.json").read_text() == "{}"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; expected the name of a directory"):
        formats.write(full_model(), tmp_path / "file")
    with pytest.raises(InputError, match="format is 'tflite'"):
        formats.write(full_model(), tmp_path / "x", "tflite")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("task.json", "is a task model, .* elmo task predict"),
        ("corpus.json", "is a corpus, .* pretrain"),
    ],
)
def test_a_directory_that_is_something_else(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text("{}")
    (tmp_path / "model.safetensors" if name == "task.json" else tmp_path / "x").touch()
    with pytest.raises(FormatError, match=message):
        formats.detect_format(tmp_path)
