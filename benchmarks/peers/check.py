"""Check that elmokit's vectors equal those of the peers, on models of the published sizes.

    python benchmarks/peers/check.py small original

The models have random weights and are written by elmokit, so that the peers load elmokit's files.
Prints the largest difference of each layer, from a zero state.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from client import PeerProcess
from elmokit import formats
from elmokit.bilm.random import random_bilm
from elmokit.elmo import Elmo

SENTENCES = [
    text.split()
    for text in (
        "The committee said on Tuesday that it would not comment until the report was published .",
        "Nobody knows .",
        "Chico Ruiz made a spectacular play on Alusik 's grounder , and the crowd roared .",
        "Hydroxychloroquinemethyltransferasesuperfamilyproteinkinase 北京 naïve café ½ € 🙂",
    )
]


def main() -> None:
    """Compare vectors for the sizes named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "sizes", nargs="*", default=["small"], help="sizes: small, medium, original"
    )
    parser.add_argument(
        "--peers", nargs="*", default=["allennlp", "simple_elmo"], help="peers to compare with"
    )
    arguments = parser.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for size in arguments.sizes:
            formats.write(random_bilm(size), folder / "native")
            formats.write(formats.read(folder / "native"), folder / "ours", format="allennlp")
            elmo = Elmo.load(folder / "native", state="zero")
            vectors = np.concatenate(elmo.embed(SENTENCES, layers="all"), axis=1)
            for name in arguments.peers:
                with PeerProcess(name) as peer:
                    peer.request("load", model=str(folder / "ours"))
                    out = folder / "vectors.npz"
                    peer.request("embed", sentences=SENTENCES, state="fresh", out=str(out))
                theirs = np.load(out)["vectors"]
                by_layer = np.abs(vectors - theirs).max(axis=(1, 2))
                worst = max(worst, by_layer.max())
                differences = "  ".join(f"{x:.1e}" for x in by_layer)
                print(
                    f"{size:9} {elmo.engine:10} against {name:12} by layer: {differences}",
                    flush=True,
                )
    print(f"largest difference {worst:.1e}; allowed: 5e-5")
    sys.exit(1 if worst > 5e-5 else 0)


if __name__ == "__main__":
    main()
