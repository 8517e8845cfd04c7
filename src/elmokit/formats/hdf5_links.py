"""The names in a group of an untrusted HDF5 file, in all three ways in which they are stored.

a tree of names and a heap     groups of HDF5 before 1.8, which h5py writes by default
messages in the header         small groups of HDF5 1.8 and later
a tree of hashes and a heap    large groups of HDF5 1.8 and later; `HashedLinks`
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

from elmokit.formats.hdf5_input import UNDEFINED, Fields, HDF5Input, lookup3, walk_tree

HARD, SOFT, EXTERNAL = 0, 1, 64
"""Kinds of links: to an object, to a name in this file, and to another file."""
_SYMBOL_BYTES = 40
_HUGE_OBJECT = 0x10
"""How the number of a large object of a heap begins."""
_SYMBOLIC = 2
"""Kind of an entry of a table that is a link to a name."""
_HUGE_TREE, _LINK_TREE, _ATTRIBUTE_TREE = 1, 5, 8
"""Kinds of trees: large objects of a heap, links by name, attributes by name."""
_TREE = "the tree of a group"
_KEPT_NODES = 16
"""Number of nodes of a tree at most that are kept in memory."""


class HDF5Link(NamedTuple):
    """What a name of a group stands for."""

    kind: int
    """`HARD`, `SOFT`, `EXTERNAL`, or something that a program has invented."""
    address: int
    """Where the object is."""
    target: str = ""
    """Name of the other file."""


def read_symbol_table(file: HDF5Input, message: bytes) -> dict[str, HDF5Link]:
    """Return the links of a group that is stored as before HDF5 1.8."""
    fields = Fields(message, file, "a group")
    tree, heap = fields.number(), fields.number()
    fields = Fields(file.read(heap, 32), file, "the names of a group")
    fields.expect(b"HEAP\0")
    fields.take(3)
    size, _, start = fields.number(), fields.number(), fields.number()
    names = file.read(start, size)
    links: dict[str, HDF5Link] = {}
    total = 0
    seen = set()
    for _, child in walk_tree(file, tree, 0, 8):
        if child in seen:
            raise file.damage("a group has the same names twice")
        seen.add(child)
        fields = Fields(file.read(child, 8), file, "a table of names")
        fields.expect(b"SNOD\x01")
        fields.take(1)
        count = fields.number(2)
        table = file.read(child + 8, count * _SYMBOL_BYTES)
        for place, address, kind, _, _, _ in struct.iter_unpack("<QQIIQQ", table):
            end = names.find(b"\0", place)
            if end < 0:
                raise file.damage("a name of a group has no end")
            total += end - place + 1
            name = decode_name(names[place:end])
            if total > size or name in links:
                raise file.damage("the names of a group overlap")
            links[name] = HDF5Link(SOFT if kind == _SYMBOLIC else HARD, address)
    return links


def decode_name(name: bytes) -> str:
    """Return a name as text, as h5py does."""
    return name.decode("utf-8", "surrogateescape")


def read_link(file: HDF5Input, message: bytes) -> tuple[str, HDF5Link]:
    """Return the name and the target of a link message."""
    fields = Fields(message, file, "a link")
    fields.expect(b"\x01")
    flags = fields.number(1)
    kind = fields.number(1) if flags & 8 else HARD
    fields.take((8 if flags & 4 else 0) + (1 if flags & 16 else 0))
    name = fields.take(fields.number(1 << (flags & 3)))
    if kind == HARD:
        return decode_name(name), HDF5Link(HARD, fields.number())
    target = fields.take(fields.number(2))
    if kind == EXTERNAL:  # a byte of flags, the name of the file and a name in it
        target = target[1:].partition(b"\0")[0]
    return decode_name(name), HDF5Link(kind, UNDEFINED, decode_name(target[:200]))


class HashedLinks:
    """The links of a large group: a tree of hashes, and a heap."""

    def __init__(self, file: HDF5Input, heap: int, tree: int) -> None:
        self._file = file
        self._heap = FractalHeap(file, heap)
        self._tree = RecordTree(file, tree, _LINK_TREE, 4 + self._heap.id_bytes)
        self.count = self._tree.count
        """Number of links."""

    def find(self, name: str) -> HDF5Link | None:
        """Return the link of a name; None if there is none."""
        wanted = struct.pack("<I", lookup3(name.encode("utf-8", "surrogateescape")))
        for record in self._tree.find(wanted):
            found, link = read_link(self._file, self._heap.read(record[4:]))
            if found == name:
                return link
        return None

    def all(self) -> Iterator[tuple[str, HDF5Link]]:
        """Yield all names and links."""
        total = 0
        for record in self._tree.all():
            message = self._heap.read(record[4:])
            total += len(message)
            if total > self._file.size:
                raise self._file.damage("the names of a group overlap")
            yield read_link(self._file, message)


def find_attribute(file: HDF5Input, heap: int, tree: int, name: bytes) -> Iterator[bytes]:
    """Yield the messages of attributes that may have a name, where there are many or large ones."""
    stored = FractalHeap(file, heap)
    width = stored.id_bytes
    wanted = struct.pack("<I", lookup3(name))
    for record in RecordTree(file, tree, _ATTRIBUTE_TREE, width + 9).all():
        if record[width + 5 :] == wanted:
            if record[width]:
                raise file.damage("an attribute is shared by several objects")
            yield stored.read(record[:width])


class _Node(NamedTuple):
    records: list[bytes]
    children: list[tuple[int, int]]  # addresses and numbers of records


class RecordTree:
    """A B-tree of version 2, with records of one size."""

    def __init__(self, file: HDF5Input, address: int, kind: int, record_bytes: int) -> None:
        """Open a tree.

        Args:
            file: The file.
            address: Where the header of the tree is.
            kind: What its records mean.
            record_bytes: Size of a record.
        """
        self._file, self._kind, self._record = file, kind, record_bytes
        data = file.read(address, 38)
        file.verify(data, address, _TREE)
        fields = Fields(data, file, _TREE)
        fields.expect(b"BTHD\0" + bytes([kind]))
        self._node_bytes, record, self._depth = fields.number(4), fields.number(2), fields.number(2)
        fields.take(2)
        self._start = (fields.number(), fields.number(2))
        self.count = fields.number()
        """Number of records."""
        if record != record_bytes or not 64 <= self._node_bytes <= file.size:
            raise file.damage(f"{_TREE} has nodes of {self._node_bytes:,} bytes")
        if self._depth > 16 or self.count * record > file.size:
            raise file.damage(f"{_TREE} is larger than the file")
        self._count_bytes, self._total_bytes = self._pointer_sizes()
        self._nodes: dict[int, _Node] = {}

    def _pointer_sizes(self) -> tuple[int, list[int]]:
        """Return the sizes of the numbers of records of a child, and below it, by depth."""
        most = total = (self._node_bytes - 10) // self._record
        count_bytes, total_bytes = _size_of(most), [0]
        for _ in range(self._depth):
            pointer = 8 + count_bytes + total_bytes[-1]
            most = (self._node_bytes - 10 - pointer) // (self._record + pointer)
            total = (most + 1) * total + most
            total_bytes.append(_size_of(max(total, 0)))
        return count_bytes, total_bytes

    def find(self, begin: bytes) -> Iterator[bytes]:
        """Yield the records that begin with a number, by which they are sorted."""
        wanted, size = int.from_bytes(begin, "little"), len(begin)

        def is_between(before: bytes | None, after: bytes | None) -> bool:
            return (before is None or int.from_bytes(before[:size], "little") <= wanted) and (
                after is None or wanted <= int.from_bytes(after[:size], "little")
            )

        for record in self._walk(is_between):
            if record.startswith(begin):
                yield record

    def all(self) -> Iterator[bytes]:
        """Yield all records."""
        found = 0
        for record in self._walk(lambda before, after: True):
            found += 1
            yield record
        if found != self.count:
            raise self._file.damage(f"{_TREE} has {found:,} records, not {self.count:,}")

    def _walk(self, enters: Callable[[bytes | None, bytes | None], bool]) -> Iterator[bytes]:
        """Yield the records of all nodes that a function, given two records, lets us enter."""
        waiting = [(*self._start, self._depth)] if self.count else []
        seen: set[int] = set()
        while waiting:
            address, count, depth = waiting.pop()
            if address in seen:
                raise self._file.damage(f"{_TREE} leads back to itself")
            seen.add(address)
            node = self._node(address, count, depth)
            yield from node.records
            ends = [None, *node.records, None]
            for i, (child, records) in enumerate(node.children):
                if enters(ends[i], ends[i + 1]):
                    waiting.append((child, records, depth - 1))

    def _node(self, address: int, count: int, depth: int) -> _Node:
        node = self._nodes.get(address)
        if node is None or len(node.records) != count or bool(node.children) != (depth > 0):
            node = self._read_node(address, count, depth)
            if len(self._nodes) >= _KEPT_NODES:
                self._nodes.clear()
            self._nodes[address] = node
        return node

    def _read_node(self, address: int, count: int, depth: int) -> _Node:
        pointer = 8 + self._count_bytes + self._total_bytes[depth - 1] if depth else 0
        size = 6 + count * self._record + (count + 1) * pointer + 4
        if size > self._node_bytes:
            raise self._file.damage(f"{_TREE} has a node that is too large")
        data = self._file.read(address, size)
        self._file.verify(data, address, _TREE, once=True)
        fields = Fields(data, self._file, _TREE)
        fields.expect((b"BTIN\0" if depth else b"BTLF\0") + bytes([self._kind]))
        records = [fields.take(self._record) for _ in range(count)]
        children = []
        for _ in range(count + 1 if depth else 0):
            children.append((fields.number(), fields.number(self._count_bytes)))
            fields.take(self._total_bytes[depth - 1])
        return _Node(records, children)


def _size_of(limit: int) -> int:
    """Return the number of bytes that the library takes for numbers up to a limit."""
    return max(0, limit.bit_length() - 1) // 8 + 1


class FractalHeap:
    """The heap in which the links of a large group are: blocks of growing size, in a table."""

    def __init__(self, file: HDF5Input, address: int) -> None:
        self._file, self._address = file, address
        what = "the heap of a group"
        data = file.read(address, 146)
        file.verify(data, address, what)
        fields = Fields(data, file, what)
        fields.expect(b"FRHP\0")
        self.id_bytes, filters, flags = fields.number(2), fields.number(2), fields.number(1)
        """Size of the number of an object."""
        largest_object = fields.number(4)
        fields.take(8)
        self._huge = fields.number()
        fields.take(10 * 8)
        self._width, self._first, self._largest = fields.number(2), fields.number(), fields.number()
        bits, _ = fields.number(2), fields.number(2)
        self._root, self._rows = fields.number(), fields.number(2)
        powers = (self._width, self._first, self._largest)
        if filters or not 8 <= bits <= 64 or any(n < 1 or n & n - 1 for n in powers):
            raise file.damage(f"{what} is stored in a way that no program uses")
        if not self._first <= self._largest <= 1 << 26 or self._rows > 64:
            raise file.damage(f"{what} has blocks of {self._largest:,} bytes")
        self._checked = bool(flags & 2)
        self._offset_bytes = (bits + 7) // 8
        in_block = (self._largest.bit_length() - 1 + 7) // 8
        self._length_bytes = min(in_block, _size_of(largest_object))
        self._direct_rows = self._largest.bit_length() - self._first.bit_length() + 2
        self._tables: dict[int, list[int]] = {}
        self._blocks: set[int] = set()
        if not 1 + self._offset_bytes + self._length_bytes <= self.id_bytes <= 64:
            raise file.damage(f"{what} has numbers of {self.id_bytes} bytes")

    def read(self, number: bytes) -> bytes:
        """Return an object, given its number."""
        fields = Fields(number, self._file, "the number of a link")
        how = fields.number(1)
        if how == _HUGE_OBJECT:
            return self._read_huge(fields.take(min(8, fields.left)))
        if how:
            raise self._file.damage("an object of a heap is stored in a way that no program uses")
        offset = fields.number(self._offset_bytes)
        length = fields.number(self._length_bytes)
        address, begin, size = self._find_block(offset)
        self._check_block(address, begin, size)
        if offset - begin + length > size:
            raise self._file.damage("a link is outside the heap of its group")
        return self._file.read(address + offset - begin, length)

    def _read_huge(self, number: bytes) -> bytes:
        """Return an object that is too large for the blocks."""
        for record in RecordTree(self._file, self._huge, _HUGE_TREE, 24).all():
            address, size, found = struct.unpack("<QQQ", record)
            if found == int.from_bytes(number, "little"):
                return self._file.read(address, size)
        raise self._file.damage("a large object of a heap is missing")

    def _find_block(self, offset: int) -> tuple[int, int, int]:
        """Return the address of the block with a position of the heap, its position and size."""
        if self._rows == 0:
            return self._root, 0, self._first
        table, rows, begin = self._root, self._rows, 0
        row_bytes = self._first * self._width
        while True:
            inside = offset - begin
            row = (inside // row_bytes).bit_length()
            size = self._first << max(0, row - 1)
            column, rest = divmod(inside - (row_bytes << (row - 1) if row else 0), size)
            if row >= rows:
                raise self._file.damage("a link is outside the heap of its group")
            address = self._table(table, rows, begin)[row * self._width + column]
            begin = offset - rest
            if row < self._direct_rows:
                return address, begin, size
            table, rows = address, size.bit_length() - row_bytes.bit_length() + 1

    def _table(self, address: int, rows: int, begin: int) -> list[int]:
        """Return the addresses in a table of blocks."""
        found = self._tables.get(address)
        if found is None or len(found) != rows * self._width:
            what = "the heap of a group"
            size = 13 + self._offset_bytes + 8 * rows * self._width + 4
            data = self._file.read(address, size)
            self._file.verify(data, address, what, once=True)
            fields = Fields(data, self._file, what)
            fields.expect(b"FHIB\0" + struct.pack("<Q", self._address))
            if fields.number(self._offset_bytes) != begin:
                raise self._file.damage(f"{what} has a block in two places")
            found = [fields.number() for _ in range(rows * self._width)]
            if len(self._tables) >= _KEPT_NODES:
                self._tables.clear()
            self._tables[address] = found
        return found

    def _check_block(self, address: int, begin: int, size: int) -> None:
        """Raise `FormatError` unless a block is where it should be, with the right checksum."""
        if address in self._blocks:
            return
        what = "the heap of a group"
        data = self._file.read(address, size)
        fields = Fields(data, self._file, what)
        fields.expect(b"FHDB\0" + struct.pack("<Q", self._address))
        if fields.number(self._offset_bytes) != begin:
            raise self._file.damage(f"{what} has a block in two places")
        if self._checked:
            place = fields.place
            checksum = fields.number(4)
            if lookup3(data[:place] + bytes(4) + data[place + 4 :]) != checksum:
                raise self._file.damage(f"the checksum of {what} differs")
        self._blocks.add(address)
