"""Finding and downloading models: from a name, a web address or a hub name to a path on disk.

A model is downloaded when it is first used, and kept. Only bytes are moved: nothing that was
downloaded is unpacked or run here, and `formats` knows what the files mean.
"""

from __future__ import annotations

from elmokit.fetch.hub import download_from_hub, push_to_hub
from elmokit.fetch.names import resolve_model
from elmokit.fetch.published import PUBLISHED, PublishedModel, list_models

__all__ = [
    "PUBLISHED",
    "PublishedModel",
    "download_from_hub",
    "list_models",
    "push_to_hub",
    "resolve_model",
]
