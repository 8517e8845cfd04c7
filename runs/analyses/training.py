"""The curve of a model's training as a measurement, for its report.

    python runs/analyses/training.py MODEL --run RUN_DIR --out DIR

The model may be a packed one, whose directory knows nothing of the run any more.
"""

from __future__ import annotations

import argparse
import sys

from elmokit import Elmo
from elmokit.errors import ElmoError
from elmokit.probe.results import keep
from elmokit.probe.training import training


def main() -> None:
    """Read, write, done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--run", required=True)
    parser.add_argument("--out", required=True)
    given = parser.parse_args()
    try:
        print(keep(training(Elmo.load(given.model), given.run), given.out)[0])
    except ElmoError as error:
        sys.exit(f"training: {error}")


if __name__ == "__main__":
    main()
