"""Ray: the same files as without it, also after a worker was killed."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

ray = pytest.importorskip("ray", reason="needs ray: pip install 'elmokit[ray]'")

from elmokit.elmo import Elmo  # noqa: E402
from elmokit.integrations.ray import embed_shards, embed_texts, plan_dataset  # noqa: E402
from elmokit.vectors import (  # noqa: E402
    Reduction,
    ShardFile,
    merge_shards,
    plan_shards,
    run_shards,
    verify_shards,
)

MODEL = GOLDEN / "models" / "plain"
WORDS = "ant bee cat dog elk fox gnu hen".split()


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def text(tmp_path: Path) -> Path:
    source = random.Random(0)
    path = tmp_path / "text.txt"
    lines = [" ".join(source.choices(WORDS, k=source.randint(0, 8))) for _ in range(2000)]
    path.write_text("\n".join(lines) + "\n")
    return path


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "shards").iterdir()}


def test_the_same_files_after_a_kill(text: Path, tmp_path: Path) -> None:
    elmo = Elmo.load(MODEL, threads=1)
    calm = plan_shards(elmo, text, tmp_path / "calm", shards=12, reduction=Reduction("forms"))
    run_shards(calm)
    plan = plan_shards(elmo, text, tmp_path / "ray", shards=12, reduction=Reduction("forms"))
    killed = []

    def kill() -> None:
        """Kill the first actor that has finished a shard."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not killed:
            for path in (plan.directory / "shards").glob(".work.*.tmp"):
                process = int(path.name.split("-")[-2])
                if process != os.getpid():
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)
                    break
            time.sleep(0.002)

    killer = threading.Thread(target=kill)
    killer.start()
    summaries = embed_shards(plan, workers=2)
    killer.join()
    assert killed and [each.number for each in summaries] == list(range(len(plan.shards)))
    report = verify_shards(plan)
    assert report.is_complete and report.words == sum(each.words for each in summaries)
    assert contents(plan.directory) == contents(calm.directory)
    assert all(each.was_finished for each in embed_shards(plan, workers=1))


def test_a_dataset_as_a_job(text: Path, tmp_path: Path) -> None:
    elmo = Elmo.load(MODEL, threads=1)
    dataset = ray.data.read_text(str(text), drop_empty_lines=False)
    plan = plan_dataset(elmo, dataset, tmp_path / "job", shards=3, reduction=Reduction("forms"))
    embed_shards(plan, workers=1)
    assert (
        plan_dataset(elmo, dataset, tmp_path / "job", shards=3, reduction=Reduction("forms")).shards
        == plan.shards
    ), "planned once"
    calm = plan_shards(elmo, text, tmp_path / "calm", shards=1, reduction=Reduction("forms"))
    run_shards(calm)
    with ShardFile(merge_shards(plan)) as one, ShardFile(merge_shards(calm)) as other:
        assert one.header["words"] == other.header["words"]
        assert bytes(one.array("forms")) == bytes(other.array("forms"))
        assert np.array_equal(one.array("counts"), other.array("counts"))
        # Only the compiled kernel gives a sentence the same bits in every batch.
        exact = elmo.engine.startswith("kernel")
        difference = np.abs(one.array("vectors") - other.array("vectors")).max()
        assert difference == 0 if exact else difference < 1e-5


def test_a_column_of_vectors() -> None:
    elmo = Elmo.load(MODEL, threads=1)
    texts = ["A bank .", "", "The river was wide ."]
    dataset = ray.data.from_items([{"id": k, "text": text} for k, text in enumerate(texts)])
    rows = sorted(
        embed_texts(dataset, model=str(MODEL), workers=1, batch_size=2).take_all(),
        key=lambda row: row["id"],
    )
    assert [row["text"] for row in rows] == texts
    found = np.stack([row["vector"] for row in rows])
    assert np.abs(found - elmo.encode(texts)).max() < 1e-5
