"""The command that has started this process, to notice that it was restarted.

`torchrun --max-restarts N` starts all its processes again, with the same arguments, when one of
them has failed. A run remembers which torchrun has begun it (run.json): a process of the same one
continues it.
"""

from __future__ import annotations

import os
from pathlib import Path

from elmokit.storage import machine_id


def launch_id() -> str | None:
    """Return a name of the torchrun that started this process; None without torchrun."""
    run = os.environ.get("TORCHELASTIC_RUN_ID")
    if run is None:
        return None
    if run != "none":  # --rdzv-id, or a random one of --standalone
        return run
    parent = os.getppid()
    return f"{machine_id()}-{parent}-{process_start(parent)}"


def process_start(process: int) -> str:
    """Return when a process was started, in a form that only compares; empty if it is unknown.

    A number of a process may be used again; together with its start it is unique.
    """
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
