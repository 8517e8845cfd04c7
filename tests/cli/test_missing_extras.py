"""Every command without each optional package: one line that names the extra, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.conftest import GOLDEN, REPOSITORY

from elmokit.cli import elmo
from elmokit.extras import EXTRAS

MODEL = str(GOLDEN / "models" / "plain")
TASK = ["--train", "text.txt", "--dev", "text.txt", "--elmo", MODEL]
TAGS = ["--train", "tags.conll", "--test", "tags.conll"]

ARGUMENTS: dict[str, list[list[str]]] = {
    "elmo embed": [
        ["-m", MODEL, "A bank."],
        ["-m", MODEL, "-o", "vectors.parquet", "A bank."],
        ["-m", MODEL, "--file", "text.txt.zst", "-o", "vectors.h5"],
        ["-m", "owner/name", "A bank."],
    ],
    "elmo inspect": [[MODEL], ["owner/name"]],
    "elmo convert": [[MODEL, "converted"], [MODEL, "model.onnx"]],
    "elmo models": [[]],
    "elmo bench": [[MODEL, "--rounds", "1", "--sentences", "3"]],
    "elmo plan": [["-m", MODEL, "--words", "1000"]],
    "elmo corpus": [
        ["text.txt", "--out", "corpus", "--processes", "1"],
        ["text.parquet", "--out", "corpus-parquet", "--processes", "1"],
        ["text.txt.zst", "--out", "corpus-zstd", "--processes", "1"],
    ],
    "elmo pretrain": [["corpus", "--out", "pretrained", "--tokens", "1"]],
    "elmo finetune": [[MODEL, "text.txt", "--out", "finetuned"]],
    "elmo perplexity": [[MODEL, "text.txt"], ["builtin", "text.txt.zst"]],
    "elmo settle": [[MODEL, "text.txt", "--out", "settled"], [MODEL, "text.txt.zst", "--out", "s"]],
    "elmo substitutes": [["A bank."]],
    "elmo task train": [["ner", *TASK, "--out", "task"]],
    "elmo task eval": [["no-task", "text.txt"]],
    "elmo task predict": [["no-task", "A bank."]],
    "elmo task compare": [["ner", *TASK, "--out", "compared"]],
    "elmo analyze layers": [["ner", *TASK, "--runs", "runs"]],
    "elmo analyze place": [["ner", *TASK, "--runs", "runs"]],
    "elmo analyze weights": [["no-task"]],
    "elmo analyze efficiency": [["ner", *TASK, "--runs", "runs"]],
    "elmo probe pos": [["-m", MODEL, *TAGS, "--out", "probe"]],
    "elmo probe wsd": [["-m", MODEL, "--semcor", "text.txt", "--test", "text.txt"]],
    "elmo probe similarity": [["-m", MODEL, "--pairs", "text.txt"]],
    "elmo probe geometry": [["-m", MODEL, "--corpus", "text.txt", "--out", "probe"]],
    "elmo neighbors": [["bank", "--in", "A bank.", "-m", MODEL, "--corpus", "text.txt"]],
    "elmo change": [["bank", "--then", "text.txt", "--now", "text.txt", "-m", MODEL]],
    "elmo report": [[MODEL, "--out", "report.html"]],
    "elmo serve": [["--host", "no-such-host.invalid"]],
}
"""Arguments with which each command gets as far as it can in a directory with a few small files."""

NEEDS = {
    "torch": {
        "elmo pretrain",
        "elmo finetune",
        "elmo task train",
        "elmo task eval",
        "elmo task predict",
        "elmo task compare",
        "elmo analyze layers",
        "elmo analyze place",
        "elmo analyze weights",
        "elmo analyze efficiency",
        "elmo probe pos",
    },
    "pyarrow": {"elmo embed", "elmo corpus"},
    "usearch": set[str](),
    "huggingface_hub": {"elmo embed", "elmo inspect"},
    "zstandard": {"elmo embed", "elmo corpus", "elmo perplexity", "elmo settle"},
    "starlette": {"elmo serve"},
    "onnx": {"elmo convert"},
}
"""Commands that must name the extra when a package is missing."""

RUN = """
import contextlib, importlib.abc, io, json, sys, traceback

blocked, calls = json.loads(sys.stdin.read())

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Block())
from elmokit.cli import main

results = []
for call in calls:
    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(call)
        except SystemExit as exit:
            code = exit.code
        except BaseException:
            code = traceback.format_exc()
    results.append([code, err.getvalue()])
print(json.dumps(results))
"""


def _leaf_commands(group: click.Group, name: str) -> list[str]:
    context = click.Context(group)
    leaves = []
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        full = f"{name} {each}"
        leaves += _leaf_commands(command, full) if isinstance(command, click.Group) else [full]
    return leaves


def test_every_command_is_tried() -> None:
    assert set(ARGUMENTS) == set(_leaf_commands(elmo, "elmo"))


@pytest.mark.parametrize("package", NEEDS)
def test_a_missing_package_is_one_line(package: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The bank lent money.\nI sat by the bank.\n" * 20)
    (tmp_path / "text.txt.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    (tmp_path / "text.parquet").write_bytes(b"PAR1")
    (tmp_path / "tags.conll").write_text("A DT\nbank NN\n\n" * 5)
    calls = [
        (name, [*name.split()[1:], *more]) for name, args in ARGUMENTS.items() for more in args
    ]
    if package != "torch":  # the slow ones, which need none of the other packages
        calls = [(name, call) for name, call in calls if name not in NEEDS["torch"]]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([package, [call for _, call in calls]]),
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(REPOSITORY / "src"), os.getenv("PYTHONPATH", "")]),
            "ELMOKIT_CACHE": str(tmp_path / "cache"),
            "HF_HOME": str(tmp_path / "hub"),
            "ELMOKIT_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    command = f"pip install 'elmokit[{EXTRAS[package]}]'"
    named = set()
    for (name, call), (code, err) in zip(calls, json.loads(done.stdout), strict=True):
        assert isinstance(code, int), f"{call}: {code}"
        assert "Traceback" not in err, (call, err)
        errors = [line for line in err.splitlines() if line.startswith("elmo: error: ")]
        assert len(errors) == (code == 1), (call, code, err)
        if command in err:
            assert code == 1 and command in errors[0], (call, err)
            named.add(name)
    assert NEEDS[package] <= named, f"these do not name the extra: {NEEDS[package] - named}"
