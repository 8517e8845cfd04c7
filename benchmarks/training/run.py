"""How fast does elmokit train, beside simple_elmo's trainer and plain PyTorch?

    python benchmarks/training/run.py tiny small --json figures.json

Every contestant runs in a process of its own, on the same cores, and learns from the same text
(`--corpus`, made by `elmo corpus`, or made up) with the same architecture. They take turns: one
round lets each take so many steps as fill about `--seconds`, and the median over the rounds counts,
so that a noisy moment hits all alike. The machine should have nothing else to do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

# First, because this file is called run.py too.
sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))
import elmokit
import venvs
from client import PeerProcess
from elmokit.bilm.sizes import SIZES
from elmokit.train.corpus import Corpus
from run import machine
from text import made_up_corpus, write_for_simple_elmo

HERE = Path(__file__).parent
OURS = ("ours recommended", "ours bilm-tf")
PEERS = ("plain", "simple_elmo_trainer")
WARM_UP = 3
"""Steps that are not counted; the first of a graph, or of a memory pool, is slow."""


class TrainerProcess(PeerProcess):
    """One contestant, running in its own environment and process."""

    def __init__(self, name: str, quiet: bool) -> None:
        """The first word names the script, the others are its arguments."""
        self.name = name
        script, *arguments = name.split()
        simple_elmo = script == "simple_elmo_trainer"
        python = str(venvs.ensure("simple_elmo")) if simple_elmo else sys.executable
        self._process = subprocess.Popen(
            [python, str(HERE / f"{script}.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
            encoding="utf-8",
        )
        self.started = self._read()


def main() -> None:
    """Measure the sizes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=["tiny"], help=", ".join(SIZES))
    parser.add_argument("--contestants", nargs="*", default=[*OURS, *PEERS])
    parser.add_argument("--corpus", type=Path, help="a directory that elmo corpus made")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0, help="of a turn, about")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--loud", action="store_true", help="show what the contestants say")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    confine(arguments.cores)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = (
            Corpus.open(arguments.corpus) if arguments.corpus else made_up_corpus(folder / "corpus")
        )
        write_for_simple_elmo(corpus, folder / "simple_elmo", arguments.sizes)
        directories = {"simple_elmo_trainer": folder / "simple_elmo"}
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


def confine(cores: int) -> None:
    """This process and its children to so many cores, so that no one takes more than another."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def measure(
    size: str, corpus: Path, directories: dict[str, Path], arguments: argparse.Namespace
) -> dict[str, Any]:
    """All contestants on one size of model: {contestant: {"words/s": median, …}}."""
    tell = Console(stderr=True, highlight=False).print
    trainers: dict[str, TrainerProcess] = {}
    results: dict[str, Any] = {}
    try:
        steps: dict[str, int] = {}
        for name in arguments.contestants:
            trainers[name] = trainer = TrainerProcess(name, quiet=not arguments.loud)
            directory = directories.get(name, corpus)
            trainer.ask("prepare", directory=str(directory), size=size, cores=arguments.cores)
            trainer.ask("learn", steps=WARM_UP)
            took = trainer.ask("learn", steps=2)["seconds"] / 2
            steps[name] = max(1, round(arguments.seconds / took))
            results[name] = {"versions": trainer.started["versions"], "steps": steps[name]}
        speeds: dict[str, list[float]] = {name: [] for name in trainers}
        for turn in range(arguments.rounds):
            for name, trainer in trainers.items():
                time.sleep(0.2)  # for threads of the one before, which spin for a while
                answer = trainer.ask("learn", steps=steps[name])
                speeds[name].append(answer["words"] / answer["seconds"])
                results[name]["peak_mb"] = answer["peak_mb"]
                tell(f"[dim]{size}, round {turn + 1}: {name} {speeds[name][-1]:,.0f} words/s")
        for name, values in speeds.items():
            results[name] |= {"words/s": statistics.median(values), "rounds": values}
    finally:
        for trainer in trainers.values():
            trainer.close()
    return results


def show(size: str, results: dict[str, Any]) -> None:
    """A table: medians, and how many times as fast as each that is not ours."""
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
