"""Files of `torch.save`: equal to what torch reads, and nothing else is ever made from them."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import GOLDEN

from elmokit.errors import FormatError
from elmokit.formats.torch_file import LEGACY_VERSION, MAGIC, read_tensors

FILES = sorted((GOLDEN / "many_langs" / "models").glob("*/*.pkl"))


def read(data: bytes) -> dict[str, np.ndarray]:
    return read_tensors(io.BytesIO(data), "model.pkl")


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="comparing with torch needs torch")


def saved(state: Any, torch: Any, zipped: bool) -> bytes:
    file = io.BytesIO()
    torch.save(state, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


# -- the same as torch -------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_models_are_read_as_torch_reads_them(path: Path, torch: Any) -> None:
    theirs = torch.load(path, map_location="cpu", weights_only=True)
    ours = read(path.read_bytes())
    assert list(ours) == list(theirs)
    for name, tensor in theirs.items():
        assert ours[name].dtype == np.float32
        assert ours[name].tobytes() == tensor.numpy().tobytes()


@pytest.mark.parametrize("zipped", [True, False])
def test_types_views_and_shared_storages(zipped: bool, torch: Any) -> None:
    base = torch.arange(60, dtype=torch.float32).reshape(5, 12) / 7
    kinds = ["float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
    state: OrderedDict[str, Any] = OrderedDict(
        whole=base,
        row=base[2],
        block=base[1:4, 3:9],
        turned=base.T,
        every_other=base[::2, ::3],
        spread=torch.ones(1).expand(7),
        scalar=torch.tensor(3.5),
        empty=torch.zeros(0, 4),
        parameter=torch.nn.Parameter(base[0].clone()),
        **{kind: (base * 2).to(getattr(torch, kind)) for kind in kinds},
    )
    state._metadata = OrderedDict({"": {"version": 1}})  # type: ignore[attr-defined]
    ours = read(saved(state, torch, zipped))
    assert list(ours) == list(state)
    for name, tensor in state.items():
        theirs = tensor.detach()
        expected = (theirs.float() if name == "bfloat16" else theirs).numpy()
        assert ours[name].dtype == expected.dtype
        assert ours[name].shape == expected.shape
        assert ours[name].tobytes() == expected.tobytes(), name


def test_numbers_of_a_big_endian_machine(torch: Any) -> None:
    """Only the archive says so; the old layout is always little-endian."""
    data = saved({"x": torch.arange(6, dtype=torch.float32)}, torch, zipped=True)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    (order,) = (name for name in parts if name.endswith("/byteorder"))
    (numbers,) = (name for name in parts if "/data/" in name)
    parts[order] = b"big"
    parts[numbers] = np.frombuffer(parts[numbers], "<f4").astype(">f4").tobytes()
    assert (read(packed(parts))["x"] == np.arange(6)).all()


# -- files that mean harm ----------------------------------------------------------------------


def packed(parts: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def archive_of(program: bytes, numbers: bytes = bytes(16)) -> bytes:
    """An archive whose pickle is `program`, with one storage "0"."""
    return packed({"a/data.pkl": program, "a/data/0": numbers})


def legacy_of(program: bytes, keys: Any = ("0",), numbers: bytes = bytes(16)) -> bytes:
    head = b"".join(pickle.dumps(part, 2) for part in (MAGIC, LEGACY_VERSION, {}))
    tail = pickle.dumps(list(keys), 2) + struct.pack("<q", len(numbers) // 4) + numbers
    return head + program + tail


def storage(elements: int = 4, kind: bytes = b"FloatStorage", more: bytes = b"") -> bytes:
    number = b"J" + struct.pack("<i", elements)
    text = b"(X\x07\x00\x00\x00storagectorch\n" + kind
    return text + b"\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu" + number + more + b"tQ"


def tensor(place: bytes, offset: bytes = b"K\x00", shape: bytes = b"K\x04\x85") -> bytes:
    start = b"ctorch._utils\n_rebuild_tensor_v2\n(" + place + offset + shape
    return start + b"K\x01\x85\x89ccollections\nOrderedDict\n)RtR"


def state_dict(value: bytes) -> bytes:
    return b"\x80\x02}X\x01\x00\x00\x00x" + value + b"s."


def test_the_pieces_of_these_tests_are_valid() -> None:
    assert read(archive_of(state_dict(tensor(storage()))))["x"].shape == (4,)
    assert read(legacy_of(state_dict(tensor(storage(more=b"N")))))["x"].shape == (4,)
    part = b"(X\x01\x00\x00\x00vK\x01K\x02t"  # two elements from the second on, as PyTorch 0.3 did
    numbers = np.arange(4, dtype="<f4").tobytes()
    program = state_dict(tensor(storage(more=part), shape=b"K\x02\x85"))
    assert read(legacy_of(program, numbers=numbers))["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("posix", "system"),
        ("builtins", "eval"),
        ("__builtin__", "getattr"),
        ("torch", "load"),
        ("torch.hub", "load"),
        ("torch._utils", "FloatStorage"),
        ("torch", "FloatStorage.__class__"),
        ("collections", "OrderedDict.fromkeys"),
        ("collections", "defaultdict"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("_codecs", "encode"),
    ],
)
def test_names_outside_the_list(module: str, name: str) -> None:
    plain = f"c{module}\n{name}\n".encode()
    stacked = b"".join(b"\x8c" + bytes([len(s)]) + s.encode() for s in (module, name)) + b"\x93"
    for start in (plain, stacked):
        for program in (start + b".", start + b")R.", start + b")\x81.", state_dict(start)):
            for data in (archive_of(b"\x80\x02" + program), legacy_of(b"\x80\x02" + program)):
                with pytest.raises(FormatError, match=rf"tries to run {module}\.{name};.*was run"):
                    read(data)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (state_dict(b"ctorch\nFloatStorage\n)R"), "tries to run torch.FloatStorage"),
        (state_dict(b"ccollections\nOrderedDict\n(K\x01tR"), "with wrong arguments"),
        (state_dict(b"K\x01)R"), "calls something that is not a function"),
        (state_dict(tensor(b"N")), "a tensor has no storage"),
        (state_dict(tensor(storage(5))), "storage 0 has 16 bytes"),
        (state_dict(tensor(storage(2_000_000_000))), "more elements than the file"),
        (state_dict(tensor(storage(-4))), "more elements than the file"),
        (state_dict(tensor(storage(kind=b"DoubleStorage"))), "storage 0 has 16 bytes"),
        (state_dict(tensor(storage(), offset=b"K\x01")), "reaches beyond its storage"),
        (state_dict(tensor(storage(), offset=b"J\xff\xff\xff\xff")), "a tensor has no storage"),
        (state_dict(tensor(storage(), shape=b"K\x04K\x04\x86")), "an invalid shape"),
        (state_dict(tensor(storage(), shape=b"]")), "an invalid shape"),
        (state_dict(tensor(storage()) * 2), "sets items|leaves more|type _Tensor"),
        (state_dict(b"X\x06\x00\x00\x00modulesQ"), "id of a storage has an unknown form"),
        (state_dict(b"h\x07"), "an object 7 that it did not store"),
        (state_dict(b"X\xff\xff\xff\x7f"), "a string of 2,147,483,647 bytes"),
        (state_dict(b"\x8a\xff"), "an integer of 255 bytes"),
        (state_dict(b"]K\x01b"), "sets attributes"),
        (b"\x80\x02}(K\x01\x85K\x01u.", "a key of type tuple"),
        (b"\x80\x02.", "lacks its argument"),
        (b"\x80\x02(.", "lacks its argument"),
        (b"\x80\x02u.", "did not open"),
        (b"\x80\x02K\x01K\x02.", "leaves more than one"),
        (b"\x80\x02}", "ends in the middle"),
        (b"\x80\x02i", "Unsupported instruction b'i'"),
        (b"\x80\x02P0\n.", "Unsupported instruction b'P'"),
        (b"\x80\x02\x82\x01.", r"Unsupported instruction"),
        (b"\x80\x02" + b"N0" * 10, "Unsupported instruction b'0'"),
        (b"\x80\x02N.", "does not hold named tensors"),
        (state_dict(b"N"), "x is not a dense tensor"),
        (
            state_dict(b"ctorch._utils\n_rebuild_sparse_tensor\n)R"),
            r"not a dense tensor.*_rebuild_sparse_tensor",
        ),
    ],
)
def test_programs_that_are_refused(program: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(archive_of(program))


def test_bombs() -> None:
    """Nothing grows: neither in memory nor in time."""
    doubled = b"\x80\x02)" + b"q\x00h\x00\x86" * 60
    for program in (
        doubled + b".",  # 2^60 empty tuples, if one looks
        doubled + b"K\x01}(\x8c\x01xh\x00us.",
        b"\x80\x02" + b"(" * 900_000 + b".",
        b"\x80\x02" + b"]" * 900_000 + b"a" * 899_999 + b".",
        b"\x80\x02" + b"N" * 1_100_000 + b".",
    ):
        for data in (archive_of(program), legacy_of(program)):
            with pytest.raises(FormatError):
                read(data)
    once = tensor(storage())
    many = b"\x80\x02}(" + b"".join(b"\x8c\x08%08d" % i + once for i in range(2000)) + b"u."
    assert len(read(archive_of(many))) == 2000  # tensors share a storage, and stay views
    wide = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage() + b"K\x00J\x00\x00\x00\x7f\x85"
    wide += b"K\x00\x85\x89Nt" + b"R"
    with pytest.raises(FormatError, match=r"bytes, but its tensors claim 8,5\d\d,"):
        read(archive_of(state_dict(wide)))


def test_archives_that_are_refused() -> None:
    good = {"a/data.pkl": state_dict(tensor(storage())), "a/data/0": bytes(16)}
    for parts, message in (
        ({**good, "b/data.pkl": b""}, "2 parts named data.pkl"),
        ({"a/other": b""}, "0 parts named data.pkl"),
        ({"a/data.pkl": good["a/data.pkl"]}, "is damaged"),
        ({**good, "a/data/0": bytes(12)}, "storage 0 has 12 bytes"),
        ({**good, "a/data/0": bytes(20)}, "storage 0 has 20 bytes"),
    ):
        with pytest.raises(FormatError, match=message):
            read(packed(parts))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        for name, data in (*good.items(), ("a/data/0", bytes(16))):
            archive.writestr(name, data)
    with pytest.raises(FormatError, match="two of its parts have the same name"):
        read(file.getvalue())


def test_legacy_files_that_are_refused() -> None:
    program = state_dict(tensor(storage(more=b"N")))
    for data, message in (
        (pickle.dumps(7, 2), "does not begin with the number"),
        (
            b"\x80\x02" + storage(more=b"(NK\0K\4t") + b"." + bytes(16),
            "does not begin with the number",
        ),
        (pickle.dumps(MAGIC, 2) + pickle.dumps(7, 2), "version is not 1001"),
        (legacy_of(program, keys=[]), "does not match the tensors"),
        (legacy_of(program, keys=["0", "1"]), "does not match the tensors"),
        (legacy_of(program, keys=["0", "0"]), "is damaged"),
        (legacy_of(program, keys=[0]), "list of storages is damaged"),
        (legacy_of(program, numbers=bytes(12)), "has 3 elements; expected 4"),
        (legacy_of(program)[:-1], "is truncated"),
    ):
        with pytest.raises(FormatError, match=message):
            read(data)


DATA = FILES[0].read_bytes()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.binary(min_size=0, max_size=6), st.integers(0, 8)),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_mutated_files(changes: list[tuple[int, bytes, int]], zipped: bool) -> None:
    """Whatever the bytes are: arrays, or a `FormatError`."""
    program = bytearray(state_dict(tensor(storage())) if zipped else DATA)
    for place, new, removed in changes:
        start = place % (len(program) + 1)
        program[start : start + removed] = new
    try:
        found = read(archive_of(bytes(program)) if zipped else bytes(program))
    except FormatError:
        return
    assert all(isinstance(array, np.ndarray) for array in found.values())
