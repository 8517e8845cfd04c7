"""The bytes of an untrusted HDF5 file: its superblock, the headers of its objects, its trees.

The library of HDF5 trusts what it reads: damaged files made it loop for ever and crash. So files
are not given to it at all. These modules read the part of the format that weights and vectors use,
and refuse everything else. `hdf5.py` is the door; "the specification" is
https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html.

Addresses count from the superblock, behind a user block, if the file has one.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from elmokit.errors import FormatError
from elmokit.formats.stored_arrays import read_at

UNDEFINED = (1 << 64) - 1
"""The address of what does not exist."""
MAGIC = b"\x89HDF\r\n\x1a\n"
_HEADER_BYTES = 512
"""Bytes that are read of an object's header at first; most headers have fewer."""
_LARGEST_HEADER = 1 << 22
"""Bytes of an object's header at most; a few hundred are usual."""
_SHARED = 2
"""Flag of a message that is stored elsewhere."""


class MessageKind:
    """Numbers of the messages in the header of an object."""

    NOTHING, DATASPACE, LINK_INFO, DATATYPE = 0x00, 0x01, 0x02, 0x03
    LINK, EXTERNAL, LAYOUT, FILTERS, ATTRIBUTE = 0x06, 0x07, 0x08, 0x0B, 0x0C
    CONTINUATION, SYMBOL_TABLE, ATTRIBUTE_INFO, LAST = 0x10, 0x11, 0x15, 0x18


class HDF5Input:
    """An HDF5 file as bytes: what is read lies inside the file, or a `FormatError` is raised."""

    def __init__(self, raw: BinaryIO, name: str) -> None:
        """Take a file.

        Args:
            raw: The file, which has to stay open.
            name: Its name for error messages.
        """
        self.name = name
        self.size = raw.seek(0, os.SEEK_END)
        self.base = 0
        """Position of the superblock."""
        self._verified: set[int] = set()  # addresses of what had the right checksum
        self._raw = raw
        self._descriptor = None if isinstance(raw, io.BytesIO) else raw.fileno()

    def damage(self, what: str) -> FormatError:
        """Return an error that says what is wrong with the file."""
        return FormatError(
            f"{self.name} cannot be read as HDF5: {what}. The file is damaged, or made by another "
            "program in a way that elmokit does not read; make it or get it again"
        )

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of the file, all of which have to be there."""
        return bytes(self.read_buffer(address, size))

    def read_buffer(self, address: int, size: int) -> bytearray:
        """Return bytes of the file, all of which have to be there, to write to."""
        start = self.base + address
        if address >= UNDEFINED or size < 0 or start + size > self.size:
            raise self.damage(
                f"{size:,} bytes are expected at byte {start:,}, but it has {self.size:,} bytes"
            )
        buffer, done = bytearray(size), 0
        view = memoryview(buffer)
        while done < size:
            if self._descriptor is None:
                self._raw.seek(start + done)
                count = self._raw.readinto(view[done:])  # type: ignore[attr-defined]
            else:  # the position may be shared after a fork
                count = read_at(self._descriptor, view[done:], start + done)
            if not count:
                raise self.damage("it was truncated after it was opened")
            done += count
        return buffer

    def read_some(self, address: int, size: int) -> bytes:
        """Return bytes of the file; fewer at its end."""
        return self.read(address, max(0, min(size, self.size - self.base - address)))

    def verify(self, data: bytes, address: int, what: str, *, once: bool = False) -> None:
        """Raise `FormatError` unless the last four bytes are the checksum of the others.

        Args:
            data: The bytes.
            address: Where they are.
            what: What they are, for error messages.
            once: Whether to remember that the checksum was right, for what many objects share.
        """
        if once and address in self._verified:
            return
        if len(data) < 4 or struct.pack("<I", lookup3(data[:-4])) != data[-4:]:
            raise self.damage(f"the checksum of {what} at byte {self.base + address:,} differs")
        if once:
            self._verified.add(address)


class Fields:
    """Reads numbers and bytes one after another; raises `FormatError` behind the end."""

    __slots__ = ("_file", "_what", "data", "place")

    def __init__(self, data: bytes, file: HDF5Input, what: str) -> None:
        self.data, self.place = data, 0
        self._file, self._what = file, what

    @property
    def left(self) -> int:
        """Number of bytes that have not been read."""
        return len(self.data) - self.place

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        start = self.place
        if not 0 <= size <= len(self.data) - start:
            raise self._file.damage(f"{self._what} is too short")
        self.place = start + size
        return self.data[start : self.place]

    def number(self, size: int = 8) -> int:
        """Return the next number, which has this many bytes and no sign."""
        return int.from_bytes(self.take(size), "little")

    def expect(self, data: bytes) -> None:
        """Raise `FormatError` unless these bytes are next."""
        if self.take(len(data)) != data:
            raise self._file.damage(f"{self._what} does not begin as expected")


def open_root(file: HDF5Input) -> int:
    """Find the superblock of a file, and return the address of its root group."""
    start = 0
    while file.read_some(start, len(MAGIC)) != MAGIC:
        start = start * 2 or 512
        if start + len(MAGIC) > file.size:
            raise file.damage("it does not begin as HDF5 files do")
    file.base = start
    head = file.read_some(0, 128)
    fields = Fields(head, file, "the superblock")
    fields.take(len(MAGIC))
    version = fields.number(1)
    if version > 3:
        raise file.damage(f"its superblock has version {version}; expected 0 to 3")
    if version >= 2:
        sizes, flags = fields.take(2), fields.number(1)
        fields.number(), fields.number()  # the base address, and an extension
        end, root = fields.number(), fields.number()
        file.verify(head[: fields.place + 4], 0, "the superblock")
        if version == 3 and flags & 1:
            raise file.damage("the program that wrote it has not closed it")
    else:
        fields.take(4)
        sizes = fields.take(2)
        fields.take(9 + 4 * version)
        fields.number(), fields.number()
        end, driver = fields.number(), fields.number()
        if driver != UNDEFINED:
            raise file.damage("it is one of several files that belong together")
        fields.number()
        root = fields.number()
    if sizes != b"\x08\x08":
        raise file.damage(f"its addresses have {sizes[0]} bytes and its sizes {sizes[1]}, not 8")
    # Where a user block was put before a finished file, the end still counts from the superblock.
    if end > file.size:
        raise file.damage(f"it had {end:,} bytes when it was written, and has {file.size:,} now")
    return root


class Message(NamedTuple):
    """One message in the header of an object: a property of it."""

    kind: int
    """What it says; see `MessageKind`."""
    flags: int
    """How it is stored."""
    data: bytes
    """What it says, in bytes."""


class ObjectHeader:
    """The messages of an object, which is a group or a dataset."""

    def __init__(self, file: HDF5Input, address: int) -> None:
        self.file, self.address = file, address
        self._messages = _read_messages(file, address)
        self.size = sum(len(message.data) for message in self._messages)
        """Bytes of all messages."""

    def has(self, kind: int) -> bool:
        """Whether there is a message of a kind."""
        return any(message.kind == kind for message in self._messages)

    def all(self, kind: int) -> list[bytes]:
        """Return all messages of a kind."""
        return [self._content(message) for message in self._messages if message.kind == kind]

    def only(self, kind: int) -> bytes | None:
        """Return the message of a kind; None if there is none."""
        found = self.all(kind)
        if len(found) > 1:
            raise self.file.damage(f"an object has {len(found)} messages of kind {kind}")
        return found[0] if found else None

    def _content(self, message: Message) -> bytes:
        if message.flags & _SHARED:
            raise self.file.damage("an object shares its type or another property with others")
        return message.data


def _read_messages(file: HDF5Input, address: int) -> list[Message]:
    head = file.read_some(address, _HEADER_BYTES)
    if head.startswith(b"OHDR"):
        return _read_new_header(file, address, head)
    fields = Fields(head, file, "the header of an object")
    fields.expect(b"\x01\0")
    fields.take(6)  # numbers of messages and of links to the object
    waiting = [(address + 16, fields.number(4))]
    messages: list[Message] = []
    total = 0
    while waiting:
        start, size = waiting.pop(0)
        total += size
        if total > _LARGEST_HEADER:
            raise file.damage(f"the header of an object has more than {_LARGEST_HEADER:,} bytes")
        fields = Fields(file.read(start, size), file, "the header of an object")
        while fields.left >= 8:
            kind, size, flags = fields.number(2), fields.number(2), fields.number(1)
            fields.take(3)
            _add(file, messages, waiting, Message(kind, flags, fields.take(size)))
    return messages


def _read_new_header(file: HDF5Input, address: int, head: bytes) -> list[Message]:
    what = "the header of an object"
    fields = Fields(head, file, what)
    fields.expect(b"OHDR\x02")
    flags = fields.number(1)
    fields.take((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
    size = fields.number(1 << (flags & 3))
    begin = fields.place
    end = begin + size + 4
    total = size
    if size > _LARGEST_HEADER:
        raise file.damage(f"the header of an object has {size:,} bytes")
    if end > len(head):
        head = file.read(address, end)
    file.verify(head[:end], address, what)
    blocks = [head[begin : end - 4]]
    messages: list[Message] = []
    waiting: list[tuple[int, int]] = []
    ordered = 2 if flags & 4 else 0
    while blocks:
        fields = Fields(blocks.pop(), file, what)
        while fields.left >= 4 + ordered:
            kind, size, how = fields.number(1), fields.number(2), fields.number(1)
            fields.take(ordered)
            _add(file, messages, waiting, Message(kind, how, fields.take(size)))
        if waiting:
            start, size = waiting.pop(0)
            total += size
            if total > _LARGEST_HEADER:
                raise file.damage(
                    f"the header of an object has more than {_LARGEST_HEADER:,} bytes"
                )
            block = file.read(start, size)
            if size < 8 or not block.startswith(b"OCHK"):
                raise file.damage("the header of an object goes on where there is none")
            file.verify(block, start, what)
            blocks.append(block[4:-4])
    return messages


def _add(
    file: HDF5Input, messages: list[Message], waiting: list[tuple[int, int]], message: Message
) -> None:
    if message.kind == MessageKind.CONTINUATION:
        fields = Fields(message.data, file, "the header of an object")
        waiting.append((fields.number(), fields.number()))
    elif message.kind > MessageKind.LAST:
        raise file.damage(f"an object has a property of the unknown kind {message.kind}")
    elif message.kind != MessageKind.NOTHING:
        messages.append(message)


def walk_tree(
    file: HDF5Input, address: int, kind: int, key_bytes: int
) -> Iterator[tuple[bytes, int]]:
    """Yield the keys and children of the leaves of a B-tree of version 1, in order.

    Args:
        file: The file.
        address: Where its root is; nothing is yielded if there is none.
        kind: 0 for the names of a group, 1 for chunks.
        key_bytes: Size of a key.
    """
    if address == UNDEFINED:
        return
    waiting: list[tuple[int, int | None]] = [(address, None)]
    seen = set()
    entry = key_bytes + 8
    while waiting:
        address, expected = waiting.pop()
        if address in seen:
            raise file.damage("a tree leads back to itself")
        seen.add(address)
        fields = Fields(file.read(address, 24), file, "a tree")
        fields.expect(b"TREE" + bytes([kind]))
        level, count = fields.number(1), fields.number(2)
        if expected is not None and level != expected:
            raise file.damage("a tree has branches of different length")
        data = file.read(address + 24, count * entry)
        ends = range(entry, len(data) + 1, entry)
        keys = [data[end - entry : end - 8] for end in ends]
        places = [int.from_bytes(data[end - 8 : end], "little") for end in ends]
        if level:
            waiting += [(place, level - 1) for place in reversed(places)]
        else:
            yield from zip(keys, places, strict=True)


_MASK = 0xFFFFFFFF


def lookup3(data: bytes) -> int:
    """Return Bob Jenkins' hash of bytes, which HDF5 uses as a checksum and to sort names."""
    size = len(data)
    a = b = c = (0xDEADBEEF + size) & _MASK
    if size == 0:
        return c
    whole = (size - 1) // 12 * 12  # the last 1 to 12 bytes are mixed in another way
    for one, two, three in struct.iter_unpack("<III", memoryview(data)[:whole]):
        a = a + one & _MASK
        b = b + two & _MASK
        c = c + three & _MASK
        a = (a - c ^ (c << 4 | c >> 28)) & _MASK
        c = c + b & _MASK
        b = (b - a ^ (a << 6 | a >> 26)) & _MASK
        a = a + c & _MASK
        c = (c - b ^ (b << 8 | b >> 24)) & _MASK
        b = b + a & _MASK
        a = (a - c ^ (c << 16 | c >> 16)) & _MASK
        c = c + b & _MASK
        b = (b - a ^ (a << 19 | a >> 13)) & _MASK
        a = a + c & _MASK
        c = (c - b ^ (b << 4 | b >> 28)) & _MASK
        b = b + a & _MASK
    one, two, three = struct.unpack("<III", data[whole:].ljust(12, b"\0"))
    a = a + one & _MASK
    b = b + two & _MASK
    c = c + three & _MASK
    c = ((c ^ b) - (b << 14 | b >> 18)) & _MASK
    a = ((a ^ c) - (c << 11 | c >> 21)) & _MASK
    b = ((b ^ a) - (a << 25 | a >> 7)) & _MASK
    c = ((c ^ b) - (b << 16 | b >> 16)) & _MASK
    a = ((a ^ c) - (c << 4 | c >> 28)) & _MASK
    b = ((b ^ a) - (a << 14 | a >> 18)) & _MASK
    result: int = ((c ^ b) - (b << 24 | b >> 8)) & _MASK
    return result
