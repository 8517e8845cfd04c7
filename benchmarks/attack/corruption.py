"""Damages every file that elmokit reads back, as disks and copies do, at any scale.

    python benchmarks/attack/corruption.py --cases 200
    python benchmarks/attack/corruption.py --only index --cases 10000 --seed 7

A case flips bits of one file, cuts it, or overwrites a part of it, and reads everything. The
damage must be refused with one of elmokit's exceptions, or must not matter: the result equals the
undamaged one bit for bit. Other vectors, other words or other numbers are a finding, and so is a
crash. Formats of other programs, which have no checksums, are not attacked here.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from mutations import accident
from sandbox import Case, choose, outcome_of, run_cases
from seeds import SEEDS, tiny_model
from tally import Tally, parse_arguments

from elmokit import Elmo, formats, load_vectors
from elmokit.formats import token_cache
from elmokit.vectors import embed_to_file, open_writer

Digest = Callable[[Path], str]
"""Reads all that is under a path and returns a hash of it."""
WORDS = [["a", "cat", "sat"], ["it", "rains"], ["naïve", "übermut", "."]]


def _hash(*parts: object) -> str:
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            part = f"{part.dtype} {part.shape}".encode() + np.ascontiguousarray(part).tobytes()
        digest.update(part if isinstance(part, bytes) else repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def model(path: Path) -> str:
    """Return a hash of a model's weights, state, mix, vocabulary and configuration."""
    bilm = formats.read(path)
    arrays = [part for name, a in bilm.weights.items() for part in (name, np.asarray(a))]
    settled = (bilm.settled.hidden, bilm.settled.cell) if bilm.settled else ()
    return _hash(*arrays, *settled, bilm.mix, list(bilm.vocabulary or ()), bilm.config)


def vectors(path: Path) -> str:
    """Return a hash of all vectors and words of a file."""
    with load_vectors(path) as opened:
        rows = [part for i in range(len(opened)) for part in (opened.words(i), opened[i])]
        return _hash(opened.signature, opened.ids, *rows)


def make_proteins(directory: Path) -> Path:
    """Write vectors with ids to an HDF5 file."""
    path = directory / "proteins.h5"
    elmo = Elmo(tiny_model(), threads=1)
    with open_writer(path, signature={"model": "x"}, ids=True) as out:
        for i, words in enumerate(WORDS):
            out.write(words, elmo.embed([words])[0], id=f"P{i}")
    return path


def tokens(path: Path) -> str:
    """Return a hash of the words and vectors of a token cache."""
    cache = token_cache.read(path / "tokens.hdf5")
    return _hash(*(part for word in cache for part in (word, cache[word])))


def partial(path: Path) -> str:
    """Return a hash of what `embed_to_file` makes of an unfinished file."""
    target = path / "out.npz"
    try:
        embed_to_file(Elmo(tiny_model(), threads=1), WORDS, target)
        return vectors(target)
    finally:
        target.unlink(missing_ok=True)


def make_partial(directory: Path) -> Path:
    """Interrupt `embed_to_file` after its second sentence."""
    from elmokit.vectors.file_formats import partial_path

    root = directory / "unfinished"
    root.mkdir()

    def stop(words: object) -> None:
        if partial_path(root / "out.npz").exists() and words == WORDS[1]:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        embed_to_file(Elmo(tiny_model(), threads=1), WORDS, root / "out.npz", on_sentence=stop)
    return root


def index(path: Path) -> str:
    """Return a hash of an index: all vectors, and searches."""
    from elmokit.probe import Index

    opened = Index.open(path)
    query = np.ones(opened.manifest["dim"], np.float32)
    every = slice(None)
    return _hash(
        opened.vectors_ND[every],
        opened.characters_VD[every],
        opened.search(query, 3),
        opened.search(query, 3, word="cat"),
        opened.nearest_words(query, "cat", 3),
        opened.recall,
    )


def corpus(path: Path) -> str:
    """Return a hash of the text of a corpus."""
    from elmokit.train.corpus import Corpus

    opened = Corpus.open(path)
    splits = [s.gather(range(len(s))) for s in (opened.train, opened.valid) if s is not None]
    arrays = [array for split in splits for array in split]
    return _hash(list(opened.words), list(opened.vocabulary), opened.counts, *arrays)


def checkpoint(path: Path) -> str:
    """Return a hash of a checkpoint."""
    from elmokit.train import checkpoint as checkpoints

    arrays, values = checkpoints.load(path)
    parts = [part for name, a in sorted(arrays.items()) for part in (name, a.numpy())]
    return _hash(json.dumps(values, sort_keys=True), *parts)


def task_model(path: Path) -> str:
    """Return a hash of a task model's parameters, labels and predictions."""
    from elmokit.tasks import load

    trained = load(path, Elmo(formats.read(path.parent / "bilm"), threads=1))
    parts = [part for name, a in trained.state_dict().items() for part in (name, a.numpy())]
    return _hash(trained.label_set, trained.vocabulary, trained.scores, *parts)


def layers(path: Path) -> str:
    """Return a hash of cached layers, which are computed again if they are damaged."""
    from elmokit.tasks.layer_store import LayerStore

    store = LayerStore(Elmo(tiny_model(), threads=1), path)
    texts = [tuple(words) for words in WORDS]
    store.add(texts)
    return _hash(store.layers(texts).numpy())


def make_layers(directory: Path) -> Path:
    """Store the layers of some texts."""
    layers(directory / "layers")
    return directory / "layers"


def measurement(path: Path) -> str:
    """Return a hash of a measurement."""
    from elmokit.probe.results import load_measurement

    return _hash(json.dumps(load_measurement(path), sort_keys=True))


def make_measurement(directory: Path) -> Path:
    """Write a measurement with a checksum."""
    from elmokit.probe.results import load_measurement, save_measurement

    content = load_measurement(SEEDS["measurement"](directory).path) | {"version": 2}
    return save_measurement(content, directory / "measured")[0]


def _seed(kind: str) -> Callable[[Path], Path]:
    return lambda directory: SEEDS[kind](directory).path


KINDS: dict[str, tuple[Callable[[Path], Path], Digest]] = {
    "model": (_seed("native"), model),
    "npz": (_seed("npz"), vectors),
    "h5": (_seed("h5"), vectors),
    "h5-ids": (make_proteins, vectors),
    "token-cache": (_seed("token-cache"), tokens),
    "parquet": (_seed("parquet"), vectors),
    "parquet-words": (_seed("parquet-words"), vectors),
    "partial": (make_partial, partial),
    "index": (_seed("index"), index),
    "corpus": (_seed("corpus"), corpus),
    "checkpoint": (_seed("checkpoint"), checkpoint),
    "task-model": (_seed("task-model"), task_model),
    "layers": (make_layers, layers),
    "measurement": (make_measurement, measurement),
}
"""How each kind is made, and how it is read."""


def corruption_case(root: Path, digest: Digest, seed: int, kind: str) -> Case:
    """Return a function that damages a file, reads everything, and restores it."""
    paths = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())
    contents = {path: path.read_bytes() for path in paths}
    wanted = digest(root)

    def restore() -> None:
        for path, data in contents.items():
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)

    restore()

    def case(number: int, outcomes: Counter[str]) -> str | None:
        source = random.Random(f"{seed} {kind} {number}")
        path = source.choice(paths)
        path.write_bytes(accident(contents[path], source))
        found: list[str] = []
        try:
            finding = outcome_of(lambda: found.append(digest(root)), outcomes)
        finally:
            restore()
        if finding is None and found and found[0] != wanted:
            finding = f"other results after damage of {path.name}"
        return finding

    return case


def attack_kind(tally: Tally, kind: str, seed: int, numbers: range) -> None:
    """Do cases of one kind."""
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=fast) as name:
        make, digest = KINDS[kind]
        case = corruption_case(make(Path(name)), digest, seed, kind)
        run_cases(tally, kind, case, numbers)


def main() -> None:
    """Attack all kinds, or those of the command line."""
    arguments = parse_arguments(__doc__, list(KINDS), 200, numbered=True)
    torch.set_num_threads(1)  # the children are forks, which have one thread
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    tally = Tally("corruption", arguments.seed, arguments.seconds)
    numbers = range(arguments.first, arguments.first + arguments.cases)
    for kind in choose(list(KINDS), arguments.only):
        attack_kind(tally, kind, arguments.seed, numbers)
    tally.finish()


if __name__ == "__main__":
    main()
