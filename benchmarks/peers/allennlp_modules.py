"""Import AllenNLP's ELMo modules without AllenNLP's dependencies.

AllenNLP 2.10.1 pins a torch of 2022, and its `__init__` files import spaCy, transformers and more,
none of which its ELMo needs. Here its packages are imported without their `__init__`, the modules
in UNMODIFIED as they were installed, and every other module of AllenNLP is a stub of placeholders.
Only three functions of the stubs are ever called; they are implemented below.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

UNMODIFIED = {
    "allennlp.common.checks",
    "allennlp.data.token_indexers.elmo_indexer",
    "allennlp.modules.elmo",
    "allennlp.modules.elmo_lstm",
    "allennlp.modules.encoder_base",
    "allennlp.modules.highway",
    "allennlp.modules.lstm_cell_with_projection",
    "allennlp.modules.scalar_mix",
    "allennlp.nn.initializers",
    "allennlp.nn.util",
    "allennlp.version",
}


class Placeholder:
    """A class to inherit from or to annotate with; its decorators return a class unchanged."""

    def __init__(self, *_: Any) -> None:
        pass

    @classmethod
    def register(cls, *_: Any, **__: Any) -> Callable[[type], type]:
        """Return a decorator that does nothing."""
        return lambda registered: registered


def lazy_groups_of(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of `size` items; the last one may be shorter."""
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group


def pad_sequence_to_length(
    sequence: Sequence[Any], length: int, default_value: Callable[[], Any] = lambda: 0
) -> list[Any]:
    """Truncate or pad a sequence at the end."""
    return [*sequence[:length], *(default_value() for _ in range(length - len(sequence)))]


STUBS: dict[str, dict[str, Any]] = {
    "allennlp.common.file_utils": {"cached_path": lambda path: path},
    "allennlp.common.util": {
        "lazy_groups_of": lazy_groups_of,
        "pad_sequence_to_length": pad_sequence_to_length,
    },
}


class _StubLoader(Loader):
    """Creates an empty package for a directory, or a module of placeholders."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__dict__.update(STUBS.get(spec.name, {}))

        def placeholder(name: str) -> type[Placeholder]:
            if name.startswith("__"):
                raise AttributeError(name)
            return Placeholder

        module.__dict__["__getattr__"] = placeholder
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Finder(MetaPathFinder):
    """Finds AllenNLP's modules: the real ones in UNMODIFIED, and stubs for the rest."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name in UNMODIFIED:
            return PathFinder.find_spec(name, path)
        if name.split(".")[0] != "allennlp":
            return None
        directory = self.root.joinpath(*name.split(".")[1:])
        spec = ModuleSpec(name, _StubLoader(), is_package=directory.is_dir())
        if directory.is_dir():
            spec.submodule_search_locations = [str(directory)]
        return spec


def install() -> None:
    """Make `import allennlp.modules.elmo` work in this process."""
    spec = find_spec("allennlp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(
            "allennlp is not installed in this environment; run: venvs.py allennlp"
        )
    sys.meta_path.insert(0, _Finder(Path(spec.origin).parent))
    # `from allennlp.nn import util` must return the module, not a placeholder.
    import allennlp.nn
    import allennlp.nn.util

    allennlp.nn.util = sys.modules["allennlp.nn.util"]
