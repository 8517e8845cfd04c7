"""elmokit and the other implementations side by side: the same weights, sentences and machine.

    python benchmarks/peers/run.py small original --json figures.json

Every system runs in a process of its own, and the runs are interleaved: one round measures each
system once, and the median over the rounds counts, so that a noisy moment hits all alike. Ratios
are over the fastest peer of the same run. The vectors are compared first.

The sentences come from `--text` (one a line, words separated by spaces), or from the English
validation text beside the repository, or, where there is neither, are made up by a seed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import elmokit
from client import PeerProcess
from elmokit import formats
from elmokit.bilm.random import random_bilm
from elmokit.cli.bench import made_up_sentences

OURS = ("elmokit float32", "elmokit int8", "elmokit reference")
PEERS = ("simple_elmo", "allennlp", "manylangs")
TEXT = Path(__file__).parents[3] / "shared" / "data" / "lm-en-valid.txt.xz"
SCENARIOS = {
    "batches of 64, sorted": "tokens/s",
    "natural order, one call": "tokens/s",
    "one sentence of 20 words": "ms",
    "one document of 2,000 words": "tokens/s",
    "cold start to first sentence": "s",
}
MORE = {
    "load": ("load, s", ".2f"),
    "memory": ("peak memory, MB", ",.0f"),
    "difference": ("largest difference from the first peer", ".1e"),
    "cosine": ("mean cosine with it, top layer", ".5f"),
}


def main() -> None:
    """Measure the sizes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", default=["small"], help="small, medium or original")
    parser.add_argument("--systems", nargs="*", default=[*OURS, *PEERS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int, default=2000, help="for ours, in natural order")
    parser.add_argument("--peer-sentences", type=int, default=256, help="for the slower ones")
    parser.add_argument("--text", type=Path, help="sentences of words, one a line")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    arguments = parser.parse_args()
    sentences = load_sentences(arguments.text, arguments.sentences)
    figures = {"machine": machine(arguments.threads), "elmokit": elmokit.__version__, "sizes": {}}
    for size in arguments.sizes:
        figures["sizes"][size] = measure(size, sentences, arguments)
        show(size, figures["sizes"][size])
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures))


def measure(size: str, sentences: list[list[str]], arguments: argparse.Namespace) -> dict[str, Any]:
    """All scenarios for one size of model: {system: {scenario: median, …}}."""
    results: dict[str, Any] = {name: {} for name in arguments.systems}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        formats.write(random_bilm(size), folder / "native")
        formats.write(formats.read(folder / "native"), folder / "hdf5", format="allennlp")
        peers: dict[str, PeerProcess] = {}
        try:
            measure_cold_starts(folder, sentences[0], arguments, results)
            for name in arguments.systems:
                peers[name], _, results[name]["load"] = start(name, folder, arguments.threads)
            compare(peers, sentences, results, folder)
            for scenario in list(SCENARIOS)[:-1]:
                run_scenario(scenario, peers, sentences, arguments, results)
        finally:
            for peer in peers.values():
                peer.close()
    return results


def start(name: str, folder: Path, threads: int) -> tuple[PeerProcess, float, float]:
    """A system with the model loaded; when its process was started; the seconds of loading."""
    began = time.perf_counter()
    peer = PeerProcess(name)
    model = folder / ("native" if name in OURS else "hdf5")
    return peer, began, peer.ask("load", model=str(model), threads=threads)["seconds"]


def measure_cold_starts(
    folder: Path, sentence: list[str], arguments: argparse.Namespace, results: dict[str, Any]
) -> None:
    """From the start of a process to the vectors of its first sentence."""
    seconds: dict[str, list[float]] = {name: [] for name in arguments.systems}
    for _ in range(3):
        for name in arguments.systems:
            peer, began, _ = start(name, folder, arguments.threads)
            with peer:
                peer.ask("embed", sentences=[sentence], batch_size=1, layers="average")
                seconds[name].append(time.perf_counter() - began)
    for name in arguments.systems:
        results[name]["cold start to first sentence"] = statistics.median(seconds[name])


def run_scenario(
    scenario: str,
    peers: dict[str, PeerProcess],
    sentences: list[list[str]],
    arguments: argparse.Namespace,
    results: dict[str, Any],
) -> None:
    """Interleaved rounds; the first is not counted."""
    work = {name: workload(scenario, name, sentences, arguments) for name in peers}
    values: dict[str, list[float]] = {name: [] for name in peers}
    slow = scenario in ("natural order, one call", "one document of 2,000 words")
    for turn in range(1 + (min(3, arguments.rounds) if slow else arguments.rounds)):
        for name, peer in peers.items():
            given, batch_size = work[name]
            peer.ask("reset")  # no state, and no words that the last round computed
            answer = peer.ask(
                "embed", sentences=given, batch_size=batch_size, layers="average", state="carry"
            )
            if turn or (slow and name not in OURS):
                per_second = answer["words"] / answer["seconds"]
                unit = SCENARIOS[scenario]
                values[name].append(per_second if unit != "ms" else 1000 * answer["seconds"])
            results[name]["memory"] = answer["peak_mb"]
            Console(stderr=True).print(f"[dim]{scenario}, round {turn}: {name}", highlight=False)
    for name in peers:
        results[name][scenario] = statistics.median(values[name])


def workload(
    scenario: str, name: str, sentences: list[list[str]], arguments: argparse.Namespace
) -> tuple[list[list[str]], int]:
    """What a system gets: sentences and its batch size."""
    ours = name in OURS and name != "elmokit reference"
    if scenario == "batches of 64, sorted":
        # The lengths of the whole text, in four batches from short to long.
        chosen = sorted(sentences[:256], key=len)
        return chosen, 64
    if scenario == "natural order, one call":
        if ours:
            return sentences, 0
        return sentences[: arguments.peer_sentences], 0 if name in OURS else 32
    words = [word for sentence in sentences for word in sentence]
    length = 20 if "20 words" in scenario else 2000
    return [words[:length]], 1


def compare(
    peers: dict[str, PeerProcess],
    sentences: list[list[str]],
    results: dict[str, Any],
    folder: Path,
) -> None:
    """How far each system is from the first peer, from a zero state."""
    batch = [s for s in sentences if all(word.isascii() for word in s)][:8]
    vectors = {}
    for name, peer in peers.items():
        out = folder / "vectors.npz"
        peer.ask("embed", sentences=batch, state="fresh", layers="all", out=str(out))
        vectors[name] = np.load(out)["vectors"]
    base = next((name for name in peers if name not in OURS), next(iter(peers)))
    for name in peers:
        ours, theirs = vectors[name], vectors[base]
        results[name]["difference"] = float(np.abs(ours - theirs).max())
        lengths = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
        results[name]["cosine"] = float(((ours * theirs).sum(axis=-1) / lengths)[-1].mean())


# -- what is read, and what is shown -------------------------------------------------------------


def load_sentences(path: Path | None, count: int) -> list[list[str]]:
    """Tokenized sentences of 1 to 80 words."""
    if path is not None:
        lines: Iterator[list[str]] = map(str.split, path.open(encoding="utf-8"))
    elif TEXT.exists():
        lines = english(TEXT)
    else:
        lines = made_up_sentences()
    found = []
    for words in lines:
        if 1 <= len(words) <= 80:
            found.append(words)
        if len(found) == count:
            return found
    return found


def english(path: Path) -> Iterator[list[str]]:
    """Sentences of running text, cut by our own tokenizer."""
    from elmokit.text.sentences import split_sentences
    from elmokit.text.tokenize import words

    with lzma.open(path, "rt", encoding="utf-8") as file:
        for paragraph in file:
            for sentence in split_sentences(paragraph):
                yield words(sentence.text)


def machine(threads: int) -> dict[str, Any]:
    """What the figures were taken on."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = named[0].partition(":")[2].strip() if named else name
    return {"processor": name, "cores": os.cpu_count(), "threads": threads}


def show(size: str, results: dict[str, Any]) -> None:
    """A table: the median of each scenario, and the ratio over the fastest peer."""
    table = Table(title=f"{size}, medians; × over the fastest peer")
    table.add_column("")
    for name in results:
        table.add_column(name, justify="right")
    for scenario, unit in SCENARIOS.items():
        best = fastest_peer(results, scenario)
        cells = []
        for values in results.values():
            ratio = "" if best is None else f"  {speed_up(values[scenario], best, unit):.2f}×"
            cells.append(formatted(values[scenario], unit) + ratio)
        table.add_row(f"{scenario}, {unit}", *cells)
    for key, (title, pattern) in MORE.items():
        table.add_row(title, *(format(values[key], pattern) for values in results.values()))
    Console(width=max(120, 24 * len(results) + 40)).print(table)


def formatted(value: float, unit: str) -> str:
    """A figure as people read it."""
    return f"{value:,.1f}" if unit == "ms" else f"{value:.2f}" if unit == "s" else f"{value:,.0f}"


def fastest_peer(results: dict[str, Any], scenario: str) -> float | None:
    """The best value of the systems that are not ours."""
    values = [values[scenario] for name, values in results.items() if name not in OURS]
    if not values:
        return None
    return max(values) if SCENARIOS[scenario] == "tokens/s" else min(values)


def speed_up(value: float, best: float, unit: str) -> float:
    """How many times as fast."""
    return value / best if unit == "tokens/s" else best / value


if __name__ == "__main__":
    main()
