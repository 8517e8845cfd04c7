"""Models on the Hugging Face hub: from there, and to there.

Everything goes through the package huggingface_hub (its cache, its tokens, its mirrors), imported
when it is needed. Of a repository only the files of a model are downloaded: the small ones first,
and the weights when these say that there is a model.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import elmokit
from elmokit import formats
from elmokit.errors import ElmoError, FormatError, InputError, MissingExtra, ModelNotFound
from elmokit.fetch.cache import is_set, offline
from elmokit.fetch.card import make_card
from elmokit.fetch.manifest import MANIFEST, listed
from elmokit.formats.detect import NATIVE_NAMES, Found

CARD = "README.md"
SMALL = (MANIFEST, "config.json", "options.json", "*_options.json")
"""The files that tell whether there is a model."""
PAIR = (
    *("weights.hdf5", "model.hdf5", "lm_weights.hdf5", "*_weights.hdf5", "*_weights_*.hdf5"),
    *("vocab.txt", "*_vocab.txt"),
)


def from_hub(name: str, revision: str | None = None, *, local_files_only: bool = False) -> Path:
    """The directory of a model `owner/name`, downloaded into the hub's own cache.

    It holds a model of ours (config.json, model.safetensors, manifest.json, …) or a pair
    (options.json and weights.hdf5, with vocab.txt if there is one). `revision` is a branch, a tag
    or a commit.
    """
    local = local_files_only or offline() or is_set("HF_HUB_OFFLINE")
    folder = _snapshot(name, revision, SMALL, local)
    present = {file.name for file in folder.iterdir()} if folder.is_dir() else set()
    if MANIFEST in present:
        manifest = listed(folder / MANIFEST, f"of {_named(name, revision)} on the hub")
        wanted: tuple[str, ...] = (MANIFEST, *manifest)
    elif any(file.endswith("options.json") for file in present):
        wanted = PAIR
    elif local:
        raise ModelNotFound(_not_here(name, revision))
    else:
        raise ModelNotFound(
            f"{_named(name, revision)} on the hub is no ELMo that can be read: it has neither "
            f"{MANIFEST} (elmokit) nor options.json (AllenNLP, bilm-tf)"
        )
    folder = _snapshot(name, revision, wanted, local)
    try:
        formats.detect(folder)
    except FormatError as error:
        if local:
            raise ModelNotFound(_not_here(name, revision)) from None
        raise FormatError(f"{_named(name, revision)} on the hub: {error}") from None
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
    """Put a model on the hub in one commit; returns the address of its page.

    Args:
        model: a directory that holds a model of ours or a pair, one file of it, or its files as
            `Elmo.save` returns them. It is read first: what cannot be loaded is not uploaded.
        repo_id: `owner/name`; made if it does not exist.
        private: whether a repository that is made now is private.
        token: of the hub; without, the one of `hf auth login` or HF_TOKEN.
        commit_message: what the history says.
        language: for the card: a code of ISO 639, or several.
        license: for the card: an identifier such as `"apache-2.0"`.
        card: the text of README.md. Without, README.md beside the model is taken; without that, a
            card is made, unless the repository has one.
    """
    found = _found(model)
    folder = found.source.path
    if found.kind == "native":
        files = [*listed(folder / MANIFEST, str(folder / MANIFEST)), MANIFEST]
        bilm = formats.read(folder)
    else:
        files = [name for name in (found.options, found.weights, found.vocabulary) if name]
        bilm = formats.read(folder / found.weights)
    made = make_card(bilm, repo_id, language=language, license=license)
    hub = _package(repo_id)
    own_card = folder / CARD
    try:
        api = hub.HfApi(token=token, library_name="elmokit", library_version=elmokit.__version__)
        page = api.create_repo(repo_id, private=private, repo_type="model", exist_ok=True)
        there = set(api.list_repo_files(repo_id))
        operations = [
            hub.CommitOperationAdd(path_in_repo=name, path_or_fileobj=str(folder / name))
            for name in files
        ]
        if card is not None or (not own_card.exists() and CARD not in there):
            content = made if card is None else card
            operations.append(
                hub.CommitOperationAdd(path_in_repo=CARD, path_or_fileobj=content.encode())
            )
        elif own_card.exists():
            operations.append(
                hub.CommitOperationAdd(path_in_repo=CARD, path_or_fileobj=str(own_card))
            )
        # Files of a model that was there before would make one model of two.
        operations += [
            hub.CommitOperationDelete(path_in_repo=name)
            for name in sorted(there & set(NATIVE_NAMES) - set(files))
        ]
        message = commit_message or f"Model {bilm.fingerprint[:12]}, by elmokit"
        api.create_commit(repo_id, operations=operations, commit_message=message)
    except Exception as error:  # of the package and of the HTTP library that it happens to use
        raise _translated(hub, error, repo_id, None) from None
    return str(page)


def _found(model: str | Path | Iterable[str | Path]) -> Found:
    """Where a model lies whose files can be uploaded as they are."""
    if not isinstance(model, (str, Path)):
        files = [Path(file) for file in model]
        if len({file.parent for file in files}) != 1:
            raise InputError("expected the files of one model, in one directory")
        model = next((f for f in files if f.suffix in (".hdf5", ".h5")), files[0].parent)
    found = formats.detect(model)
    if found.kind not in ("native", "allennlp") or found.source.file_path is None:
        raise InputError(
            f"{model} is a {found.title}"
            + (" in an archive" if found.source.file_path is None else "")
            + "; what goes to the hub is a directory of elmokit or a pair. Convert it first: "
            "elmo convert IN DIR"
        )
    return found


def _package(name: str) -> Any:
    try:
        hub = importlib.import_module("huggingface_hub")
        importlib.import_module("huggingface_hub.errors")
    except ImportError:
        raise MissingExtra(
            f"{name} is a name on the hub (there is no such path on this disk), for which "
            "huggingface_hub is needed: pip install 'elmokit[hub]'"
        ) from None
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
    except Exception as error:  # of the package and of the HTTP library that it happens to use
        if local:
            raise ModelNotFound(_not_here(name, revision)) from None
        raise _translated(hub, error, name, revision) from None


def _translated(hub: Any, error: Exception, name: str, revision: str | None) -> ElmoError:
    errors = hub.errors
    named = _named(name, revision)
    if isinstance(error, errors.HFValidationError):
        return InputError(f"{name!r} is no name of a repository on the hub; expected owner/name")
    if isinstance(error, errors.GatedRepoError):
        return ModelNotFound(
            f"{named} on the hub asks for its conditions to be accepted: do so on its page, and "
            "log in with hf auth login"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelNotFound(f"{name} on the hub has no revision {revision!r}")
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelNotFound(
            f"there is no {name} on the hub (and no such path on this disk), or it is private: "
            "then log in with hf auth login, or set HF_TOKEN"
        )
    if isinstance(error, errors.LocalEntryNotFoundError) or _is_connection(error):
        return ModelNotFound(
            f"{named} is not on this disk, and the hub cannot be reached: {_first_line(error)}. "
            "Try again when the network is there, or give the path of a folder that has the model"
        )
    if isinstance(error, errors.HfHubHTTPError):
        return ElmoError(f"the hub refused {named}: {_first_line(error)}")
    return ElmoError(f"{named} on the hub: {_first_line(error)}")


def _is_connection(error: Exception) -> bool:
    return isinstance(error, (ConnectionError, TimeoutError)) or "Connect" in type(error).__name__


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _named(name: str, revision: str | None) -> str:
    return name if revision is None else f"{name}@{revision}"


def _not_here(name: str, revision: str | None) -> str:
    return (
        f"{_named(name, revision)} is not in the hub's cache on this disk, and the network is not "
        "used (local_files_only, ELMOKIT_OFFLINE or HF_HUB_OFFLINE). Load it once with the network"
    )
