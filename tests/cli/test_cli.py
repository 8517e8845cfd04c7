"""The command line as a user meets it: what is printed, where, and the exit code."""

from __future__ import annotations

import threading

import pytest
from tests.conftest import GOLDEN

import elmokit
from elmokit.cli import COMMANDS, main

MODEL = str(GOLDEN / "models" / "plain")


# -- help ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(elmo_command, name: str) -> None:
    result = elmo_command(name, "--help")
    assert result.code == 0
    assert f"elmo {name}" in result.out.split("Options:")[0].split("\n", 1)[1], "an example"
    assert name in elmo_command("--help").out


def test_version(elmo_command) -> None:
    assert elmokit.__version__ in elmo_command("--version").out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("embed", "--layers", "bottom", "x"),
        ("embed", "--json", "--out", "x.h5", "x"),
        ("embed", "--file", "f", "x"),
        ("embed", "--float16", "x"),
        ("embed", "--tokenized", "--split", "x"),
        ("embed", "--threads", "0", "x"),
        ("inspect",),
        ("convert", "a"),
    ],
)
def test_wrong_use_is_2(elmo_command, arguments: tuple[str, ...]) -> None:
    result = elmo_command(*arguments)
    assert result.code == 2
    assert "Error" in result.err and "Traceback" not in result.err


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("embd",), "`elmo embed`"),
        (("task", "trian"), "`elmo task train`"),
        (("probe", "pso"), "`elmo probe pos`"),
        (("zzz",), "the commands are embed, "),
    ],
)
def test_an_unknown_command_suggests_the_nearest(
    elmo_command, arguments: tuple[str, ...], suggestion: str
) -> None:
    result = elmo_command(*arguments)
    assert result.code == 2 and suggestion in result.err


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("embed", "-m", "/nowhere", "x"), "no model at '/nowhere'"),
        (("embed", "-m", "smal", "x"), "did you mean 'small'?"),
        (("embed", "-m", "nl", "x"), "did you mean 'manylangs-nl'?"),
        (("inspect", "/nowhere"), "no such file or directory"),
        (("embed", "-m", MODEL, "--file", "/nowhere.txt"), "/nowhere.txt"),
        (("embed", "-m", MODEL, "--layers", "7", "x"), "this model has 3"),
        (("embed", "-m", MODEL, "--out", "x.csv", "x"), ".h5"),
    ],
)
def test_an_error_is_one_line(elmo_command, arguments: tuple[str, ...], message: str) -> None:
    result = elmo_command(*arguments)
    assert result.code == 1
    assert result.err.startswith("elmo: error: ") and result.err.count("\n") == 1
    assert message in result.err
    assert not result.out


@pytest.mark.parametrize("place", [0, 2, 3])
def test_debug_shows_the_traceback(place: int) -> None:
    arguments = ["inspect", "/nowhere"]
    arguments.insert(place, "--debug")
    with pytest.raises(elmokit.ElmoError):
        main(arguments)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("can't start new thread"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to"),
        SystemError("error return without exception set"),
        ImportError("libx.so: failed to map segment from shared object"),
        MemoryError(),
    ],
)
def test_no_memory_is_one_line_whoever_says_so(elmo_command, monkeypatch, error) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(elmokit.Elmo, "load", fail)
    result = elmo_command("embed", "-m", MODEL, "x")
    assert result.code == 1
    assert result.err.startswith("elmo: error: ") and result.err.count("\n") == 1


def test_other_errors_of_programs_keep_their_traceback(monkeypatch) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(elmokit.Elmo, "load", fail)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        main(["embed", "-m", MODEL, "x"])


@pytest.mark.parametrize(("message", "lines"), [("can't allocate memory", 0), ("a mistake", 1)])
def test_threads_without_memory_print_nothing(
    elmo_command, monkeypatch, message: str, lines: int
) -> None:
    found: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: found.append(args.exc_value))

    def work() -> None:
        raise RuntimeError(message)

    def load(*arguments: object, **options: object) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        raise MemoryError

    monkeypatch.setattr(elmokit.Elmo, "load", load)
    assert elmo_command("embed", "-m", MODEL, "x").code == 1
    assert len(found) == lines


def test_hooks_without_memory_print_nothing(elmo_command, monkeypatch) -> None:
    def fail(*arguments: object) -> bool:
        raise MemoryError

    def work() -> None:
        raise MemoryError

    def load(*arguments: object, **options: object) -> None:
        monkeypatch.setattr(elmokit.cli, "is_out_of_memory", fail)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        raise MemoryError

    monkeypatch.setattr(elmokit.Elmo, "load", load)
    result = elmo_command("embed", "-m", MODEL, "x")
    assert result.code == 1
    assert result.err.startswith("elmo: error: ") and result.err.count("\n") == 1
