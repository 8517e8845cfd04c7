"""Average the weights of the model that a run started from and of the model that it ended with.

    python runs/builtin/average.py START END --share 0.75 --out DIR
    python runs/builtin/average.py START END --data DIR --out DIR --report FILE.json

Both models are good and their errors differ, so the model between them is often better than either,
for the price of reading two files. With --data, the share is chosen on held-out text (lm-en-valid):
the one whose perplexities of single sentences and of running text have the smallest product. The
vocabulary and everything else is that of END.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import data_files
from elmokit import Elmo, formats
from elmokit.bilm.model import BiLM
from elmokit.errors import ElmoError, InputError
from elmokit.lm import perplexity
from measure import write_file

SHARES = (0, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
"""Weights of the second model that are compared on held-out text."""
WORDS = 20_000
"""Words of held-out text for the comparison."""

Json = dict[str, Any]


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


def compare_shares(start: BiLM, end: BiLM, data: Path) -> list[Json]:
    """Return the perplexities of held-out text for each of `SHARES`."""
    rows = []
    for share in SHARES:
        bilm = average(start, end, share)
        single, running = (
            perplexity(
                Elmo(bilm, state=state),
                data_files.read_sentences(data, "lm-en-valid"),
                max_words=WORDS,
            ).to_dict()
            for state in ("zero", "carry")
        )
        rows.append({"share": share, "single": single, "running": running})
        print(f"{share:<4} {single['mean']:.2f} {running['mean']:.2f}", flush=True)
    return rows


def best_share(rows: list[Json]) -> float:
    """Return the share with the smallest product of both perplexities."""
    best = min(rows, key=lambda row: row["single"]["mean"] * row["running"]["mean"])
    return float(best["share"])


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("start", type=Path, help="Directory of the model before the run.")
    parser.add_argument("end", type=Path, help="Directory of the model after the run.")
    parser.add_argument("--share", type=float, help="Weight of END, from 0 to 1.")
    parser.add_argument("--data", type=Path, help="Directory of the data, to choose the share.")
    parser.add_argument("--report", type=Path, help="JSON file for the shares compared.")
    parser.add_argument("--out", type=Path, required=True, help="Directory to create.")
    options = parser.parse_args()
    if (options.share is None) == (options.data is None):
        parser.error("give either --share or --data")
    try:
        start, end = (formats.read(path) for path in (options.start, options.end))
        rows = [] if options.data is None else compare_shares(start, end, options.data)
        share = best_share(rows) if rows else options.share
        formats.write(average(start, end, share), options.out)
        if options.report:
            report = {"start": start.fingerprint, "share": share, "words": WORDS, "shares": rows}
            write_file(options.report, json.dumps(report, indent=1) + "\n")
    except (ElmoError, OSError) as error:
        sys.exit(f"average: {error}")
    print(f"{options.out}: share {share:g} of {options.end}")


if __name__ == "__main__":
    main()
