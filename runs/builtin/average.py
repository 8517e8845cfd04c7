"""Average the weights of the model that a run started from and of the model that it ended with.

    python runs/builtin/average.py START END --share 0.75 --out DIR

Both models are good and their errors differ, so the model between them is often better than either,
for the price of reading two files. Choose the share on held-out text. The vocabulary and everything
else is that of END.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.errors import ElmoError, InputError


def average(start: BiLM, end: BiLM, share: float) -> BiLM:
    """Return the model between two models of one architecture, in float32.

    Args:
        start: First model.
        end: Second model.
        share: Weight of the second model, from 0 to 1; the first gets the rest.
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share is {share}; expected 0 to 1")
    if start.vocabulary != end.vocabulary:
        raise InputError("the models have different vocabularies; expected a run and its start")
    shapes = [{name: array.shape for name, array in m.weights.items()} for m in (start, end)]
    if shapes[0] != shapes[1]:
        raise InputError("the models differ in their weights; expected a run that widened nothing")
    before, after = (
        {name: array.astype(np.float32) for name, array in m.weights.items()} for m in (start, end)
    )
    weights = {name: (1 - share) * before[name] + share * after[name] for name in after}
    return replace(end, weights=weights)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("start", type=Path, help="Directory of the model before the run.")
    parser.add_argument("end", type=Path, help="Directory of the model after the run.")
    parser.add_argument("--share", type=float, default=0.5, help="Weight of END (default: 0.5).")
    parser.add_argument("--out", type=Path, required=True, help="Directory to create.")
    options = parser.parse_args()
    try:
        models = [formats.read(path) for path in (options.start, options.end)]
        formats.write(average(*models, options.share), options.out)
    except (ElmoError, OSError) as error:
        sys.exit(f"average: {error}")
    print(options.out)


if __name__ == "__main__":
    main()
