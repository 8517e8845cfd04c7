"""A reader of pickles that can build plain data and call nothing but a given list of functions.

Python's `pickle` runs whatever a file names. This one interprets the instructions itself: numbers,
strings, tuples, lists, dicts, and names that the caller has listed. Any other name, any other
instruction and any size beyond the limits is an error, before anything is made. Knows nothing about
PyTorch: `torch_file.py` lists what its files need.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

MOST_INSTRUCTIONS = 1_000_000
"""Instructions of a pickle at most; that of a large model has a few thousand."""
LONGEST_STRING = 1 << 20
"""Bytes of a string at most."""
LONGEST_INTEGER = 16
"""Bytes of an integer at most."""

PersistentLoad = Callable[[Any], object]
"""Returns the object that an id outside the pickle stands for."""


class ForbiddenName(Exception):
    """A pickle names a function or class that is not on the list."""


class Name:
    """A name that a pickle refers to; it stands on the stack and does nothing."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path


class _Mark:
    """Where the items of a tuple, list or dict begin on the stack."""


_MARK = _Mark()


def read_pickle(
    file: BinaryIO,
    functions: Mapping[str, Callable[..., object]],
    names: frozenset[str] = frozenset(),
    persistent_load: PersistentLoad | None = None,
) -> Any:
    """Return the object of the pickle that begins at the position of a file.

    Args:
        file: The file; afterwards it stands behind the pickle.
        functions: What the pickle may call, by `module.name`, with plain arguments.
        names: Further names that it may mention, which become `Name` objects.
        persistent_load: Makes the objects that the pickle refers to by an id.

    Raises:
        ForbiddenName: The pickle names something that is not listed.
        ValueError: It is damaged, or has instructions that plain data does not need.
    """
    return _Machine(file, functions, names, persistent_load).run()


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(
        self,
        file: BinaryIO,
        functions: Mapping[str, Callable[..., object]],
        names: frozenset[str],
        persistent_load: PersistentLoad | None,
    ) -> None:
        self._file = file
        self._functions = functions
        self._names = names
        self._persistent_load = persistent_load
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        for _ in range(MOST_INSTRUCTIONS):
            code = self._read(1)
            if code == b".":
                value = self._pop()
                if self._stack:
                    raise ValueError("the pickle leaves more than one object")
                return value
            action = _ACTIONS.get(code)
            if action is None:
                raise ValueError(f"Unsupported instruction {code!r} in the pickle")
            action(self)
        raise ValueError(f"the pickle has more than {MOST_INSTRUCTIONS:,} instructions")

    # -- reading -------------------------------------------------------------------------------

    def _read(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) != size:
            raise ValueError("the pickle ends in the middle")
        return data

    def _number(self, layout: str) -> Any:
        return struct.unpack(layout, self._read(struct.calcsize(layout)))[0]

    def _string(self, layout: str) -> str:
        size = self._number(layout)
        if not 0 <= size <= LONGEST_STRING:
            raise ValueError(f"the pickle has a string of {size:,} bytes")
        return self._read(size).decode("utf-8", "surrogatepass")

    def _line(self) -> str:
        line = self._file.readline(LONGEST_STRING)
        if not line.endswith(b"\n"):
            raise ValueError("the pickle ends in the middle of a name")
        return line[:-1].decode("utf-8")

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise ValueError("an instruction of the pickle lacks its argument")
        return self._stack.pop()

    def _items(self) -> list[Any]:
        """Take everything above the last mark, and the mark."""
        for start in range(len(self._stack) - 1, -1, -1):
            if self._stack[start] is _MARK:
                items = self._stack[start + 1 :]
                del self._stack[start:]
                return items
        raise ValueError("the pickle closes a list that it did not open")

    # -- instructions --------------------------------------------------------------------------

    def nothing(self, size: int) -> None:
        self._read(size)

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def push_number(self, layout: str) -> None:
        self.push(self._number(layout))

    def push_string(self, layout: str) -> None:
        self.push(self._string(layout))

    def push_integer(self) -> None:
        size = self._number("<B")
        if size > LONGEST_INTEGER:
            raise ValueError(f"the pickle has an integer of {size} bytes")
        self.push(int.from_bytes(self._read(size), "little", signed=True))

    def push_tuple(self, size: int | None = None) -> None:
        items = self._items() if size is None else [self._pop() for _ in range(size)][::-1]
        self.push(tuple(items))

    def push_list(self) -> None:
        self.push(self._items())

    def push_dict(self) -> None:
        items = self._items()
        self.push({})
        self._set_items(items)

    def append(self) -> None:
        self._extend([self._pop()])

    def append_items(self) -> None:
        self._extend(self._items())

    def _extend(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not list:
            raise ValueError("the pickle appends to something that is not a list")
        target.extend(items)

    def set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def set_items(self) -> None:
        self._set_items(self._items())

    def _set_items(self, items: list[Any]) -> None:
        target = self._top()
        if not isinstance(target, dict) or len(items) % 2:
            raise ValueError("the pickle sets items of something that is not a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            # A nested tuple as a key could take forever to hash.
            if not isinstance(key, (str, int)):
                raise ValueError(f"a dict in the pickle has a key of type {type(key).__name__}")
            target[key] = value

    def _top(self) -> Any:
        if not self._stack:
            raise ValueError("an instruction of the pickle lacks its argument")
        return self._stack[-1]

    def put(self, layout: str) -> None:
        number = self._number(layout)
        value = self._pop()
        self._memo[number] = value
        self.push(value)

    def memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def get(self, layout: str) -> None:
        number = self._number(layout)
        if number not in self._memo:
            raise ValueError(f"the pickle refers to an object {number} that it did not store")
        self.push(self._memo[number])

    def global_name(self) -> None:
        self._push_name(self._line(), self._line())

    def stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name in the pickle is not a string")
        self._push_name(module, name)

    def _push_name(self, module: str, name: str) -> None:
        path = f"{module}.{name}"
        if path not in self._functions and path not in self._names:
            raise ForbiddenName(path[:200])
        self.push(Name(path))

    def reduce(self) -> None:
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Name) or type(arguments) is not tuple:
            raise ValueError("the pickle calls something that is not a function")
        if function.path not in self._functions:
            raise ForbiddenName(function.path)
        try:
            self.push(self._functions[function.path](*arguments))
        except TypeError:
            raise ValueError(f"the pickle calls {function.path} with wrong arguments") from None

    def build(self) -> None:
        """Ignore the attributes of a dict: PyTorch keeps the versions of modules there."""
        state = self._pop()
        if not isinstance(self._top(), OrderedDict) or not isinstance(state, dict):
            raise ValueError("the pickle sets attributes of something that is not a dict")

    def persistent_id(self) -> None:
        if self._persistent_load is None:
            raise ValueError("the pickle refers to an object outside of it")
        self.push(self._persistent_load(self._pop()))


_ACTIONS: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": lambda m: m.nothing(1),  # the version of the protocol
    b"\x95": lambda m: m.nothing(8),  # the size of a frame
    b"N": lambda m: m.push(None),
    b"\x88": lambda m: m.push(True),
    b"\x89": lambda m: m.push(False),
    b"J": lambda m: m.push_number("<i"),
    b"K": lambda m: m.push_number("<B"),
    b"M": lambda m: m.push_number("<H"),
    b"G": lambda m: m.push_number(">d"),
    b"\x8a": lambda m: m.push_integer(),
    b"X": lambda m: m.push_string("<I"),
    b"\x8c": lambda m: m.push_string("<B"),
    b"\x8d": lambda m: m.push_string("<Q"),
    b"U": lambda m: m.push_string("<B"),  # strings of Python 2
    b"T": lambda m: m.push_string("<i"),
    b"(": lambda m: m.push(_MARK),
    b")": lambda m: m.push(()),
    b"t": lambda m: m.push_tuple(),
    b"\x85": lambda m: m.push_tuple(1),
    b"\x86": lambda m: m.push_tuple(2),
    b"\x87": lambda m: m.push_tuple(3),
    b"]": lambda m: m.push([]),
    b"l": lambda m: m.push_list(),
    b"a": lambda m: m.append(),
    b"e": lambda m: m.append_items(),
    b"}": lambda m: m.push({}),
    b"d": lambda m: m.push_dict(),
    b"s": lambda m: m.set_item(),
    b"u": lambda m: m.set_items(),
    b"q": lambda m: m.put("<B"),
    b"r": lambda m: m.put("<I"),
    b"\x94": lambda m: m.memoize(),
    b"h": lambda m: m.get("<B"),
    b"j": lambda m: m.get("<I"),
    b"c": lambda m: m.global_name(),
    b"\x93": lambda m: m.stack_global(),
    b"R": lambda m: m.reduce(),
    b"b": lambda m: m.build(),
    b"Q": lambda m: m.persistent_id(),
}
"""What each instruction does: those of protocols 2 to 5 that plain data needs."""
