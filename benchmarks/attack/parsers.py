"""Fuzzes every parser that is written by hand, guided by the lines that an input reaches.

    python benchmarks/attack/parsers.py --cases 20000
    python benchmarks/attack/parsers.py --only semcor --cases 1000000 --seed 7
    python benchmarks/attack/parsers.py --engine atheris --seconds 3600     # pip install atheris
    python benchmarks/attack/parsers.py --cases 50000 --keep tests/attack/interesting

An input that reaches a new line of a parser, or reaches one from another line than before, is kept
and changed further. The engine `own` follows Python's trace and changes inputs as `files.py` does,
with checksums that fit; `atheris` is libFuzzer, with the same inputs to begin with. Reading an
input must succeed or raise one of elmokit's exceptions.

`--keep` adds the shortest inputs that reach something new to files of base64 lines, one per parser;
the test run reads them all. `--cases` is the number of inputs of each parser.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tally import Tally, make_parser

TARGETS = {
    "sstable": ("tf", "*.index"),
    "sstable-sliced": ("tf-sliced", "*.index"),
    "tf-checkpoint": ("tf", "checkpoint"),
    "tf-hub-tar": ("tf-hub-tar", None),
    "onnx": ("onnx", None),
    "hdf5": ("h5-plain", None),
    "hdf5-1.8": ("h5-ids", None),
    "hdf5-chunks": ("h5-chunks", None),
    "parquet": ("parquet-headers", None),
    "npz": ("npz", None),
    "npz-plain": ("npz-plain", None),
    "spool": ("spool", None),
    "torch-zip": ("torch-zip", None),
    "torch-legacy": ("torch-legacy", None),
    "many-langs-words": ("many-langs", "word.dic"),
    "many-langs-characters": ("many-langs", "char.dic"),
    "many-langs-config": ("many-langs", "config.json"),
    "safetensors": ("native", "model.safetensors"),
    "manifest": ("native", "manifest.json"),
    "semcor": ("semcor", None),
    "sense-keys": ("evaluation-set", "*.gold.key.txt"),
    "sense-xml": ("evaluation-set", "*.data.xml"),
    "wordnet-data": ("wordnet", "data.adj"),
    "wordnet-index": ("wordnet", "index.adj"),
    "ner": ("ner", None),
    "coref": ("coref", None),
    "srl": ("srl", None),
    "srl-json": ("srl-json", None),
    "nli": ("nli", None),
    "qa": ("qa", None),
    "trees": ("trees", None),
    "tags": ("tags", None),
    "wic": ("wic", "*.data.txt"),
    "pairs": ("pairs-json", None),
    "scws": ("scws", None),
    "targets": ("targets", None),
    "fasta": ("fasta", None),
    "static": ("static", None),
    "text": ("text", None),
}
"""Parsers: the kind of `seeds.py` that each reads, and its file if the kind has several."""
INTERESTING = Path(__file__).parents[2] / "tests" / "attack" / "interesting"
LARGEST_KEPT = 3000
"""Size in bytes at most of an input that is kept in the repository."""
MOST_KEPT = 12
"""Number of inputs at most that are kept of each parser."""
LARGEST = 1 << 16
"""Size in bytes at most of an input."""


class Target(NamedTuple):
    """A parser, ready to read inputs."""

    read: Callable[[bytes], None]
    """Reads an input as the file of the kind."""
    first: bytes
    """A valid input."""


def prepare(name: str, directory: Path) -> Target:
    """Write the valid files of a parser to a directory."""
    from seeds import SEEDS

    kind, pattern = TARGETS[name]
    seed = SEEDS[kind](directory)
    path = seed.path if pattern is None else next(seed.path.rglob(pattern))

    def read(data: bytes) -> None:
        path.write_bytes(data)
        if seed.sign is not None:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                seed.sign(seed.path, path.name)  # unless the list of checksums is damaged
        seed.read(seed.path)

    first = path.read_bytes()
    read(first)
    return Target(read, first)


def load_interesting(name: str, directory: Path = INTERESTING) -> list[bytes]:
    """Return the inputs that are kept of a parser."""
    path = directory / f"{name}.txt"
    return [base64.b64decode(line) for line in path.read_text().split()] if path.exists() else []


def find_problem(target: Target, data: bytes) -> str | None:
    """Read an input; return what is wrong, if anything."""
    from elmokit.errors import ElmoError

    try:
        target.read(data)
    except ElmoError:
        return None
    except Exception:
        lines = traceback.format_exc().strip().splitlines()
        return " | ".join(line.strip() for line in (*lines[-7:-1], lines[-1][:300]))
    return None


# -- our own engine ----------------------------------------------------------------------------


class Reached:
    """The steps from line to line of elmokit that inputs have reached."""

    def __init__(self) -> None:
        """Begin with none."""
        self.all: set[tuple[CodeType, int, int]] = set()
        self._now: set[tuple[CodeType, int, int]] = set()
        self._ours: dict[str, bool] = {}

    def run(self, action: Callable[[], Any]) -> tuple[Any, int]:
        """Return the result of an action, and the number of steps that are new."""
        self._now = set()
        sys.settrace(self._call)
        try:
            result = action()
        finally:
            sys.settrace(None)
        new = len(self._now - self.all)
        self.all |= self._now
        return result, new

    def _call(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        ours = self._ours.get(code.co_filename)
        if ours is None:
            ours = self._ours[code.co_filename] = "elmokit" in Path(code.co_filename).parts
        if not ours:
            return None
        last = 0
        now = self._now

        def on_line(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal last
            now.add((code, last, frame.f_lineno))
            last = frame.f_lineno
            return on_line

        return on_line


def fuzz(tally: Tally, name: str, options: argparse.Namespace) -> list[bytes]:
    """Fuzz a parser with our own engine; return the inputs that reached something new."""
    from mutations import mutate
    from structure import mutate_text, restructure

    source = random.Random(f"{options.seed} {name}")
    reached = Reached()
    problems: set[str] = set()
    with tempfile.TemporaryDirectory(dir=_fast_directory()) as directory:
        target = prepare(name, Path(directory))
        pool = [target.first, *load_interesting(name)]
        first = len(pool)
        for number in range(options.cases + first):
            if tally.is_over:
                break
            if number < first:
                data = pool[number]
            else:
                # New inputs are changed more often than old ones.
                data = source.choice(pool[-20:] if source.random() < 0.5 else pool)
                way = source.random()
                changed = None
                if way < 0.3:
                    changed = restructure(data, source, pool) or mutate_text(data, source)
                data = (mutate(data, source, pool) if changed is None else changed)[:LARGEST]
                tally.counts[name] += 1
            problem, new = reached.run(lambda data=data: find_problem(target, data))  # type: ignore[misc]
            if problem is not None and problem.rpartition("|")[2] not in problems:
                problems.add(problem.rpartition("|")[2])
                tally.find(name, f"{problem} | {base64.b64encode(data[:3000]).decode()}")
            if new and number >= first:
                pool.append(data)
    tally.outcomes["steps reached"] += len(reached.all)
    tally.outcomes["inputs that reached something new"] += len(pool) - first
    return pool[first:]


def keep(name: str, found: list[bytes], directory: Path) -> None:
    """Add the shortest inputs that reach something new to those that are kept."""
    kept = load_interesting(name, directory)
    reached = Reached()
    with tempfile.TemporaryDirectory(dir=_fast_directory()) as temporary:
        target = prepare(name, Path(temporary))
        for data in (target.first, *kept):
            reached.run(lambda data=data: find_problem(target, data))  # type: ignore[misc]
        for data in sorted(found, key=len):
            if len(kept) >= MOST_KEPT or len(data) > LARGEST_KEPT:
                break
            if reached.run(lambda data=data: find_problem(target, data))[1] >= 2:  # type: ignore[misc]
                kept.append(data)
    if kept:
        directory.mkdir(parents=True, exist_ok=True)
        lines = (base64.b64encode(data).decode() for data in kept)
        (directory / f"{name}.txt").write_text("\n".join(lines) + "\n")


def _fast_directory() -> str | None:
    """Return a directory in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


# -- libFuzzer ---------------------------------------------------------------------------------


def fuzz_with_atheris(tally: Tally, name: str, options: argparse.Namespace, seconds: float) -> None:
    """Fuzz a parser with libFuzzer, in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, __file__, "--child", directory, "--only", name]
        command += ["--cases", str(options.cases), "--seed", str(options.seed)]
        command += ["--seconds", str(int(seconds))]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        problems = Path(directory, "problems")
        for line in problems.read_text().splitlines() if problems.exists() else ():
            tally.find(name, json.loads(line))
        executed = [line for line in run.stderr.splitlines() if "number_of_executed_units" in line]
        if not executed:
            tally.find(name, f"libFuzzer ended with {run.returncode}: {run.stderr[-1500:]}")
        tally.counts[name] += int(executed[0].split()[-1]) if executed else 0


def run_atheris(options: argparse.Namespace) -> None:
    """Fuzz a parser in this process, which libFuzzer ends."""
    import atheris

    directory = Path(options.child)
    name = options.only[0]
    with atheris.instrument_imports(include=["elmokit"]):
        import seeds  # noqa: F401

        import elmokit.errors  # noqa: F401
    (directory / "work").mkdir()
    (directory / "inputs").mkdir()
    target = prepare(name, directory / "work")
    for number, data in enumerate((target.first, *load_interesting(name))):
        (directory / "inputs" / str(number)).write_bytes(data)
    seen: set[str] = set()

    def read(data: bytes) -> None:
        problem = find_problem(target, data)
        if problem is not None and problem.rpartition("|")[2] not in seen:
            seen.add(problem.rpartition("|")[2])
            with (directory / "problems").open("a") as file:
                text = f"{problem} | {base64.b64encode(data[:3000]).decode()}"
                file.write(json.dumps(text) + "\n")

    arguments = [f"-runs={options.cases}", f"-seed={options.seed + 1}", "-print_final_stats=1"]
    arguments += [f"-max_total_time={int(options.seconds or 0)}", f"-max_len={LARGEST}"]
    arguments += [f"-artifact_prefix={directory}/", str(directory / "inputs")]
    atheris.Setup([name, *arguments], read)
    atheris.Fuzz()


def main() -> None:
    """Fuzz all parsers, or those of the command line."""
    parser = make_parser(__doc__, list(TARGETS), 2000)
    parser.add_argument(
        "--engine", choices=("own", "atheris"), default="own", help="fuzzer (default: own)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep inputs that reach something new there"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_atheris(options)
    names = options.only or list(TARGETS)
    tally = Tally("parsers", options.seed, options.seconds)
    for name in names:
        if tally.is_over:
            break
        if options.engine == "atheris":
            fuzz_with_atheris(tally, name, options, (options.seconds or 0) / len(names))
        else:
            found = fuzz(tally, name, options)
            if options.keep:
                keep(name, found, options.keep)
    tally.finish()


if __name__ == "__main__":
    main()
