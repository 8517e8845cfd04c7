"""Make a model directory of a run's newest checkpoint, to look at the run while it goes.

    python runs/builtin/snapshot.py RUN_DIR OUT_DIR --corpus CORPUS

The run is only read. A run that has ended has its model in RUN_DIR itself.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import tempfile
from pathlib import Path

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.state import State
from elmokit.bilm.weights import SOFTMAX, expected_shapes
from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.text.vocabulary import Vocabulary
from elmokit.train import checkpoint
from elmokit.train.run import CHECKPOINTS, TRAINING, Plan


def snapshot(run: Path, corpus: Path) -> tuple[BiLM, dict[str, int]]:
    """The model as the newest checkpoint has it, and where the run stood."""
    plan = Plan.read(run / TRAINING)
    newest = checkpoint.newest(run / TRAINING / CHECKPOINTS)
    if newest is None:
        raise InputError(f"{run} has no checkpoint yet; the first comes after a few minutes")
    with tempfile.TemporaryDirectory() as stage:
        # A copy, since the run deletes old checkpoints when it writes new ones.
        arrays, facts = checkpoint.load(Path(shutil.copytree(newest, Path(stage) / "copy")))
    vocabulary = Vocabulary.read(corpus / "vocab.txt")
    width = plan.config.lstm.width
    shapes = expected_shapes(plan.config) | dict(
        zip(SOFTMAX, ((len(vocabulary), width), (len(vocabulary),)), strict=True)
    )
    flat = arrays["parameters"].numpy()
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    if len(flat) != sum(sizes.values()):
        raise FormatError(
            f"{newest} has {len(flat):,} parameters; expected {sum(sizes.values()):,}: "
            f"{corpus} is not the corpus of this run"
        )
    weights, place = {}, 0
    for name, shape in shapes.items():
        weights[name] = flat[place : place + sizes[name]].reshape(shape)
        place += sizes[name]
    settled = State.zeros(plan.config) if plan.recipe.text == "sentences" else None
    return BiLM(plan.config, weights, vocabulary, settled), facts["progress"]


def main() -> None:
    """The command."""
    about = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    about.add_argument("run", type=Path)
    about.add_argument("out", type=Path)
    about.add_argument("--corpus", type=Path, required=True)
    given = about.parse_args()
    try:
        bilm, progress = snapshot(given.run, given.corpus)
        formats.write(bilm, given.out, "native")
    except (ElmoError, OSError) as error:
        sys.exit(f"snapshot: {error}")
    print(f"step {progress['step']:,}, {progress['tokens']:,} tokens -> {given.out}")


if __name__ == "__main__":
    main()
