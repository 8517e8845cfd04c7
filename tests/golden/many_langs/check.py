"""Compare elmokit with ELMoForManyLangs on large models, and convert the golden models.

    python tests/golden/many_langs/check.py --convert    # write models/*/native, for the tests
    python tests/golden/many_langs/check.py DIR...       # print the differences of the vectors

DIR is a directory that `make.py --published DIR` wrote: a model of the published shape, too large
for the repository. Needs elmokit with torch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from elmokit import formats
from elmokit.elmo import Elmo
from elmokit.formats import many_langs, native
from elmokit.formats.source import ModelSource

HERE = Path(__file__).parent
SENTENCES = json.loads((HERE / "sentences.json").read_text(encoding="utf-8"))


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference: absolute for values below 1, relative above."""
    return float((np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max())


def check(folder: Path) -> float:
    """Compare a model, read directly and converted; print and return the largest difference."""
    golden = np.load(folder / "vectors.npz")
    start = time.perf_counter()
    read = many_langs.read(ModelSource(folder))
    print(f"{folder}: {read.parameters:,} parameters, read in {time.perf_counter() - start:.1f} s")
    native.write(read, folder / "converted")
    worst = 0.0
    for name, bilm in (("read", read), ("converted", formats.read(folder / "converted"))):
        elmo = Elmo(bilm, state="zero")
        start = time.perf_counter()
        ours = np.concatenate(elmo.embed(SENTENCES, layers="all"), axis=1)
        seconds = time.perf_counter() - start
        mixed = np.concatenate(elmo.embed(SENTENCES))
        layers = [difference(a, b) for a, b in zip(ours, golden["all"], strict=True)]
        by_layer = " ".join(f"{d:.1e}" for d in layers)
        average = difference(mixed, golden["average"])
        print(f"  {name}, {elmo.engine}: layers {by_layer}, average {average:.1e}; {seconds:.2f} s")
        worst = max(worst, average, *layers)
    largest = " ".join(f"{np.abs(layer).max():.2f}" for layer in golden["all"])
    print(f"  largest values by layer {largest}")
    return worst


def main() -> None:
    """Convert the golden models, or check the models named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="DIR", help="models to check")
    parser.add_argument("--convert", action="store_true", help="rewrite models/*/native")
    arguments = parser.parse_args()
    if arguments.convert:
        for folder in sorted((HERE / "models").iterdir()):
            native.write(many_langs.read(ModelSource(folder)), folder / "native")
    if not all([check(folder) < 1e-5 for folder in arguments.models]):
        sys.exit("the vectors differ by more than 1e-5")


if __name__ == "__main__":
    main()
