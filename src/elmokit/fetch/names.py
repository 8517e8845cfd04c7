"""What a name of a model means: a word of the table, an address, or a name on the hub.

The caller looks first whether the name is a path that exists: such a path always wins.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from elmokit.errors import InputError, InputTypeError, ModelNotFound
from elmokit.fetch import address, published
from elmokit.fetch.hub import from_hub
from elmokit.fetch.progress import Progress
from elmokit.fetch.store import Plan, keep

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_HUB_NAME = re.compile(rf"(?:hf://)?({_PART}/{_PART})(?:@([^\s@]+))?")
_HUB_PAGE = re.compile(rf"https://huggingface\.co/({_PART}/{_PART})(?:/tree/([^\s?#]+?))?/?")
_FILES = (".hdf5", ".h5", ".zip", ".json", ".safetensors", ".txt")


def resolve(model: str, *, local_files_only: bool = False, progress: Progress = "auto") -> Path:
    """The path of a model on this disk, downloaded first if it has to be.

    Args:
        model: a word of the table (`"small"`, `"original-5.5B"`, `"manylangs-fi"`, …); an http(s)
            address of a zip archive, of a file of a pair, or of a directory; or `owner/name`, on
            the Hugging Face hub, with `@revision` if it matters.
        local_files_only: never use the network; an error says what is missing. The environment
            variable ELMOKIT_OFFLINE=1 does the same.
        progress: `"auto"` shows a bar where stderr is a terminal; a function is called with a
            file's name, the bytes so far and the bytes in all; None is silent.
    """
    if not isinstance(model, str):
        raise InputTypeError(f"a model's name is a string; found {type(model).__name__}")
    name = model.strip()
    if page := _HUB_PAGE.fullmatch(name):
        return from_hub(page[1], page[2], local_files_only=local_files_only)
    if re.match(r"https?://", name, re.IGNORECASE):
        return keep(address.plan(name), local_files_only=local_files_only, progress=progress)
    if found := published.find(name):
        return keep(_plan(found), local_files_only=local_files_only, progress=progress)
    on_hub = _HUB_NAME.fullmatch(name)
    if on_hub and not name.lower().endswith(_FILES):
        return from_hub(on_hub[1], on_hub[2], local_files_only=local_files_only)
    if scheme := re.match(r"[a-z][a-z0-9+]+(?=://)", name, re.IGNORECASE):
        raise InputError(f"{model!r}: {scheme[0]} addresses are not supported, http and https are")
    if on_hub or re.search(r"[/\\]", name) or name.lower().endswith(_FILES):
        raise ModelNotFound(
            f"no model at {model!r}: no such file or directory, and no word of a published model, "
            "address or hub name (owner/name)"
        )
    raise ModelNotFound(_unknown(model))


def _plan(model: published.Published) -> Plan:
    only = model.files[0].name if len(model.files) == 1 else ""
    return Plan(
        model.name,
        f"the model {model.name!r}",
        lambda folder: iter(model.files),
        model.files,
        only,
        model.page,
    )


def _unknown(word: str) -> str:
    """Long families of names are told by one of them."""
    near = difflib.get_close_matches(word.strip().lower(), published.words(), n=1, cutoff=0.6)
    meant = published.find(near[0]) if near else None
    names = [n for n in published.names() if not n.startswith(("manylangs-", "wikipedia-"))]
    return (
        f"no model {word!r}: no such file or directory, and no word of a published model"
        + (f"; did you mean {meant.name!r}?" if meant else ".")
        + f" Known are {', '.join(names)}, wikipedia-XX (7 languages), manylangs-XX (44 "
        "languages) and nlpl-N; or give a path, an https address, or owner/name on the hub"
    )
