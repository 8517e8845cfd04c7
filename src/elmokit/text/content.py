"""What a file that is not UTF-8 text is, by its first bytes, and what to do with it."""

from __future__ import annotations

CONTENT_BYTES = 4096
"""Number of bytes at the start of a file that are examined."""

_CONVERT = "convert it to UTF-8 first: iconv -f {encoding} -t utf-8 FILE > text.txt"
_UNPACK = "unpack it first, and give the text files in it"
_EXPORT = "save or export it as plain text first"
_NO_TEXT = "give the path of a text file"

_SIGNATURES: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", _UNPACK + ": unzip -p FILE > text.txt"),
    (b"PK\x05\x06", "an empty zip archive", _NO_TEXT),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "decompress it first: lz4 -d FILE text.txt"),
    (b"\x1f\x9d", "compressed by compress", "decompress it first: uncompress FILE"),
    (b"%PDF-", "a PDF document", "extract its text first: pdftotext FILE text.txt"),
    (b"{\\rtf", "an RTF document", _EXPORT),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of Word, Excel or PowerPoint", _EXPORT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", "if it holds vectors, open it by load_vectors"),
    (b"ARROW1", "an Arrow file", "save it as Parquet first, and give --column NAME"),
    (b"Obj\x01", "an Avro file", "save it as Parquet first, and give --column NAME"),
    (b"SQLite format 3\0", "an SQLite database", _EXPORT),
    (b"\x93NUMPY", "a NumPy array", _NO_TEXT),
    (b"\x80\x02", "a pickle, which is never loaded", _NO_TEXT),
    (b"\x80\x03", "a pickle, which is never loaded", _NO_TEXT),
    (b"\x80\x04", "a pickle, which is never loaded", _NO_TEXT),
    (b"\x80\x05", "a pickle, which is never loaded", _NO_TEXT),
    (b"\x7fELF", "a program", _NO_TEXT),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", _NO_TEXT),
    (b"\xff\xd8\xff", "a JPEG image", _NO_TEXT),
    (b"GIF8", "a GIF image", _NO_TEXT),
    (b"ID3", "an audio file", _NO_TEXT),
    (b"OggS", "an audio file", _NO_TEXT),
    (b"\xff\xfe\0\0", "UTF-32 text", _CONVERT.format(encoding="utf-32")),
    (b"\0\0\xfe\xff", "UTF-32 text", _CONVERT.format(encoding="utf-32")),
    (b"\xff\xfe", "UTF-16 text", _CONVERT.format(encoding="utf-16")),
    (b"\xfe\xff", "UTF-16 text", _CONVERT.format(encoding="utf-16")),
)
"""First bytes, what a file that begins with them is, and what to do with it."""
_OFFICE = (
    (b"word/", "a Word document (.docx)"),
    (b"xl/", "an Excel workbook (.xlsx)"),
    (b"ppt/", "a PowerPoint presentation (.pptx)"),
    (b"mimetypeapplication/vnd.oasis.opendocument", "an OpenDocument file"),
    (b"mimetypeapplication/epub", "an EPUB book"),
)
"""Names of files in zip archives that are documents of their own."""


def describe_content(head: bytes, name: str) -> str | None:
    """Return what a file is and what to do with it; None if it may be UTF-8 text.

    Args:
        head: The first bytes of the file, decompressed; up to `CONTENT_BYTES` are examined.
        name: Name of the file for the message.
    """
    head = head[:CONTENT_BYTES]
    found = _recognize(head)
    if found is None:
        return None
    kind, advice = found
    file = name if name != "stdin" else "FILE"
    return f"{name} is {kind}, not UTF-8 text; {advice.replace('FILE', file)}"


def _recognize(head: bytes) -> tuple[str, str] | None:
    if head.startswith(b"PK\x03\x04"):
        for entry, kind in _OFFICE:
            if entry in head:
                return kind, _EXPORT
    for start, kind, advice in _SIGNATURES:
        # Some signatures are readable, so a text may begin with them: binary bytes must follow.
        if head.startswith(start) and not (start.isascii() and _is_plain(head)):
            return kind, advice
        if start in (b"%PDF-", b"{\\rtf") and head.startswith(start):
            return kind, advice
    if head[4:10] == b'\0\0\0\0{"':  # 8 bytes are the length of the JSON that follows
        return "a safetensors file", _NO_TEXT
    if head[257:262] == b"ustar":
        return "a tar archive", _UNPACK + ": tar -xf FILE"
    controls = sum(byte < 32 and byte not in b"\t\n\v\f\r\x1b" for byte in head)
    if controls <= max(1, len(head) // 100):
        return None
    if encoding := _utf16_without_mark(head):
        return "UTF-16 text", _CONVERT.format(encoding=encoding)
    return f"a binary file that begins with {head[:16]!r}", _NO_TEXT


def _is_plain(head: bytes) -> bool:
    """Return whether all bytes are printable ASCII or white space."""
    return all(byte >= 32 or byte in b"\t\n\r\f" for byte in head) and head.isascii()


def _utf16_without_mark(head: bytes) -> str | None:
    """Return the encoding of UTF-16 text without a byte order mark; None if it is not that."""
    pairs = len(head) // 2
    for encoding, high in (("utf-16-le", head[1::2]), ("utf-16-be", head[0::2])):
        low = head[0::2] if encoding == "utf-16-le" else head[1::2]
        # The high byte of nearly all characters of a Western text is 0, the low byte of none.
        if high.count(0) > 0.6 * pairs and low.count(0) < 0.05 * pairs + 1:
            return encoding
    return None
