"""Damaged model files by the thousand: each must be read, or refused with an `ElmoError`.

    python tests/formats/fuzz.py --cases 100000 --seed 1 [--format allennlp]

Small valid models of every format are mutated (bits flipped, cut, doubled, overwritten with numbers
that parsers trip over), and read in child processes with bounded memory and time, since a library
may crash on damage; a crash, a hang, too much memory or any other exception is a finding, and the
file is kept. `tests/formats/test_fuzz.py` runs a few thousand cases.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

CHUNK = 50
"""Cases that one child process reads."""
SECONDS = 120
"""What a chunk may take."""
MEMORY = 2 << 30
"""What a child may map beyond what it was forked with: far more than the tiny models need."""
NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1]
TOKENS = [b"-1", b"0", b"1e999", b"null", b"[]", b"{}", b'"x"', b"9" * 5000, b"true", b"NaN"]


def mutate(data: bytes, source: random.Random) -> bytes:
    """One to three small accidents."""
    damaged = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 3))):
        if not damaged:
            break
        place = source.randrange(len(damaged))
        action = source.randrange(7)
        if action == 0:
            damaged[place] ^= 1 << source.randrange(8)
        elif action == 1:
            del damaged[place:]
        elif action == 2:
            end = min(len(damaged), place + source.randrange(1, 64))
            del damaged[place:end]
        elif action == 3:
            damaged[place:place] = damaged[place : place + source.randrange(1, 64)]
        elif action == 4:
            size = source.choice((1, 2, 4, 8))
            number = source.choice(NUMBERS) & ((1 << 8 * size) - 1)
            damaged[place : place + size] = number.to_bytes(size, source.choice(("little", "big")))
        elif action == 5:
            damaged[place : place + 1] = source.choice(TOKENS)
        else:
            end = min(len(damaged), place + source.randrange(1, 512))
            damaged[place:end] = bytes(end - place)
    return bytes(damaged)


def damage(model: Path, target: Path, source: random.Random) -> str:
    """Copy a model and damage one of its files; returns that file's name."""
    if model.is_file():
        target.write_bytes(mutate(model.read_bytes(), source))
        return model.name
    shutil.copytree(model, target)
    names = sorted(path.name for path in target.iterdir())
    name = source.choice(names)
    (target / name).write_bytes(mutate((target / name).read_bytes(), source))
    if "manifest.json" in names and name != "manifest.json" and source.random() < 0.8:
        _sign_again(target)  # or the checksum would always be the one to notice
    return name


def _sign_again(folder: Path) -> None:
    import hashlib

    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        data = (folder / name).read_bytes()
        manifest["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def read_cases(model: str, seeds: list[int], folder: str, keep: str) -> None:
    """In a child: damage and read; exits with 1 at the first finding, which it keeps."""
    from elmokit import formats
    from elmokit.errors import ElmoError

    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    for seed in seeds:
        target = Path(folder) / f"{seed}-{Path(model).name}"
        name = damage(Path(model), target, random.Random(seed))
        # If the library takes the process down, the name of the case is the last thing it wrote.
        (Path(folder) / "case").write_text(f"{seed} {name}")
        try:
            formats.read(target)
        except ElmoError as error:
            if not str(error).strip():
                raise
        except BaseException:
            traceback.print_exc()
            shutil.move(target, Path(keep) / target.name)
            os._exit(1)
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    os._exit(0)


def fuzz(
    models: list[Path],
    cases: int,
    seed: int,
    keep: Path,
    tell: Callable[[str], None] = lambda line: None,
) -> list[str]:
    """Read so many damaged copies of each model; returns the findings."""
    findings = []
    context = multiprocessing.get_context("fork")
    for model in models:
        for first in range(seed, seed + cases, CHUNK):
            seeds = list(range(first, min(first + CHUNK, seed + cases)))
            with tempfile.TemporaryDirectory() as folder:
                arguments = (str(model), seeds, folder, str(keep))
                child = context.Process(target=read_cases, args=arguments)
                child.start()
                child.join(SECONDS)
                if child.is_alive():
                    child.kill()
                    child.join()
                if child.exitcode != 0:
                    last = Path(folder) / "case"
                    case = last.read_text() if last.exists() else "before the first case"
                    for left in Path(folder).glob("[0-9]*"):
                        shutil.move(left, keep / left.name)
                    findings.append(f"{model.name}: exit {child.exitcode} at case {case}")
                    tell(findings[-1])
        tell(f"{model.name}: {cases} cases")
    return findings


def main() -> None:
    """A longer run."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.formats.test_fuzz import make_models

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=20_000, help="for each model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", help="only models whose name begins like this")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    arguments = parser.parse_args()
    arguments.keep.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        models = make_models(Path(folder))
        chosen = [m for m in models if m.name.startswith(arguments.format or "")]
        findings = fuzz(chosen, arguments.cases, arguments.seed, arguments.keep, print)
    print(f"{len(findings)} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
