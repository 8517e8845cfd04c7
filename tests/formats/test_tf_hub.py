"""Modules of TensorFlow Hub: directories and archives with the names of `google/elmo`."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN, small_config
from tests.formats.test_tf_checkpoint import block, table, tensors_of, write

from elmokit import Elmo, formats, inspect_model
from elmokit.bilm.model import BiLM
from elmokit.bilm.random import random_bilm
from elmokit.errors import FormatError
from elmokit.formats import tar_archive, tf_checkpoint
from elmokit.formats.tf_index import read_table
from elmokit.inspect import describe_model

HUB = tf_checkpoint.NAMINGS[2]
SCALARS = np.array([0.5, -1.0, 0.25], np.float32)


CELL = "RNN_0/RNN/MultiRNNCell/Cell0/rnn/lstm_cell"
"""The first cell of the forward direction."""


def published_like(**changes: Any) -> BiLM:
    """A small network with what a module does not say as in the published model."""
    return random_bilm(
        small_config(max_characters=50, cell_clip=3.0, projection_clip=3.0, skip=True, **changes)
    )


def hub_tensors(bilm: BiLM, scope: str = "", mask: bool = True) -> dict[str, np.ndarray]:
    tensors = tensors_of(bilm, HUB, scope=f"{scope}bilm/")
    if mask:  # the module's table has the row of the mask, as bilm-tf adds it
        table = tensors[f"{scope}bilm/char_embed"]
        tensors[f"{scope}bilm/char_embed"] = np.concatenate([np.zeros_like(table[:1]), table])
    tensors[f"{scope}aggregation/weights"] = SCALARS
    tensors[f"{scope}aggregation/scaling"] = np.array(1.5, np.float32)
    return tensors


def write_module(folder: Path, bilm: BiLM, **how: Any) -> Path:
    folder.mkdir()
    for name in ("saved_model.pb", "tfhub_module.pb"):
        (folder / name).write_bytes(b"\x08\x01")
    write(folder / "variables", hub_tensors(bilm, **how), "variables")
    return folder


def pack(folder: Path, archive: Path, start: str = "./") -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, start + str(path.relative_to(folder)), recursive=False)
    return archive


def same(one: BiLM, other: BiLM) -> bool:
    return all((one.weights[name] == other.weights[name]).all() for name in other.weights)


def test_equal_to_what_tensorflow_computes() -> None:
    """A module that TensorFlow made (tests/golden/tf_hub/make.py), and its outputs."""
    folder = GOLDEN / "tf_hub"
    golden = np.load(folder / "vectors.npz")
    elmo = Elmo.load(folder / "module", state="zero")
    sentences = [s.split() for s in ("the cat is on the mat", "dogs are in the fog", "Grüße")]
    layers = np.concatenate(elmo.embed(sentences, layers="all"), axis=1)
    assert np.abs(layers[0, :, : elmo.dim // 2] - golden["word_emb"]).max() < 1e-5
    assert np.abs(layers[1] - golden["lstm_outputs1"]).max() < 1e-5
    assert np.abs(layers[2] - golden["lstm_outputs2"]).max() < 1e-5
    assert np.abs(np.concatenate(elmo.embed(sentences)) - golden["elmo"]).max() < 1e-5
    assert elmo.mix.gamma == 1.25


@pytest.mark.parametrize("how", [{}, {"scope": "module/"}, {"mask": False}])
def test_a_module(tmp_path: Path, how: dict[str, Any]) -> None:
    bilm = published_like(highways=2)
    folder = write_module(tmp_path / "module", bilm, **how)
    for path in (
        folder,
        folder / "saved_model.pb",
        folder / "tfhub_module.pb",
        folder / "variables",
        folder / "variables" / "variables.index",
    ):
        found = formats.read(path)
        assert found.config == bilm.config
        assert same(found, bilm)
        assert found.mix is not None
        assert found.mix.scalars == tuple(SCALARS.tolist()) and found.mix.gamma == 1.5


def test_its_mix_is_the_default(tmp_path: Path) -> None:
    folder = write_module(tmp_path / "module", published_like())
    elmo = Elmo.load(folder, state="zero")
    layers = elmo.embed("the cat is on the mat", layers="all")
    shares = np.exp(SCALARS) / np.exp(SCALARS).sum()
    mixed = 1.5 * (shares[:, None, None] * layers).sum(axis=0)
    assert np.allclose(elmo.embed("the cat is on the mat"), mixed, atol=1e-6)
    info = inspect_model(folder)
    shown = dict(describe_model(info))
    assert shown["format"] == "TensorFlow Hub module (saved_model.pb + variables/)"
    assert shown["mix"].endswith(", γ 1.500")
    assert set(info["files"]) == {"variables.index", "variables.data-00000-of-00001"}
    elmo.save(tmp_path / "converted")
    again = Elmo.load(tmp_path / "converted", state="zero").embed("the cat is on the mat")
    assert (again == elmo.embed("the cat is on the mat")).all()


@pytest.mark.parametrize("start", ["./", "", "elmo_3/"])
def test_archives(tmp_path: Path, start: str) -> None:
    bilm = published_like()
    folder = write_module(tmp_path / "module", bilm)
    for name in ("module.tar.gz", "3.tgz", "no-ending"):
        assert same(formats.read(pack(folder, tmp_path / name, start)), bilm)
    with zipfile.ZipFile(tmp_path / "module.zip", "w") as archive:
        for path in folder.rglob("*.*"):
            archive.write(path, start.replace("./", "") + str(path.relative_to(folder)))
    assert same(formats.read(tmp_path / "module.zip"), bilm)


def test_other_models_in_a_tar_archive(tmp_path: Path) -> None:
    """The checkpoint of SeqVec is distributed like this."""
    trained = GOLDEN / "tf" / "trained"
    found = formats.read(pack(trained, tmp_path / "checkpoint.tar.gz", "seqvec/"))
    assert found.fingerprint == formats.read(trained).fingerprint


def test_incomplete_modules(tmp_path: Path) -> None:
    bilm = published_like()
    folder = write_module(tmp_path / "module", bilm)
    tensors = hub_tensors(bilm)
    for missing, message in (
        ("bilm/CNN/b_cnn_1", "has no tensor bilm/CNN/b_cnn_1"),
        ("bilm/CNN/W_cnn_1", "lacks some of its tensors"),
        ("bilm/char_embed", "is not a biLM"),
        ("bilm/RNN_1/RNN/MultiRNNCell/Cell1/rnn/lstm_cell/bias", "has no tensor"),
        ("bilm/RNN_0/RNN/MultiRNNCell/Cell0/rnn/lstm_cell/kernel", "is not a biLM"),
    ):
        rest = {name: array for name, array in tensors.items() if name != missing}
        write(folder / "variables", rest, "variables")
        with pytest.raises(FormatError, match=message):
            formats.read(folder)
    tensors["aggregation/scaling"] = np.ones(2, np.float32)
    write(folder / "variables", tensors, "variables")
    with pytest.raises(FormatError, match="aggregation/scaling has 2 values; expected one"):
        formats.read(folder)
    (folder / "variables" / "variables.index").unlink()
    with pytest.raises(FormatError, match=r"has no variables/variables\.index.*whole module"):
        formats.read(folder)


@pytest.mark.parametrize("name", ["char_embed", f"{CELL}/kernel", f"{CELL}/projection/kernel"])
@pytest.mark.parametrize("dimensions", [0, 1, 3])
def test_tensors_that_are_no_matrices(tmp_path: Path, name: str, dimensions: int) -> None:
    tensors = hub_tensors(published_like())
    assert f"bilm/{name}" in tensors
    tensors[f"bilm/{name}"] = np.ones((1,) * dimensions, np.float32)
    folder = write_module(tmp_path / "module", published_like())
    write(folder / "variables", tensors, "variables")
    with pytest.raises(FormatError, match=f"bilm/{name} has the shape .*; expected a matrix"):
        formats.read(folder)


def test_names_that_only_look_like_those_of_a_module(tmp_path: Path) -> None:
    folder = write_module(tmp_path / "module", published_like())
    good = hub_tensors(published_like())
    for old, new in (
        ("bilm/CNN/W_cnn_0", "bilm/CNN/W_cnn_00"),
        ("bilm/CNN/W_cnn_0", "bilm/CNN/W_cnn_\u0660"),  # a zero in Arabic
        (f"bilm/{CELL}/kernel", "bilm/RNN_0/rnn/lstm_cell/kernel"),  # as in a model of one layer
    ):
        tensors = {new if name == old else name: array for name, array in good.items()}
        write(folder / "variables", tensors, "variables")
        with pytest.raises(FormatError, match="has no tensor bilm/"):
            formats.read(folder)


def test_a_scope_that_is_not_utf8(tmp_path: Path) -> None:
    folder = write_module(tmp_path / "module", published_like())
    file = folder / "variables" / "variables.index"
    renamed = {b"bilm/char_embed": b"\xff/char_embed"}
    entries = [
        (renamed.get(key, key.replace(b"bilm", b"\xef\xbf\xbd")), value)
        for key, value in read_table(file.read_bytes(), "x").items()
    ]
    file.write_bytes(table([block(sorted(entries))]))
    with pytest.raises(FormatError, match="has no tensor \ufffd/char_embed"):
        formats.read(folder)


# -- archives that mean harm -----------------------------------------------------------------------


def tar_of(path: Path, *members: tarfile.TarInfo, data: bytes = b"") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "bad",
    [
        member("../evil"),
        member("/etc/passwd"),
        member("variables/../../evil"),
        member("saved_model.pb", tarfile.SYMTYPE, "/etc/passwd"),
        member("saved_model.pb", tarfile.LNKTYPE, "other"),
        member("device", tarfile.CHRTYPE),
        member("pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.name}-{info.type!r}",
)
def test_names_and_links_that_lead_out(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    path = tar_of(tmp_path / "x.tar.gz", member("options.json"), bad)
    with pytest.raises(FormatError, match="a link, a device or a path that leads out"):
        formats.read(path)


def test_archives_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tar_archive, "FREE_BYTES", 1 << 20)
    path = tar_of(tmp_path / "x.tar.gz", member("weights.hdf5"), data=bytes(20 << 20))
    with pytest.raises(FormatError, match="unpacks to far more than a model"):
        formats.read(path)
    monkeypatch.setattr(tar_archive, "MOST_FILES", 3)
    path = tar_of(tmp_path / "y.tar.gz", *(member(f"f{i}") for i in range(5)))
    with pytest.raises(FormatError, match="more than 3 entries"):
        formats.read(path)
    path = tar_of(tmp_path / "z.tar.gz", member("a"), member("./a"))
    with pytest.raises(FormatError, match="holds 'a' twice"):
        formats.read(path)


def records(kind: bytes, data: bytes) -> bytes:
    """An entry of pax records."""
    info = member("pax", kind)
    info.size = len(data)
    return info.tobuf() + data + bytes(-len(data) % 512)


def test_records_of_all_entries_take_no_memory(tmp_path: Path) -> None:
    """`tarfile` copies all of them into each entry."""
    record = b"".join(b"%d k%05d=\n" % (10, i) for i in range(50_000))
    names = b"".join(member(f"f{i}").tobuf() for i in range(900))
    (tmp_path / "x.tar").write_bytes(records(b"g", record) + names + bytes(1024))
    assert len(tar_archive.TarArchive(tmp_path / "x.tar").namelist()) == 900


def test_records_that_take_no_time(tmp_path: Path) -> None:
    """In `tarfile` of older versions of Python the time is quadratic."""
    for data in (b"1" * 1_000_000, b"0 " * 500_000, b"9 a=b\n", b"6 a=bc\n", b"x"):
        (tmp_path / "x.tar").write_bytes(records(b"x", data) + member("f").tobuf() + bytes(1024))
        with pytest.raises(FormatError, match="is not a readable tar archive"):
            tar_archive.TarArchive(tmp_path / "x.tar")


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
@pytest.mark.parametrize("name", ["x", "d/" * 60 + "n" * 90, "ü"])
def test_long_names(tmp_path: Path, kind: int, name: str) -> None:
    with tarfile.open(tmp_path / "x.tar", "w", format=kind) as tar:
        for info in (member("a", tarfile.DIRTYPE), member(name), member("last")):
            info.size = 700 if info.isreg() else 0
            tar.addfile(info, io.BytesIO(bytes(700)))
    archive = tar_archive.TarArchive(tmp_path / "x.tar")
    assert archive.namelist() == [name, "last"] and archive.read(name) == bytes(700)


def test_an_archive_whose_end_is_damaged(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "x.tar.gz", member("a"), data=os.urandom(1 << 20))
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    with pytest.raises(FormatError, match="CRC check failed"):
        tar_archive.TarArchive(path)


def test_damaged_archives(tmp_path: Path) -> None:
    good = pack(write_module(tmp_path / "m", published_like()), tmp_path / "m.tar.gz").read_bytes()
    for i, data in enumerate((good[:100], good[: len(good) // 2], b"", b"hello" * 300)):
        path = tmp_path / f"{i}.tar.gz"
        path.write_bytes(data)
        with pytest.raises(FormatError):
            formats.read(path)
