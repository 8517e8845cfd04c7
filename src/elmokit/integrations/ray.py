"""Ray Data: the shards of a job on a Ray cluster, and vectors as a column of a dataset.

    import ray

    from elmokit.integrations.ray import embed_shards, embed_texts
    from elmokit.vectors import Reduction, merge_shards, plan_shards

    plan = plan_shards(elmo, "corpus.parquet", "job", shards=50, reduction=Reduction("forms"))
    embed_shards(plan, workers=2)          # the same files as `elmo embed --shards 50` writes
    merge_shards(plan)

    vectors = embed_texts(ray.data.read_text("reviews.txt"), workers=2)

Call `ray.init()` first, with the address of a cluster or without; nothing else differs. All nodes
must see the directory of a job and its text under the same path.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.elmo import Elmo, LayerChoice, Pooling
from elmokit.errors import InputError
from elmokit.extras import require
from elmokit.integrations.loaded_models import load_shared
from elmokit.vectors.reducers import Reduction
from elmokit.vectors.shards import ShardPlan, ShardSummary, load_plan, plan_shards, run_shard

require("ray", "jobs on Ray")

import ray  # noqa: E402
import ray.data  # noqa: E402

DATASET_FOLDER = "input"
"""Folder of a job's directory that has the texts of a dataset."""


class ShardActor:
    """A process that embeds shards; it loads the model once."""

    def __init__(self, directory: str, threads: int | None) -> None:
        """Load the plan and the model of a job."""
        self._plan = load_plan(directory)
        self._elmo = self._plan.load_model(threads)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Embed the shards of a batch, and return what was done."""
        done = [run_shard(self._plan, int(number), self._elmo) for number in batch["shard"]]
        return {
            name: np.array([getattr(summary, name) for summary in done])
            for name in ShardSummary._fields
        }


def embed_shards(
    plan: ShardPlan | str | Path, *, workers: int = 2, threads: int | None = 1
) -> list[ShardSummary]:
    """Embed all shards of a job that are not finished, and return what was done, by number.

    A worker that dies is replaced by Ray, and its shard is done again.

    Args:
        plan: The job, or its directory.
        workers: Number of actors.
        threads: Threads, and processors, of each.
    """
    if not isinstance(plan, ShardPlan):
        plan = load_plan(plan)
    count = len(plan.shards)
    items = [{"shard": number} for number in range(count)]
    dataset = ray.data.from_items(items, override_num_blocks=count).map_batches(
        ShardActor,
        fn_constructor_args=(str(plan.directory.resolve()), threads),
        batch_size=1,
        num_cpus=threads or 1,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )
    rows = sorted(dataset.take_all(), key=lambda row: row["number"])
    if [row["number"] for row in rows] != list(range(count)):
        raise InputError(f"Ray returned {len(rows)} results for {count} shards; run it again")
    kinds = (int, int, int, bool, float, int)
    return [
        ShardSummary(
            *(kind(row[name]) for kind, name in zip(kinds, ShardSummary._fields, strict=True))
        )
        for row in rows
    ]


def plan_dataset(
    elmo: Elmo,
    dataset: Any,
    directory: str | Path,
    *,
    shards: int,
    column: str = "text",
    reduction: Reduction | None = None,
    layers: LayerChoice = "mix",
) -> ShardPlan:
    """Plan a job for a column of a dataset, whose rows are sentences; then call `embed_shards`.

    The column is written to Parquet files in the directory first, in the order of the dataset, so
    that the job can be continued, verified and repeated without the dataset.

    Args:
        elmo: The model, loaded from a file or by its name.
        dataset: A `ray.data.Dataset` with a column of strings.
        directory: Directory of the job; created if it does not exist.
        shards: Number of shards, at most.
        column: Name of the column.
        reduction: What to keep of the vectors; by default all of them, in float32.
        layers: Layers of the vectors.
    """
    folder = (
        Path(directory).expanduser().resolve().with_name(f"{Path(directory).name}-{DATASET_FOLDER}")
    )
    complete = folder / "complete"
    if not complete.exists():
        context = ray.data.DataContext.get_current()
        before = context.execution_options.preserve_order
        context.execution_options.preserve_order = True
        try:
            dataset.select_columns([column]).write_parquet(
                str(folder), mode=ray.data.SaveMode.OVERWRITE
            )
        finally:
            context.execution_options.preserve_order = before
        complete.write_text("all rows are written\n", encoding="utf-8")
    return plan_shards(
        elmo,
        str(folder / "*.parquet"),
        directory,
        shards=shards,
        reduction=reduction,
        layers=layers,
        column=column,
    )


class TextActor:
    """A process that embeds texts; it loads the model once."""

    def __init__(
        self,
        model: str,
        column: str,
        layers: LayerChoice,
        pooling: Pooling,
        dtype: str,
        threads: int | None,
    ) -> None:
        """Load the model; see `embed_texts`."""
        self._elmo = load_shared(model, dtype, threads)
        self._column, self._layers, self._pooling = column, layers, pooling

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the batch with one more column, `vector`."""
        texts = ["" if text is None else str(text) for text in batch[self._column]]
        vectors = self._elmo.encode(texts, self._pooling, self._layers)
        return {**batch, "vector": vectors}


def embed_texts(
    dataset: Any,
    *,
    model: str = "builtin",
    column: str = "text",
    layers: LayerChoice = "mix",
    pooling: Pooling = "mean",
    dtype: str = "float32",
    workers: int = 2,
    threads: int | None = 1,
    batch_size: int = 1024,
) -> Any:
    """Return a dataset with one more column, `vector`: one vector per text, as `Elmo.encode`.

    Args:
        dataset: A `ray.data.Dataset`.
        model: Path or name of the model, which all nodes can load.
        column: Column of the texts.
        layers: Layer to pool: `"mix"`, `"sum"`, `"top"` or a number.
        pooling: `"mean"` or `"max"` over the words.
        dtype: `"float32"`, or `"int8"`, which is faster and less exact.
        workers: Number of actors.
        threads: Threads, and processors, of each.
        batch_size: Texts that are embedded together; the vectors do not depend on it.
    """
    return dataset.map_batches(
        TextActor,
        fn_constructor_args=(model, column, layers, pooling, dtype, threads),
        batch_size=batch_size,
        num_cpus=threads or 1,
        compute=ray.data.ActorPoolStrategy(size=workers),
    )
