"""Running the shards of a job on one machine: in this process, or in several worker processes.

A worker that dies is replaced, and its shard is done again. Everything else, such as a cluster,
calls `run_shard` itself.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import lru_cache
from pathlib import Path

from elmokit.elmo import Elmo
from elmokit.errors import ElmoError, InputError
from elmokit.vectors.shards import ShardPlan, ShardSummary, load_plan, run_shard
from elmokit.workers import WorkerDied, WorkerPool

ATTEMPTS = 8
"""Times that a shard is tried if its worker dies, before that is an error."""


def run_shards(
    plan: ShardPlan | str | Path,
    *,
    workers: int = 1,
    threads: int | None = None,
    numbers: Iterable[int] | None = None,
    on_shard: Callable[[ShardSummary], None] = lambda summary: None,
    on_death: Callable[[int, str], None] = lambda number, reason: None,
) -> list[ShardSummary]:
    """Run the shards of a job that are not finished, and return what was done, by number.

    The command `elmo embed --shards N --workers 2` does this.

    Args:
        plan: The job, or its directory.
        workers: Number of processes; 1 is this process.
        threads: Threads of each; by default the processors are divided among the workers.
        numbers: Shards to run; all by default.
        on_shard: Called after each shard.
        on_death: Called with the number of a shard, which is tried again, and how its worker died.
    """
    if workers < 1:
        raise InputError(f"workers is {workers}; expected 1 or more")
    if not isinstance(plan, ShardPlan):
        plan = load_plan(plan)
    pending = deque(range(len(plan.shards)) if numbers is None else numbers)
    if threads is None and workers > 1:
        threads = max(1, available_processors() // workers)
    summaries: dict[int, ShardSummary] = {}

    def finish(summary: ShardSummary) -> None:
        summaries[summary.number] = summary
        on_shard(summary)

    if workers == 1:
        elmo: Elmo | None = None
        for number in pending:
            if elmo is None and not plan.path_of(plan.shards[number]).exists():
                elmo = plan.load_model(threads)
            finish(run_shard(plan, number, elmo, threads=threads))
        return [summaries[number] for number in sorted(summaries)]
    directory = str(plan.directory.resolve())
    deaths: Counter[int] = Counter()
    running: dict[Future[ShardSummary], int] = {}
    with WorkerPool(workers) as pool:
        while pending or running:
            while pending and len(running) < workers:
                number = pending.popleft()
                running[pool.submit(_run_in_worker, directory, number, threads)] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number = running.pop(future)
                try:
                    finish(future.result())
                except WorkerDied as error:
                    deaths[number] += 1
                    if deaths[number] == ATTEMPTS:
                        raise ElmoError(
                            f"shard {number} was tried {ATTEMPTS} times: {error}. Finished shards "
                            "are kept; try fewer workers, or more shards: they need less memory"
                        ) from None
                    on_death(number, str(error))
                    pending.append(number)
    return [summaries[number] for number in sorted(summaries)]


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run_in_worker(directory: str, number: int, threads: int | None) -> ShardSummary:
    plan, elmo = _load(directory, threads)
    return run_shard(plan, number, elmo)


@lru_cache(maxsize=1)
def _load(directory: str, threads: int | None) -> tuple[ShardPlan, Elmo]:
    """Load the plan and the model of a job once per process."""
    plan = load_plan(directory)
    return plan, plan.load_model(threads)
