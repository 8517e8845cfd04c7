"""Does memory stay flat while a million short sentences are embedded into a file?

    python benchmarks/stream.py --out vectors.h5 [--sentences 1000000] [--model DIR]

Prints the memory of the process as it goes; the last line is JSON. The default model is a small one
of random numbers, since only the stream matters here.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from elmokit.bilm.config import LSTM, BiLMConfig, CharCNN
from elmokit.bilm.random import random_bilm
from elmokit.cli.bench import made_up_sentences
from elmokit.elmo import Elmo
from elmokit.vectors.embed import embed_to_file

TINY = BiLMConfig(
    char_cnn=CharCNN(filters=((1, 16), (2, 16), (3, 32)), highways=1),
    lstm=LSTM(cells=128, width=32),
)


def resident_mb() -> float:
    """The memory of this process now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main() -> None:
    """Embed, and watch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a new .h5, .npz or .parquet")
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    elmo = Elmo(random_bilm(TINY)) if arguments.model is None else Elmo.load(arguments.model)
    every = max(1, arguments.sentences // 20)
    seen, memory, began = 0, [], time.perf_counter()

    def short() -> Iterator[list[str]]:
        return (words[:3] for words in islice(made_up_sentences(), arguments.sentences))

    def watch(words: Sequence[str]) -> None:
        nonlocal seen
        seen += 1
        if seen % every == 0:
            memory.append(round(resident_mb(), 1))
            seconds = time.perf_counter() - began
            print(f"{seen:>10,} sentences  {seconds:7.1f} s  {memory[-1]:7.1f} MB", flush=True)

    embed_to_file(elmo, short(), arguments.out, on_sentence=watch)
    memory.append(round(resident_mb(), 1))
    facts = {"sentences": seen, "seconds": round(time.perf_counter() - began, 1), "mb": memory}
    print(json.dumps({"out": arguments.out.suffix} | facts))


if __name__ == "__main__":
    main()
