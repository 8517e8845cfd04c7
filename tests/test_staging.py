"""Several files that change together, in processes that die at every step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from elmokit.staging import finish_replacements, pending_files, replace_files
from elmokit.storage import atomic_write, remove_leftovers, temporary_path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="simulates kills with os.fork")

STEPS = ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync")
"""Functions of `os` before which a process may die."""


def die_before(step: int, action: Callable[[], object]) -> bool:
    """Run an action in a child that is killed before its step-th system call; False if it ended."""
    child = os.fork()
    if child == 0:
        remaining = step

        def dying(real: Callable[..., object]) -> Callable[..., object]:
            def call(*arguments: object, **options: object) -> object:
                nonlocal remaining
                remaining -= 1
                if remaining < 0:
                    os._exit(9)
                return real(*arguments, **options)

            return call

        for name in STEPS:
            setattr(os, name, dying(getattr(os, name)))
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9), "the action failed instead of being killed"
    return code == 9


def write_model(directory: Path, content: str, names: str) -> None:
    with replace_files(directory, "weights", ("options", "vocab", "weights")) as stage:
        for name in names.split():
            (stage / name).write_text(content)


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}


def test_old_or_new_at_every_step(tmp_path: Path) -> None:
    """Also the removal of a file that only the old group has; other files stay."""
    old = {"options": "old", "vocab": "old", "weights": "old", "mine": "user"}
    new = {"options": "new", "weights": "new", "mine": "user"}
    seen, step = set(), 0
    while True:
        directory = tmp_path / str(step)
        write_model(directory, "old", "options vocab weights")
        (directory / "mine").write_text("user")
        killed = die_before(step, lambda at=directory: write_model(at, "new", "options weights"))
        finish_replacements(directory)
        found = contents(directory)
        assert found in (old, new), f"killed before step {step}: {found}"
        seen.add(found["weights"])
        write_model(directory, "new", "options weights")  # and the next run cleans up
        assert contents(directory) == new
        assert sorted(os.listdir(directory)) == ["mine", "options", "weights"]
        if not killed:
            break
        step += 1
    assert seen == {"old", "new"} and step > 8


def test_a_new_directory_is_complete_or_absent(tmp_path: Path) -> None:
    step, seen = 0, set()
    while True:
        directory = tmp_path / f"m{step}"
        killed = die_before(step, lambda at=directory: write_model(at, "new", "options weights"))
        seen.add(directory.exists())
        if directory.exists():
            assert contents(directory) == {"options": "new", "weights": "new"}
        write_model(directory, "newer", "options weights")
        assert sorted(os.listdir(directory)) == ["options", "weights"]
        assert [p for p in os.listdir(tmp_path) if p.startswith(f".m{step}.")] == []
        if not killed:
            break
        step += 1
    assert seen == {False, True}


def test_a_killed_process_can_be_killed_again_while_it_is_finished(tmp_path: Path) -> None:
    for first in range(3, 16):
        for second in range(6):
            directory = tmp_path / f"{first}-{second}"
            write_model(directory, "old", "options vocab weights")
            die_before(first, lambda at=directory: write_model(at, "new", "options weights"))
            die_before(second, lambda at=directory: finish_replacements(at))
            finish_replacements(directory)
            values = contents(directory)
            assert values in (
                {"options": "old", "vocab": "old", "weights": "old"},
                {"options": "new", "weights": "new"},
            )


def test_where_files_are_that_cannot_be_moved(tmp_path: Path) -> None:
    write_model(tmp_path, "old", "options vocab weights")
    committed = tmp_path / ".weights.committed"
    committed.mkdir()
    (committed / "weights").write_text("new")
    (committed / "vocab.removed").touch()
    assert pending_files(tmp_path) == {"weights": committed / "weights", "vocab": None}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A model from elsewhere must not make us move files that are not its own."""
    outside, directory = tmp_path / "outside", tmp_path / "model"
    outside.mkdir()
    directory.mkdir()
    (outside / "weights").write_text("mine")
    (directory / ".weights.committed").symlink_to(outside)
    finish_replacements(directory)
    assert pending_files(directory) == {}
    assert (outside / "weights").read_text() == "mine"


def test_two_processes_replace_the_same_files(tmp_path: Path) -> None:
    """Many times at once: at the end the files are those of one of them."""
    code = (
        "import sys; from pathlib import Path; from elmokit.staging import replace_files\n"
        "for i in range(40):\n"
        "    with replace_files(Path(sys.argv[1]), 'weights', ('weights', 'options')) as stage:\n"
        "        for name in ('options', 'weights'):\n"
        "            (stage / name).write_text(f'{sys.argv[2]} {i}')\n"
    )
    directory = tmp_path / "m"
    write_model(directory, "old", "options weights")
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(directory), name]) for name in "abc"
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    found = contents(directory)
    assert set(found) == {"options", "weights"} and len(set(found.values())) == 1
    assert sorted(os.listdir(directory)) == ["options", "weights"]


def test_leftovers_of_dead_processes_are_removed_and_others_stay(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with atomic_write(target) as temporary:
        temporary.write_text("of this process, which is running")
        remove_leftovers(target)
        assert temporary.exists()
    child = os.fork()
    if child == 0:
        temporary_path(target).write_text("killed here")
        os._exit(9)
    os.waitpid(child, 0)
    assert len(os.listdir(tmp_path)) == 2
    other = tmp_path / ".file.0123abcd-1-0123abcd.tmp"  # of another machine that shares the disk
    other.touch()
    with atomic_write(target) as temporary:
        temporary.write_text("new")
    assert sorted(os.listdir(tmp_path)) == [other.name, "file"]
