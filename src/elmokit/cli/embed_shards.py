"""`elmo embed --shards`: large text, divided into shards for workers and clusters."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from elmokit.elmo import LayerChoice, Pooling
    from elmokit.vectors.shards import ShardPlan, ShardSummary

F = TypeVar("F", bound=Callable[..., Any])
STOPPED = 128 + signal.SIGTERM
"""Exit code after SIGTERM."""
OPTIONS = (
    click.option(
        "--shards",
        type=click.IntRange(min=1),
        metavar="N",
        help="Divide the text into N shards, and write them to the directory --out.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of processes that embed shards on this machine.  [default: 1]",
    ),
    click.option(
        "--shard",
        metavar="K/N",
        help="Embed every Nth shard from shard K on, counting from 0: task K of N of a cluster.",
    ),
    click.option(
        "--reduce",
        type=click.Choice(["vectors", "sentence", "forms", "uses"]),
        help="What shards keep: all vectors, one per sentence, mean and count per word form, or a "
        "sample of the uses of each --target.  [default: vectors]",
    ),
    click.option(
        "--store",
        type=click.Choice(["float32", "float16", "int8", "kmeans"]),
        help="How shards store vectors; kmeans: as numbers of clusters.  [default: float32]",
    ),
    click.option(
        "--target",
        "targets",
        multiple=True,
        metavar="WORD",
        help="Word whose uses --reduce uses keeps, or play=plays,played; may be repeated.",
    ),
    click.option(
        "--uses",
        type=click.IntRange(min=1),
        metavar="N",
        help="Maximum number of uses of each --target.  [default: 200]",
    ),
    click.option("--seed", type=int, help="Random seed of the sample of uses.  [default: 0]"),
    click.option("--clusters", type=int, help="Clusters of --store kmeans.  [default: 256]"),
    click.option("--parts", type=int, help="Codes per vector of --store kmeans.  [default: 16]"),
    click.option("--plan-only", is_flag=True, help="Write the plan of the shards, and stop."),
    click.option(
        "--finish",
        is_flag=True,
        help="Verify the shards in the directory --out, and merge them; embed nothing.",
    ),
    click.option(
        "--merge", is_flag=True, help="Merge all vectors too; by default only forms and uses."
    ),
)


def shard_options(function: F) -> F:
    """Add the options of sharded jobs."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def is_sharded(sharding: Mapping[str, Any]) -> bool:
    """Return whether any option of sharded jobs was given."""
    return any(value not in (None, False, ()) for value in sharding.values())


def embed_in_shards(
    model: str,
    file: str | None,
    column: str | None,
    out: str | None,
    layers: LayerChoice | None,
    tokenized: bool,
    split: bool,
    pool: Pooling | None,
    normalize: bool,
    float16: bool,
    state: str,
    dtype: str,
    threads: int | None,
    device: str,
    sharding: Mapping[str, Any],
) -> None:
    """Plan a job, or load its plan; run its shards, or some of them; verify and merge them."""
    if not out:
        raise click.UsageError("shards require --out DIR")
    part = _parse_part(sharding["shard"])
    count = sharding["shards"] or (part[1] if part else None)

    from elmokit.vectors.shards import is_sharded_job, load_plan, plan_shards

    if sharding["finish"] or (file is None and is_sharded_job(out)):
        plan = load_plan(out)
    elif file is None:
        raise click.UsageError("shards require --file FILE")
    else:
        if count is None:
            raise click.UsageError("give the number of shards: --shards N")
        from elmokit.elmo import Elmo
        from elmokit.progress import ProgressDisplay

        reduction = _make_reduction(pool, normalize, float16, sharding)
        elmo = Elmo.load(model, state=state, dtype=dtype, threads=threads, device=device)
        with ProgressDisplay(binary=True) as display:
            plan = plan_shards(
                elmo,
                file,
                out,
                shards=count,
                reduction=reduction,
                layers="mix" if layers is None else layers,
                form="tokenized" if tokenized else "split" if split else "lines",
                column=column,
                progress=display.counter("reading"),
            )
    if sharding["plan_only"]:
        size = sum(each.size for each in plan.files)
        click.echo(
            f"{out}: {len(plan.shards)} shards of {len(plan.files)} "
            f"file{'s' * (len(plan.files) != 1)}, {size / 1e6:,.1f} MB"
        )
        return
    if not sharding["finish"]:
        numbers = None
        if part is not None:
            numbers = range(part[0], len(plan.shards), part[1])
        _run(plan, sharding["workers"] or 1, threads, numbers)
        if part is not None:
            return
    _finish(plan, sharding["merge"])


def _parse_part(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, _, total = text.partition("/")
    try:
        part = int(number), int(total)
    except ValueError:
        raise click.UsageError(
            f"--shard is {text!r}; expected K/N, such as $SLURM_ARRAY_TASK_ID/50"
        ) from None
    if not 0 <= part[0] < part[1]:
        raise click.UsageError(
            f"--shard is {text!r}, but tasks are counted from 0; expected 0/{part[1]} to "
            f"{part[1] - 1}/{part[1]}: sbatch --array=0-{part[1] - 1}"
        )
    return part


def _make_reduction(
    pool: Pooling | None, normalize: bool, float16: bool, sharding: Mapping[str, Any]
) -> Any:
    from elmokit.vectors.reducers import Reduction

    kind: Any = sharding["reduce"] or ("sentence" if pool else "vectors")
    if pool and kind != "sentence":
        raise click.UsageError(f"--pool makes one vector per sentence; leave out --reduce {kind}")
    store: Any = sharding["store"] or ("float16" if float16 else "float32")
    given = {
        name: sharding[key]
        for name, key in (
            ("max_uses", "uses"),
            ("seed", "seed"),
            ("clusters", "clusters"),
            ("parts", "parts"),
        )
        if sharding[key] is not None
    }
    targets = tuple(sharding["targets"])
    return Reduction(kind, store, pool or "mean", normalize, targets, **given)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """Leave nothing behind when a cluster stops the process: the shard is done again later."""

    def stop(number: int, frame: Any) -> None:
        raise SystemExit(STOPPED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(plan: ShardPlan, workers: int, threads: int | None, numbers: range | None) -> None:
    from elmokit.progress import ProgressDisplay
    from elmokit.vectors.shard_workers import run_shards
    from elmokit.vectors.shards import peak_memory

    total = len(plan.shards) if numbers is None else len(numbers)
    started = time.monotonic()
    done: list[ShardSummary] = []
    try:
        with _exit_on_sigterm(), ProgressDisplay() as display:

            def show(summary: ShardSummary) -> None:
                done.append(summary)
                words = sum(each.words for each in done if not each.was_finished)
                speed = words / max(time.monotonic() - started, 1e-9)
                display.update(
                    f"{len(done)} of {total} shards, {words:,} words, {speed:,.0f} per second",
                    len(done),
                    total,
                )

            def report(number: int, reason: str) -> None:
                display.message(f"shard {number} is done again: {reason}")

            run_shards(
                plan,
                workers=workers,
                threads=threads,
                numbers=numbers,
                on_shard=show,
                on_death=report,
            )
    except (KeyboardInterrupt, SystemExit) as error:
        code = 130 if isinstance(error, KeyboardInterrupt) else STOPPED
        click.echo(
            f"stopped after {len(done)} of {total} shards; the same command continues", err=True
        )
        sys.exit(code)
    seconds = time.monotonic() - started
    new = [each for each in done if not each.was_finished]
    words = sum(each.words for each in new)
    earlier = f", {total - len(new):,} of them by earlier runs" if len(new) < total else ""
    click.echo(
        f"{plan.directory}: {total:,} shard{'s' * (total != 1)} finished{earlier}; {words:,} words "
        f"in {seconds:.1f} s"
    )
    if new:
        peak = max([each.peak_bytes for each in new] + [peak_memory()] * (workers == 1))
        each = f"{workers} worker{'s' * (workers != 1)}"
        click.echo(f"memory: {peak / 1e6:,.0f} MB per worker at most, {each}")


def _finish(plan: ShardPlan, merge: bool) -> None:
    from elmokit.progress import ProgressDisplay
    from elmokit.vectors.shards import merge_shards, verify_shards

    with ProgressDisplay() as display:
        report = verify_shards(plan, progress=display.counter("verifying shards"))
    for text in report.damaged:
        click.echo(f"damaged, and removed: {text}", err=True)
    removed = f"; {len(report.strays)} stray files removed" if report.strays else ""
    click.echo(
        f"verified: {report.finished:,} of {report.shards:,} shards, each once; "
        f"{report.sentences:,} sentences, {report.words:,} words"
        f"{removed if report.is_complete else ''}"
    )
    if not report.is_complete:
        listed = ", ".join(map(str, report.missing[:20]))
        more = ", …" if len(report.missing) > 20 else ""
        click.echo(
            f"elmo: error: {len(report.missing)} shards are missing: {listed}{more}; run them with "
            f"elmo embed --out {plan.directory} --workers 2",
            err=True,
        )
        sys.exit(1)
    if merge or plan.reduction.kind in ("forms", "uses"):
        path = merge_shards(plan)
        click.echo(f"merged: {path}, {path.stat().st_size / 1e6:,.1f} MB")
