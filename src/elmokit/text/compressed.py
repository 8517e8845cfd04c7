"""Reading compressed streams: gzip, bzip2, xz and Zstandard, recognized by their first bytes."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from typing import Any, Protocol

from elmokit.errors import FormatError
from elmokit.extras import require


class ByteStream(Protocol):
    """An open binary file, of which only `read` is used."""

    def read(self, size: int, /) -> bytes | None:
        """Return the next bytes, or none at the end."""


HEAD_BYTES = 10
"""Number of bytes at the start of a file that identify its compression."""
SUFFIXES = (".gz", ".xz", ".bz2", ".zst")
"""File name endings that promise a compressed file."""


def decompress(stream: Any, head: bytes, name: str) -> ByteStream:
    """Return a stream of decompressed bytes, or the stream itself if it is not compressed.

    Args:
        stream: The open binary file, at its beginning.
        head: The first `HEAD_BYTES` bytes of the stream.
        name: Name of the file for error messages.
    """
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
        return _open_zstandard(stream, name)
    if head and name.endswith(SUFFIXES):
        raise FormatError(
            f"{name} is not compressed, although its name says so: it begins with {head!r}. "
            "Rename it, or download it again"
        )
    plain: ByteStream = stream
    return plain


def _open_zstandard(stream: Any, name: str) -> ByteStream:
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:  # Python before 3.14
        zstandard = require("zstandard", f"Files compressed with Zstandard, such as {name},")
        reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
        return io.BufferedReader(reader, 1 << 18)
    opened: ByteStream = zstd.open(stream)
    return opened


@contextmanager
def explain_damage(name: str) -> Iterator[None]:
    """Turn the errors of the decompressors into a `FormatError` that names the file."""
    try:
        yield
    except (EOFError, LZMAError, zlib.error) as error:
        raise FormatError(_damaged(name, error)) from None
    except MemoryError:  # an xz file says how much memory it needs, up to 4 GB
        raise FormatError(
            f"{name} takes more memory to decompress than there is; compress it with a smaller "
            "dictionary"
        ) from None
    except OSError as error:
        if error.errno is not None:  # an error of the disk, not of the content
            raise
        raise FormatError(_damaged(name, error)) from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":  # raised by either of the two packages
            raise
        raise FormatError(_damaged(name, error)) from None


def _damaged(name: str, error: Exception) -> str:
    return f"{name} is damaged or truncated and cannot be decompressed: {error}"
