"""From a name to a path: words of the table, addresses, what is not there, and offline."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from tests.conftest import GOLDEN
from tests.fetch.site import Site

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.errors import ElmoError, FormatError, InputError, ModelNotFound
from elmokit.fetch import cache as cache_module
from elmokit.fetch import published, resolve_model
from elmokit.fetch.published import PublishedModel, RemoteFile

PLAIN = GOLDEN / "models" / "plain"
OPTIONS = (PLAIN / "options.json").read_bytes()
WEIGHTS = (PLAIN / "weights.hdf5").read_bytes()
DAMAGED = WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1])


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("options.json"), OPTIONS)  # of a fixed date
        archive.writestr(zipfile.ZipInfo("model.hdf5"), WEIGHTS)
    return out.getvalue()


@pytest.fixture
def tiny(site: Site, monkeypatch: pytest.MonkeyPatch) -> PublishedModel:
    """A published pair, whose weights have a known checksum."""
    sha = hashlib.sha256(WEIGHTS).hexdigest()
    files = (
        RemoteFile("tiny_options.json", (site.put("/tiny_options.json", OPTIONS),)),
        RemoteFile(
            "tiny_weights.hdf5",
            (site.address + "/gone", site.put("/tiny_weights.hdf5", WEIGHTS)),
            len(WEIGHTS),
            sha,
        ),
    )
    model = PublishedModel("tiny", "a test", "en", files, "here", "http://page.invalid")
    monkeypatch.setitem(published._BY_NAME, "tiny", model)
    return model


# -- words -------------------------------------------------------------------------------------


def test_a_word_is_downloaded_once(site: Site, tiny: PublishedModel, cache: Path) -> None:
    path = resolve_model("tiny")
    assert path == cache / "tiny"
    assert formats.detect_format(path).weights == "tiny_weights.hdf5"
    formats.read(path)
    asked = len(site.requests)
    assert resolve_model("Tiny") == path
    assert len(site.requests) == asked == 3  # options, the address that has nothing, weights


def test_its_record_holds_sizes_and_checksums(tiny: PublishedModel, cache: Path) -> None:
    record = json.loads((resolve_model("tiny") / "downloaded.json").read_text())
    assert record["files"]["tiny_options.json"]["sha256"] == hashlib.sha256(OPTIONS).hexdigest()
    assert record["files"]["tiny_weights.hdf5"]["bytes"] == len(WEIGHTS)
    assert record["files"]["tiny_weights.hdf5"]["address"].endswith("/tiny_weights.hdf5")


def test_an_interrupted_pair_is_completed(site: Site, tiny: PublishedModel, cache: Path) -> None:
    site.pages["/tiny_weights.hdf5"].status = 404
    with pytest.raises(ModelNotFound, match=r"the model 'tiny'.*not found.*http://page\.invalid"):
        resolve_model("tiny")
    with pytest.raises(ModelNotFound, match=r"tiny_weights\.hdf5 missing"):
        resolve_model("tiny", local_files_only=True)
    site.pages["/tiny_weights.hdf5"].status = 200
    formats.read(resolve_model("tiny"))
    assert len(site.asked("/tiny_options.json")) == 1


def test_killed_before_the_last_step_leaves_nothing(
    site: Site, tiny: PublishedModel, cache: Path
) -> None:
    """The note about a part outlives it, if the process dies between the two."""
    folder = resolve_model("tiny")
    names = set(os.listdir(folder))
    (folder / "downloaded.json").unlink()
    (folder / "tiny_weights.hdf5.part.json").write_text("{}")
    assert resolve_model("tiny") == folder
    assert set(os.listdir(folder)) == names


def test_a_wrong_checksum_is_never_taken_for_good(
    site: Site, tiny: PublishedModel, cache: Path
) -> None:
    site.pages["/tiny_weights.hdf5"].body = DAMAGED
    for _ in range(2):
        with pytest.raises(FormatError, match="checksum"):
            resolve_model("tiny")
    assert set(os.listdir(cache / "tiny")) == {".lock", "tiny_options.json"}


def test_a_file_that_was_damaged_on_disk_is_downloaded_again(
    site: Site, tiny: PublishedModel, cache: Path
) -> None:
    weights = resolve_model("tiny") / "tiny_weights.hdf5"
    weights.write_bytes(DAMAGED)
    with pytest.raises(ModelNotFound, match=r"incomplete or damaged.*local_files_only"):
        resolve_model("tiny", local_files_only=True)
    resolve_model("tiny")
    assert weights.read_bytes() == WEIGHTS
    assert len(site.asked("/tiny_options.json")) == 1


def test_the_first_download_sets_the_checksum(
    site: Site, tiny: PublishedModel, cache: Path
) -> None:
    (resolve_model("tiny") / "tiny_options.json").unlink()
    site.pages["/tiny_options.json"].body = OPTIONS + b"\n"
    with pytest.raises(
        FormatError,
        match=r"different when it was first downloaded; to accept the new one, delete .*tiny",
    ):
        resolve_model("tiny")
    site.pages["/tiny_options.json"].body = OPTIONS
    assert (resolve_model("tiny") / "tiny_options.json").read_bytes() == OPTIONS


def test_files_put_there_by_hand_are_taken(site: Site, tiny: PublishedModel, cache: Path) -> None:
    (cache / "tiny").mkdir(parents=True)
    (cache / "tiny" / "tiny_options.json").write_bytes(OPTIONS)
    (cache / "tiny" / "tiny_weights.hdf5").write_bytes(WEIGHTS)
    formats.read(resolve_model("tiny"))
    assert not site.requests


@pytest.mark.parametrize("record", [b"", b"[]", b'{"format": "elmokit-download", "version": 1}'])
def test_a_broken_record_is_made_anew(
    site: Site, tiny: PublishedModel, cache: Path, record: bytes
) -> None:
    path = resolve_model("tiny")
    asked = len(site.requests)
    (path / "downloaded.json").write_bytes(record)
    resolve_model("tiny")
    assert cache_module.read_record(path)
    assert len(site.requests) == asked


def test_a_record_cannot_name_files_elsewhere(tiny: PublishedModel, cache: Path) -> None:
    path = resolve_model("tiny")
    record = json.loads((path / "downloaded.json").read_text())
    record["files"]["../outside"] = record["files"]["tiny_options.json"]
    (path / "downloaded.json").write_text(json.dumps(record))
    assert cache_module.read_record(path) is None


def test_a_complete_folder_needs_no_writing(tiny: PublishedModel, cache: Path) -> None:
    path = resolve_model("tiny")
    (path / ".lock").unlink()
    resolve_model("tiny")
    assert not (path / ".lock").exists()


def test_two_threads_download_once(site: Site, tiny: PublishedModel) -> None:
    gate = threading.Event()
    site.pages["/tiny_options.json"].gate = gate
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(resolve_model("tiny"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(20)
    assert len(found) == 4 and len(set(found)) == 1
    assert len(site.asked("/tiny_weights.hdf5")) == len(site.asked("/tiny_options.json")) == 1


def test_two_processes_download_once(site: Site, cache: Path) -> None:
    gate = threading.Event()
    address = site.put("/models/m.zip", zipped(), gate=gate)
    code = (
        f"from elmokit.fetch import resolve_model; print(resolve_model({address!r}, progress=None))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    while not site.requests:
        assert running[0].poll() is None
    threading.Timer(0.5, gate.set).start()  # the other has time to find the lock
    paths = {process.communicate(timeout=60)[0].strip() for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert len(paths) == 1 and Path(paths.pop()).read_bytes() == zipped()
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("smal", "small"), ("orginal-5.5b", "original-5.5B"), ("Builtin", "builtin")],
)
def test_an_unknown_word(asked: str, meant: str) -> None:
    with pytest.raises(ModelNotFound) as caught:
        resolve_model(asked)
    message = str(caught.value)
    assert f"did you mean {meant!r}?" in message
    assert "small, medium, original, original-5.5B, pubmed" in message
    assert "manylangs-XX (44 languages)" in message


def test_an_unknown_word_that_resembles_nothing() -> None:
    with pytest.raises(
        ModelNotFound, match=r"no model 'zzzz'.*published model\. Published models are small"
    ):
        resolve_model("zzzz")


@pytest.mark.parametrize(
    "path", ["./small", "/no/such/model", "models/my.hdf5", "a/b/c", "C:\\models", "weights.hdf5"]
)
def test_a_path_that_does_not_exist(path: str) -> None:
    with pytest.raises(ModelNotFound, match="no such file or directory"):
        resolve_model(path)


@pytest.mark.parametrize("address", ["s3://bucket/model.zip", "file:///etc/passwd", "FTP://h/x"])
def test_other_schemes(address: str) -> None:
    with pytest.raises(InputError, match="not supported; expected http or https"):
        resolve_model(address)


def test_a_name_is_a_string() -> None:
    with pytest.raises(InputError, match="expected a string"):
        resolve_model(Path("small"))  # type: ignore[arg-type]


# -- offline -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_offline_touches_no_network(
    site: Site, tiny: PublishedModel, cache: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("ELMOKIT_OFFLINE", "1" if how == "environment" else "0")
    only = how == "argument"
    with pytest.raises(ModelNotFound) as caught:
        resolve_model("tiny", local_files_only=only)
    message = str(caught.value)
    assert "tiny_options.json, tiny_weights.hdf5 missing" in message and str(cache) in message
    assert ("local_files_only" if only else "ELMOKIT_OFFLINE") in message
    assert tiny.files[0].addresses[0] in message
    assert not site.requests and not cache.exists()

    monkeypatch.delenv("ELMOKIT_OFFLINE")
    resolve_model("tiny")
    asked = len(site.requests)
    monkeypatch.setenv("ELMOKIT_OFFLINE", "1" if how == "environment" else "0")
    formats.read(resolve_model("tiny", local_files_only=only))
    assert len(site.requests) == asked


# -- where the cache is ------------------------------------------------------------------------


def test_the_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("ELMOKIT_CACHE", "~/mine")
    assert cache_module.models_root() == tmp_path / "mine" / "models"
    monkeypatch.delenv("ELMOKIT_CACHE")
    assert cache_module.models_root() == tmp_path / "xdg" / "elmokit" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache_module.models_root() == tmp_path / ".cache" / "elmokit" / "models"


def test_a_cache_that_cannot_be_made(
    tiny: PublishedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "file"))
    with pytest.raises(ElmoError, match="ELMOKIT_CACHE"):
        resolve_model("tiny")


# -- addresses ---------------------------------------------------------------------------------


def test_a_zip_stays_a_zip(site: Site, cache: Path) -> None:
    path = resolve_model(site.put("/repository/145.zip", zipped()) + "?download=1#top")
    assert path.name == "145.zip" and path.parent.parent == cache
    assert set(os.listdir(path.parent)) == {".lock", "145.zip", "downloaded.json"}
    formats.read(path)
    assert site.requests[0].path == "/repository/145.zip?download=1"


def test_two_addresses_never_share_a_folder(site: Site) -> None:
    one = site.put("/a-b/m.zip", zipped())
    two = site.put("/a/b-m.zip", zipped())
    three = one + "?v=2"
    assert len({resolve_model(address).parent for address in (one, two, three)}) == 3


@pytest.mark.parametrize(
    ("named", "served"),
    [
        ("x_weights.hdf5", {"x_options.json", "x_weights.hdf5"}),
        ("x_options.json", {"x_options.json", "x_weights.hdf5", "x_vocab.txt"}),
        ("x_weights_PubMed_only.hdf5", {"x_options.json", "x_weights_PubMed_only.hdf5"}),
        ("elmo_pt_weights_dgx1.hdf5", {"options.json", "elmo_pt_weights_dgx1.hdf5"}),
        ("options.json", {"options.json", "weights.hdf5", "vocab.txt"}),
        ("options.json", {"options.json", "lm_weights.hdf5"}),
        ("weights.hdf5", {"options.json", "weights.hdf5"}),
        ("", {"options.json", "model.hdf5", "vocab.txt"}),
    ],
)
def test_a_pair_by_either_name(site: Site, named: str, served: set[str]) -> None:
    contents = {"n": OPTIONS, "5": WEIGHTS, "t": b"<S>\n</S>\n<UNK>\nbank\n"}
    for name in served:
        site.put(f"/m/{name}", contents[name[-1]])
    address = f"{site.address}/m/{named}"
    path = resolve_model(address)
    bilm = formats.read(path)
    assert (bilm.vocabulary is not None) == any("vocab" in name for name in served)
    asked = len(site.requests)
    assert resolve_model(address, local_files_only=True) == path
    assert len(site.requests) == asked


@pytest.mark.parametrize("named", ["", "manifest.json", "model.safetensors", "config.json"])
def test_our_own_format(site: Site, bilm: BiLM, tmp_path: Path, named: str) -> None:
    for file in formats.write(bilm, tmp_path / "model"):
        site.put(f"/m/{file.name}", file.read_bytes())
    address = f"{site.address}/m/{named}"
    assert formats.read(resolve_model(address)).fingerprint == bilm.fingerprint
    assert (
        formats.read(resolve_model(address, local_files_only=True)).fingerprint == bilm.fingerprint
    )


def test_our_own_format_may_grow(site: Site) -> None:
    sha256 = hashlib.sha256(b"[]").hexdigest()
    files = {"characters.json": {"bytes": 2, "sha256": sha256}}
    site.put("/m/manifest.json", json.dumps({"files": files}).encode())
    site.put("/m/characters.json", b"[]")
    assert (resolve_model(site.address + "/m") / "characters.json").read_bytes() == b"[]"


def test_our_own_format_is_checked_against_its_manifest(
    site: Site, bilm: BiLM, tmp_path: Path
) -> None:
    for file in formats.write(bilm, tmp_path / "model"):
        site.put(f"/m/{file.name}", file.read_bytes())
    body = site.pages["/m/model.safetensors"].body
    site.pages["/m/model.safetensors"].body = body[:-1] + bytes([body[-1] ^ 1])
    with pytest.raises(FormatError, match="checksum"):
        resolve_model(site.address + "/m/")


@pytest.mark.parametrize(
    "manifest", [b"[1]", b"{}", b"no", b'{"files": {"../../x": {"bytes": 1, "sha256": "0"}}}']
)
def test_a_strange_manifest(site: Site, cache: Path, manifest: bytes) -> None:
    site.put("/m/manifest.json", manifest, kind="application/json")
    with pytest.raises(FormatError, match="manifest"):
        resolve_model(site.address + "/m/manifest.json")
    assert len(site.requests) == 1


def test_a_directory_without_a_model(site: Site) -> None:
    with pytest.raises(ModelNotFound, match=r"options\.json.*not found"):
        resolve_model(site.address + "/nothing/here")


def test_a_site_that_answers_everything_with_a_page(site: Site) -> None:
    for name in ("manifest.json", "options.json"):
        site.put(f"/m/{name}", b"<html>Not found", kind="text/html")
    with pytest.raises(FormatError, match=r"the server sent a web page instead of options\.json"):
        resolve_model(site.address + "/m")


@pytest.mark.parametrize("name", ["model.tar.bz2", "weights.th", "encoder.pkl"])
def test_what_is_not_downloaded(site: Site, name: str) -> None:
    with pytest.raises(InputError, match="unpack it"):
        resolve_model(f"{site.address}/{name}")
    assert not site.requests


def test_an_address_with_a_password(site: Site) -> None:
    with pytest.raises(InputError, match="without user name") as caught:
        resolve_model("https://me:secret@127.0.0.1/m.zip")
    assert "secret" not in str(caught.value)


def test_a_missing_partner_is_named(site: Site) -> None:
    address = site.put("/m/x_weights.hdf5", WEIGHTS)
    with pytest.raises(ModelNotFound) as caught:
        resolve_model(address)
    assert "/m/x_options.json: not found" in str(caught.value)
    assert "/m/options.json: not found" in str(caught.value)
    assert not site.asked("/m/x_weights.hdf5")  # the large file is not downloaded in vain


# -- progress ----------------------------------------------------------------------------------


def test_a_function_is_told(site: Site, tiny: PublishedModel) -> None:
    told: list[tuple[str, int, int | None]] = []
    resolve_model("tiny", progress=lambda *step: told.append(step))
    assert ("tiny_weights.hdf5", len(WEIGHTS), len(WEIGHTS)) in told


def test_a_bar_only_on_a_terminal(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resolve_model(site.put("/one.zip", zipped()))
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    resolve_model(site.put("/two.zip", zipped()))
    out, err = capsys.readouterr()
    assert out == "" and "two.zip" in err
    resolve_model(site.put("/three.zip", zipped()), progress=None)
    assert capsys.readouterr() == ("", "")
