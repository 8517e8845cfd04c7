"""Calls every command with hostile arguments, at any scale.

    python benchmarks/attack/arguments.py --cases 500
    python benchmarks/attack/arguments.py --only embed --cases 10000 --seed 7

A case calls one command with some of its options, at random, in a directory of its own: numbers
that are enormous, negative or none, names with line breaks, wildcards, lone surrogates or
thousands of characters, files that are a directory, a link to themselves, or of another format. The
command must succeed or fail with one line of error within bounded time, without a traceback, and
change nothing but what it was told to write.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from pathlib import Path

import click
import kill
from kill import make_material, run
from tally import Tally, parse_arguments

import elmokit.cli

SECONDS = 100
"""Time after which a command hangs."""
SKIPPED = ("serve", "site", "completion")
"""Commands that do not end by themselves, or only print."""
SLOW = ("bench",)
"""Commands that take as long as they are told to."""
FILES = [
    *("text.txt", "ner.conll", "model", "model.zip", "config.json", "corpus", "trained"),
    *("circle", "empty", "nowhere", "folder", "binary", "a\nb", "[x]*?", "\udcff", "ü", "-", "."),
]
"""Names of files, most of which exist."""
TEXTS = [
    *("", " ", "\n", "a cat", "a" * 5000, "\udcff", "😀", "../x", "x=y", "=", ",", "%s"),
    *("--", "-x", "{}", "[]", "null", "cat", "mix", "all", "top", "sentence", "float32", "npz"),
]
NUMBERS = ["0", "1", "-1", "2", "1e999", "nan", "9" * 30, "0.5", "-0", "１", "1_0", "0x10", "3"]
"""Values of options."""


def commands() -> dict[str, click.Command]:
    """Return all commands by what one types, such as `task train`."""
    found: dict[str, click.Command] = {}

    def walk(command: click.Command, words: tuple[str, ...]) -> None:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                if inner is not None and name not in SKIPPED:
                    walk(inner, (*words, name))
        else:
            found[" ".join(words)] = command

    walk(elmokit.cli.elmo, ())
    return found


def hostile_arguments(name: str, command: click.Command, source: random.Random) -> list[str]:
    """Return the arguments of one call."""
    arguments = name.split()
    parameters = [each for each in command.params if source.random() < 0.35 or each.required]
    source.shuffle(parameters)
    for parameter in parameters:
        if isinstance(parameter, click.Option):
            option = source.choice(parameter.opts)
            if option in ("--help", "--allow-remote"):
                continue
            arguments.append(option)
            if parameter.is_flag or parameter.count:
                continue
        for _ in range(max(1, parameter.nargs)):
            arguments.append(_value(parameter, source))
    return [each.replace("\0", "") for each in arguments]


def _value(parameter: click.Parameter, source: random.Random) -> str:
    kind = parameter.type
    if isinstance(kind, click.Choice) and source.random() < 0.8:
        return str(source.choice(list(kind.choices)))
    if isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        return source.choice(NUMBERS)
    if parameter.name in ("out", "output", "target", "index", "picture", "save"):
        # never the name of something outside: commands replace what they are told to replace
        return source.choice(("out", "out.h5", "out.npz", "folder", "ü/x", "a\nb", "\udcff", ""))
    return source.choice(source.choice((FILES, FILES, TEXTS, NUMBERS)))


def make_directory(directory: Path, material: Path) -> None:
    """Make a directory with everything that `FILES` names."""
    directory.mkdir(parents=True)
    for path in material.iterdir():
        (directory / path.name).symlink_to(path)
    (directory / "circle").symlink_to("circle")
    (directory / "empty").touch()
    (directory / "folder").mkdir()
    (directory / "binary").write_bytes(bytes(range(256)) * 40)
    for name in ("a\nb", "[x]*?", "ü"):
        (directory / name).write_text("a cat sat .\n")


def main() -> None:
    """Attack all commands, or those of the command line."""
    found = commands()
    arguments = parse_arguments(__doc__, list(found), 20, numbered=True)
    import torch  # before the forks, which have one thread

    torch.set_num_threads(1)
    kill.SECONDS = SECONDS
    tally = Tally("arguments", arguments.seed, arguments.seconds)
    with make_material() as (material, _), tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ["ELMOKIT_CACHE"] = str(root / "cache")
        os.environ["ELMOKIT_OFFLINE"] = "1"
        for number in range(arguments.first, arguments.first + arguments.cases):
            for kind in arguments.only or found:
                if tally.is_over:
                    break
                source = random.Random(f"{arguments.seed} {kind} {number}")
                call = hostile_arguments(kind, found[kind], source)
                directory = root / f"case-{number}" / "here"
                make_directory(directory, material)
                tally.add(kind, _try(call, directory, root / "log", tally))
                shutil.rmtree(directory.parent)
    tally.finish()


def _try(call: list[str], directory: Path, log: Path, tally: Tally) -> str | None:
    """Do a case; return what is wrong, if anything."""
    log.unlink(missing_ok=True)
    try:
        code = run(call, directory, None, None, log=log, prepare=_no_input)
    except TimeoutError:
        if call[0] in SLOW:
            tally.outcomes["stopped after the limit"] += 1
            return None
        return f"{call!r} hangs: {log.read_text(errors='replace')[-500:]}"
    said = log.read_text(errors="replace")
    tally.outcomes[f"exit code {code}"] += 1
    if code not in (0, 1, 2) or "Traceback" in said:
        return f"{call!r} ends with {code}: {said[-1500:]}"
    if code == 1 and not any(line.startswith("elmo: error: ") for line in said.splitlines()):
        return f"{call!r} fails without an error: {said[-500:]}"
    others = {path.name for path in directory.parent.iterdir()} - {"here"}
    return f"{call!r} writes elsewhere: {others}" if others else None


def _no_input() -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


if __name__ == "__main__":
    main()
