"""Reading untrusted HDF5 files, without the library of HDF5 and never from other files.

    with open("weights.hdf5", "rb") as raw:
        file = open_hdf5(raw, "weights.hdf5")
        file.open("CNN/W_cnn_0").read()         # an array
        file.find("elmokit").attribute("job")   # None if there is none

What is read is a list of what is allowed, not of what is forbidden: groups, and datasets of numbers
and strings, as h5py writes them by default, or for HDF5 1.8. Everything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, BinaryIO

import numpy.typing as npt

from elmokit.errors import FormatError
from elmokit.formats.hdf5_data import (
    STRINGS,
    ChunkFilter,
    DataLayout,
    StoredNumbers,
    StringHeaps,
    read_filters,
    read_layout,
    read_shape,
    read_type,
)
from elmokit.formats.hdf5_input import (
    UNDEFINED,
    Fields,
    HDF5Input,
    MessageKind,
    ObjectHeader,
    open_root,
)
from elmokit.formats.hdf5_links import (
    EXTERNAL,
    HARD,
    HashedLinks,
    HDF5Link,
    find_attribute,
    read_link,
    read_symbol_table,
)
from elmokit.formats.stored_arrays import AnyArray, StoredArray, WeightsFile

_DEEPEST = 32
"""Number of groups at most that are inside each other."""
_LINK_BYTES = 12
"""Bytes that a link takes in a file at least."""


def open_hdf5(raw: BinaryIO, name: str) -> HDF5Group:
    """Return the root group of an untrusted file.

    Args:
        raw: The file, which has to stay open.
        name: Its name for error messages.
    """
    file = HDF5Input(raw, name)
    header = ObjectHeader(file, open_root(file))
    if not _is_group(header):
        raise file.damage("it has no root group")
    return HDF5Group(header, "", StringHeaps(file))


def _is_group(header: ObjectHeader) -> bool:
    return header.has(MessageKind.SYMBOL_TABLE) or header.has(MessageKind.LINK_INFO)


class _HDF5Object:
    """What groups and datasets have in common: a name and attributes."""

    def __init__(self, header: ObjectHeader, name: str, heaps: StringHeaps) -> None:
        self.name = name
        """Path from the root group."""
        self._header, self._heaps, self._file = header, heaps, header.file

    def attribute(self, name: str) -> Any:
        """Return an attribute: bytes, text, a number or an array; None if there is none."""
        file = self._file
        for message in self._attribute_messages(name.encode()):
            fields = Fields(message, file, "an attribute")
            version, flags = fields.number(1), fields.number(1)
            if version not in (1, 2, 3) or (version > 1 and flags):
                raise file.damage("an attribute is stored in a way that elmokit does not read")
            sizes = [fields.number(2) for _ in range(3)]
            fields.take(1 if version == 3 else 0)
            padded = [-(-size // 8) * 8 if version == 1 else size for size in sizes]
            found, kind, space = (fields.take(size) for size in padded)
            if found[: sizes[0]].rstrip(b"\0") == name.encode():
                return self._attribute_value(name, kind, space, fields)
        return None

    def _attribute_messages(self, name: bytes) -> Iterator[bytes]:
        """Yield the messages of attributes, at least those that have a name."""
        yield from self._header.all(MessageKind.ATTRIBUTE)
        info = self._header.only(MessageKind.ATTRIBUTE_INFO)
        if info is not None:
            fields = Fields(info, self._file, "a list of attributes")
            fields.expect(b"\0")
            fields.take(2 if fields.number(1) & 1 else 0)
            heap, tree = fields.number(), fields.number()
            if heap != UNDEFINED:
                yield from find_attribute(self._file, heap, tree, name)

    def _attribute_value(self, name: str, kind: bytes, space: bytes, fields: Fields) -> Any:
        file = self._file
        shape, dtype = read_shape(file, space), read_type(file, Fields(kind, file, "a type"))
        if shape is None:
            raise file.damage(f"the attribute {name} is empty")
        size = math.prod(shape) * (16 if dtype == STRINGS else dtype.itemsize)
        layout = DataLayout(content=fields.take(size))
        value = StoredNumbers(file, shape, dtype, layout, (), self._heaps, name).read()
        if value.shape:
            return value
        if dtype == STRINGS:
            return value.item().decode("utf-8", "surrogateescape")
        return value[()]


class HDF5Group(_HDF5Object):
    """A group of a file: groups and datasets by name."""

    @cached_property
    def _links(self) -> dict[str, HDF5Link] | HashedLinks:
        symbols = self._header.only(MessageKind.SYMBOL_TABLE)
        if symbols is not None:
            return read_symbol_table(self._file, symbols)
        fields = Fields(self._header.only(MessageKind.LINK_INFO) or b"", self._file, "a group")
        fields.expect(b"\0")
        fields.take(8 if fields.number(1) & 1 else 0)
        heap, tree = fields.number(), fields.number()
        if heap != UNDEFINED:
            return HashedLinks(self._file, heap, tree)
        links: dict[str, HDF5Link] = {}
        for message in self._header.all(MessageKind.LINK):
            name, link = read_link(self._file, message)
            if name in links:
                raise self._file.damage(f"a group has the name {name!r:.80} twice")
            links[name] = link
        return links

    @property
    def file_size(self) -> int:
        """Size of the file in bytes."""
        return self._file.size

    def __len__(self) -> int:
        return self._links.count if isinstance(self._links, HashedLinks) else len(self._links)

    def __contains__(self, name: str) -> bool:
        return self._find_link(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._all_links())

    def _all_links(self) -> Iterator[tuple[str, HDF5Link]]:
        links = self._links
        return links.all() if isinstance(links, HashedLinks) else iter(links.items())

    def _find_link(self, name: str) -> HDF5Link | None:
        links = self._links
        return links.find(name) if isinstance(links, HashedLinks) else links.get(name)

    def find(self, path: str) -> HDF5Group | HDF5Dataset | None:
        """Return a group or a dataset below this one; None if there is none of that name.

        Raises:
            FormatError: A part of the path is a link to another file, or to another name.
        """
        found: HDF5Group | HDF5Dataset | None = self
        for name in path.split("/"):
            link = found._find_link(name) if isinstance(found, HDF5Group) else None
            if link is None:
                return None
            if link.kind != HARD:
                raise self._link_error(path, link)
            found = self._open(link, path)
        return found

    def open(self, path: str) -> HDF5Dataset:
        """Return a dataset below this group, or raise `FormatError` if there is none."""
        found = self.find(path)
        if not isinstance(found, HDF5Dataset):
            raise FormatError(
                f"{self._file.name}: {path} is {'missing' if found is None else 'a group'}; "
                "expected a dataset"
            )
        return found

    def walk(self) -> dict[str, HDF5Dataset]:
        """Return all datasets below this group by their path; links to names are left out."""
        datasets: dict[str, HDF5Dataset] = {}
        waiting: list[tuple[HDF5Group, int]] = [(self, 0)]
        seen = {self._header.address}  # hard links can form a cycle
        used = 0
        while waiting:
            group, depth = waiting.pop()
            used += len(group) * _LINK_BYTES
            if depth > _DEEPEST or used > self._file.size:
                raise self._file.damage("its groups hold each other")
            for name, link in group._all_links():
                path = f"{group.name}/{name}".lstrip("/")
                if link.kind == EXTERNAL:
                    raise self._link_error(path, link)
                if link.kind != HARD or link.address in seen:
                    continue
                seen.add(link.address)
                found = self._open(link, path)
                used += 0 if found is None else found._header.size
                if isinstance(found, HDF5Group):
                    waiting.append((found, depth + 1))
                elif found is not None:
                    datasets[path] = found
        return datasets

    def _open(self, link: HDF5Link, path: str) -> HDF5Group | HDF5Dataset | None:
        header = ObjectHeader(self._file, link.address)
        if _is_group(header):
            return HDF5Group(header, path, self._heaps)
        if header.has(MessageKind.LAYOUT):
            return HDF5Dataset(header, path, self._heaps)
        return None  # a type

    def _link_error(self, path: str, link: HDF5Link) -> FormatError:
        what = "a link"
        if link.kind == EXTERNAL:
            what = f"an external link to another file ({link.target!r})"
        return FormatError(
            f"{self._file.name}: {path} is {what}; elmokit reads nothing outside the file. Copy "
            "the data into the file"
        )


class HDF5Dataset(_HDF5Object):
    """An array of numbers or strings in a file."""

    def __init__(self, header: ObjectHeader, name: str, heaps: StringHeaps) -> None:
        super().__init__(header, name, heaps)
        file = header.file
        if header.has(MessageKind.EXTERNAL):
            raise FormatError(
                f"{file.name}: {name} stores its numbers in another file; elmokit reads nothing "
                "outside the model file. Copy the numbers into the file"
            )
        space, kind = header.only(MessageKind.DATASPACE), header.only(MessageKind.DATATYPE)
        layout = header.only(MessageKind.LAYOUT)
        if space is None or kind is None or layout is None:
            raise file.damage(f"{name} has no shape, no type or no place")
        shape = read_shape(file, space)
        if shape is None:
            raise file.damage(f"{name} is empty; expected an array")
        self.shape = shape
        """Shape of the array."""
        self.dtype = read_type(file, Fields(kind, file, f"the type of {name}"))
        """Type of the elements; `object` for strings that have no fixed size."""
        packed = header.only(MessageKind.FILTERS)
        filters: list[ChunkFilter] = [] if packed is None else read_filters(file, packed)
        self._numbers = StoredNumbers(
            file, shape, self.dtype, read_layout(file, layout), filters, heaps, name
        )

    @property
    def nbytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def offset(self) -> int | None:
        """Position of the array in the file; None unless it is there in one piece."""
        place = self._numbers.place
        return None if place is None or place == UNDEFINED else self._file.base + place

    def read(self, rows: slice | None = None) -> npt.NDArray[Any]:
        """Return the array, or some of its rows; strings are bytes."""
        return self._numbers.read(rows)


def read_array(dataset: HDF5Dataset, file: WeightsFile | None) -> AnyArray:
    """Return where a dataset is in its file if it is contiguous there, else its content.

    Args:
        dataset: A dataset.
        file: The file; None to read the numbers into memory.
    """
    start = dataset.offset
    if file is None or start is None or start + dataset.nbytes > file.size:
        return dataset.read()
    return StoredArray(file, start, dataset.dtype, dataset.shape)
