"""Where a model that is named by a word, an address or a hub name lies on this disk.

Downloads it when it is not there yet, and keeps it. Only bytes are moved: nothing that was
downloaded is unpacked or run here, and what the files mean is the business of `formats`.
"""

from __future__ import annotations

from elmokit.fetch.hub import from_hub, push_to_hub
from elmokit.fetch.names import resolve
from elmokit.fetch.published import PUBLISHED, Published

__all__ = ["PUBLISHED", "Published", "from_hub", "push_to_hub", "resolve"]
