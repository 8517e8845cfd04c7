"""Several files that change together: all old or all new, whenever the process is killed.

A new directory is written under a hidden name and renamed. Files in a directory that exists, which
may hold other things as well, are replaced in two steps:

1. The new files are written to a hidden directory, and all of them reach the disk. Renaming it to
   `.NAME.committed` decides that they are valid: this is the one step that counts.
2. They are moved to their places, and the hidden directory is removed.

A process that is killed before the rename leaves the old files, and one that is killed after it
leaves `.NAME.committed`. Whoever reads the directory next calls `finish_replacements`, which does
the rest; where that is impossible, because the disk is read-only, `pending_files` says where the
new files are.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from elmokit.errors import ElmoError
from elmokit.storage import (
    POLL_SECONDS,
    remove_leftovers,
    sync_directory,
    sync_file,
    temporary_path,
    try_lock,
)

COMMITTED = re.compile(r"\..+\.committed")
"""Names of directories with files that are valid and not yet in their places."""
REMOVED = ".removed"
"""Ending of an empty file in such a directory: the file without this ending is to be removed."""


@contextmanager
def staging_directory(target: Path) -> Iterator[Path]:
    """Make a hidden directory beside a path, and delete it at the end unless it was moved.

    What killed processes have left there for the same path is removed.

    Args:
        target: The path that is going to be written, by moving the directory or files in it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(target)
    stage = temporary_path(target)
    stage.mkdir()
    try:
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def replace_files(directory: Path, name: str, members: Collection[str] = ()) -> Iterator[Path]:
    """Make a hidden directory; when the block ends, its files replace those of `directory`.

    All of them at once: a process that is killed leaves the old files or the new ones.

    Args:
        directory: Where the files belong. If it does not exist, it appears with all files in it.
        name: A name for the group of files, such as that of its most important file.
        members: All names that a file of the group can have; of these, files that the block does
            not write are removed.
    """
    if directory.exists():
        finish_replacements(directory)
        with contextlib.suppress(OSError):  # what a process left that was to make the directory
            remove_leftovers(directory)
    with staging_directory(directory / name if directory.exists() else directory) as stage:
        yield stage
        commit_directory(stage, directory, name, members)


def commit_directory(
    stage: Path, directory: Path, name: str, members: Collection[str] = ()
) -> None:
    """Move the files of a staging directory to where they belong, all of them at once.

    Args:
        stage: A directory on the same disk, made by `staging_directory`.
        directory: Where the files belong; it may not exist yet.
        name: As for `replace_files`.
        members: As for `replace_files`.
    """
    _sync(stage)
    if not directory.exists():
        os.rename(stage, directory)
        sync_directory(directory.parent)
        return
    for member in members:
        if not (stage / member).exists() and (directory / member).exists():
            (stage / f"{member}{REMOVED}").touch()
    committed = directory / f".{name}.committed"
    with _lock(stage):
        while True:
            try:
                os.rename(stage, committed)
                break
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                finish_replacements(directory)  # somebody else was faster
        sync_directory(directory)
        _move_to_places(committed)


def finish_replacements(directory: Path) -> None:
    """Finish what killed processes have begun: put new files of a directory in their places.

    Raises:
        OSError: Files in the directory cannot be moved, because the disk is read-only, for example.
    """
    for committed in _committed(directory):
        with _lock(committed) as is_current:
            if is_current:
                _move_to_places(committed)


def try_to_finish(directory: Path) -> None:
    """Do as `finish_replacements` before reading; explain what to do if that is impossible."""
    try:
        finish_replacements(directory)
    except OSError as error:
        raise ElmoError(
            f"{directory} was being replaced when the process was killed, and finishing this "
            f"failed: {error.strerror}; read it once where its files can be moved"
        ) from None


def pending_files(directory: Path) -> dict[str, Path | None]:
    """Return where new files of a directory are that cannot be moved; None for a removed one."""
    files: dict[str, Path | None] = {}
    for committed in _committed(directory):
        for path in committed.iterdir():
            if path.name.endswith(REMOVED):
                files[path.name.removesuffix(REMOVED)] = None
            elif path.is_file():
                files[path.name] = path
    return files


def _committed(directory: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as items:
        return sorted(
            Path(item.path)
            for item in items
            if COMMITTED.fullmatch(item.name) and item.is_dir(follow_symlinks=False)
        )
    return []


def _move_to_places(committed: Path) -> None:
    directory = committed.parent
    with contextlib.suppress(FileNotFoundError):  # somebody else has done it
        for path in sorted(committed.iterdir()):
            if path.name.endswith(REMOVED):
                (directory / path.name.removesuffix(REMOVED)).unlink(missing_ok=True)
                path.unlink(missing_ok=True)
            else:
                os.replace(path, directory / path.name)
        sync_directory(directory)
        try:
            committed.rmdir()
        except OSError as error:  # the next replacement may take the place of the empty directory
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _sync(stage: Path) -> None:
    for path in stage.rglob("*"):
        if path.is_file():
            sync_file(path)
    sync_directory(stage)


@contextmanager
def _lock(directory: Path) -> Iterator[bool]:
    """Hold a lock on a directory, and say whether it is still there and still the same one.

    The lock survives a rename. Without it two processes that finish the same replacement could
    disturb a third one, which begins the next.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except FileNotFoundError:
        yield False
        return
    except OSError:  # Windows cannot open a directory
        yield True
        return
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            while not try_lock(descriptor):
                time.sleep(POLL_SECONDS / 10)
        try:
            is_current = os.path.samestat(os.fstat(descriptor), directory.stat())
        except FileNotFoundError:
            is_current = False
        yield is_current
    finally:
        os.close(descriptor)
