"""The spool survives being cut, damaged and killed at any point."""

import os
import signal
import struct
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest

from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.vectors import load_vectors, open_writer, save_vectors, spool

SIGNATURE = {"model": "m"}


def sentences(count, start=0):
    for i in range(start, count):
        array = np.arange(2 * (i % 3) * 2, dtype=np.float32).reshape(2, i % 3, 2) + i
        yield [f"w{i}.{k}" for k in range(i % 3)], array


@pytest.fixture
def stopped(tmp_path):
    """(path, the finished file's bytes, the bytes of the spool after 5 of 6 sentences)."""
    path = tmp_path / "v.npz"
    save_vectors(sentences(6), path, signature=SIGNATURE)
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(KeyboardInterrupt), open_writer(path, signature=SIGNATURE) as out:
        for words, array in sentences(5):
            out.write(words, array)
        raise KeyboardInterrupt
    return path, whole, partial(path).read_bytes()


def partial(path):
    return path.with_name(path.name + ".partial")


def header():
    return {"dtype": "float32", "format": "npz", "signature": SIGNATURE}


@pytest.fixture
def no_fsync(monkeypatch):
    """For tests that open hundreds of files; what they check happens above the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def test_cut_at_every_byte(stopped, no_fsync):
    path, whole, stored = stopped
    seen = []
    for length in range(len(stored) + 1):
        partial(path).write_bytes(stored[:length])
        with open_writer(path, signature=SIGNATURE) as out:
            seen.append(out.done)
            for i, (words, array) in enumerate(sentences(6)):
                if i < out.done:
                    out.skip(words)
                else:
                    out.write(words, array)
        assert path.read_bytes() == whole, length
        path.unlink()
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2, 3, 4, 5}
    assert seen[-2:] == [4, 5]


def test_damaged_at_every_byte(stopped, no_fsync):
    """A changed byte costs work or is refused; it never reaches the result."""
    path, whole, stored = stopped
    outcomes = set()
    for position in range(len(stored)):
        damaged = bytearray(stored)
        damaged[position] ^= 0x41
        partial(path).write_bytes(damaged)
        try:
            save_vectors(sentences(6), path, signature=SIGNATURE)
        except FormatError as error:
            outcomes.add("refused")
            assert "move it away" in str(error) or "restart=True" in str(error)
            continue
        outcomes.add("repaired")
        assert path.read_bytes() == whole, position
        path.unlink()
    assert outcomes == {"refused", "repaired"}


@pytest.mark.parametrize("tail", [b"\0" * 5000, b"\xff" * 5000, os.urandom(5000)])
def test_a_tail_that_a_power_failure_left_is_cut(stopped, tail):
    path, whole, stored = stopped
    partial(path).write_bytes(stored + tail)
    log = spool.Spool(partial(path), header())
    assert (log.count, log.ended, log.shape) == (5, False, (2, 2))
    log.close()
    assert partial(path).read_bytes() == stored
    save_vectors(sentences(6), path, signature=SIGNATURE)
    assert path.read_bytes() == whole


def test_a_foreign_file_in_the_way_is_never_deleted(tmp_path):
    path = tmp_path / "v.npz"
    partial(path).write_bytes(b"my only copy")
    for restart in (False, True):
        with pytest.raises(
            FormatError, match=r"not an unfinished run of elmokit: .*b'my only copy'.*move it away"
        ):
            open_writer(path, restart=restart)
    assert partial(path).read_bytes() == b"my only copy"


def test_a_damaged_header_can_be_restarted(stopped):
    path, whole, stored = stopped
    damaged = bytearray(stored)
    damaged[len(spool.SPOOL_MAGIC) + 20] ^= 1
    partial(path).write_bytes(damaged)
    with pytest.raises(FormatError, match="damaged: its header"):
        open_writer(path, signature=SIGNATURE)
    save_vectors(sentences(6), path, signature=SIGNATURE, restart=True)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("text", [b"", b"[]", b'{"dtype": []}', b'{"dtype": "float32"}'])
def test_a_header_that_is_none_is_damaged(stopped, text):
    path, _, _ = stopped
    sizes = struct.pack("<QI", len(text), zlib.crc32(text))  # zeros if there is no text
    partial(path).write_bytes(spool.SPOOL_MAGIC + sizes + text + bytes(40))
    with pytest.raises(FormatError, match="damaged: its header"):
        open_writer(path, signature=SIGNATURE)


@pytest.mark.parametrize(
    "text", [b"nothing", b"{}", b"3", b"[1]", b'{"words": "ab"}', b'{"words": [], "id": 3}']
)
def test_a_sentence_that_is_none_is_damaged(text):
    with pytest.raises(FormatError, match="a sentence that is damaged"):
        spool.parse_text(text)


def test_a_spool_that_rots_before_the_export_makes_no_file(stopped):
    path, _, _ = stopped
    with (
        pytest.raises(FormatError, match="sentence 4 has changed on the disk"),
        open_writer(path, signature=SIGNATURE) as out,
    ):
        for words, _ in sentences(5):
            out.skip(words)
        with partial(path).open("r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.write(b"\x55")
    assert [p.name for p in path.parent.iterdir()] == [partial(path).name]


def test_a_failing_write_leaves_no_half_record(tmp_path, monkeypatch):
    path = tmp_path / "v.npz"
    pairs = list(sentences(6))
    with open_writer(path) as out:
        for i, pair in enumerate(pairs):
            if i == 4:
                write_piece = spool.Spool._write
                pieces = []

                def fail_on_second(self, piece, pieces=pieces, write=write_piece):
                    pieces.append(piece)
                    write(self, piece[: len(piece) // 2])
                    if len(pieces) == 2:
                        raise OSError("no space left on device")

                monkeypatch.setattr(spool.Spool, "_write", fail_on_second)
                with pytest.raises(OSError, match="no space"):
                    out.write(*pair)
                monkeypatch.setattr(spool.Spool, "_write", write_piece)
            out.write(*pair)
    for (words, array), (found_words, found) in zip(pairs, load_vectors(path).items(), strict=True):
        assert words == found_words
        np.testing.assert_array_equal(array, found)


def test_sentences_reach_the_system_at_once_and_the_disk_at_intervals(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor))
    monkeypatch.setattr(spool, "SYNC_BYTES", 10_000)
    monkeypatch.setattr(spool, "SYNC_SECONDS", 1e9)
    log = spool.Spool(tmp_path / "s", header())
    created = len(synced)
    array = np.ones((1, 225), np.float32)  # 900 bytes, so a little more than 10 make 10,000
    for i in range(44):
        before = log.path.stat().st_size
        log.append(b'["w"]', array)
        assert log.path.stat().st_size > before + 900, i
    assert len(synced) - created == 4
    monkeypatch.setattr(spool, "SYNC_SECONDS", -1.0)
    log.append(b'["w"]', array)
    assert len(synced) - created == 5
    log.close()


def test_a_spool_removed_while_we_waited_for_it_is_not_written_to(tmp_path, monkeypatch):
    """Another run finishes between our opening its spool and our locking it."""
    pytest.importorskip("fcntl")
    path = tmp_path / "s"
    lock = spool._lock
    removed = []

    def lock_late(file, name):
        if not removed:
            removed.append(path.unlink())
        lock(file, name)

    monkeypatch.setattr(spool, "_lock", lock_late)
    log = spool.Spool(path, header())
    log.append(b'["w"]', np.ones((1, 2), np.float32))
    log.close()
    assert spool.Spool(path, header()).count == 1


WRITE = """
import os, signal, sys
from pathlib import Path
import numpy as np
from elmokit import vectors
from elmokit.vectors import spool

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def after(owner, name, calls, then=kill):
    original, count = getattr(owner, name), [0]
    def wrapped(*args, **options):
        result = original(*args, **options)
        count[0] += 1
        if count[0] == calls:
            kill()
        return result
    setattr(owner, name, wrapped)

def killed_while_exporting(self, original=spool.Spool.records):
    for i, record in enumerate(original(self)):
        if i == 30:
            kill()
        yield record

where = sys.argv[2]
if where == "between the pieces of a record":
    after(spool.Spool, "_write", 22)
elif where == "after a record":
    after(spool.Spool, "append", 17)
elif where == "after the end mark":
    after(spool.Spool, "end", 1)
elif where == "in the export":
    spool.Spool.records = killed_while_exporting
elif where == "before the rename":
    os.replace = kill
elif where == "after the rename":
    after(os, "replace", 1)

def sentences():
    for i in range(40):
        words = [f"w{i}.{k}" for k in range(i % 5)]
        yield words, np.random.default_rng(i).normal(size=(3, i % 5, 16)).astype(np.float32)

print(vectors.open_writer.__name__, flush=True)
print(vectors.save_vectors(sentences(), sys.argv[1], signature={"model": "m"}), flush=True)
"""
POINTS = {
    "between the pieces of a record": (".h5", False),
    "after a record": (".npz", False),
    "after the end mark": (".h5", False),
    "in the export": (".parquet", False),
    "before the rename": (".npz", False),
    "after the rename": (".h5", True),
}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("where", POINTS)
def test_killed_and_started_again(tmp_path, where):
    suffix, there = POINTS[where]
    path, whole = tmp_path / f"v{suffix}", tmp_path / f"whole{suffix}"

    def run(name, point):
        command = [sys.executable, "-c", textwrap.dedent(WRITE), str(name), point]
        return subprocess.run(command, capture_output=True, text=True)

    killed = run(path, where)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert path.exists() is there
    assert partial(path).exists()
    again = run(path, "nowhere")
    assert again.stdout.split() == ["open_writer", "40"], again.stderr
    assert run(whole, "nowhere").returncode == 0
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, whole.name])


def test_more_input_after_the_end_mark_is_appended(stopped):
    path, whole, _ = stopped
    log = spool.Spool(partial(path), header())
    log.end()
    log.close()
    log = spool.Spool(partial(path), header())
    assert (log.count, log.ended) == (5, True)
    log.close()
    save_vectors(sentences(6), path, signature=SIGNATURE)
    assert path.read_bytes() == whole


def test_a_record_larger_than_a_chunk_is_scanned(tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "_CHUNK", 7)
    log = spool.Spool(tmp_path / "s", header())
    array = np.random.default_rng(0).normal(size=(3, 5, 4)).astype(np.float32)
    log.append(b'["1","2","3","4","5"]', array)
    log.close()
    log = spool.Spool(tmp_path / "s", header())
    [(text, found)] = log.records()
    assert (text, found.tobytes()) == (b'["1","2","3","4","5"]', array.tobytes())
    assert list(log.texts()) == [text]
    log.close()


def test_errors_are_of_the_family():
    assert issubclass(InputError, ElmoError) and issubclass(FormatError, ElmoError)
