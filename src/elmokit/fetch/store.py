"""A model's folder in the cache: complete and intact, or completed from the network.

Knows in which order things happen (record, lock, files, record), not what is downloaded: that is
a `Plan`, which `published.py` and `address.py` make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elmokit.errors import FormatError, ModelNotFound
from elmokit.fetch import cache
from elmokit.fetch.cache import Entry
from elmokit.fetch.download import Missing, download
from elmokit.fetch.http import shown
from elmokit.fetch.lock import locked
from elmokit.fetch.progress import Progress, Report, reporting
from elmokit.fetch.published import RemoteFile

Files = Callable[[Path], Iterator[RemoteFile]]
"""The files of a model, for the folder that they come into."""


@dataclass(frozen=True)
class Plan:
    """What to keep, under which key, and what to tell a person."""

    key: str
    """The folder's name."""
    title: str
    files: Files
    """The files one after another; each is in the folder (or absent, if it is optional) before
    the next is asked for, so that a list of files can itself be a file."""
    known: tuple[RemoteFile, ...] = ()
    """The files that are known before anything is downloaded."""
    model: str = ""
    """Which file of the folder is the model; all of it, if none."""
    page: str = ""
    """Where a person finds the model."""


def keep(plan: Plan, *, local_files_only: bool, progress: Progress) -> Path:
    """The path of the model on this disk."""
    folder = cache.models_root() / plan.key
    record = cache.read_record(folder)
    if not _complete(plan, folder, record):
        if local_files_only or cache.offline():
            raise ModelNotFound(_offline(plan, folder, local_files_only))
        cache.make(folder)
        with locked(folder / cache.LOCK), reporting(progress) as report:
            record = cache.read_record(folder)  # somebody else may have been faster
            if not _complete(plan, folder, record):
                cache.write_record(folder, _complete_now(plan, folder, record or {}, report))
    return folder / plan.model if plan.model else folder


def _complete(plan: Plan, folder: Path, record: dict[str, Entry] | None) -> bool:
    if record is None or not all(cache.intact(folder / name, record[name]) for name in record):
        return False
    return all(
        file.optional or (file.name in record and file.sha256 in (None, record[file.name].sha256))
        for file in plan.known
    )


def _complete_now(
    plan: Plan, folder: Path, record: dict[str, Entry], report: Report
) -> dict[str, Entry]:
    entries = {}
    try:
        for file in plan.files(folder):
            entry = _bring(file, folder, record.get(file.name), report)
            if entry is not None:
                entries[file.name] = entry
    except FormatError as error:
        kind = ModelNotFound if isinstance(error, ModelNotFound) else FormatError
        see = f". The model's own page is {plan.page}" if plan.page else ""
        raise kind(f"{plan.title}: {error}{see}") from None
    return entries


def _bring(file: RemoteFile, folder: Path, before: Entry | None, report: Report) -> Entry | None:
    """A file that is there and right, or downloaded; None if it is optional and does not exist."""
    sha = file.sha256 or (before.sha256 if before else None)
    path = folder / file.name
    if path.exists():
        found = Entry(path.stat().st_size, cache.sha256(path), shown(file.addresses[0]))
        if file.bytes in (None, found.bytes) and sha in (None, found.sha256):
            return found
    try:
        return download(file, folder, report, sha)
    except FormatError as error:
        if file.optional and (not isinstance(error, Missing) or error.absent):
            return None
        if before and not file.sha256 and not isinstance(error, Missing):
            raise FormatError(
                f"{error}. It was different when it was first downloaded; delete {folder} if you "
                "want what is there now"
            ) from None
        raise


def _offline(plan: Plan, folder: Path, local_files_only: bool) -> str:
    why = "local_files_only is set" if local_files_only else "ELMOKIT_OFFLINE is set"
    missing = [file.name for file in plan.known if not (folder / file.name).exists()]
    lack = f"{', '.join(missing)} missing" if missing else "incomplete or damaged"
    by_hand = [shown(file.addresses[0]) for file in plan.known if not file.optional]
    return (
        f"{plan.title} is not on this disk ({lack} in {folder}), and the network is not used: "
        f"{why}. Load it once with the network"
        + (f", or download {' and '.join(by_hand)} by hand" if by_hand else "")
        + ", or give the path of a folder that has the model"
    )
