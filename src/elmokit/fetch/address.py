"""An http(s) address of a model to the files that belong to it.

A zip archive is one file and stays one. Of a pair, either file or its directory may be named:
`X_options.json` belongs to `X_weights.hdf5`, as in `formats/detect.py`. Of our own format, the
manifest tells the files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from elmokit.errors import FormatError, InputError
from elmokit.fetch.http import shown
from elmokit.fetch.manifest import MANIFEST, listed
from elmokit.fetch.published import RemoteFile
from elmokit.fetch.store import Files, Plan
from elmokit.formats.detect import NATIVE_NAMES

OPTIONS, WEIGHTS, VOCABULARY = "options.json", "weights.hdf5", "vocab.txt"
"""What the files of a pair are called on disk, whatever their address calls them."""
PLAIN_WEIGHTS = (WEIGHTS, "model.hdf5", "lm_weights.hdf5")


def plan(address: str) -> Plan:
    """What to download for an address, or an `InputError` that says what it can be."""
    parts = urlsplit(address)
    if not parts.hostname or "@" in parts.netloc:
        raise InputError(
            f"{shown(address)} is no address of a model: expected https://HOST/PATH, without user "
            "name or password"
        )
    directory, _, last = parts.path.rpartition("/")
    last = unquote(last)
    lower = last.lower()
    base = _Base(address, directory + "/")
    if lower.endswith(".zip"):
        return _zip(address, last)
    if last in NATIVE_NAMES and last != VOCABULARY:
        return _plan(address, lambda folder: _native(base, folder))
    if lower.endswith((".hdf5", ".h5")):
        return _pair(address, base, _options_of(last), (last,))
    if lower.endswith("options.json"):
        return _pair(address, base, (last,), _weights_of(last))
    if re.search(r"\.(tar|tgz|gz|bz2|xz|7z|th|pt|pkl|bin)$", lower):
        raise InputError(
            f"{shown(address)} is of a kind that is not downloaded as a model; expected a .zip, an "
            ".hdf5 or options.json file, or a directory. Download it by hand, unpack it, and give "
            "the path of the folder"
        )
    inside = _Base(address, parts.path.rstrip("/") + "/")
    return _plan(address, lambda folder: _directory(inside, folder))


class _Base:
    """The directory of an address, to name its neighbors."""

    def __init__(self, address: str, directory: str) -> None:
        self._parts = urlsplit(address)
        self._directory = directory

    def __call__(self, name: str) -> str:
        """The address of a file; the query stays, since servers like `?download=true`."""
        return urlunsplit(self._parts._replace(path=self._directory + name, fragment=""))


def _key(address: str) -> str:
    """A folder's name that a person can read and that two addresses never share."""
    parts = urlsplit(address)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{parts.hostname}{parts.path}").strip("-.")
    return f"{readable[:80]}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"


def _zip(address: str, name: str) -> Plan:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".") or "model.zip"
    file = RemoteFile(safe, (urlunsplit(urlsplit(address)._replace(fragment="")),))
    return Plan(_key(address), shown(address), lambda folder: iter((file,)), (file,), safe)


def _plan(address: str, files: Files, known: tuple[RemoteFile, ...] = ()) -> Plan:
    return Plan(_key(address), shown(address), files, known)


def _options_of(weights: str) -> tuple[str, ...]:
    """X_weights.hdf5, X_weights_PubMed_only.hdf5 → X_options.json; else the plain name."""
    stem, found, _ = weights.rpartition("weights")
    own = (stem + OPTIONS,) if found and stem else ()
    return (*own, OPTIONS)


def _weights_of(options: str) -> tuple[str, ...]:
    stem = options[: -len(OPTIONS)]
    return (stem + WEIGHTS,) if stem else PLAIN_WEIGHTS


def _pair(address: str, base: _Base, options: tuple[str, ...], weights: tuple[str, ...]) -> Plan:
    stem = options[0][: -len(OPTIONS)]
    vocabularies = (stem + VOCABULARY, VOCABULARY) if stem else (VOCABULARY,)
    files = _pair_files(base, options, weights, vocabularies)
    return _plan(address, lambda folder: iter(files), files)


def _pair_files(
    base: _Base, options: tuple[str, ...], weights: tuple[str, ...], vocabularies: tuple[str, ...]
) -> tuple[RemoteFile, ...]:
    """The small files first: a wrong address shows early."""
    return (
        RemoteFile(OPTIONS, tuple(map(base, options))),
        RemoteFile(VOCABULARY, tuple(map(base, vocabularies)), optional=True),
        RemoteFile(WEIGHTS, tuple(map(base, weights))),
    )


def _native(base: _Base, folder: Path, optional: bool = False) -> Iterator[RemoteFile]:
    yield RemoteFile(MANIFEST, (base(MANIFEST),), optional=optional)
    if not (folder / MANIFEST).exists():
        return
    where = shown(base(MANIFEST))
    try:
        entries = listed(folder / MANIFEST, where)
    except FormatError:
        (folder / MANIFEST).unlink()
        raise
    for name, (size, sha256) in entries.items():
        yield RemoteFile(name, (base(name),), size, sha256)


def _directory(base: _Base, folder: Path) -> Iterator[RemoteFile]:
    yield from _native(base, folder, optional=True)
    if not (folder / MANIFEST).exists():
        yield from _pair_files(base, (OPTIONS,), PLAIN_WEIGHTS, (VOCABULARY,))
