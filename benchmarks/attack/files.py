"""Gives damaged and hostile files of every format to their readers, at any scale.

    python benchmarks/attack/files.py --cases 2000
    python benchmarks/attack/files.py --cases 20000 --seed 7
    python benchmarks/attack/files.py --only h5 --first 1234 --cases 1

Each case damages one file of a small valid model, data set or cache: flipped bits, cut ends, lying
numbers, pieces of other formats, deep or wrong JSON, keys twice; or it changes what is inside an
archive or a table and puts it together again (`structure.py`, `lies.py`), with checksums that fit;
or it puts a pipe, a directory or a link in the place of a file. Reading it must succeed or raise
one of elmokit's exceptions with a short message, within bounded memory and time, and must not run
anything, or open a file elsewhere. `crafted` cases are bombs, links, traversals and pickles, which
must be refused. `--cases` is the number of each kind; 20,000 of each are a million.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import torch
from crafted import CRAFTED, craft
from lies import lie
from mutations import mutate
from sandbox import Case, choose, outcome_of, run_cases
from seeds import SEEDS, Seed
from structure import mutate_text, restructure, swap_file
from tally import Tally, parse_arguments

STRUCTURE_SHARE = 0.35
"""Share of the files that are changed inside an intact container, where there is one."""
LIE_SHARE = 0.2
"""Share of the files that say what no program would write, where there is such a lie."""
SWAP_SHARE = 0.01
"""Share of the files of a directory that are replaced by something that is not a file."""
NAMED = ("evaluation-set", "wic")
"""Kinds whose files are named by the user one by one, and may be pipes."""
SIGNED_SHARE = 0.8
"""Share of the damaged files whose checksum is made to fit; else it would notice everything."""


def damage_case(seed: Seed, seed_number: int, kind: str, others: list[bytes]) -> Case:
    """Return a function that damages and reads a seed, and restores it."""
    root = seed.path
    paths = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())
    contents = {path: path.read_bytes() for path in paths}
    signed = [path for path in paths if path.suffix == ".json"]

    def restore(damaged: Path) -> None:
        if damaged.is_symlink() or not damaged.is_file():
            _remove(damaged)
        damaged.unlink(missing_ok=True)
        for path in {damaged, *(signed if seed.sign else ())}:
            path.write_bytes(contents[path])

    def case(number: int, outcomes: Counter[str]) -> str | None:
        source = random.Random(f"{seed_number} {kind} {number}")
        path = source.choice(paths)
        for each in paths:  # a process that was killed has left something there
            if each.is_symlink() or not each.is_file():
                restore(each)
        if root.is_dir() and kind not in NAMED and source.random() < SWAP_SHARE:
            swap_file(path, source)
        else:
            path.write_bytes(_damage(contents[path], source, others))
            if seed.sign and source.random() < SIGNED_SHARE:
                with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    seed.sign(root, path.name)  # unless the list of checksums itself is damaged
        try:
            return outcome_of(lambda: seed.read(root), outcomes)
        finally:
            restore(path)
            if root.is_dir() and len(list(root.rglob("*"))) > 2 * len(paths) + 20:
                raise AssertionError("reading leaves files behind")

    return case


def _damage(content: bytes, source: random.Random, others: list[bytes]) -> bytes:
    if source.random() < LIE_SHARE:
        with suppress(Exception):  # the library that writes the format takes no such lie
            if (changed := lie(content, source, others)) is not None:
                return changed
    if source.random() < STRUCTURE_SHARE:
        changed = restructure(content, source, others) or mutate_text(content, source)
        if changed is not None:
            return changed
    return mutate(content, source, others)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def crafted_case(kind: str, seed_number: int, directory: Path) -> Case:
    """Return a function that writes a hostile file, which must be refused."""

    def case(number: int, outcomes: Counter[str]) -> str | None:
        source = random.Random(f"{seed_number} {kind} {number}")
        canary = directory / "canary"
        before = canary.read_bytes()
        name, read = craft(source, directory)
        counted: Counter[str] = Counter()
        finding = outcome_of(read, counted)
        outcomes.update(counted)
        if finding is None and counted["read"]:
            finding = "it was read; it must be refused"
        if canary.read_bytes() != before:
            canary.write_bytes(before)
            finding = f"it changed another file; {finding}"
        return f"{name}: {finding}" if finding else None

    return case


def attack_kind(tally: Tally, kind: str, seed_number: int, numbers: range) -> None:
    """Do cases of one kind."""
    with tempfile.TemporaryDirectory(dir=_fast_directory()) as name:
        directory = Path(name)
        if kind == CRAFTED:
            (directory / "canary").write_bytes(b"untouched")
            case = crafted_case(kind, seed_number, directory)
        else:
            seed = SEEDS[kind](directory)
            seed.read(seed.path)  # it is valid, and everything is imported
            case = damage_case(seed, seed_number, kind, _other_files())
        run_cases(tally, kind, case, numbers, guard=directory)


def _fast_directory() -> str | None:
    """Return a directory in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


_OTHERS: list[bytes] = []


def _other_files() -> list[bytes]:
    """Return small files of several formats, to take pieces from."""
    if not _OTHERS:
        with tempfile.TemporaryDirectory() as name:
            for kind in ("semcor", "coref", "qa", "torch-zip", "torch-legacy", "npz", "h5-plain"):
                with suppress(OSError):
                    _OTHERS.append(SEEDS[kind](Path(name)).path.read_bytes())
    return _OTHERS


def main() -> None:
    """Attack all formats, or those of the command line."""
    kinds = [*SEEDS, CRAFTED]
    arguments = parse_arguments(__doc__, kinds, 1000, numbered=True)
    torch.set_num_threads(1)  # the children are forks, which have one thread
    tally = Tally("files", arguments.seed, arguments.seconds)
    numbers = range(arguments.first, arguments.first + arguments.cases)
    for kind in choose(kinds, arguments.only):
        attack_kind(tally, kind, arguments.seed, numbers)
        print(f"{kind}: {tally.counts[kind]:,} cases", file=sys.stderr, flush=True)
    tally.finish()


if __name__ == "__main__":
    main()
