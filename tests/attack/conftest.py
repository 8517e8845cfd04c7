"""The scripts of benchmarks/attack as modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def import_attack() -> Iterator[Callable[[str], ModuleType]]:
    directory = str(REPOSITORY / "benchmarks" / "attack")
    before = set(sys.modules)
    sys.path.insert(0, directory)
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(directory)
        for name in set(sys.modules) - before:
            if directory in str(getattr(sys.modules[name], "__file__", "")):
                del sys.modules[name]
