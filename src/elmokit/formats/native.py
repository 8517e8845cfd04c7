"""Reading and writing elmokit's own format, a directory.

It holds config.json, model.safetensors, vocab.txt, settled.safetensors and manifest.json. Models
whose characters are code points also have characters.json, and those that know whole words have
words.json: lists of the strings that the rows of these tables belong to. The manifest holds the
size and SHA-256 of every other file and is written last: a directory with a manifest is complete.
Weights stay in their file and are read when they are needed (`stored_arrays.py`).
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import elmokit
from elmokit.bilm.config import BiLMConfig
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM, ExportOrigin
from elmokit.bilm.state import State
from elmokit.errors import ConfigError, FormatError, InputError
from elmokit.formats.detect import NATIVE_NAMES, DetectedModel
from elmokit.formats.source import ModelSource
from elmokit.formats.stored_arrays import StoredArray, StoredArrays, WeightsFile
from elmokit.json_text import parse_json
from elmokit.staging import finish_replacements, replace_files
from elmokit.storage import checksum
from elmokit.text.dictionary import Dictionary
from elmokit.text.vocabulary import Vocabulary

FORMAT, VERSION = "elmokit-bilm", 1
CONFIG, WEIGHTS, VOCABULARY, SETTLED, ALPHABET, LEXICON, MANIFEST = NATIVE_NAMES
MOST_LISTED = 100
"""Number of files that a manifest may list; there are six now, and may be more one day."""
EXTRA = "extra/"
"""Prefix in model.safetensors of arrays that came with a converted file but are not weights."""


def read(detected: DetectedModel) -> BiLM:
    """Read a directory, or the same files in a zip archive, and verify every checksum."""
    source = detected.source
    manifest = _check_manifest(source)
    files = manifest["files"]
    settings = source.read_json(CONFIG)
    _check_version(settings, source.describe(CONFIG))
    mix = settings.pop("mix", None)
    config = BiLMConfig.from_dict(settings)
    tensors = _tensors(source, WEIGHTS)
    settled = _tensors(source, SETTLED) if SETTLED in files else None
    if settled is not None and set(settled) != {"hidden", "cell"}:
        raise FormatError(
            f"{source.describe(SETTLED)} holds {sorted(settled)}; expected hidden and cell"
        )
    return BiLM(
        config,
        tensors.select(lambda name: None if name.startswith(EXTRA) else name),
        Vocabulary.parse(source.read(VOCABULARY), source.describe(VOCABULARY))
        if VOCABULARY in files
        else None,
        None if settled is None else State(settled["hidden"], settled["cell"]),
        None if mix is None else _mix(mix, source.describe(CONFIG)),
        tensors.select(lambda name: name[len(EXTRA) :] if name.startswith(EXTRA) else None),
        _dictionary(source, ALPHABET) if ALPHABET in files else None,
        _dictionary(source, LEXICON) if LEXICON in files else None,
        _origin(manifest, source.describe(MANIFEST)),
    )


def _dictionary(source: ModelSource, name: str) -> Dictionary:
    return Dictionary.parse(source.read(name), source.describe(name))


def _mix(data: Any, where: str) -> Mix:
    if (
        not isinstance(data, dict)
        or set(data) != {"scalars", "gamma"}
        or not isinstance(data["scalars"], list)
        or not all(type(value) in (int, float) for value in (*data["scalars"], data["gamma"]))
    ):
        raise ConfigError(
            f"{where}: mix is {data!r:.200}; expected scalars, a list of numbers, and gamma"
        )
    return Mix(tuple(data["scalars"]), data["gamma"])


def _origin(manifest: dict[str, Any], where: str) -> ExportOrigin | None:
    """Return the complete model, if these are the weights of an export that lacks some of it."""
    content, fingerprint = manifest.get("content"), manifest.get("fingerprint")
    if content is None:
        return None
    if not isinstance(content, str) or not isinstance(fingerprint, str):
        raise FormatError(f"{where}: content is {content!r:.80}; expected a SHA-256")
    return ExportOrigin(fingerprint, content)


def _check_version(data: dict[str, Any], where: str) -> None:
    name, version = data.pop("format", None), data.pop("version", None)
    if name != FORMAT:
        raise FormatError(f"{where} has the format {name!r}; expected {FORMAT!r}")
    if version != VERSION:
        raise FormatError(
            f"{where} has version {version!r} of the format; elmokit {elmokit.__version__} reads "
            f"version {VERSION}. Update it with: pip install -U elmokit"
        )


def _check_manifest(source: ModelSource) -> dict[str, Any]:
    where = source.describe(MANIFEST)
    if MANIFEST not in source.names:
        raise FormatError(
            f"{source.path} has no {MANIFEST}, so it is incomplete; write or copy the model again"
        )
    manifest = source.read_json(MANIFEST)
    _check_version(manifest, where)
    files = manifest.get("files")
    if not isinstance(files, dict) or not {CONFIG, WEIGHTS} <= set(files):
        raise FormatError(f"{where} does not list {CONFIG} and {WEIGHTS}; copy it again")
    if len(files) > MOST_LISTED:
        raise FormatError(f"{where} lists {len(files):,} files; expected {MOST_LISTED} at most")
    for name, entry in files.items():
        if name not in source.names:  # this also excludes paths
            raise FormatError(f"{source.path} has no {name}, which its manifest lists")
        if not isinstance(entry, dict) or entry.get("bytes") != source.size(name):
            expected = entry.get("bytes") if isinstance(entry, dict) else None
            raise FormatError(
                f"{source.describe(name)} has {source.size(name)} bytes; the manifest lists "
                f"{expected}. It is truncated or of another model: copy it again"
            )
        with source.open(name) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        if entry.get("sha256") != digest:
            raise FormatError(
                f"{source.describe(name)} is damaged: its checksum differs from the manifest. Copy "
                "it again"
            )
    return manifest


def _tensors(source: ModelSource, name: str) -> StoredArrays:
    from safetensors import safe_open
    from safetensors.numpy import load

    try:
        path = source.locate(name)
        if path is None:
            return StoredArrays(load(source.read(name)))
        with safe_open(path, framework="numpy"):  # checks the header and the offsets
            return _stored(path)
    except Exception as error:  # a damaged file can raise nearly anything
        raise FormatError(
            f"{source.describe(name)} cannot be read as safetensors: {error}"
        ) from None


_DTYPES = {f"{kind.upper()}{8 * size}": f"<{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)}
_DTYPES["BOOL"] = "?"


def _stored(path: Path) -> StoredArrays:
    """Return the arrays of a file that was checked, to be read at each use."""
    file = WeightsFile(path)
    start = 8 + int(file.read(0, np.dtype("<u8"), (1,))[0])
    header = parse_json(file.read(8, np.dtype(np.uint8), (start - 8,)).tobytes())
    header.pop("__metadata__", None)
    return StoredArrays(
        {
            name: StoredArray(
                file,
                start + entry["data_offsets"][0],
                np.dtype(_DTYPES[entry["dtype"]]),
                tuple(entry["shape"]),
            )
            for name, entry in header.items()
        }
    )


# -- writing -----------------------------------------------------------------------------------


def write(bilm: BiLM, directory: Path) -> list[Path]:
    """Write a directory, and return its files.

    An older model in it is replaced in one step: a process that is killed leaves the old one or the
    new one.
    """
    if directory.is_dir():
        finish_replacements(directory)
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; expected the name of a directory to write")
    if directory.is_dir() and not (directory / MANIFEST).exists():
        taken = sorted(name for name in NATIVE_NAMES if (directory / name).exists())
        if taken:
            raise InputError(
                f"{directory} already holds {', '.join(taken)}, but is not a model of elmokit; "
                "nothing was written. Give another directory"
            )
    with replace_files(directory, WEIGHTS, NATIVE_NAMES) as stage:
        names = _write_stage(bilm, stage)
    return [directory / name for name in names]


def _write_stage(bilm: BiLM, stage: Path) -> list[str]:
    from safetensors.numpy import save_file

    config = {"format": FORMAT, "version": VERSION, **bilm.config.to_dict()}
    if bilm.mix is not None:
        config["mix"] = {"scalars": list(bilm.mix.scalars), "gamma": bilm.mix.gamma}
    (stage / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    tensors = dict(bilm.weights) | {EXTRA + name: array for name, array in bilm.extra.items()}
    save_file({n: np.ascontiguousarray(a) for n, a in tensors.items()}, stage / WEIGHTS)
    names = [CONFIG, WEIGHTS]
    if bilm.vocabulary is not None:
        (stage / VOCABULARY).write_bytes(bilm.vocabulary.dump())
        names.append(VOCABULARY)
    for name, dictionary in ((ALPHABET, bilm.alphabet), (LEXICON, bilm.lexicon)):
        if dictionary is not None:
            (stage / name).write_bytes(dictionary.dump())
            names.append(name)
    if bilm.settled is not None:
        save_file(
            {"hidden": bilm.settled.hidden.copy(), "cell": bilm.settled.cell.copy()},
            stage / SETTLED,
        )
        names.append(SETTLED)
    entries = {}
    mode = (
        stage / CONFIG
    ).stat().st_mode & 0o777  # safetensors writes files that only their owner can read
    for name in names:
        (stage / name).chmod(mode)
        size = (stage / name).stat().st_size
        entries[name] = {"bytes": size, "sha256": checksum(stage / name)}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "elmokit": elmokit.__version__,
        "fingerprint": bilm.fingerprint,
        "files": entries,
    }
    if bilm.origin is not None and bilm.origin.fingerprint == bilm.fingerprint:
        manifest["content"] = bilm.origin.content
    (stage / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return [*names, MANIFEST]
