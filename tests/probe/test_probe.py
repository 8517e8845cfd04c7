"""The public names of `elmokit.probe`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from elmokit import probe


def test_public_names() -> None:
    for name in probe.__all__:
        assert getattr(probe, name) is not None
    assert set(probe.__all__) <= set(dir(probe))
    with pytest.raises(AttributeError, match="no attribute 'guess'"):
        _ = probe.guess


def test_importing_it_is_light() -> None:
    code = "import elmokit.probe, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
