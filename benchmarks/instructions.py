"""Count the instructions of the compiled kernel, which no other work on the machine can change.

    python benchmarks/instructions.py small [--sentences 64]

Runs the LSTM layers of a model of this size, with float32 weights of zero, over sentences of one
and of two words under valgrind's `callgrind`. The difference is what one word of every sentence
takes, in one thread. The products take as many instructions as there are vectors of products, and
everything else is overhead: loads, loops, gates, copies. The last line is JSON.

Needs valgrind, and an instruction set that valgrind knows: with AVX-512, set ELMOKIT_ISA=avx2.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys

from elmokit.bilm.sizes import SIZES
from elmokit.engine.native import instruction_set
from elmokit.engine.work import input_weights, step_weights

LANES = {"avx512": 16, "avx2": 8, "neon": 4, "portable": 4}
"""Floats of a vector by instruction set."""
PROGRAM = """
import sys
import numpy as np
from elmokit.bilm.sizes import SIZES
from elmokit.bilm.state import State
from elmokit.bilm.weights import expected_shapes
from elmokit.engine.batching import pack
from elmokit.engine.native import NativeNetwork

size, sentences, words = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
config = SIZES[size]
weights = {name: np.zeros(shape, np.float32) for name, shape in expected_shapes(config).items()}
network = NativeNetwork(config, weights, 1)
vectors = np.zeros((sentences * words, config.lstm.width), np.float32)
network.contextualize(vectors, pack([words] * sentences), State.zeros(config, sentences))
"""
"""Program whose instructions are counted."""


def count_instructions(size: str, sentences: int, words: int) -> int:
    """Return the number of instructions of a process that runs sentences of this length."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", sys.executable]
    command += ["-c", PROGRAM, size, str(sentences), str(words)]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"instructions.py: valgrind failed:\n{done.stderr[-2000:]}")
    return int(found[1])


def main() -> None:
    """Count the instructions of one size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("size", choices=sorted(SIZES), help="size of the model")
    parser.add_argument(
        "--sentences", type=int, default=64, help="sentences of the batch [default: 64]"
    )
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("instructions.py: valgrind is missing; install it with your system's packages")
    size, sentences = arguments.size, arguments.sentences
    if sentences < 1:
        parser.error(f"--sentences is {sentences}; expected 1 or more")
    config = SIZES[size]
    isa = instruction_set()
    instructions = count_instructions(size, sentences, 2) - count_instructions(size, sentences, 1)
    passes = 2 * config.lstm.layers
    products = sentences * passes * (input_weights(config) + step_weights(config))
    per_vector = instructions * LANES[isa.split("-")[0]] / products
    print(f"{size}, {isa}: {sentences} words, one of each sentence")
    print(f"{products:16,} products")
    print(f"{instructions:16,} instructions, {per_vector:.3f} for each vector of products")
    result = {"size": size, "isa": isa, "sentences": sentences}
    print(json.dumps({**result, "products": products, "instructions": instructions}))


if __name__ == "__main__":
    main()
