"""Store the training curve of a model as a measurement, for its report.

    python runs/analyses/training.py MODEL --run RUN_DIR --out DIR

Use it for a packed model, whose directory no longer contains the training run.
"""

from __future__ import annotations

import argparse
import sys

from elmokit import Elmo
from elmokit.errors import ElmoError
from elmokit.probe.results import save_measurement
from elmokit.probe.training import training_measurement


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("model", help="Model directory, or name of a model.")
    parser.add_argument("--run", required=True, help="Directory of its training run.")
    parser.add_argument("--out", required=True, help="Directory of the measurement.")
    options = parser.parse_args()
    try:
        print(
            save_measurement(
                training_measurement(Elmo.load(options.model), options.run), options.out
            )[0]
        )
    except ElmoError as error:
        sys.exit(f"training: {error}")


if __name__ == "__main__":
    main()
