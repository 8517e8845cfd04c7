"""Check that memory stays constant while a million short sentences are embedded into a file.

    python benchmarks/stream.py --out vectors.h5 [--sentences 1000000] [--model DIR]

Prints the memory of the process at intervals; the last line is JSON. The default model is a small
one with random weights, since only the memory matters here.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from elmokit.bench import synthetic_sentences
from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo
from elmokit.vectors.embed import embed_to_file

TINY = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 16), (2, 16), (3, 32)), highways=1),
    lstm=LSTMConfig(cells=128, width=32),
)


def resident_mb() -> float:
    """Return the current memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Embed made-up sentences and print the memory 20 times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: .h5, .npz or .parquet"
    )
    parser.add_argument("--sentences", type=int, default=1_000_000, help="number of sentences")
    parser.add_argument("--model", type=Path, help="model to use; random weights by default")
    arguments = parser.parse_args()
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
