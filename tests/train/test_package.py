"""The public names of `elmokit.train`, and what they say without torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

import elmokit.train


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_public_names() -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")
    for name in elmokit.train.__all__:
        assert getattr(elmokit.train, name).__class__.__name__ != "module", name
    assert set(elmokit.train.__all__) <= set(dir(elmokit.train))
    with pytest.raises(AttributeError, match="no attribute 'fit'"):
        _ = elmokit.train.fit


def test_importing_it_imports_no_torch() -> None:
    code = """
import sys
from elmokit.train import SIZES, Budget, Corpus, CorpusOptions, Recipe, TextSource, build_corpus
print("torch" in sys.modules)
"""
    assert python(code).stdout == "False\n"


@pytest.mark.parametrize(
    "code",
    [
        "from elmokit.train import pretrain",
        "from elmokit.train import resume_finetune",
        "from elmokit.cli.pretrain import command as c; "
        "c.main(['c', '-o', 'o', '--epochs', '1'], standalone_mode=False)",
        "from elmokit.cli.finetune import command as c; "
        "c.main(['m', 't', '-o', 'o'], standalone_mode=False)",
    ],
)
def test_without_torch_it_names_the_pip_command(code: str) -> None:
    done = python(f"import sys; sys.modules['torch'] = None; {code}")
    assert "MissingExtra" in done.stderr
    assert "pip install 'elmokit[train]'" in done.stderr
