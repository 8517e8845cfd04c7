"""Make the golden files: vectors that the other ELMo implementations compute from tiny models.

    python tests/golden/make.py                # write the tiny models, run the peers over them
    python tests/golden/make.py DIR...         # run the peers over models already there

Models in, vectors out: every directory below DIR with an options.json and one .hdf5 gets a
vectors.npz, whoever wrote it. Needs numpy, h5py and the environments of benchmarks/peers (built
when missing, which takes minutes); the tests read the files and need neither.

vectors.npz holds, for every batch i of sentences.json:

    fresh_{i}   (L+1, words, D)  batch i alone, from the zero state
    carry_{i}   (L+1, words, D)  batches 0..i one after the other, the first from zero
    hidden      (L, 2, rows, P)  the states after the last of them; axis 1: forward, backward
    cell        (L, 2, rows, H)

`words` are those of the batch, its sentences one after the other, without sentence marks and
padding. Where both peers take the model, both have computed all of it, agree, and simple_elmo's
`fresh` and AllenNLP's `carry`, `hidden` and `cell` are kept; else all is by the one that takes it.
characters.json holds the peers' character ids of difficult words, by word length C, all shifted by
one; versions.json the packages that made everything, who made which, and why a peer refused.
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

# Peers differ by rounding only, which recurrence amplifies; see `difference` for the measure.
TOLERANCE = 5e-6

# Batches of 2, 4, 1 and 3: growing, shrinking to rows that others keep waiting, growing back.
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
# With a projection of 10, bilm-tf has none after these.
TEN_FILTERS = ((1, 2), (2, 3), (3, 5))
MODELS = {
    # Both peers.
    "plain": options(20, 8, 2, FILTERS, character_dim=4),
    "tanh": options(18, 6, 1, FILTERS, character_dim=4, activation="tanh", cell_clip=0.6),
    "odd": options(13, 7, 3, ODD_FILTERS, character_dim=5, layers=3, projection_clip=0.9),
    "one_layer": options(16, 8, 1, ((1, 5), (7, 11)), character_dim=3, layers=1, cell_clip=1.0),
    "no_highway": options(17, 6, 0, FILTERS, character_dim=4, cell_clip=1.5),
    "no_clips": options(16, 8, 1, FILTERS, character_dim=4, cell_clip=None, projection_clip=None),
    # AllenNLP only: its projection may widen.
    "wide_projection": options(6, 10, 1, FILTERS, character_dim=4, cell_clip=1.0),
    # bilm-tf's graph only.
    "no_skip": options(18, 6, 1, FILTERS, character_dim=4, skip=False, cell_clip=1.0),
    "no_skip_three_layers": options(13, 7, 0, ODD_FILTERS, character_dim=5, layers=3, skip=False),
    # Where there is no projection, its clip is not applied: it would bite.
    "no_projection": options(9, 9, 2, FILTERS, character_dim=4, cell_clip=1.5, projection_clip=0.1),
    "no_cnn_projection": options(14, 10, 0, TEN_FILTERS, character_dim=4, cell_clip=1.5),
    "no_cnn_projection_highway": options(
        14, 10, 1, TEN_FILTERS, character_dim=4, activation="tanh", cell_clip=1.0
    ),
    "bare": options(10, 10, None, TEN_FILTERS, character_dim=4, skip=False),
    "short_words": options(14, 6, 1, FILTERS, character_dim=4, characters=16, cell_clip=1.0),
    "long_words": options(14, 6, 1, FILTERS, character_dim=4, characters=72, cell_clip=1.0),
}
# Keys that bilm-tf lets a file leave out.
del MODELS["bare"]["char_cnn"]["n_highway"]
del MODELS["bare"]["lstm"]["cell_clip"]
del MODELS["bare"]["lstm"]["proj_clip"]


def vectors(peer: PeerProcess, model: Path) -> Vectors:
    """All that one peer computes from one model; PeerError where it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.npz")

        def embed(batch: list[list[str]], state: str) -> NDArray[np.float32]:
            peer.ask("embed", sentences=batch, batch_size=len(batch), state=state, out=out)
            found: NDArray[np.float32] = np.load(out)["vectors"]
            return found

        rows = max(map(len, BATCHES))
        peer.ask("load", model=str(model.resolve()), threads=1, batch_size=rows)
        result = {f"fresh_{i}": embed(batch, "fresh") for i, batch in enumerate(BATCHES)}
        peer.ask("reset")
        result |= {f"carry_{i}": embed(batch, "carry") for i, batch in enumerate(BATCHES)}
        peer.ask("state", out=out)
        result |= dict(np.load(out))
    return result


def characters(peer: PeerProcess) -> NDArray[np.int64]:
    """The character ids of WORDS by the model that the peer has loaded."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.npy")
        peer.ask("characters", words=WORDS, out=out)
        ids: NDArray[np.int64] = np.load(out)
        return ids


def difference(one: Vectors, other: Vectors) -> float:
    """The largest difference between arrays of the same names, relative for values beyond 1."""
    if any(one[name].shape != other[name].shape for name in one):
        return float("inf")
    return max(
        float((np.abs(one[name] - other[name]) / np.maximum(1, np.abs(one[name]))).max(initial=0))
        for name in one
    )


def run(models: Iterable[Path], peers: list[PeerProcess]) -> dict[str, dict[str, str]]:
    """Write vectors.npz beside each model; return who made which arrays, who refused and why."""
    report: dict[str, dict[str, str]] = {}
    for model in models:
        found: dict[str, Vectors] = {}
        refused: dict[str, str] = {}
        for peer in peers:
            try:
                found[peer.name] = vectors(peer, model)
            except PeerError as error:
                refused[peer.name] = str(error).removeprefix(f"{peer.name}: ")
        if not found:
            raise SystemExit(f"{model}: no peer takes this model: {refused}")
        line = f"{model.name:26}{' '.join(found)}"
        if len(found) == 2:
            apart = difference(*found.values())
            line += f", {apart:.1e} apart"
            if apart > TOLERANCE:
                raise SystemExit(f"{line}: the peers disagree")
        accepting = list(found)  # in the order of PEERS
        carrier, refresher = accepting[0], accepting[-1]
        content: dict[str, Any] = {
            name: found[refresher if name.startswith("fresh") else carrier][name]
            for name in found[carrier]
        }
        file = model / "vectors.npz"
        if file.is_file() and set(before := dict(np.load(file))) == set(content):
            line += f", {difference(before, content):.1e} from the file before"
        np.savez(file, **content)
        print(line)
        report[model.name] = {"fresh": refresher, "carry": carrier}
        report[model.name] |= {f"{name} refused": why for name, why in refused.items()}
    return report


def write_json(path: Path, content: Any) -> None:
    """ASCII JSON, so that lone surrogates survive."""
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_characters(peers: list[PeerProcess]) -> None:
    """characters.json: words with their ids for words of 50 and 16 characters."""
    ids: dict[str, list[list[int]]] = {}
    for length, model in ((50, "plain"), (16, "short_words")):
        for peer in peers:
            try:
                peer.ask("load", model=str((HERE / "models" / model).resolve()))
            except PeerError:
                continue
            found = characters(peer).tolist()
            if ids.setdefault(str(length), found) != found:
                raise SystemExit(f"{peer.name}: other character ids of length {length}")
    lines = [
        json.dumps({"word": word, **{length: row[i] for length, row in ids.items()}})
        for i, word in enumerate(WORDS)
    ]
    (HERE / "characters.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


def main() -> None:
    """Command line: the golden models, or directories of models."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("models", nargs="*", type=Path, metavar="DIR", help="models to run over")
    parser.add_argument("--loud", action="store_true", help="show what the peers print")
    arguments = parser.parse_args()
    peers = [PeerProcess(name, quiet=not arguments.loud) for name in PEERS]
    try:
        if arguments.models:
            found = [path.parent for top in arguments.models for path in top.rglob("options.json")]
            for name, verdict in run(sorted(found), peers).items():
                print(name, json.dumps(verdict))
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
