"""How processes that start at different times find each other in a store that others used before.

torchrun keeps its store when it restarts its processes, with everything that the dead ones have
written. So every process writes a random number, and the first one writes a token for those that it
has seen, again and again, until each has confirmed it. What belongs to the token is new.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

POLL_SECONDS = 0.05


def agree_on_token(store: Any, rank: int, world: int, seconds: float) -> str:
    """Return a token that exactly the processes of this start have; wait until all are here.

    Args:
        store: A `torch.distributed` store that all processes share.
        rank: Number of this process.
        world: Number of processes.
        seconds: How long to wait for the others.
    """
    end = time.monotonic() + seconds
    own = secrets.token_hex(8)
    store.set(f"elmokit/hello/{rank}", own)
    others = range(1, world)
    while True:
        if rank == 0:
            hellos = {str(other): _read(store, f"elmokit/hello/{other}") for other in others}
            store.set("elmokit/token", json.dumps({"token": own, "hellos": hellos}))
            missing = [o for o in others if _read(store, f"elmokit/here/{o}") != own]
            if not missing:
                return own
        else:
            missing = [0]
            offer = json.loads(_read(store, "elmokit/token") or "{}")
            if offer.get("hellos", {}).get(str(rank)) == own:
                token: str = offer["token"]
                store.set(f"elmokit/here/{rank}", token)
                return token
        if time.monotonic() > end:
            names = ", ".join(map(str, missing))
            raise TimeoutError(f"no sign of process {names} within {seconds:g} seconds")
        time.sleep(POLL_SECONDS)


def _read(store: Any, key: str) -> str | None:
    """Return the value of a key without waiting for it; None if there is none."""
    return store.get(key).decode() if store.check([key]) else None
