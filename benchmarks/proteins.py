"""Check that memory stays bounded while a large FASTA file of long proteins is embedded.

    python benchmarks/proteins.py --out vectors.h5 [--proteins 100000] [--longest 35000]

Writes a FASTA file of made-up proteins beside the output (most are short, one in a thousand is of
the greatest length), embeds it, and prints the memory of the process at intervals; the last line is
JSON with the peak. The default model is a small one with random weights, since only the memory
matters here; `--model seqvec` or a path uses another. `--pool mean` stores one vector per protein.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo, mark_proteins
from elmokit.vectors.embed import embed_fasta_to_file

TINY = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((1, 16), (2, 16), (3, 32)), highways=1),
    lstm=LSTMConfig(cells=64, width=16),
)


def resident_mb() -> float:
    """Return the current memory of this process in MB (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def write_fasta(path: Path, proteins: int, longest: int) -> None:
    """Write made-up proteins, wrapped at 60 residues per line."""
    source = random.Random(0)
    with path.open("w") as out:
        for i in range(proteins):
            length = longest if i % 1000 == 999 else min(longest, int(source.expovariate(1 / 300)))
            sequence = "".join(source.choices("ACDEFGHIKLMNPQRSTVWYX", k=length))
            out.write(f">P{i:06d} made up\n")
            out.writelines(sequence[k : k + 60] + "\n" for k in range(0, length, 60))


def main() -> None:
    """Embed made-up proteins and print the memory 20 times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, required=True, help="file to write: .h5, .npz or .parquet"
    )
    parser.add_argument("--proteins", type=int, default=100_000, help="number of proteins")
    parser.add_argument("--longest", type=int, default=35_000, help="residues of the longest")
    parser.add_argument("--pool", choices=["mean", "max"], help="one vector per protein")
    parser.add_argument("--model", help="model to use; random weights by default")
    arguments = parser.parse_args()
    fasta = arguments.out.with_suffix(".fasta")
    write_fasta(fasta, arguments.proteins, arguments.longest)
    if arguments.model is None:
        elmo = Elmo(mark_proteins(random_bilm(TINY), True))
    else:
        elmo = Elmo.load(arguments.model, proteins=True)
    interval = max(1, arguments.proteins // 20)
    done, memory, start = 0, [], time.perf_counter()

    def on_sentence(residues: Sequence[str]) -> None:
        nonlocal done
        done += 1
        if done % interval == 0:
            memory.append(round(resident_mb(), 1))
            seconds = time.perf_counter() - start
            print(f"{done:>10,} proteins  {seconds:7.1f} s  {memory[-1]:7.1f} MB", flush=True)

    summary = embed_fasta_to_file(
        elmo, fasta, arguments.out, pooling=arguments.pool, on_sentence=on_sentence
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(
        json.dumps(
            {
                "proteins": summary.sentences,
                "residues": summary.words,
                "longest": arguments.longest,
                "memory_mb": memory,
                "peak_mb": round(peak, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
