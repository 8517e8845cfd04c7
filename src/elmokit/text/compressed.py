"""Reading compressed streams: gzip, bzip2, xz and Zstandard, told apart by their first bytes."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from typing import Any, Protocol

from elmokit.errors import FormatError, MissingExtra


class Stream(Protocol):
    """All that is asked of an open file."""

    def read(self, size: int, /) -> bytes | None:
        """The next bytes, none at the end."""


HEAD = 10
"""How many bytes tell."""
SUFFIXES = (".gz", ".xz", ".bz2", ".zst")


def decompressed(stream: Any, head: bytes, name: str) -> Stream:
    """The stream as it is, or what it becomes; `head` is how it begins, `name` for messages."""
    if head.startswith(b"\x1f\x8b"):
        import gzip

        return gzip.open(stream)
    if head.startswith(b"\xfd7zXZ\0"):
        import lzma

        return lzma.open(stream)
    if head.startswith(b"BZh") and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        import bz2

        return bz2.open(stream)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstandard(stream, name)
    if head and name.endswith(SUFFIXES):
        raise FormatError(f"{name} is not compressed as its name says; it begins with {head!r}")
    plain: Stream = stream
    return plain


def _zstandard(stream: Any, name: str) -> Stream:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:  # Python before 3.14
        pass
    else:
        opened: Stream = zstd.open(stream)
        return opened
    try:
        import zstandard  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingExtra(
            f"{name} is compressed with Zstandard, which needs the package zstandard "
            f"({error}): pip install zstandard, or unpack it first: zstd -d"
        ) from None
    reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    return io.BufferedReader(reader, 1 << 18)


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn what the decompressors raise into a message that names the file."""
    try:
        yield
    except (EOFError, LZMAError, zlib.error) as error:
        raise FormatError(f"{name} is damaged or cut off: {error}") from None
    except OSError as error:
        if error.errno is not None:  # the disk's, not the format's
            raise
        raise FormatError(f"{name} is damaged or cut off: {error}") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # of whichever of the two packages
            raise
        raise FormatError(f"{name} is damaged or cut off: {error}") from None
