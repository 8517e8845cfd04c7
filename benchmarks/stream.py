"""Measure the memory of embedding: over a million short sentences, or the peak of a large model.

    python benchmarks/stream.py --out vectors.h5 [--sentences 1000000] [--model DIR]
    python benchmarks/stream.py --peak original [--sentences 2000]

The first command embeds into a file, and prints the memory of the process at intervals. The default
model is a small one with random weights, since only the memory matters here. The second one prints
the largest memory of a process that loads a model of this size, with random weights, and embeds
synthetic sentences with two threads: once with all vectors held in a list, once streamed. The last
line is JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from elmokit.bench import synthetic_sentences
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.random import random_bilm
from elmokit.bilm.sizes import SIZES
from elmokit.elmo import Elmo
from elmokit.formats import write
from elmokit.vectors.embed import embed_to_file

TINY = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 16), (2, 16), (3, 32)), highways=1),
    lstm=LSTMConfig(cells=128, width=32),
)


def resident_mb() -> float:
    """Return the current memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


PEAK = """
import re, sys
from itertools import islice
from pathlib import Path
from elmokit import Elmo
from elmokit.bench import synthetic_sentences

def resident(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

model, mode, sentences = sys.argv[1:]
elmo = Elmo.load(model, threads=2, state="zero")
loaded = resident("VmRSS")
texts = islice(synthetic_sentences(), int(sentences))
held = elmo.embed(texts) if mode == "held" else []
for vectors in elmo.stream(texts) if mode == "streamed" else []:
    pass
print(resident("VmHWM"), loaded, sum(v.nbytes for v in held))
"""
"""Program that prints its largest memory, that after loading, and the size of the vectors it holds,
in bytes (Linux).

Of the process itself: that of `getrusage` begins with the memory of the process that started it.
"""


def print_peaks(size: str, sentences: int) -> None:
    """Print the peak memory of embedding with a model of this size, vectors held and streamed."""
    result: dict[str, object] = {"size": size, "sentences": sentences}
    with tempfile.TemporaryDirectory() as folder:
        bilm = random_bilm(size)
        write(bilm, Path(folder) / "model")
        result["parameters_mb"] = round(4 * bilm.parameters / 1e6, 1)
        del bilm
        for mode in ("held", "streamed"):
            command = [sys.executable, "-c", PEAK, f"{folder}/model", mode, str(sentences)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peak, loaded, vectors = (int(number) / 1e6 for number in done.stdout.split())
            result |= {f"{mode}_mb": round(peak, 1), "loaded_mb": round(loaded, 1)}
            print(f"{mode:>8}: {peak:.1f} MB, of which {loaded:.1f} MB after loading ", end="")
            print(f"and {vectors:.1f} MB of vectors", flush=True)
    print(json.dumps(result))


def main() -> None:
    """Embed made-up sentences and print the memory 20 times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file to write: .h5, .npz or .parquet")
    parser.add_argument("--peak", choices=sorted(SIZES), help="print the peak memory of this size")
    parser.add_argument(
        "--sentences", type=int, help="number of sentences [default: 1000000; 2000 with --peak]"
    )
    parser.add_argument("--model", type=Path, help="model to use; random weights by default")
    arguments = parser.parse_args()
    if (arguments.out is None) == (arguments.peak is None):
        parser.error("give either --out or --peak")
    if arguments.peak:
        if arguments.model:
            parser.error("--peak makes a model of its own; leave out --model")
        print_peaks(arguments.peak, arguments.sentences or 2000)
        return
    arguments.sentences = arguments.sentences or 1_000_000
    elmo = Elmo(random_bilm(TINY)) if arguments.model is None else Elmo.load(arguments.model)
    interval = max(1, arguments.sentences // 20)
    done, memory, start = 0, [], time.perf_counter()

    def short_sentences() -> Iterator[list[str]]:
        return (words[:3] for words in islice(synthetic_sentences(), arguments.sentences))

    def on_sentence(words: Sequence[str]) -> None:
        nonlocal done
        done += 1
        if done % interval == 0:
            memory.append(round(resident_mb(), 1))
            seconds = time.perf_counter() - start
            print(f"{done:>10,} sentences  {seconds:7.1f} s  {memory[-1]:7.1f} MB", flush=True)

    embed_to_file(elmo, short_sentences(), arguments.out, on_sentence=on_sentence)
    memory.append(round(resident_mb(), 1))
    seconds = round(time.perf_counter() - start, 1)
    result = {"out": arguments.out.suffix, "sentences": done, "seconds": seconds, "mb": memory}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
