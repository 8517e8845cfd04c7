"""From the http(s) address of a model to the list of its files.

An archive (zip, tar.gz) is one file and stays packed. Of a pair of options and weights, either file
or their directory may be given: `X_options.json` belongs to `X_weights.hdf5`, as in
`formats/detect.py`. Of a model in elmokit's own format, the manifest lists the files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from elmokit.errors import FormatError, InputError
from elmokit.fetch.http import public_address
from elmokit.fetch.manifest import MANIFEST, read_manifest
from elmokit.fetch.published import RemoteFile
from elmokit.fetch.store import DownloadPlan, ListFiles
from elmokit.formats.detect import NATIVE_NAMES

OPTIONS, WEIGHTS, VOCABULARY = "options.json", "weights.hdf5", "vocab.txt"
"""Names on disk of the files of a pair, whatever their names on the server."""
PLAIN_WEIGHTS = (WEIGHTS, "model.hdf5", "lm_weights.hdf5")
"""Names of weights that belong to a plain `options.json`."""


def plan_download(address: str) -> DownloadPlan:
    """Return what to download for an address; raise `InputError` if it cannot be a model."""
    parts = urlsplit(address)
    if not parts.hostname or "@" in parts.netloc:
        raise InputError(
            f"{public_address(address)} is not the address of a model; expected https://HOST/PATH, "
            "without user name or password"
        )
    directory, _, file_name = parts.path.rpartition("/")
    file_name = unquote(file_name)
    lower = file_name.lower()
    base = _Base(address, directory + "/")
    if lower.endswith((".zip", ".tar.gz", ".tgz")):
        return _plan_archive(address, file_name)
    if file_name in NATIVE_NAMES and file_name != VOCABULARY:
        return _plan(address, lambda folder: _native_files(base, folder))
    if lower.endswith((".hdf5", ".h5")):
        return _plan_pair(address, base, _options_for(file_name), (file_name,))
    if lower.endswith("options.json"):
        return _plan_pair(address, base, (file_name,), _weights_for(file_name))
    if re.search(r"\.(tar|tgz|gz|bz2|xz|7z|th|pt|pkl|bin)$", lower):
        raise InputError(
            f"{public_address(address)} is not a kind of file that can be downloaded as a model; "
            "expected a .zip, .tar.gz, .hdf5 or options.json file, or a directory. Download it "
            "yourself, "
            "unpack it, and give the path of the folder"
        )
    inside = _Base(address, parts.path.rstrip("/") + "/")
    return _plan(address, lambda folder: _directory_files(inside, folder))


class _Base:
    """A directory on a server, to make the addresses of the files in it."""

    def __init__(self, address: str, directory: str) -> None:
        self._parts = urlsplit(address)
        self._directory = directory

    def __call__(self, name: str) -> str:
        """Return the address of a file; the query stays, since servers use `?download=true`."""
        return urlunsplit(self._parts._replace(path=self._directory + name, fragment=""))


def _key(address: str) -> str:
    """Return a readable folder name that no two addresses share."""
    parts = urlsplit(address)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{parts.hostname}{parts.path}").strip("-.")
    return f"{readable[:80]}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"


def _plan_archive(address: str, name: str) -> DownloadPlan:
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip(".") or "model.zip"
    file = RemoteFile(safe, (urlunsplit(urlsplit(address)._replace(fragment="")),))
    return DownloadPlan(
        _key(address), public_address(address), lambda folder: iter((file,)), (file,), safe
    )


def _plan(address: str, files: ListFiles, known: tuple[RemoteFile, ...] = ()) -> DownloadPlan:
    return DownloadPlan(_key(address), public_address(address), files, known)


def _options_for(weights: str) -> tuple[str, ...]:
    """Return X_options.json for X_weights.hdf5 and X_weights_Y.hdf5, and the plain name."""
    stem, separator, _ = weights.rpartition("weights")
    own = (stem + OPTIONS,) if separator and stem else ()
    return (*own, OPTIONS)


def _weights_for(options: str) -> tuple[str, ...]:
    stem = options[: -len(OPTIONS)]
    return (stem + WEIGHTS,) if stem else PLAIN_WEIGHTS


def _plan_pair(
    address: str, base: _Base, options: tuple[str, ...], weights: tuple[str, ...]
) -> DownloadPlan:
    stem = options[0][: -len(OPTIONS)]
    vocabularies = (stem + VOCABULARY, VOCABULARY) if stem else (VOCABULARY,)
    files = _pair_files(base, options, weights, vocabularies)
    return _plan(address, lambda folder: iter(files), files)


def _pair_files(
    base: _Base, options: tuple[str, ...], weights: tuple[str, ...], vocabularies: tuple[str, ...]
) -> tuple[RemoteFile, ...]:
    """Return the files of a pair, the small ones first: so a wrong address fails early."""
    return (
        RemoteFile(OPTIONS, tuple(map(base, options))),
        RemoteFile(VOCABULARY, tuple(map(base, vocabularies)), optional=True),
        RemoteFile(WEIGHTS, tuple(map(base, weights))),
    )


def _native_files(base: _Base, folder: Path, optional: bool = False) -> Iterator[RemoteFile]:
    yield RemoteFile(MANIFEST, (base(MANIFEST),), optional=optional)
    if not (folder / MANIFEST).exists():
        return
    try:
        entries = read_manifest(folder / MANIFEST, public_address(base(MANIFEST)))
    except FormatError:
        (folder / MANIFEST).unlink()
        raise
    for name, (size, sha256) in entries.items():
        yield RemoteFile(name, (base(name),), size, sha256)


def _directory_files(base: _Base, folder: Path) -> Iterator[RemoteFile]:
    yield from _native_files(base, folder, optional=True)
    if not (folder / MANIFEST).exists():
        yield from _pair_files(base, (OPTIONS,), PLAIN_WEIGHTS, (VOCABULARY,))
