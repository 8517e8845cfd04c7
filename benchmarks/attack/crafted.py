"""Files that somebody who means harm would write: bombs, links, traversals, pickles, lies.

All of them must be refused. Each kind is varied at random, so that no list of known files helps.
"""

from __future__ import annotations

import gzip
import io
import json
import pickle
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py  # here, since it runs `uname` when it is imported, which no case may do
import numpy as np

from elmokit import Elmo, formats, load_vectors
from elmokit.formats.torch_file import read_tensors

CRAFTED = "crafted"
"""Name of the kind."""
Crafted = tuple[str, Callable[[], object]]
"""A description, and the function that must refuse to read it."""


def craft(source: random.Random, directory: Path) -> Crafted:
    """Write a hostile file into a directory; return what it is and how it is read.

    Args:
        source: Where chance comes from.
        directory: A directory with a file `canary`, which nobody may read or change.
    """
    maker = source.choice(MAKERS)
    return maker.__name__, maker(source, directory)


def _load(path: Path) -> Callable[[], object]:
    return lambda: formats.read(path)


class _Harm:
    """Pickled, it calls a function when it is loaded."""

    def __init__(self, function: str, argument: str) -> None:
        self.function, self.argument = function, argument

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        import os

        functions = {"open": open, "system": os.system, "remove": os.remove, "eval": eval}
        return functions[self.function], (self.argument,)


def pickle_in_torch_file(source: random.Random, directory: Path) -> Callable[[], object]:
    """A pickle that calls a function, as a file of torch.save of either kind."""
    canary = directory / "canary"
    function = source.choice(("open", "system", "remove", "eval"))
    argument = {
        "open": str(canary),
        "system": f"echo harmed > {canary}",
        "remove": str(canary),
        "eval": f"open({str(canary)!r}, 'w')",
    }[function]
    harm = _Harm(function, argument)
    state = source.choice((harm, {"weight": harm}, [harm], {harm: 1}))
    data = pickle.dumps(state, source.randrange(6))
    file = io.BytesIO()
    if source.random() < 0.5:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", data)
            archive.writestr("archive/version", "3\n")
    else:
        pickle.dump(0x1950A86A20F9469CFC6C, file, 2)
        pickle.dump(1001, file, 2)
        pickle.dump({"little_endian": True}, file, 2)
        file.write(data)
        pickle.dump([], file, 2)
    return lambda: read_tensors(io.BytesIO(file.getvalue()), "hostile.pkl")


def zip_bomb(source: random.Random, directory: Path) -> Callable[[], object]:
    """A small archive that unpacks to gigabytes of zeros, or claims to."""
    path = directory / "bomb.zip"
    name = source.choice(("config.json", "model.safetensors", "manifest.json", "options.json"))
    size = source.choice((1 << 31, 1 << 33, 1 << 40))
    block = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = block.compress(bytes(1 << 20)) + block.flush()
    with zipfile.ZipFile(path, "w") as archive:
        for other in ("config.json", "manifest.json", "model.safetensors"):
            if other != name:
                archive.writestr(other, "{}")
        archive.writestr(name, data)
        entry = archive.getinfo(name)
        entry.compress_type, entry.file_size = zipfile.ZIP_DEFLATED, size
        entry.CRC = source.randrange(1 << 32)
    return _load(path)


def npz_bomb(source: random.Random, directory: Path) -> Callable[[], object]:
    """An .npz file whose arrays claim or unpack to far more than the file."""
    path = directory / "bomb.npz"
    header = io.BytesIO()
    size = source.choice((1 << 33, 1 << 38, 1 << 50))
    shape = (size // 64, 16) if source.random() < 0.5 else (3, size // 64, 16)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    method = source.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("0.npy", header.getvalue() + bytes(source.choice((0, 1000, 1 << 20))))

    def read() -> object:
        with load_vectors(path) as vectors:
            return vectors[0]

    return read


def npz_of_objects(source: random.Random, directory: Path) -> Callable[[], object]:
    """An .npz file with an array of pickled objects."""
    path = directory / "objects.npz"
    array = np.array([_Harm("open", str(directory / "canary")), 1], dtype=object)
    np.savez(path, **{source.choice(("0", "lengths", "words", "ids")): array, "0": array})

    def read() -> object:
        with load_vectors(path) as vectors:
            return vectors[0]

    return read


def hdf5_link(source: random.Random, directory: Path) -> Callable[[], object]:
    """An HDF5 file with a link, an external or a virtual dataset that leads to another file."""
    secret = directory / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["0"] = np.ones((2, 3), np.float32)
        file["embedding"] = np.ones((5, 6), np.float32)
    as_model, kind = source.random() < 0.5, source.randrange(3)
    name = "CNN_proj/W_proj" if as_model else "0"
    pair = directory / "pair"
    if as_model:
        pair.mkdir(exist_ok=True)
        _write_pair(pair)
        path = pair / "weights.hdf5"
    else:
        path = directory / "linked.h5"
        path.unlink(missing_ok=True)
    with h5py.File(path, "a") as file:
        shape = file[name].shape if as_model else (2, 3)
        if as_model:
            del file[name]
        if kind == 0:
            file[name] = h5py.ExternalLink(str(secret), "/0")
        elif kind == 1:
            external = [(str(secret), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset(name, shape, np.float32, external=external)
        else:
            layout = h5py.VirtualLayout(shape, np.float32)
            layout[(0,) * len(shape)] = h5py.VirtualSource(str(secret), "0", (2, 3))[0, 0]
            file.create_virtual_dataset(name, layout)

    def read() -> object:
        if as_model:
            return formats.read(pair)
        with load_vectors(path) as vectors:
            return vectors[0]

    return read


def _write_pair(directory: Path) -> None:
    from seeds import tiny_model

    formats.write(tiny_model(), directory / "weights.hdf5")


def hdf5_bomb(source: random.Random, directory: Path) -> Callable[[], object]:
    """An HDF5 file whose dataset was never written and claims to be enormous."""
    path = directory / "bomb.h5"
    shape = (source.choice((1 << 20, 1 << 27)), 1 << 10)
    chunks = (1, 1 << 10) if source.random() < 0.5 else None
    with h5py.File(path, "w") as file:
        file.create_dataset("0", shape, np.float32, chunks=chunks)

    def read() -> object:
        with load_vectors(path) as vectors:
            return vectors[0]

    return read


def tar_of_links(source: random.Random, directory: Path) -> Callable[[], object]:
    """A tar archive with links, devices, absolute names, or names that lead out of it."""
    path = directory / "module.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        name = source.choice(("../canary", "/etc/passwd", "a/../../canary", "variables/x", ".."))
        entry = tarfile.TarInfo(name)
        entry.type = source.choice(
            (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE)
        )
        entry.linkname = str(directory / "canary")
        archive.addfile(entry)
    return _load(path)


def tar_bomb(source: random.Random, directory: Path) -> Callable[[], object]:
    """A compressed tar archive of gigabytes of zeros."""
    path = directory / "bomb.tar.gz"
    if not path.exists():
        with gzip.open(path, "wb", 1) as out:
            entry = tarfile.TarInfo("saved_model.pb")
            entry.size = 3 << 30
            out.write(entry.tobuf())
            for _ in range(200):
                out.write(bytes(1 << 20))
    return _load(path)


def tar_of_records(source: random.Random, directory: Path) -> Callable[[], object]:
    """A tar archive with records that `tarfile` copies into each entry, or searches for ever."""
    path = directory / "records.tar"
    data = source.choice((b"".join(b"10 k%05d=\n" % k for k in range(50_000)), b"1" * 1_000_000))
    entry = tarfile.TarInfo("pax")
    entry.type, entry.size = source.choice((b"g", b"x")), len(data)
    files = b"".join(tarfile.TarInfo(f"f{k}").tobuf() for k in range(900))
    path.write_bytes(entry.tobuf() + data + bytes(-len(data) % 512) + files + bytes(1024))
    return _load(path)


def table_of_one_block(source: random.Random, directory: Path) -> Callable[[], object]:
    """The index of a checkpoint that refers to the same large block thousands of times."""
    from elmokit.formats.crc32c import crc32c, mask_checksum
    from elmokit.formats.tf_index import MAGIC, read_table

    def sealed(content: bytes) -> bytes:
        content += b"\0"
        return content + struct.pack("<I", mask_checksum(crc32c(content)))

    count = source.choice((1 << 10, 1 << 18))
    block = sealed(bytes(4 * count) + struct.pack("<I", count))
    size = 4 * (count + 1)
    handle = b"\0" + _varint(size)
    index = sealed((bytes([0, 0, len(handle)]) + handle) * 100_000 + struct.pack("<2I", 0, 1))
    footer = b"\0\0" + _varint(len(block)) + _varint(len(index) - 5)
    data = block + index + footer.ljust(40, b"\0") + struct.pack("<Q", MAGIC)
    return lambda: read_table(data, "x.index")


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def tar_of_holes(source: random.Random, directory: Path) -> Callable[[], object]:
    """A tar archive with a sparse file: a few bytes that claim to be gigabytes of zeros."""
    path = directory / "holes.tar"
    name = source.choice((b"saved_model.pb", b"variables/variables.index", b"assets/vocab.txt"))
    path.write_bytes(sparse_entry(name, source.choice((1 << 31, 3 << 30, 1 << 40))) + bytes(1024))
    return _load(path)


def sparse_entry(name: bytes, size: int) -> bytes:
    """Return the header of a file in a tar archive that is one hole of a size."""
    header = bytearray(512)
    header[: len(name)] = name
    for place, text in ((100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0")):
        header[place : place + 8] = text
    for place, number in ((124, 0), (136, 0), (386, 0), (398, 0), (483, size)):
        header[place : place + 12] = tarfile.itn(number, 12, tarfile.GNU_FORMAT)
    header[156:157], header[257:265] = tarfile.GNUTYPE_SPARSE, b"ustar  \0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def manifest_that_leads_out(source: random.Random, directory: Path) -> Callable[[], object]:
    """A manifest or a configuration that names files elsewhere."""
    path = directory / "outside"
    path.mkdir(exist_ok=True)
    name = source.choice(("../canary", str(directory / "canary"), "a/../../canary"))
    names = (name, "config.json", "model.safetensors")
    files = {each: {"bytes": 1, "sha256": "x"} for each in names}
    manifest = {"format": "elmokit-bilm", "version": 1, "files": files}
    (path / "manifest.json").write_text(json.dumps(manifest))
    (path / "config.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"x")
    return _load(path)


def safetensors_that_lie(source: random.Random, directory: Path) -> Callable[[], object]:
    """A safetensors file whose header is enormous, deep, or points behind the end."""
    import hashlib

    path = directory / "lies"
    if not path.exists():
        from seeds import tiny_model

        formats.write(tiny_model(), path)
    entry = {
        "dtype": "F32",
        "shape": [1 << source.choice((3, 30, 60))],
        "data_offsets": [0, 1 << 40],
    }
    header = source.choice(
        (
            b"[" * 100_000,
            json.dumps({"x": entry}).encode(),
            b'{"x":' + json.dumps(entry).encode() + b',"x":' + json.dumps(entry).encode() + b"}",
            b"{" + b'"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},' * 2000 + b'"z":1}',
        )
    )
    size = source.choice((len(header), 1 << 62, (1 << 64) - 1, 0, len(header) + 1))
    data = struct.pack("<Q", size) + header
    (path / "model.safetensors").write_bytes(data)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"]["model.safetensors"] = {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    (path / "manifest.json").write_text(json.dumps(manifest))
    return _load(path)


def config_of_a_giant(source: random.Random, directory: Path) -> Callable[[], object]:
    """A model whose configuration claims far more than its weights."""
    pair = directory / "giant"
    pair.mkdir(exist_ok=True)
    if not (pair / "weights.hdf5").exists():
        _write_pair(pair)
        (pair / "kept.json").write_bytes((pair / "options.json").read_bytes())
    options = json.loads((pair / "kept.json").read_text())
    huge = source.choice((1 << 31, 1 << 40, 10**30, -5, 0, 1.5, float("nan")))
    key, inner = source.choice(
        (
            ("lstm", "dim"),
            ("lstm", "projection_dim"),
            ("lstm", "n_layers"),
            ("char_cnn", "n_highway"),
        )
    )
    if inner == "n_highway" and huge == 0:
        huge = -1  # a network without highways exists, and other arrays of the file are kept
    options[key][inner] = huge
    (pair / "options.json").write_text(json.dumps(options))

    def read() -> object:
        return Elmo.load(pair, threads=1).embed([["a"]])

    return read


MAKERS: list[Callable[[random.Random, Path], Callable[[], object]]] = [
    *(pickle_in_torch_file, zip_bomb, npz_bomb, npz_of_objects, hdf5_link, hdf5_bomb),
    *(
        tar_of_links,
        tar_bomb,
        tar_of_holes,
        tar_of_records,
        table_of_one_block,
        manifest_that_leads_out,
        safetensors_that_lie,
        config_of_a_giant,
    ),
]
"""All kinds of hostile files."""
