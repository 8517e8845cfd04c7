"""Make the golden files: vectors that the other ELMo implementations compute from tiny models.

    python tests/golden/make.py                # write the tiny models and run the peers on them
    python tests/golden/make.py DIR...         # run the peers on existing models

Every directory below DIR that contains an options.json and one .hdf5 gets a vectors.npz. Needs
numpy, h5py and the environments of benchmarks/peers, which are built if they are missing (this
takes minutes). The tests read the files and need neither.

vectors.npz contains, for every batch i of sentences.json:

    fresh_{i}   (L+1, words, D)  batch i alone, from the zero state
    carry_{i}   (L+1, words, D)  batch i after batches 0..i-1, the first from the zero state
    hidden      (L, 2, rows, P)  the state after the last batch; axis 1: forward, backward
    cell        (L, 2, rows, H)

`words` are the words of the batch, one sentence after the other, without sentence marks and
padding. If both peers accept the model, both compute everything and must agree; then `fresh` is
simple_elmo's, and `carry`, `hidden` and `cell` are AllenNLP's. Otherwise all arrays come from the
peer that accepts it. characters.json contains the peers' character ids of difficult words, by word
length C, all shifted by one. versions.json names the versions of all packages, the peer that
computed each array, and the reason why a peer rejected a model.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
PEERS = ("allennlp", "simple_elmo")
sys.path.insert(0, str(HERE.parent.parent / "benchmarks" / "peers"))

import random_model  # noqa: E402
from client import PeerError, PeerProcess  # noqa: E402

Vectors = dict[str, NDArray[np.float32]]

# Peers differ by rounding only, which recurrence amplifies; `difference` measures it.
TOLERANCE = 5e-6

# Batches of 2, 4, 1 and 3 sentences: growing, shrinking so that rows are skipped, growing again.
BATCHES = [
    [["She", "went", "to", "the", "bank", "."], ["Yes"]],
    [
        ["Grüße", "aus", "Москва", "及び", "東京", "🙂"],
        ["the", "river", "bank", "was", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk"],
        [],
        ["x" * 47, "x" * 48, "x" * 49, "日本語" * 6, "!"],
    ],
    [["one"]],
    [
        ["<S>", "is", "no", "word", ",", "nor", "is", "</S>", ";", "<UNK>", "is"],
        ["naïve", "cafe\u0301", ""],
        ["She", "went", "to", "the", "bank", "."],
    ],
]

WORDS = [
    "",
    "a",
    "The",
    "don't",
    " ",
    " padded ",
    "\n",
    "\x00",
    "a\x00b",
    "<S>",
    "</S>",
    "<s>",
    "<UNK>",
    "<S> ",
    "é",
    "e\u0301",
    "ﬁ",
    "Ω",
    "日本語",
    "🙂",
    "👩‍👩‍👧‍👦",
    "\u200b",
    "\ufeff",
    "\ufffd",
    "\U0010ffff",
    "\ud800",
    "a\udfffb",
    "x" * 13,
    "x" * 14,
    "x" * 15,
    "x" * 47,
    "x" * 48,
    "x" * 49,
    "0123456789" * 6,
    "é" * 7,  # 14 bytes
    "xé" * 5,  # cut inside a character at 14 bytes
    "x" * 47 + "é",  # cut inside a character at 48 bytes
    "x" * 46 + "日",
    "日" * 16,  # 48 bytes
    "日" * 17,
    "🙂" * 13,
    "y" * 45 + "🙂z",
]

options = random_model.options
FILTERS = ((1, 3), (2, 4), (3, 6), (4, 3))
ODD_FILTERS = ((1, 3), (2, 5), (3, 7), (5, 2))
# Ten filters in all: with a projection of 10, bilm-tf has no projection after them.
TEN_FILTERS = ((1, 2), (2, 3), (3, 5))
MODELS = {
    # Both peers.
    "plain": options(20, 8, 2, FILTERS, character_dim=4),
    "tanh": options(18, 6, 1, FILTERS, character_dim=4, activation="tanh", cell_clip=0.6),
    "odd": options(13, 7, 3, ODD_FILTERS, character_dim=5, layers=3, projection_clip=0.9),
    "one_layer": options(16, 8, 1, ((1, 5), (7, 11)), character_dim=3, layers=1, cell_clip=1.0),
    "no_highway": options(17, 6, 0, FILTERS, character_dim=4, cell_clip=1.5),
    "no_clips": options(16, 8, 1, FILTERS, character_dim=4, cell_clip=None, projection_clip=None),
    # AllenNLP only: the projection may be wider than the cells.
    "wide_projection": options(6, 10, 1, FILTERS, character_dim=4, cell_clip=1.0),
    # bilm-tf's graph only.
    "no_skip": options(18, 6, 1, FILTERS, character_dim=4, skip=False, cell_clip=1.0),
    "no_skip_three_layers": options(13, 7, 0, ODD_FILTERS, character_dim=5, layers=3, skip=False),
    # Without a projection its clip is not applied; here it would change the values.
    "no_projection": options(9, 9, 2, FILTERS, character_dim=4, cell_clip=1.5, projection_clip=0.1),
    "no_cnn_projection": options(14, 10, 0, TEN_FILTERS, character_dim=4, cell_clip=1.5),
    "no_cnn_projection_highway": options(
        14, 10, 1, TEN_FILTERS, character_dim=4, activation="tanh", cell_clip=1.0
    ),
    "bare": options(10, 10, None, TEN_FILTERS, character_dim=4, skip=False),
    "short_words": options(14, 6, 1, FILTERS, character_dim=4, characters=16, cell_clip=1.0),
    "long_words": options(14, 6, 1, FILTERS, character_dim=4, characters=72, cell_clip=1.0),
}
# Keys that are optional in bilm-tf.
del MODELS["bare"]["char_cnn"]["n_highway"]
del MODELS["bare"]["lstm"]["cell_clip"]
del MODELS["bare"]["lstm"]["proj_clip"]


def vectors(peer: PeerProcess, model: Path) -> Vectors:
    """Return all arrays that a peer computes from a model; raise `PeerError` if it rejects it."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.npz")

        def embed(batch: list[list[str]], state: str) -> NDArray[np.float32]:
            peer.request("embed", sentences=batch, batch_size=len(batch), state=state, out=out)
            embedded: NDArray[np.float32] = np.load(out)["vectors"]
            return embedded

        rows = max(map(len, BATCHES))
        peer.request("load", model=str(model.resolve()), threads=1, batch_size=rows)
        result = {f"fresh_{i}": embed(batch, "fresh") for i, batch in enumerate(BATCHES)}
        peer.request("reset")
        result |= {f"carry_{i}": embed(batch, "carry") for i, batch in enumerate(BATCHES)}
        peer.request("state", out=out)
        result |= dict(np.load(out))
    return result


def characters(peer: PeerProcess) -> NDArray[np.int64]:
    """Return the character ids of WORDS for the model that the peer has loaded."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.npy")
        peer.request("characters", words=WORDS, out=out)
        ids: NDArray[np.int64] = np.load(out)
        return ids


def difference(one: Vectors, other: Vectors) -> float:
    """Return the largest difference of arrays with the same names: relative for values over 1."""
    if any(one[name].shape != other[name].shape for name in one):
        return float("inf")
    return max(
        float((np.abs(one[name] - other[name]) / np.maximum(1, np.abs(one[name]))).max(initial=0))
        for name in one
    )


def run(models: Iterable[Path], peers: list[PeerProcess]) -> dict[str, dict[str, str]]:
    """Write vectors.npz for each model; return which peers computed it, or why they did not."""
    report: dict[str, dict[str, str]] = {}
    for model in models:
        computed: dict[str, Vectors] = {}
        rejected: dict[str, str] = {}
        for peer in peers:
            try:
                computed[peer.name] = vectors(peer, model)
            except PeerError as error:
                rejected[peer.name] = str(error).removeprefix(f"{peer.name}: ")
        if not computed:
            raise SystemExit(f"{model}: no peer accepts this model: {rejected}")
        line = f"{model.name:26}{' '.join(computed)}"
        if len(computed) == 2:
            gap = difference(*computed.values())
            line += f", difference {gap:.1e}"
            if gap > TOLERANCE:
                raise SystemExit(f"{line}: the peers disagree")
        accepting = list(computed)  # in the order of PEERS
        carry_peer, fresh_peer = accepting[0], accepting[-1]
        content: dict[str, Any] = {
            name: computed[fresh_peer if name.startswith("fresh") else carry_peer][name]
            for name in computed[carry_peer]
        }
        file = model / "vectors.npz"
        if file.is_file() and set(before := dict(np.load(file))) == set(content):
            line += f", {difference(before, content):.1e} from the previous file"
        np.savez(file, **content)
        print(line)
        report[model.name] = {"fresh": fresh_peer, "carry": carry_peer}
        report[model.name] |= {f"{name} refused": why for name, why in rejected.items()}
    return report


def write_json(path: Path, content: Any) -> None:
    """Write JSON in ASCII, so that lone surrogates are preserved."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_characters(peers: list[PeerProcess]) -> None:
    """Write characters.json: words with their ids for models with 50 and 16 characters per word."""
    ids: dict[str, list[list[int]]] = {}
    for length, model in ((50, "plain"), (16, "short_words")):
        for peer in peers:
            try:
                peer.request("load", model=str((HERE / "models" / model).resolve()))
            except PeerError:
                continue
            peer_ids = characters(peer).tolist()
            if ids.setdefault(str(length), peer_ids) != peer_ids:
                raise SystemExit(f"{peer.name}: different character ids for length {length}")
    lines = [
        json.dumps({"word": word, **{length: row[i] for length, row in ids.items()}})
        for i, word in enumerate(WORDS)
    ]
    (HERE / "characters.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main() -> None:
    """Make the golden files, or the vectors of the models in the directories given."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "models",
        nargs="*",
        type=Path,
        metavar="DIR",
        help="directories of models to run the peers on",
    )
    parser.add_argument("--loud", action="store_true", help="show what the peers print")
    arguments = parser.parse_args()
    peers = [PeerProcess(name, quiet=not arguments.loud) for name in PEERS]
    try:
        if arguments.models:
            models = [path.parent for top in arguments.models for path in top.rglob("options.json")]
            for name, result in run(sorted(models), peers).items():
                print(name, json.dumps(result))
            return
        for seed, (name, model) in enumerate(MODELS.items()):
            random_model.write(HERE / "models" / name, model, seed)
        report = run([HERE / "models" / name for name in MODELS], peers)
        versions = {peer.name: peer.started["versions"] for peer in peers}
        write_json(HERE / "versions.json", {"versions": versions, "models": report})
        write_json(HERE / "sentences.json", BATCHES)
        write_characters(peers)
    finally:
        for peer in peers:
            peer.close()


if __name__ == "__main__":
    main()
