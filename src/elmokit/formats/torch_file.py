"""The tensors of a file of `torch.save`, without PyTorch and without running anything in it.

There are two layouts. Since PyTorch 1.6 (2020) a file is an uncompressed zip archive:

    NAME/data.pkl      a pickle of the object, in which the id of a storage stands for its numbers
    NAME/data/KEY      the numbers of each storage
    NAME/byteorder     `little` or `big`; little if it is missing

Before, it was five pickles after each other (a magic number, a version, the machine, the object,
the keys of its storages) and then, for each storage, the number of its elements (int64) and the
elements, little-endian. The models of ELMoForManyLangs are of that kind.

Every size is compared with that of the file before anything is read, so that a file takes no more
memory than its own size. Names other than those of tensors are refused.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeGuard

import numpy as np
import numpy.typing as npt

from elmokit.errors import FormatError
from elmokit.formats.torch_pickle import ForbiddenName, Name, read_pickle

MAGIC = 0x1950A86A20F9469CFC6C
"""The number that files begin with, before PyTorch 1.6."""
LEGACY_VERSION = 1001
LARGEST_PICKLE = 64 << 20
"""Size in bytes at most of the pickle in an archive."""
MOST_SHARING = 8
"""Size of all tensors at most, in multiples of the file: tensors may share their numbers."""

_DTYPES = {
    "Float": "f4",
    "Double": "f8",
    "Half": "f2",
    "BFloat16": "u2",  # NumPy has no such type; see `_widen`
    "Long": "i8",
    "Int": "i4",
    "Short": "i2",
    "Char": "i1",
    "Byte": "u1",
    "Bool": "?",
}
STORAGES = {
    f"{module}.{kind}Storage": dtype
    for module in ("torch", "torch.cuda")
    for kind, dtype in _DTYPES.items()
}
"""The types of storages by name, without the order of the bytes."""
_DAMAGE = (
    *(ValueError, OSError, EOFError, RuntimeError, OverflowError, MemoryError, LookupError),
    *(struct.error, zlib.error, zipfile.BadZipFile),
)
"""What the modules used here raise for damaged files."""


@dataclass
class _Storage:
    """A run of numbers in the file, which tensors are views of."""

    kind: str
    """Name of its type."""
    elements: int
    """Number of elements."""
    data: npt.NDArray[Any] | None = None
    """The elements, once they are read; they come after the pickle that refers to them."""


@dataclass
class _Tensor:
    """A tensor as the pickle describes it, with every size checked."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class _Claim(Exception):
    """Tensors that are larger than the file; the argument is their size in bytes."""


def read_tensors(file: BinaryIO, where: str) -> dict[str, npt.NDArray[Any]]:
    """Return the tensors of a state dict by name, as arrays; numbers of 16-bit `bfloat16` widened.

    Args:
        file: The open file, which can be sought.
        where: Its name, for messages.
    """
    size = file.seek(0, 2)
    file.seek(0)
    try:
        state = (_Archive if _is_archive(file) else _Legacy)(file, size).read()
        tensors = _arrays(state, where)
    except ForbiddenName as error:
        if str(error).startswith("torch._utils._rebuild_"):
            raise FormatError(
                f"{where}: a tensor in it is not a dense tensor of numbers (made by {error})"
            ) from None
        raise FormatError(
            f"{where} tries to run {error}; expected tensors only. Nothing in the file was run"
        ) from None
    except _Claim as error:
        raise FormatError(
            f"{where} has {size:,} bytes, but its tensors claim {error.args[0]:,}"
        ) from None
    except _DAMAGE as error:
        raise FormatError(
            f"{where} is damaged, or not a file of PyTorch: {type(error).__name__}: "
            f"{str(error)[:200]}"
        ) from None
    return tensors


def _arrays(state: object, where: str) -> dict[str, npt.NDArray[Any]]:
    if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
        raise FormatError(f"{where} does not hold named tensors; expected a state dict of PyTorch")
    for key, value in state.items():
        if not isinstance(value, _Tensor):
            raise FormatError(f"{where}: {key[:200]} is not a dense tensor of numbers")
    return {key: _array(tensor) for key, tensor in state.items()}


def _is_archive(file: BinaryIO) -> bool:
    start = file.read(4)
    file.seek(0)
    return start == b"PK\x03\x04"


class _Reader:
    """What both layouts have in common: the pickle of the object."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._size = file, size
        self._storages: dict[str, _Storage] = {}
        self._claimed = 0
        self._functions: dict[str, Callable[..., object]] = {
            "collections.OrderedDict": _empty_dict,
            "torch._utils._rebuild_tensor": self._rebuild,
            "torch._utils._rebuild_tensor_v2": self._rebuild,
            "torch._utils._rebuild_parameter": _rebuild_parameter,
        }

    def read_object(self, file: BinaryIO) -> Any:
        """Return the object of the pickle: numbers, strings, lists, dicts and `_Tensor`."""
        return read_pickle(file, self._functions, frozenset(STORAGES), self._persistent_load)

    def _persistent_load(self, reference: Any) -> _Storage:
        raise NotImplementedError

    def _storage(self, reference: Any, length: int) -> _Storage:
        """Return the storage of an id: ("storage", type, key, device, elements, …)."""
        if (
            type(reference) is not tuple
            or len(reference) != length
            or reference[0] != "storage"
            or not isinstance(reference[1], Name)
            or not isinstance(reference[2], str)
        ):
            raise ValueError("the id of a storage has an unknown form")
        kind, key, elements = reference[1].path, reference[2], reference[4]
        if kind not in STORAGES:
            raise ForbiddenName(kind)
        if not _is_count(elements) or elements * _item_bytes(kind) > self._size:
            raise ValueError("a storage claims more elements than the file has")
        storage = self._storages.setdefault(key, _Storage(kind, elements))
        if (storage.kind, storage.elements) != (kind, elements):
            raise ValueError("two ids of the same storage differ")
        return storage

    def _rebuild(
        self,
        storage: object,
        offset: object,
        shape: object,
        strides: object,
        requires_grad: object = False,
        hooks: object = None,
        metadata: object = None,
    ) -> _Tensor:
        if not isinstance(storage, _Storage) or not _is_count(offset):
            raise ValueError("a tensor has no storage")
        if not _are_counts(shape) or not _are_counts(strides) or len(shape) != len(strides):
            raise ValueError("a tensor has an invalid shape")
        tensor = _Tensor(storage, offset, shape, strides)
        self._claimed += tensor.elements * _item_bytes(storage.kind)
        if self._claimed > MOST_SHARING * self._size:
            raise _Claim(self._claimed)
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if tensor.elements and last >= storage.elements:
            raise ValueError("a tensor reaches beyond its storage")
        return tensor


class _Archive(_Reader):
    """A file of PyTorch 1.6 or newer."""

    def read(self) -> Any:
        with zipfile.ZipFile(self._file) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
                raise ValueError("its parts are compressed, which PyTorch never does")
            if sum(entry.file_size for entry in entries) > self._size:
                raise ValueError("its parts are larger than the file")
            if len(set(names)) != len(names):
                raise ValueError("two of its parts have the same name")
            pickles = [name for name in names if name.rpartition("/")[2] == "data.pkl"]
            if len(pickles) != 1:
                raise ValueError(f"it has {len(pickles)} parts named data.pkl; expected one")
            if archive.getinfo(pickles[0]).file_size > LARGEST_PICKLE:
                raise ValueError("its data.pkl is too large")
            self._archive, self._folder = archive, pickles[0].removesuffix("data.pkl")
            if (damaged := archive.testzip()) is not None:
                raise ValueError(f"a checksum is wrong, that of {damaged[:60]}")
            big = self._part("byteorder", b"little").strip() == b"big"
            with archive.open(pickles[0]) as file:
                result = self.read_object(file)  # type: ignore[arg-type]
            for key, storage in self._storages.items():
                data = self._part(f"data/{key}")
                if len(data) != storage.elements * _item_bytes(storage.kind):
                    raise ValueError(f"the storage {key[:40]} has {len(data):,} bytes")
                storage.data = _numbers(data, storage.kind, ">" if big else "<")
        return result

    def _part(self, name: str, default: bytes | None = None) -> bytes:
        path = self._folder + name
        if default is not None and path not in self._archive.NameToInfo:
            return default
        return self._archive.read(path)

    def _persistent_load(self, reference: Any) -> _Storage:
        return self._storage(reference, 5)


class _Legacy(_Reader):
    """A file of PyTorch before 1.6, or saved in that layout."""

    def read(self) -> Any:
        self._views: dict[int, tuple[_Storage, _Storage, int]] = {}
        start = self.read_object(self._file)
        if not isinstance(start, int) or start != MAGIC:
            raise ValueError("it does not begin with the number of PyTorch")
        version = self.read_object(self._file)
        if not isinstance(version, int) or version != LEGACY_VERSION:
            raise ValueError(f"its version is not {LEGACY_VERSION}")
        self.read_object(self._file)  # the sizes of C types, which the numbers do not depend on
        result = self.read_object(self._file)
        keys = self.read_object(self._file)
        if type(keys) is not list or not all(isinstance(key, str) for key in keys):
            raise ValueError("its list of storages is damaged")
        if set(keys) != set(self._storages):
            raise ValueError("its list of storages does not match the tensors")
        for key in keys:
            self._read_storage(self._storages[key])
        for view, root, offset in self._views.values():
            assert root.data is not None  # the list of storages was complete
            view.data = root.data[offset : offset + view.elements]
        return result

    def _read_storage(self, storage: _Storage) -> None:
        (elements,) = struct.unpack("<q", self._file.read(8))
        if elements != storage.elements or storage.data is not None:
            raise ValueError(f"a storage has {elements:,} elements; expected {storage.elements:,}")
        size = elements * _item_bytes(storage.kind)
        if size > self._size - self._file.tell():
            raise ValueError("it is truncated")
        storage.data = _numbers(self._file.read(size), storage.kind, "<")

    def _persistent_load(self, reference: Any) -> _Storage:
        storage = self._storage(reference, 6)
        view = reference[5]
        if view is None:
            return storage
        # Before PyTorch 0.4 a storage could be a part of another: (key, offset, elements).
        if type(view) is not tuple or len(view) != 3 or not _are_counts(view[1:]):
            raise ValueError("a part of a storage has an unknown form")
        _, offset, elements = view
        if offset + elements > storage.elements:
            raise ValueError("a part of a storage reaches beyond it")
        part = _Storage(storage.kind, elements)
        self._views[id(part)] = (part, storage, offset)
        return part


def _empty_dict() -> OrderedDict[Any, Any]:
    return OrderedDict()


def _rebuild_parameter(tensor: object, requires_grad: object = True, hooks: object = None) -> Any:
    return tensor


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


def _are_counts(values: object) -> TypeGuard[tuple[int, ...]]:
    return type(values) is tuple and len(values) <= 32 and all(map(_is_count, values))


def _item_bytes(kind: str) -> int:
    return np.dtype(STORAGES[kind]).itemsize


def _numbers(data: bytes, kind: str, order: Literal["<", ">"]) -> npt.NDArray[Any]:
    dtype = np.dtype(STORAGES[kind]).newbyteorder(order)
    return np.frombuffer(data, dtype).astype(dtype.newbyteorder("="), copy=False)


def _array(tensor: _Tensor) -> npt.NDArray[Any]:
    """Return a tensor as an array, a view of its storage if its type exists in NumPy."""
    data = tensor.storage.data
    assert data is not None  # every storage was read
    view = np.lib.stride_tricks.as_strided(
        data[tensor.offset :] if tensor.elements else data[:0],
        tensor.shape,
        [step * data.itemsize for step in tensor.strides],
        writeable=False,
    )
    return _widen(view) if tensor.storage.kind.endswith("BFloat16Storage") else view


def _widen(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return bfloat16, given as uint16, as float32: its upper half."""
    return (numbers.astype(np.uint32) << 16).view(np.float32)
