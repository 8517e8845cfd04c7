"""Try an installed wheel or sdist: embed a sentence, and say which engine did it.

    python tests/wheel.py [kernel|reference]

The argument is the engine that is expected. Runs anywhere, with nothing but the base install;
cibuildwheel, `.ci/parts/wheels` and the workflows use it.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib.metadata import files, metadata, version
from importlib.util import find_spec

import elmokit

EXPECTED = sys.argv[1] if len(sys.argv) > 1 else "kernel"


def main() -> None:
    """Check what a user would see first."""
    installed = [str(path) for path in files("elmokit") or []]
    assert version("elmokit") == elmokit.__version__, (version("elmokit"), elmokit.__version__)
    licenses = [path for path in installed if "/licenses/" in path]
    assert metadata("elmokit")["License-Expression"] == "Apache-2.0 AND CC-BY-SA-3.0"
    assert len(licenses) == 2, f"license files: {licenses}"
    assert any(path.endswith("elmokit/py.typed") for path in installed), "no py.typed"
    assert not [path for path in installed if path.startswith(("tests", "docs", "examples"))]
    there = find_spec("elmokit._native") is not None
    assert there == (EXPECTED == "kernel"), f"expected the {EXPECTED}; kernel there: {there}"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        elmo = elmokit.Elmo.load()
        vectors = elmo.embed("She went to the bank.")
    assert vectors.shape == (6, 384), vectors.shape
    slow = [str(w.message) for w in caught if "several times slower" in str(w.message)]
    assert bool(slow) == (EXPECTED == "reference"), slow
    done = subprocess.run(
        [sys.executable, "-m", "elmokit", "embed", "--json", "A bank ."],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert '"words"' in done.stdout, done.stdout
    assert "torch" not in sys.modules
    print(f"elmokit {elmokit.__version__}, Python {sys.version.split()[0]}, {EXPECTED}: it works")


if __name__ == "__main__":
    main()
