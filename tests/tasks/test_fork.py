"""A model that was loaded before a fork predicts in the child, whatever torch did before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

SCRIPT = """
import os, sys
from pathlib import Path
import torch
from tests.tasks import toy
from elmokit import Elmo, tasks
from elmokit.tasks.trained import Trained

directory, tune = Path(sys.argv[1]), sys.argv[2] == "True"
_, dev = toy.files(directory)
dev = tasks.read("ner", dev)
settings = toy.settings(vectors="none", elmo=str(toy.model(directory)), tune=tune)
elmo = Elmo.load(settings.elmo)
Trained.assemble(settings, {"types": ["PER", "LOC"]}, ["in"], elmo).save(directory / "model")
trained = tasks.load(directory / "model")

torch.set_num_threads(4)  # as a program that computes other things with torch, too
weights = torch.randn(300, 300, requires_grad=True)
(weights @ weights).sum().backward()
torch.randn(300_000).exp()
before = trained.predict("Dr. Ada in London ."), trained.evaluate(dev)

child = os.fork()
if child == 0:
    code = 1
    try:
        after = trained.predict("Dr. Ada in London ."), trained.evaluate(dev)
        code = 0 if after == before and torch.get_num_threads() == 4 else 2
    finally:
        os._exit(code)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("tune", [False, True])
def test_a_forked_child_predicts(tmp_path: Path, tune: bool) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path), str(tune)],
        timeout=100,
        capture_output=True,
        text=True,
        env={**os.environ, "ELMOKIT_CACHE": str(tmp_path / "cache")},
    )
    assert result.returncode == 0, result.stderr
