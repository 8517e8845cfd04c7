"""Every script of benchmarks/ and runs/ can be imported, and explains itself.

mypy does not see them. What they import from elmokit is looked up one by one, also inside
functions, so that a renamed function is found here and not in the middle of a long run.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.conftest import REPOSITORY

from elmokit.cli import elmo
from elmokit.errors import MissingExtra

SCRIPTS = sorted(
    path for folder in ("benchmarks", "runs") for path in (REPOSITORY / folder).rglob("*.py")
)
SHELL_SCRIPTS = sorted((REPOSITORY / "runs").glob("*.sh"))


def name_of(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 25 and len(SHELL_SCRIPTS) == 3


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_what_it_imports_from_elmokit_exists(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "elmokit":
                    importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("elmokit"):
            if "torch" not in sys.modules and "train" in str(node.module):
                pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
            try:
                module = importlib.import_module(str(node.module))
            except MissingExtra as error:  # an integration, without its library
                pytest.skip(str(error))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")  # or raise


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in SCRIPTS}), ids=lambda folder: name_of(folder)
)
def test_every_script_answers_help(folder: Path) -> None:
    """One process per directory: each script in turn, as the main module, with --help."""
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    scripts = [path for path in SCRIPTS if path.parent == folder]
    code = (
        "import contextlib, io, runpy, sys\n"
        "for path in sys.argv[1:]:\n"
        "    printed, before = io.StringIO(), list(sys.path)\n"
        "    sys.argv[:], sys.path[0] = [path, '--help'], path.rpartition('/')[0]\n"
        "    with contextlib.redirect_stdout(printed):\n"
        "        try:\n"
        "            runpy.run_path(path, run_name='__main__')\n"
        "        except SystemExit as end:\n"
        "            assert not end.code, (path, end.code)\n"
        "    sys.path[:] = before\n"
        "    print(path, len(printed.getvalue()))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, scripts)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stderr
    lengths = dict(line.split() for line in run.stdout.splitlines())
    for path in scripts:
        if "if __name__ ==" in path.read_text(encoding="utf-8"):
            assert int(lengths[str(path)]) > 50, f"{path} --help prints nothing"


# -- shell scripts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SHELL_SCRIPTS, ids=name_of)
def test_shell_scripts_are_well_formed(path: Path) -> None:
    subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.parametrize("path", SHELL_SCRIPTS, ids=name_of)
def test_options_in_shell_scripts_exist(path: Path) -> None:
    """Every `--option` is one of some command of elmo, or of a Python script that is called."""
    text = code_of(path)
    known = options_of(elmo)
    for script in re.findall(r'"\$here/([\w/]+\.py)"', text):
        source = (path.parent / script).read_text(encoding="utf-8")
        known |= set(re.findall(r'add_argument\(\s*"(--[\w-]+)"', source))
    used = set(OPTION.findall(text))
    assert used and used <= known, used - known


@pytest.mark.parametrize("path", SHELL_SCRIPTS, ids=name_of)
def test_options_fit_their_command(path: Path) -> None:
    """The options after `elmo pretrain` are of that command, not of another one."""
    calls = re.findall(
        r'(?:"\$\{elmo\[@\]\}"|"\$python" -m elmokit|once \S+) ([a-z].*)', code_of(path)
    )
    assert calls
    for call in calls:
        command: click.Command = elmo
        for word in call.split():
            below = command_named(command, word)
            if below is None:
                break
            command = below
        assert command is not elmo, call
        unknown = set(OPTION.findall(call)) - options_of(command)
        assert not unknown, f"{call}: elmo {command.name} has no {unknown}"


OPTION = re.compile(r"(?<!\S)--[a-z][\w-]*")


def code_of(path: Path) -> str:
    """The script without comments, one command per line."""
    text = re.sub(r"^\s*#.*$", "", path.read_text(encoding="utf-8"), flags=re.M)
    return text.replace("\\\n", " ")


def command_named(group: click.Command, name: str) -> click.Command | None:
    if not isinstance(group, click.Group):
        return None
    return group.get_command(click.Context(group), name)


def options_of(command: click.Command) -> set[str]:
    """The options of a command, or of all commands of a group."""
    found = {option for parameter in command.params for option in parameter.opts}
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command_named(command, name)
            if below is not None:
                found |= options_of(below)
    return found
