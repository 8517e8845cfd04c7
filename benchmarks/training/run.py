"""Measure how fast elmokit trains, compared with simple_elmo's trainer and plain PyTorch.

    python benchmarks/training/run.py tiny small --json figures.json

Every trainer runs in its own process, on the same cores, with the same architecture and the same
text (`--corpus`, made by `elmo corpus`, or made-up text). They take turns: in each round, each
trains as many steps as fill about `--seconds`. The result is the median over the rounds, so that
noise affects all trainers alike. The machine should be idle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

# Inserted first, because this file is called run.py too.
sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))
import elmokit
import venvs
from client import WorkerProcess
from elmokit.bilm.sizes import SIZES
from elmokit.train.corpus import Corpus
from run import machine
from trainer_data import made_up_corpus, write_for_simple_elmo

HERE = Path(__file__).parent
OURS = (
    "elmokit recommended",
    "elmokit recommended bfloat16",
    "elmokit bilm-tf",
    "elmokit bilm-tf bfloat16",
)
PEERS = ("pytorch", "simple_elmo")
WARM_UP_STEPS = 3
"""Steps that are not measured; the first steps of a graph, or of a memory pool, are slow."""


class TrainerProcess(WorkerProcess):
    """A trainer, running in its own environment and process."""

    def __init__(self, name: str, quiet: bool) -> None:
        """Start a trainer: the first word of the name is the script, the rest are arguments."""
        script, *arguments = name.split()
        python = str(venvs.ensure(script)) if script == "simple_elmo" else sys.executable
        super().__init__(name, [python, str(HERE / f"{script}_trainer.py"), *arguments], quiet)


def main() -> None:
    """Measure the sizes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=["tiny"], help=f"sizes: {', '.join(SIZES)}")
    parser.add_argument(
        "--contestants", nargs="*", default=[*OURS, *PEERS], help="trainers to measure"
    )
    parser.add_argument("--corpus", type=Path, help="directory that `elmo corpus` made")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each trainer")
    parser.add_argument("--seconds", type=float, default=6.0, help="approximate length of a turn")
    parser.add_argument("--cores", type=int, default=2, help="cores that all trainers share")
    parser.add_argument("--loud", action="store_true", help="show what the trainers print")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    arguments = parser.parse_args()
    limit_cores(arguments.cores)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = (
            Corpus.open(arguments.corpus) if arguments.corpus else made_up_corpus(folder / "corpus")
        )
        write_for_simple_elmo(corpus, folder / "simple_elmo", arguments.sizes)
        directories = {"simple_elmo": folder / "simple_elmo"}
        figures: dict[str, Any] = {
            "machine": machine(arguments.cores),
            "elmokit": elmokit.__version__,
            "vocabulary": len(corpus.vocabulary),
            "text": "corpus" if arguments.corpus else "made up",
            "sizes": {},
        }
        for size in arguments.sizes:
            figures["sizes"][size] = results = measure(size, corpus.path, directories, arguments)
            show(size, results)
    figures["load"] = os.getloadavg()
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures))


def limit_cores(cores: int) -> None:
    """Restrict this process and its children to the same number of cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def measure(
    size: str, corpus: Path, directories: dict[str, Path], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Measure all trainers on one model size; return {trainer: {"words/s": median, …}}."""
    log = Console(stderr=True, highlight=False).print
    trainers: dict[str, TrainerProcess] = {}
    results: dict[str, Any] = {}
    try:
        steps: dict[str, int] = {}
        for name in arguments.contestants:
            trainers[name] = trainer = TrainerProcess(name, quiet=not arguments.loud)
            directory = directories.get(name, corpus)
            trainer.request("prepare", directory=str(directory), size=size, cores=arguments.cores)
            trainer.request("learn", steps=WARM_UP_STEPS)
            step_seconds = trainer.request("learn", steps=2)["seconds"] / 2
            steps[name] = max(1, round(arguments.seconds / step_seconds))
            results[name] = {"versions": trainer.started["versions"], "steps": steps[name]}
        speeds: dict[str, list[float]] = {name: [] for name in trainers}
        for turn in range(arguments.rounds):
            for name, trainer in trainers.items():
                time.sleep(0.2)  # threads of the previous trainer may still spin
                answer = trainer.request("learn", steps=steps[name])
                speeds[name].append(answer["words"] / answer["seconds"])
                results[name]["peak_mb"] = answer["peak_mb"]
                log(f"[dim]{size}, round {turn + 1}: {name} {speeds[name][-1]:,.0f} words/s")
        for name, values in speeds.items():
            results[name] |= {"words/s": statistics.median(values), "rounds": values}
    finally:
        for trainer in trainers.values():
            trainer.close()
    return results


def show(size: str, results: dict[str, Any]) -> None:
    """Print a table of medians, and of the speed relative to each of the other trainers."""
    peers: Sequence[str] = [name for name in results if name in PEERS]
    table = Table(title=f"Training, {size}: medians over the rounds")
    for column in ("", "words/s", "lowest", "highest", *(f"× {peer}" for peer in peers), "peak MB"):
        table.add_column(column, justify="right" if column else "left")
    for name, values in results.items():
        speed, rounds = values["words/s"], values["rounds"]
        table.add_row(
            name,
            *(f"{x:,.0f}" for x in (speed, min(rounds), max(rounds))),
            *(f"{speed / results[peer]['words/s']:.2f}" for peer in peers),
            f"{values['peak_mb']:,.0f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
