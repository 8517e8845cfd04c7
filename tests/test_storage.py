"""Atomic writes, checksums and locks."""

from __future__ import annotations

import errno
import json
import os
import pickle
import threading
from pathlib import Path

import pytest

from elmokit import storage
from elmokit.errors import ElmoError, FormatError, InputError, WriteError
from elmokit.storage import (
    atomic_write,
    can_write_to,
    check_regular,
    checksum,
    explain_write_errors,
    try_lock,
    wait_for_lock,
    write_json,
    write_text,
)


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "POLL_SECONDS", 0.001)
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(20):
            with wait_for_lock(tmp_path / ".lock"):
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.0005)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, inside) == (1, 0)


def test_it_is_freed_by_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), wait_for_lock(tmp_path / ".lock"):
        raise KeyboardInterrupt
    with wait_for_lock(tmp_path / ".lock"):
        pass


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(storage, "try_lock", refuse)
    with (
        pytest.raises(ElmoError, match=r"cannot lock files in .*local disk"),
        wait_for_lock(tmp_path / ".lock"),
    ):
        pass


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    missing = tmp_path / "none" / ".lock"
    with (
        pytest.raises(ElmoError, match=r"cannot write to .*none: .*; set ELMOKIT_CACHE"),
        wait_for_lock(missing, advice="set ELMOKIT_CACHE"),
    ):
        pass


def test_try_lock_does_not_wait(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as one, (tmp_path / "file").open("wb") as two:
        assert try_lock(one.fileno())
        assert not try_lock(two.fileno())
    with (tmp_path / "file").open("wb") as three:
        assert try_lock(three.fileno()), "closing the file has released the lock"


@pytest.mark.parametrize("sync", [False, True])
def test_a_file_is_complete_or_absent(tmp_path: Path, sync: bool) -> None:
    path = tmp_path / "file"
    for text in ("old", "new"):
        with atomic_write(path, sync=sync) as temporary:
            assert temporary.parent == tmp_path
            temporary.write_text(text)
        assert path.read_text() == text
    with pytest.raises(KeyboardInterrupt), atomic_write(path, sync=sync) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path], "nothing else is left"


def test_text_and_json(tmp_path: Path) -> None:
    write_text(tmp_path / "text", "café\n")
    assert (tmp_path / "text").read_bytes() == "café\n".encode()
    write_json(tmp_path / "json", {"a": [1, "é"]})
    assert json.loads((tmp_path / "json").read_bytes()) == {"a": [1, "é"]}
    assert (tmp_path / "json").read_bytes().endswith(b"}\n")


def test_the_checksum_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.conll").write_text("1")
    before = checksum(tmp_path / "a")
    (tmp_path / "a/one.conll").rename(tmp_path / "a/two.conll")
    assert checksum(tmp_path / "a") != before
    with pytest.raises(InputError, match="cannot be read"):
        checksum(tmp_path / "missing")


# -- errors of writing -----------------------------------------------------------------------------


class SafetensorError(Exception):
    """As safetensors raises it."""


FULL = (
    OSError(errno.ENOSPC, "No space left on device"),
    OSError("Can't write data (errno = 28, error message = 'No space left on device')"),
    RuntimeError("Can't decrement id ref count (file write failed: errno = 28)"),
    SafetensorError("Error while serializing: I/O error: No space left (os error 28)"),
    OSError("1000 requested and 512 written"),
)


@pytest.mark.parametrize("error", FULL, ids=lambda error: str(error)[:20])
def test_a_full_disk_has_many_names(tmp_path: Path, error: Exception) -> None:
    path = tmp_path / "file"
    with pytest.raises(WriteError) as caught, atomic_write(path):
        raise error
    assert str(caught.value) == (
        f"{path} cannot be written: No space left on device; nothing was kept. Make room or choose "
        "another place, then run it again"
    )
    assert caught.value.errno == errno.ENOSPC and caught.value.__cause__ is error
    assert isinstance(caught.value, OSError)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.reason) == (str(caught.value), "No space left on device")


def test_the_cause_may_be_hidden(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="No space left"), atomic_write(tmp_path / "file"):
        try:
            raise FULL[0]
        finally:
            raise RuntimeError("closing failed too")


def test_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text(path, "old")
    with pytest.raises(WriteError, match="what was there before is unchanged"), atomic_write(path):
        raise FULL[0]
    assert path.read_text() == "old"
    outer = explain_write_errors(tmp_path, kept=lambda: "step 3 is kept")
    with pytest.raises(WriteError) as caught, outer, atomic_write(path):
        raise FULL[0]
    assert str(caught.value) == f"{path} cannot be written: No space left on device; step 3 is kept"


def test_other_errors_stay_as_they_are(tmp_path: Path) -> None:
    target = tmp_path / "out" / "file"
    for error in (
        FileNotFoundError(errno.ENOENT, "No such file or directory", str(tmp_path / "text.txt")),
        InputError("no words"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        ValueError("no errno here"),
        KeyboardInterrupt(),
    ):
        with pytest.raises(type(error)) as caught, explain_write_errors(target):
            raise error
        assert caught.value is error


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"file/x cannot be written: Not a directory; nothing was"):
        write_text(tmp_path / "file" / "x", "")
    with pytest.raises(WriteError, match=r"none/x cannot be written: No such file .* Choose"):
        write_text(tmp_path / "none" / "x", "")
    assert can_write_to(tmp_path / "new" / "directory")
    assert not can_write_to(tmp_path / "file" / "directory")


def test_nobody_waits_for_a_dead_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "SILENT_SECONDS", 0.2)
    with (tmp_path / ".lock").open("w") as held:
        assert try_lock(held.fileno())
        with (
            pytest.raises(ElmoError, match=r"no sign of life for .* delete the file"),
            wait_for_lock(tmp_path / ".lock"),
        ):
            pass


def test_a_holder_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "TOUCH_SECONDS", 0.01)
    with wait_for_lock(tmp_path / ".lock"):
        os.utime(tmp_path / ".lock", (1, 1))
        for _ in range(1000):
            if (tmp_path / ".lock").stat().st_mtime > 2:
                return
            threading.Event().wait(0.01)
    raise AssertionError("the file was not touched")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link", "missing", "file/inside"):
        check_regular(tmp_path / name)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "circle").symlink_to("circle")
    for name in ("pipe", "device", "circle", "."):
        with pytest.raises(FormatError, match=r"regular file|cannot be read"):
            check_regular(tmp_path / name)
