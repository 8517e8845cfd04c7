"""How much an approximate dtype changes the vectors of a model, layer by layer.

    python benchmarks/precision.py TEXT [--model builtin] [--dtype int8] [--sentences 2000]

TEXT has one sentence per line. Prints the cosine between the vectors of each word in float32 and in
the other dtype: mean, first percentile and minimum over all words.
"""

from __future__ import annotations

import argparse
from itertools import islice

import numpy as np

from elmokit import Elmo


def main() -> None:
    """Embed a text with both dtypes and print one line per layer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("text", help="Text file with one sentence per line.")
    parser.add_argument("--model", default="builtin", help="Path or name of the model.")
    parser.add_argument("--dtype", default="int8", help="Data type to compare with float32.")
    parser.add_argument("--sentences", type=int, default=2_000, help="Number of sentences to read.")
    options = parser.parse_args()
    with open(options.text, encoding="utf-8") as file:
        sentences = list(islice((line for line in file if line.strip()), options.sentences))
    exact_LND, approximate_LND = (
        np.concatenate(Elmo.load(options.model, dtype=dtype).embed(sentences, "all"), axis=1)
        for dtype in ("float32", options.dtype)
    )
    print(f"{exact_LND.shape[1]:,} words; cosine of {options.dtype} and float32")
    print("layer   mean      1st percentile  minimum")
    for layer, (exact_ND, approximate_ND) in enumerate(
        zip(exact_LND, approximate_LND, strict=True)
    ):
        norms_N = np.linalg.norm(exact_ND, axis=1) * np.linalg.norm(approximate_ND, axis=1)
        cosine_N = (exact_ND * approximate_ND).sum(axis=1) / norms_N
        low = np.quantile(cosine_N, 0.01)
        print(f"{layer:5}   {cosine_N.mean():.5f}   {low:.5f}         {cosine_N.min():.5f}")


if __name__ == "__main__":
    main()
