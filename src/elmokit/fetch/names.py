"""What the name of a model means: a published model, a web address, or a name on the hub.

The caller first checks whether the name is an existing path, which always takes precedence.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from elmokit.errors import InputError, InputTypeError, ModelNotFound
from elmokit.fetch import address, published
from elmokit.fetch.hub import download_from_hub
from elmokit.fetch.store import DownloadPlan, DownloadProgress, ensure_downloaded

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_HUB_NAME = re.compile(rf"(?:hf://)?({_PART}/{_PART})(?:@([^\s@]+))?")
_HUB_PAGE = re.compile(rf"https://huggingface\.co/({_PART}/{_PART})(?:/tree/([^\s?#]+?))?/?")
_FILE_ENDINGS = (".hdf5", ".h5", ".zip", ".json", ".safetensors", ".txt")


def resolve_model(
    model: str, *, local_files_only: bool = False, progress: DownloadProgress = "auto"
) -> Path:
    """Return the path of a model on this disk, after downloading it if need be.

    Args:
        model: The name of a published model (`"small"`, `"original-5.5B"`, `"manylangs-fi"`, …);
            the http(s) address of a zip archive, of options or weights, or of a directory; or
            `owner/name` on the Hugging Face hub, optionally with `@revision`.
        local_files_only: Never use the network; raise an error that says what is missing. The
            environment variable `ELMOKIT_OFFLINE=1` does the same.
        progress: `"auto"` shows a progress bar if stderr is a terminal; a function is called with
            the name of a file, the bytes downloaded and the size if known; None is silent.
    """
    if not isinstance(model, str):
        raise InputTypeError(
            f"the name of a model is of type {type(model).__name__}; expected a string"
        )
    name = model.strip()
    if page := _HUB_PAGE.fullmatch(name):
        return download_from_hub(page[1], page[2], local_files_only=local_files_only)
    if re.match(r"https?://", name, re.IGNORECASE):
        plan = address.plan_download(name)
        return ensure_downloaded(plan, local_files_only=local_files_only, progress=progress)
    if known := published.find_published(name):
        plan = _plan_published(known)
        return ensure_downloaded(plan, local_files_only=local_files_only, progress=progress)
    on_hub = _HUB_NAME.fullmatch(name)
    if on_hub and not name.lower().endswith(_FILE_ENDINGS):
        return download_from_hub(on_hub[1], on_hub[2], local_files_only=local_files_only)
    if scheme := re.match(r"[a-z][a-z0-9+]+(?=://)", name, re.IGNORECASE):
        raise InputError(
            f"{model!r}: {scheme[0]} addresses are not supported; expected http or https"
        )
    if on_hub or re.search(r"[/\\]", name) or name.lower().endswith(_FILE_ENDINGS):
        raise ModelNotFound(
            f"no model at {model!r}: no such file or directory, and not the name of a published "
            "model, a web address or a hub name (owner/name)"
        )
    raise ModelNotFound(_unknown_name(model))


def _plan_published(model: published.PublishedModel) -> DownloadPlan:
    only = model.files[0].name if len(model.files) == 1 else ""
    return DownloadPlan(
        model.name,
        f"the model {model.name!r}",
        lambda folder: iter(model.files),
        model.files,
        only,
        model.page,
    )


def _unknown_name(name: str) -> str:
    """Return the message for an unknown name; a family of names is shown by its pattern."""
    start = f"no model {name!r}: no such file or directory, and not the name of a published model"
    if models := published.find_by_language(name):
        meant = [model.name for model in models]
        if models[0].language == "en":
            meant = ["builtin", *meant[:4]]
        return (
            f"{start}; did you mean {' or '.join(map(repr, meant))}? `elmo models` lists all "
            "published models"
        )
    known = ["builtin", *published.known_names()]
    near = difflib.get_close_matches(name.strip().lower(), known, n=1, cutoff=0.6)
    nearest = published.find_published(near[0]) if near else None
    meant_name = nearest.name if nearest else near[0] if near else None
    families = ("manylangs-", "wikipedia-")
    names = [m.name for m in published.PUBLISHED if not m.name.startswith(families)]
    return (
        start
        + (f"; did you mean {meant_name!r}?" if meant_name else ".")
        + f" Published models are {', '.join(names)}, wikipedia-XX (7 languages), manylangs-XX (44 "
        "languages) and nlpl-N; `elmo models` lists them. A path, an https address, or owner/name "
        "on the hub will do as well"
    )
