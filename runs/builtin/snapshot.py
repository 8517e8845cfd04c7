"""Write the newest checkpoint of a training run as a model, to examine it during training.

    python runs/builtin/snapshot.py RUN_DIR OUT_DIR --corpus CORPUS

The run is only read. A finished run has its model in RUN_DIR itself.
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
from elmokit.train.run import CHECKPOINTS
from elmokit.train.run_plan import TRAINING, RunPlan


def snapshot(run: Path, corpus: Path) -> tuple[BiLM, dict[str, int]]:
    """Return the model of the newest checkpoint, and how far the run had come."""
    plan = RunPlan.read(run / TRAINING)
    newest = checkpoint.find_newest(run / TRAINING / CHECKPOINTS)
    if newest is None:
        raise InputError(f"{run} has no checkpoint yet; the first is written after a few minutes")
    with tempfile.TemporaryDirectory() as stage:
        # A copy, since the run deletes old checkpoints when it writes new ones.
        arrays, metadata = checkpoint.load(Path(shutil.copytree(newest, Path(stage) / "copy")))
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
    weights, offset = {}, 0
    for name, shape in shapes.items():
        weights[name] = flat[offset : offset + sizes[name]].reshape(shape)
        offset += sizes[name]
    settled = State.zeros(plan.config) if plan.recipe.text == "sentences" else None
    return BiLM(plan.config, weights, vocabulary, settled), metadata["progress"]


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("run", type=Path, help="Directory of the training run.")
    parser.add_argument("out", type=Path, help="Directory of the new model.")
    parser.add_argument("--corpus", type=Path, required=True, help="Directory of its corpus.")
    options = parser.parse_args()
    try:
        bilm, progress = snapshot(options.run, options.corpus)
        formats.write(bilm, options.out, "native")
    except (ElmoError, OSError) as error:
        sys.exit(f"snapshot: {error}")
    print(f"step {progress['step']:,}, {progress['tokens']:,} tokens -> {options.out}")


if __name__ == "__main__":
    main()
