"""Import AllenNLP's own ELMo files without AllenNLP's dependencies.

AllenNLP 2.10.1 pins a torch of 2022 and imports spaCy, transformers and more in its packages'
`__init__` files. Its ELMo needs none of them. Here its packages are imported without their
`__init__`, the files in UNMODIFIED as they were installed, and every other module of AllenNLP is a
stand-in that holds placeholders. Only three functions of those are ever called; they are below.
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
    """A class to inherit from or to annotate with; its decorators leave a class as it is."""

    def __init__(self, *_: Any) -> None:
        pass

    @classmethod
    def register(cls, *_: Any, **__: Any) -> Callable[[type], type]:
        """A decorator that registers nothing."""
        return lambda registered: registered


def lazy_groups_of(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` items, the last one perhaps shorter."""
    iterator = iter(items)
    while group := list(islice(iterator, size)):
        yield group


def pad_sequence_to_length(
    sequence: Sequence[Any], length: int, default_value: Callable[[], Any] = lambda: 0
) -> list[Any]:
    """Cut or pad at the right."""
    return [*sequence[:length], *(default_value() for _ in range(length - len(sequence)))]


STAND_INS: dict[str, dict[str, Any]] = {
    "allennlp.common.file_utils": {"cached_path": lambda path: path},
    "allennlp.common.util": {
        "lazy_groups_of": lazy_groups_of,
        "pad_sequence_to_length": pad_sequence_to_length,
    },
}


class _StandIn(Loader):
    """Makes an empty package over a real directory, or a module of placeholders."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        module.__dict__.update(STAND_INS.get(spec.name, {}))

        def placeholder(name: str) -> type[Placeholder]:
            if name.startswith("__"):
                raise AttributeError(name)
            return Placeholder

        module.__dict__["__getattr__"] = placeholder
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Finder(MetaPathFinder):
    """Finds AllenNLP's modules, the real ones in UNMODIFIED and stand-ins for the rest."""

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
        spec = ModuleSpec(name, _StandIn(), is_package=directory.is_dir())
        if directory.is_dir():
            spec.submodule_search_locations = [str(directory)]
        return spec


def install() -> None:
    """Let `import allennlp.modules.elmo` work in this process from now on."""
    spec = find_spec("allennlp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("allennlp is not installed here: run venvs.py allennlp")
    sys.meta_path.insert(0, _Finder(Path(spec.origin).parent))
    # `from allennlp.nn import util` must give the module, not a placeholder.
    import allennlp.nn
    import allennlp.nn.util

    allennlp.nn.util = sys.modules["allennlp.nn.util"]
