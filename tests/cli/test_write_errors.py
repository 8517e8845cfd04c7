"""Disks that are full or cannot be written: what a user is told, and what is kept."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo, formats

resource = pytest.importorskip("resource", reason="needs limits of a Unix system")

MODEL = GOLDEN / "models" / "plain"
TEXT = "".join(f"The bank number {i} lent money to the river .\n" for i in range(4000))


@contextlib.contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Let writing fail where a file would become larger than `size` bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


@pytest.mark.parametrize("out", ["m", "m.hdf5", "m.zip", "n.zip"])
def test_convert(elmo_command, tmp_path: Path, out: str) -> None:
    more = ["--format", "native"] if out == "n.zip" else []
    with file_limit(5000):
        failed = elmo_command("convert", MODEL, tmp_path / out, *more)
    assert failed.code == 1
    assert failed.err == (
        f"elmo: error: {tmp_path / out} cannot be written: File too large; nothing was kept. Make "
        "room or choose another place, then run it again\n"
    )
    assert list(tmp_path.iterdir()) == []
    assert elmo_command("convert", MODEL, tmp_path / out, *more).code == 0
    fingerprint = formats.read(tmp_path / out).fingerprint
    with file_limit(5000):
        failed = elmo_command("convert", "builtin", tmp_path / out, "--force", *more)
    assert failed.code == 1 and "what was there before is unchanged" in failed.err
    assert formats.read(tmp_path / out).fingerprint == fingerprint


@pytest.mark.parametrize("ending", ["h5", "npz", "parquet"])
def test_embed_keeps_what_it_has(elmo_command, tmp_path: Path, text: Path, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'elmokit[parquet]'")
    out = tmp_path / f"v.{ending}"
    call = ("embed", "-m", MODEL, "--file", text, "--out", out)
    with file_limit(100_000):
        failed = elmo_command(*call)
    assert failed.code == 1
    assert f"{out} cannot be written: File too large; " in failed.err
    assert f"sentences are kept in v.{ending}.partial. Make room" in failed.err
    assert not out.exists()
    again = elmo_command(*call)
    assert again.code == 0 and out.exists()
    assert "4,000 sentences" in again.out + again.err


def test_the_file_fails_after_the_sentences(
    elmo_command, tmp_path: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(
            "Can't write data (file write failed: filename = 'x', file descriptor = 3, "
            "errno = 28, error message = 'No space left on device')"
        )

    monkeypatch.setattr("elmokit.vectors.hdf5.write", full)
    failed = elmo_command("embed", "-m", MODEL, "--file", text, "--out", tmp_path / "v.h5")
    assert f"{tmp_path / 'v.h5'} cannot be written: No space left on device; 4,000" in failed.err


@pytest.mark.parametrize("limit", [2000, 15_000, 30_000])
def test_corpus(elmo_command, tmp_path: Path, text: Path, limit: int) -> None:
    call = ("corpus", text, "--lines", "--processes", 1, "--out", tmp_path / "corpus")
    with file_limit(limit):
        failed = elmo_command(*call)
    assert failed.code == 1
    assert f"{tmp_path / 'corpus'} cannot be written: " in failed.err
    assert "; nothing was kept. Make room" in failed.err
    assert list(tmp_path.iterdir()) == [text]


def test_pretraining_continues(elmo_command, tmp_path: Path, text: Path) -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    elmo_command("corpus", text, "--lines", "--processes", 1, "--out", corpus)
    call = ("pretrain", corpus, "--out", out, "--tokens", 2000, "--size", "tiny")
    with file_limit(200_000):
        failed = elmo_command(*call)
    assert failed.code == 1
    assert "training/checkpoints/step-" in failed.err
    assert "cannot be written: File too large; no checkpoint was written yet" in failed.err
    assert failed.err.endswith("then give the same command with --resume\n")
    assert elmo_command("pretrain", corpus, "--out", out, "--resume").code == 0
    assert Elmo.load(out).bilm.vocabulary is not None


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to mount a disk")
@pytest.mark.parametrize("out", ["m", "m.hdf5"])
def test_a_disk_that_is_really_full(elmo_command, tmp_path: Path, out: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run(mount, capture_output=True).returncode == 0:
            try:
                failed = elmo_command("convert", "builtin", disk / out)
                left = list(disk.iterdir())
            finally:
                subprocess.run(["umount", str(disk)], check=True)
            assert "cannot be written: No space left on device; nothing was kept" in failed.err
            assert left == []
            return
    pytest.skip("needs the right to mount a disk")


# -- a cache that cannot be written ----------------------------------------------------------------


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "file" / "cache"))
    return tmp_path / "file" / "cache"


def test_results_are_printed_all_the_same(elmo_command, no_cache: Path, text: Path) -> None:
    done = elmo_command(
        "change",
        "bank",
        "--then",
        text,
        "--now",
        text,
        "--lines",
        "-m",
        MODEL,
        "--permutations",
        10,
    )
    assert done.code == 0 and "bank" in done.out
    last = done.err.splitlines()[-1]
    assert last.startswith("printed above, but not kept for `elmo report`: ")
    assert str(no_cache) in last and "Not a directory; set ELMOKIT_CACHE" in last
    assert last.endswith("--out")


def test_an_index_is_made_elsewhere(elmo_command, no_cache: Path, text: Path) -> None:
    with pytest.warns(UserWarning, match=r"indexes cannot be written, so the index is deleted"):
        done = elmo_command(
            "neighbors", "bank", "--in", "A bank .", "--corpus", text, "--lines", "-m", MODEL
        )
    assert done.code == 0 and "bank" in done.out
    assert "printed above, but not kept" in done.err


def test_out_that_cannot_be_written_is_an_error(elmo_command, no_cache: Path, text: Path) -> None:
    call = ("change", "bank", "--then", text, "--now", text, "--lines", "-m", MODEL)
    done = elmo_command(*call, "--permutations", 100, "--out", no_cache)
    assert done.code == 1 and "bank" in done.out
    assert f"{no_cache} cannot be written: Not a directory; make room, or" in done.err


# -- errors of the system --------------------------------------------------------------------------


def test_an_error_of_the_system_names_the_file(
    elmo_command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        (tmp_path / "none").open()

    monkeypatch.setattr("elmokit.inspect.inspect_model", missing)
    failed = elmo_command("inspect", MODEL)
    assert failed.err == f"elmo: error: {tmp_path / 'none'}: no such file or directory\n"


def test_options_in_place_of_arguments(elmo_command, tmp_path: Path, text: Path) -> None:
    (tmp_path / "v.h5").write_bytes(b"")
    for call in (
        ("embed", "-m", MODEL, "--file", text, "--out", tmp_path / "v.h5"),
        ("convert", MODEL, tmp_path / "v.h5"),
    ):
        failed = elmo_command(*call)
        assert failed.code == 1 and failed.err.endswith("replace it with --force\n")
        assert "overwrite" not in failed.err


def test_the_interpreter_ends_quietly(tmp_path: Path) -> None:
    """HDF5 must not try to write again when a process with a failed file ends."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
from elmokit.cli import main
main(["convert", {str(MODEL)!r}, {str(tmp_path / "m.hdf5")!r}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "File too large" in done.stderr
