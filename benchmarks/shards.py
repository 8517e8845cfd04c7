"""Kills workers of sharded jobs at random moments, and compares files with an undisturbed run.

    python benchmarks/shards.py --shards 50 --workers 2 --kills 10
    python benchmarks/shards.py --engine ray --shards 50 --kills 10 --cases 5 --seed 3

A case embeds a made-up text in shards with two workers, while a worker gets SIGKILL at random
moments, through plain worker processes (`elmo embed --workers 2`), the tasks of a SLURM array
(`elmo embed --shard K/N`, started again after each kill as SLURM does with --requeue), and Ray. In
the end every shard must be there exactly once, with the bytes of an undisturbed run, and nothing
else. Then it prints the largest memory of a worker for shards of some size and for shards that are
ten times as large, which must not take more than 64 MB more; and it compares the speed of two
workers of one thread with that of one process with two threads, in turns. The last line is JSON.

    python benchmarks/shards.py --only speed            # wants a machine with nothing else to do
    python benchmarks/shards.py --only memory --memory-words 3000000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "attack"))
from tally import Tally

from elmokit import Elmo
from elmokit.bench import synthetic_sentences
from elmokit.bilm.random import random_bilm
from elmokit.vectors import Reduction, ShardPlan, plan_shards, run_shards, verify_shards

ENGINES = ("processes", "slurm", "ray")
REDUCTIONS = {
    "vectors": Reduction(store="float16"),
    "sentence": Reduction("sentence"),
    "forms": Reduction("forms"),
}


MORE_MEMORY = 64
"""Megabytes that ten times as large a shard may take more."""


class Killer:
    """Kills one of the processes that are writing shards, again and again."""

    def __init__(self, directory: Path, kills: int, source: random.Random, pause: float) -> None:
        """Prepare to kill `kills` times, about `pause` seconds apart."""
        self._folder, self._kills, self._source = directory / "shards", kills, source
        self._pause = pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.killed: list[int] = []

    def _run(self) -> None:
        while len(self.killed) < self._kills and not self._over.is_set():
            self._over.wait(self._source.uniform(0, 2 * self._pause))
            names = [path.name for path in self._folder.glob(".work.*.tmp")]
            alive = [int(name.split("-")[-2]) for name in sorted(names)]
            alive = [p for p in alive if p != os.getpid() and p not in self.killed]
            if alive and not self._over.is_set():
                process = self._source.choice(alive)
                try:
                    os.kill(process, signal.SIGKILL)
                    self.killed.append(process)
                except ProcessLookupError:
                    pass

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def run_processes(plan: ShardPlan, workers: int) -> None:
    """Run a job with worker processes."""
    run_shards(plan, workers=workers, threads=1)


def run_slurm(plan: ShardPlan, workers: int) -> None:
    """Run a job as an array of tasks, `workers` at a time; a killed task is started again."""
    total = len(plan.shards)
    waiting = list(range(total))
    running: dict[int, subprocess.Popen[bytes]] = {}
    while waiting or running:
        while waiting and len(running) < workers:
            task = waiting.pop(0)
            command = [sys.executable, "-m", "elmokit", "embed", "--out", str(plan.directory)]
            running[task] = subprocess.Popen(
                [*command, "--shard", f"{task}/{total}", "--threads", "1"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        for task, process in list(running.items()):
            if process.poll() is not None:
                del running[task]
                _, printed = process.communicate()
                if process.returncode < 0:
                    waiting.append(task)  # requeued
                elif process.returncode:
                    raise RuntimeError(printed.decode(errors="replace"))
        time.sleep(0.005)


def run_ray(plan: ShardPlan, workers: int) -> None:
    """Run a job with Ray."""
    import ray

    from elmokit.integrations.ray import embed_shards

    if not ray.is_initialized():
        ray.init(num_cpus=max(2, workers), include_dashboard=False, log_to_driver=False)
    embed_shards(plan, workers=workers)


RUN: dict[str, Callable[[ShardPlan, int], None]] = {
    "processes": run_processes,
    "slurm": run_slurm,
    "ray": run_ray,
}


def contents(plan: ShardPlan) -> dict[str, bytes]:
    """Return the files of the shards, hidden ones too."""
    return {path.name: path.read_bytes() for path in (plan.directory / "shards").iterdir()}


def attack(
    root: Path, engine: str, options: argparse.Namespace, case: int, tally: Tally
) -> str | None:
    """Run one case, and return what is wrong, if anything."""
    source = random.Random(f"{options.seed} {engine} {case}")
    name = source.choice(sorted(REDUCTIONS))
    elmo = Elmo.load(root / "model", threads=1)

    def plan_job(kind: str) -> ShardPlan:
        directory = root / f"{engine}-{case}-{kind}"
        return plan_shards(
            *(elmo, root / "text.txt", directory), shards=options.shards, reduction=REDUCTIONS[name]
        )

    calm = plan_job("calm")
    start = time.monotonic()
    run_shards(calm, threads=1)
    seconds = time.monotonic() - start
    plan = plan_job("killed")
    pause = seconds / (4 * max(options.kills, 1))  # so that all kills happen before the end
    with Killer(plan.directory, options.kills, source, pause) as killer:
        RUN[engine](plan, options.workers)
    tally.outcomes[f"{engine}: kills"] += len(killer.killed)
    report = verify_shards(plan)
    tally.outcomes[f"{engine}: shards"] += report.shards
    tally.outcomes[f"{engine}: missing"] += len(report.missing)
    tally.outcomes[f"{engine}: strays removed"] += len(report.strays)
    found, wanted = contents(plan), contents(calm)
    other = sum(found.get(file) != wanted.get(file) for file in {*found, *wanted})
    tally.outcomes[f"{engine}: files that differ"] += other
    if other or not report.is_complete or report.damaged:
        return f"case {case} ({name}): {other} files differ; {report}"
    return None


def measure_memory(root: Path, options: argparse.Namespace, tally: Tally) -> None:
    """Compare the memory of workers with small shards and with shards ten times as large."""
    elmo = Elmo.load(root / "model", threads=1)
    for name, reduction in REDUCTIONS.items():
        peaks = {}
        for words in (options.memory_words // 10, options.memory_words):
            text, directory = root / f"memory-{words}.txt", root / f"memory-{name}-{words}"
            if not text.exists():
                _write_text(text, 2 * words)
            plan = plan_shards(elmo, text, directory, shards=2, reduction=reduction)
            done = run_shards(plan, workers=2, threads=1)  # new processes
            peaks[words] = max(each.peak_bytes for each in done) / 1e6
            for path in (directory / "shards").iterdir():
                path.unlink()
        (small, few), (large, many) = peaks.items()
        print(
            f"memory of a worker, {name}: {few:.0f} MB with shards of {small:,} words, "
            f"{many:.0f} MB with {large:,}",
            flush=True,
        )
        tally.outcomes[f"{name}: megabytes of a worker"] = round(many)
        wrong = f"{name}: {few:.0f} MB grow to {many:.0f} MB" if many > few + MORE_MEMORY else None
        tally.add("memory", wrong)


def compare_speed(root: Path, options: argparse.Namespace) -> dict[str, float]:
    """Return the speed of two workers relative to two threads, and the memory of a worker."""
    elmo = Elmo.load(root / "speed-model", threads=1)
    ratios, peaks = [], []
    for turn in range(options.rounds):
        speeds = {}
        for workers, threads in ((1, 2), (2, 1)) if turn % 2 else ((2, 1), (1, 2)):
            directory = root / f"speed-{turn}-{workers}"
            plan = plan_shards(
                *(elmo, root / "speed.txt", directory),
                shards=options.shards,
                reduction=Reduction("sentence"),
            )
            start = time.monotonic()
            done = run_shards(plan, workers=workers, threads=threads)
            words = sum(each.words for each in done)
            speeds[workers] = words / (time.monotonic() - start)
            if workers == 2:
                peaks += [each.peak_bytes for each in done]
        ratios.append(speeds[2] / speeds[1])
        print(
            f"two workers {speeds[2]:,.0f} words/s, two threads {speeds[1]:,.0f} words/s",
            flush=True,
        )
    return {
        "workers_to_threads": round(statistics.median(ratios), 3),
        "peak_megabytes_per_worker": round(max(peaks) / 1e6, 1),
    }


def main() -> None:
    """Attack the engines of the command line, and compare speeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shards", type=int, default=50, help="shards of a job (default: 50)")
    parser.add_argument("--workers", type=int, default=2, help="workers (default: 2)")
    parser.add_argument("--kills", type=int, default=10, help="kills per case (default: 10)")
    parser.add_argument("--cases", type=int, default=1, help="cases per engine (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="default: all three")
    parser.add_argument("--words", type=int, default=60_000, help="words of the text")
    parser.add_argument("--size", default="small", help="size of the model of the speed test")
    parser.add_argument("--speed-words", type=int, default=500_000, help="words of the speed test")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the speed test")
    parser.add_argument(
        "--memory-words", type=int, default=200_000, help="words of the large shards"
    )
    parser.add_argument("--only", choices=("kills", "memory", "speed"), help="do only this")
    parser.add_argument("--no-speed", action="store_true", help="do not compare speeds")
    options = parser.parse_args()
    tally = Tally("shards", options.seed, options.seconds)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        Elmo(random_bilm("tiny"), threads=1).save(root / "model")
        _write_text(root / "text.txt", options.words)
        for engine in options.engine or ENGINES if options.only in (None, "kills") else ():
            for case in range(options.cases):
                if not tally.is_over:
                    tally.add(engine, attack(root, engine, options, case, tally))
        if options.only in (None, "memory"):
            measure_memory(root, options, tally)
        if options.only == "speed" or not (options.only or options.no_speed):
            Elmo(random_bilm(options.size), threads=1).save(root / "speed-model")
            _write_text(root / "speed.txt", options.speed_words)
            speed = compare_speed(root, options)
            print(json.dumps(speed))
            tally.outcomes.update(speed)
    tally.finish()


def _write_text(path: Path, words: int) -> None:
    lines = [" ".join(sentence) for sentence in islice(synthetic_sentences(), words // 21)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
