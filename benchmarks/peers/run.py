"""Measure elmokit and the other implementations on the same weights, sentences and machine.

    python benchmarks/peers/run.py small original --json figures.json

Every system runs in its own process, and the runs are interleaved: each round measures each system
once, and the result is the median over the rounds, so that noise affects all systems alike. Ratios
are relative to the fastest peer of the same run. The vectors are compared first.

The sentences come from `--text` (one per line, words separated by spaces), or from the English
validation text next to the repository; if there is neither, they are made up from a seed.
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
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import elmokit
from client import PeerProcess
from elmokit import formats
from elmokit.bench import synthetic_sentences
from elmokit.bilm.random import random_bilm

OURS = ("elmokit float32", "elmokit bfloat16", "elmokit int8", "elmokit reference")
PEERS = ("simple_elmo", "allennlp", "manylangs")
TEXT = Path(__file__).parents[3] / "shared" / "data" / "lm-en-valid.txt.xz"
SCENARIOS = {
    "batches of 64, sorted": "words/s",
    "natural order, one call": "words/s",
    "one sentence of 20 words": "ms",
    "one document of 2,000 words": "words/s",
    "cold start to first sentence": "s",
}
EXTRA_ROWS = {
    "load": ("load, s", ".2f"),
    "memory": ("peak memory, MB", ",.0f"),
    "difference": ("largest difference from the first peer", ".1e"),
    "cosine": ("mean cosine with the first peer, top layer", ".5f"),
}


def main() -> None:
    """Measure the sizes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sizes", nargs="*", default=["small"], help="sizes: small, medium, original"
    )
    parser.add_argument("--systems", nargs="*", default=[*OURS, *PEERS], help="systems to measure")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per scenario")
    parser.add_argument("--threads", type=int, default=2, help="threads of each system")
    parser.add_argument(
        "--sentences", type=int, default=2000, help="sentences in natural order, for elmokit"
    )
    parser.add_argument(
        "--peer-sentences", type=int, default=256, help="sentences in natural order, for the peers"
    )
    parser.add_argument("--text", type=Path, help="file of tokenized sentences, one per line")
    parser.add_argument("--json", type=Path, help="file to write the results to")
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
    """Run all scenarios for one model size; return {system: {scenario: median, …}}."""
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
    """Start a system and load the model; return it, its start time, and the loading time."""
    began = time.perf_counter()
    peer = PeerProcess(name)
    model = folder / ("native" if name in OURS else "hdf5")
    return peer, began, peer.request("load", model=str(model), threads=threads)["seconds"]


def measure_cold_starts(
    folder: Path, sentence: list[str], arguments: argparse.Namespace, results: dict[str, Any]
) -> None:
    """Measure the seconds from the start of a process to the vectors of its first sentence."""
    seconds: dict[str, list[float]] = {name: [] for name in arguments.systems}
    for _ in range(3):
        for name in arguments.systems:
            peer, began, _ = start(name, folder, arguments.threads)
            with peer:
                peer.request("embed", sentences=[sentence], batch_size=1, layers="average")
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
    """Measure one scenario in interleaved rounds; the first round is not counted."""
    work = {name: workload(scenario, name, sentences, arguments) for name in peers}
    values: dict[str, list[float]] = {name: [] for name in peers}
    slow = scenario in ("natural order, one call", "one document of 2,000 words")
    for turn in range(1 + (min(3, arguments.rounds) if slow else arguments.rounds)):
        for name, peer in peers.items():
            sentences_of_system, batch_size = work[name]
            peer.request("reset")  # no state, and no cached words of the previous round
            answer = peer.request(
                "embed",
                sentences=sentences_of_system,
                batch_size=batch_size,
                layers="average",
                state="carry",
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
    """Return the sentences and the batch size of a system in a scenario."""
    ours = name in OURS and name != "elmokit reference"
    if scenario == "batches of 64, sorted":
        # Sentences of all lengths, in four batches from short to long.
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
    """Compare the vectors of each system with those of the first peer, from a zero state."""
    batch = [s for s in sentences if all(word.isascii() for word in s)][:8]
    vectors = {}
    for name, peer in peers.items():
        out = folder / "vectors.npz"
        peer.request("embed", sentences=batch, state="fresh", layers="all", out=str(out))
        vectors[name] = np.load(out)["vectors"]
    base = next((name for name in peers if name not in OURS), next(iter(peers)))
    for name in peers:
        ours, theirs = vectors[name], vectors[base]
        results[name]["difference"] = float(np.abs(ours - theirs).max())
        lengths = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
        results[name]["cosine"] = float(((ours * theirs).sum(axis=-1) / lengths)[-1].mean())


# -- input and output ----------------------------------------------------------------------------


def load_sentences(path: Path | None, count: int) -> list[list[str]]:
    """Return tokenized sentences of 1 to 80 words."""
    if path is not None:
        lines: Iterator[list[str]] = map(str.split, path.open(encoding="utf-8"))
    elif TEXT.exists():
        lines = english(TEXT)
    else:
        lines = synthetic_sentences()
    return list(islice((words for words in lines if 1 <= len(words) <= 80), count))


def english(path: Path) -> Iterator[list[str]]:
    """Yield the sentences of running text, split and tokenized by elmokit."""
    from elmokit.text.sentences import split_sentences
    from elmokit.text.tokenize import split_words

    with lzma.open(path, "rt", encoding="utf-8") as file:
        for paragraph in file:
            for sentence in split_sentences(paragraph):
                yield split_words(sentence.text)


def machine(threads: int) -> dict[str, Any]:
    """Describe the machine that the results were measured on."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = named[0].partition(":")[2].strip() if named else name
    return {"processor": name, "cores": os.cpu_count(), "threads": threads}


def show(size: str, results: dict[str, Any]) -> None:
    """Print a table of medians, and of the speed relative to the fastest peer."""
    table = Table(title=f"{size}: medians, and speed relative to the fastest peer")
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
    for key, (title, pattern) in EXTRA_ROWS.items():
        table.add_row(title, *(format(values[key], pattern) for values in results.values()))
    Console(width=max(120, 24 * len(results) + 40)).print(table)


def formatted(value: float, unit: str) -> str:
    """Format a result with the digits that suit its unit."""
    return f"{value:,.1f}" if unit == "ms" else f"{value:.2f}" if unit == "s" else f"{value:,.0f}"


def fastest_peer(results: dict[str, Any], scenario: str) -> float | None:
    """Return the best result of the peers, or None if none was measured."""
    values = [values[scenario] for name, values in results.items() if name not in OURS]
    if not values:
        return None
    return max(values) if SCENARIOS[scenario] == "words/s" else min(values)


def speed_up(value: float, best: float, unit: str) -> float:
    """Return how many times as fast as the best peer a result is."""
    return value / best if unit == "words/s" else best / value


if __name__ == "__main__":
    main()
