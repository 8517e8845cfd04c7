"""Models on the Hugging Face hub: download and upload.

Everything goes through the package huggingface_hub (its cache, tokens and mirrors), which is
imported when it is needed. Only the files of a model are downloaded from a repository: the small
ones first, and the weights once those show that there is a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import elmokit
from elmokit import formats
from elmokit.errors import ElmoError, FormatError, InputError, ModelNotFound
from elmokit.extras import require
from elmokit.fetch.cache import is_enabled, is_offline
from elmokit.fetch.card import make_model_card
from elmokit.fetch.manifest import MANIFEST, read_manifest
from elmokit.formats.detect import NATIVE_NAMES, DetectedModel

MODEL_CARD = "README.md"
SMALL_FILES = (MANIFEST, "config.json", "options.json", "*_options.json")
"""Patterns of the files that show whether a repository has a model."""
PAIR_FILES = (
    *("weights.hdf5", "model.hdf5", "lm_weights.hdf5", "*_weights.hdf5", "*_weights_*.hdf5"),
    *("vocab.txt", "*_vocab.txt"),
)
"""Patterns of the files that belong to an options.json."""


def download_from_hub(
    name: str, revision: str | None = None, *, local_files_only: bool = False
) -> Path:
    """Return the directory of a model on the hub, after downloading it into the hub's own cache.

    It holds a model in elmokit's format (config.json, model.safetensors, manifest.json, …) or a
    pair (options.json and weights.hdf5, with vocab.txt if there is one).

    Args:
        name: `owner/name` of the repository.
        revision: A branch, a tag or a commit; the default branch if None.
        local_files_only: Use only what the hub's cache on this disk already holds.
    """
    local = local_files_only or is_offline() or is_enabled("HF_HUB_OFFLINE")
    folder = _snapshot(name, revision, SMALL_FILES, local)
    present = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if MANIFEST in present:
        manifest = read_manifest(folder / MANIFEST, f"of {_display(name, revision)} on the hub")
        wanted: tuple[str, ...] = (MANIFEST, *manifest)
    elif any(file.endswith("options.json") for file in present):
        wanted = PAIR_FILES
    elif local:
        raise ModelNotFound(_not_here(name, revision))
    else:
        raise ModelNotFound(
            f"{_display(name, revision)} on the hub is not an ELMo model that elmokit can read: it "
            f"has neither {MANIFEST} (elmokit) nor options.json (AllenNLP, bilm-tf)"
        )
    folder = _snapshot(name, revision, wanted, local)
    try:
        formats.detect_format(folder)
    except FormatError as error:
        if local:
            raise ModelNotFound(_not_here(name, revision)) from None
        raise FormatError(f"{_display(name, revision)} on the hub: {error}") from None
    return folder


def push_to_hub(
    model: str | Path | Iterable[str | Path],
    repo_id: str,
    *,
    private: bool = False,
    token: str | None = None,
    commit_message: str | None = None,
    language: str | Sequence[str] | None = None,
    license: str | None = None,
    card: str | None = None,
) -> str:
    """Upload a model to the hub in one commit, and return the address of its page.

    Args:
        model: A directory with a model in elmokit's format or a pair, one file of it, or its files
            as `Elmo.save` returns them. It is read first, so that only a valid model is uploaded.
        repo_id: `owner/name` of the repository, which is created if it does not exist.
        private: Make a repository that is created now private.
        token: Access token of the hub; by default that of `hf auth login` or `HF_TOKEN`.
        commit_message: Message of the commit.
        language: ISO 639 code or codes for the model card.
        license: License identifier for the model card, such as `"apache-2.0"`.
        card: Text of README.md. By default, the README.md beside the model; without one, a card is
            generated, unless the repository already has one.
    """
    detected = _detect_uploadable(model)
    folder = detected.source.path
    if detected.kind == "native":
        files = [*read_manifest(folder / MANIFEST, str(folder / MANIFEST)), MANIFEST]
        bilm = formats.read(folder)
    else:
        files = [name for name in (detected.options, detected.weights, detected.vocabulary) if name]
        bilm = formats.read(folder / detected.weights)
    generated_card = make_model_card(bilm, repo_id, language=language, license=license)
    hub = _package(repo_id)
    own_card = folder / MODEL_CARD
    try:
        api = hub.HfApi(token=token, library_name="elmokit", library_version=elmokit.__version__)
        page = api.create_repo(repo_id, private=private, repo_type="model", exist_ok=True)
        existing = set(api.list_repo_files(repo_id))
        operations = [
            hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=str(folder / name))
            for name in files
        ]
        if card is not None or (not own_card.exists() and MODEL_CARD not in existing):
            content = generated_card if card is None else card
            operations.append(
                hub.CommitOperationAdd(path_in_repo=MODEL_CARD, path_or_fileobj=content.encode())
            )
        elif own_card.exists():
            operations.append(
                hub.CommitOperationAdd(path_in_repo=MODEL_CARD, path_or_fileobj=str(own_card))
            )
        # Files that are left from an earlier model would be mixed with the new ones.
        operations += [
            hub.CommitOperationDelete(path_in_repo=name)
            for name in sorted(existing & set(NATIVE_NAMES) - set(files))
        ]
        message = commit_message or f"Model {bilm.fingerprint[:12]}, by elmokit"
        api.create_commit(repo_id, operations=operations, commit_message=message)
    except Exception as error:  # raised by the package or by the HTTP library that it uses
        raise _translate(hub, error, repo_id, None) from None
    return str(page)


def _detect_uploadable(model: str | Path | Iterable[str | Path]) -> DetectedModel:
    """Return a model whose files can be uploaded as they are, or raise `InputError`."""
    if not isinstance(model, (str, Path)):
        files = [Path(file) for file in model]
        if len({file.parent for file in files}) != 1:
            raise InputError(
                f"the files are in {len({file.parent for file in files})} directories; expected "
                "the files of one model, in one directory"
            )
        model = next((f for f in files if f.suffix in (".hdf5", ".h5")), files[0].parent)
    detected = formats.detect_format(model)
    if detected.kind not in ("native", "allennlp") or detected.source.is_archive:
        raise InputError(
            f"{model} is a {detected.title}"
            + (" in an archive" if detected.source.is_archive else "")
            + "; expected an elmokit directory, or options.json with HDF5 weights. Convert it "
            "first: elmo convert IN DIR"
        )
    return detected


def _package(name: str) -> Any:
    purpose = f"Models on the Hugging Face hub, such as {name} (no such path on this disk),"
    hub = require("huggingface_hub", purpose)

    return hub


def _snapshot(name: str, revision: str | None, patterns: tuple[str, ...], local: bool) -> Path:
    hub = _package(name)
    try:
        return Path(
            hub.snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(patterns),
                ignore_patterns=["*/*"],
                local_files_only=local,
                library_name="elmokit",
                library_version=elmokit.__version__,
            )
        )
    except Exception as error:  # raised by the package or by the HTTP library that it uses
        if local:
            raise ModelNotFound(_not_here(name, revision)) from None
        raise _translate(hub, error, name, revision) from None


def _translate(hub: Any, error: Exception, name: str, revision: str | None) -> ElmoError:
    errors = hub.errors
    display = _display(name, revision)
    if isinstance(error, errors.HFValidationError):
        return InputError(f"{name!r} is not a valid name of a repository; expected owner/name")
    if isinstance(error, errors.GatedRepoError):
        return ModelNotFound(
            f"{display} on the hub requires you to accept its conditions: do so on its page, and "
            "log in with: hf auth login"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelNotFound(f"{name} on the hub has no revision {revision!r}")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelNotFound(
            f"there is no {name} on the hub (and no such path on this disk), or it is private. For "
            "a private model, log in with `hf auth login` or set HF_TOKEN"
        )
    if isinstance(error, errors.LocalEntryNotFoundError) or _is_connection(error):
        return ModelNotFound(
            f"{display} is not on this disk, and the hub cannot be reached: {_first_line(error)}. "
            "Try again when the network is available, or give the path of a folder with the model"
        )
    if isinstance(error, errors.HfHubHTTPError):
        return ElmoError(f"the hub refused the request for {display}: {_first_line(error)}")
    return ElmoError(f"{display} on the hub: {_first_line(error)}")


def _is_connection(error: Exception) -> bool:
    return isinstance(error, (ConnectionError, TimeoutError)) or "Connect" in type(error).__name__


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _display(name: str, revision: str | None) -> str:
    return name if revision is None else f"{name}@{revision}"


def _not_here(name: str, revision: str | None) -> str:
    return (
        f"{_display(name, revision)} is not in the hub's cache on this disk, and the network is "
        "not used (local_files_only, ELMOKIT_OFFLINE or HF_HUB_OFFLINE). Load it once with the "
        "network"
    )
