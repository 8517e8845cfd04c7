"""The hub: what is asked of huggingface_hub (a stub of it, always), and the real package against
a hub on the loopback interface (where it is installed)."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import GOLDEN
from tests.fetch.site import Site

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.errors import ElmoError, FormatError, InputError, MissingExtra, ModelNotFound
from elmokit.fetch import download_from_hub, push_to_hub, resolve_model
from elmokit.fetch.hub import MODEL_CARD

PLAIN = GOLDEN / "models" / "plain"
BIG = ("model.safetensors", "weights.hdf5", "vocab.txt", "settled.safetensors")


class StubHub:
    """As much of huggingface_hub as is used, over repositories that are folders."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.snapshots: list[dict[str, Any]] = []
        self.commits: list[dict[str, Any]] = []
        self.created: list[dict[str, Any]] = []
        self.fails: Exception | None = None
        self.token: str | None = None

    def repository(self, name: str) -> Path:
        path = self.root / "there" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def snapshot_download(self, name: str, **asked: Any) -> str:
        self.snapshots.append({"name": name, **asked})
        if self.fails:
            raise self.fails
        here = self.root / "here" / name / (asked["revision"] or "main")
        if asked["local_files_only"]:
            if not here.exists():
                raise self.errors.LocalEntryNotFoundError("nothing cached")
            return str(here)
        if not (self.root / "there" / name).exists():
            raise self.errors.RepositoryNotFoundError("404 Client Error\nmore")
        here.mkdir(parents=True, exist_ok=True)
        for file in self.repository(name).rglob("*"):
            path = file.relative_to(self.repository(name)).as_posix()
            wanted = any(fnmatch.fnmatch(path, p) for p in asked["allow_patterns"])
            if wanted and not any(fnmatch.fnmatch(path, p) for p in asked["ignore_patterns"]):
                (here / path).parent.mkdir(exist_ok=True)
                (here / path).write_bytes(file.read_bytes())
        return str(here)

    def module(self) -> types.ModuleType:
        stub, hub = self, types.ModuleType("huggingface_hub")

        class HfHubHTTPError(OSError): ...

        class EntryNotFoundError(Exception): ...

        errors: Any = types.ModuleType("huggingface_hub.errors")
        errors.HfHubHTTPError = HfHubHTTPError
        errors.EntryNotFoundError = EntryNotFoundError
        errors.HFValidationError = type("HFValidationError", (ValueError,), {})
        for name in ("RepositoryNotFoundError", "RevisionNotFoundError"):
            setattr(errors, name, type(name, (HfHubHTTPError,), {}))
        errors.GatedRepoError = type("GatedRepoError", (errors.RepositoryNotFoundError,), {})
        errors.LocalEntryNotFoundError = type(
            "LocalEntryNotFoundError", (FileNotFoundError, EntryNotFoundError), {}
        )
        self.errors = errors

        class HfApi:
            def __init__(self, token: str | None, **_: Any) -> None:
                stub.token = token

            def create_repo(self, name: str, **asked: Any) -> str:
                if stub.fails:
                    raise stub.fails
                stub.created.append({"name": name, **asked})
                stub.repository(name)
                return f"https://hub.invalid/{name}"

            def list_repo_files(self, name: str) -> list[str]:
                return os.listdir(stub.repository(name))

            def create_commit(self, name: str, *, operations: list[Any], **asked: Any) -> None:
                stub.commits.append({"name": name, "operations": operations, **asked})
                for operation in operations:
                    target = stub.repository(name) / operation.path_in_repo
                    if not hasattr(operation, "path_or_fileobj"):
                        target.unlink()
                        continue
                    given = operation.path_or_fileobj
                    target.write_bytes(
                        given if isinstance(given, bytes) else Path(given).read_bytes()
                    )

        class CommitOperationAdd:
            def __init__(self, path_in_repo: str, path_or_fileobj: str | bytes) -> None:
                self.path_in_repo, self.path_or_fileobj = path_in_repo, path_or_fileobj

        class CommitOperationDelete:
            def __init__(self, path_in_repo: str) -> None:
                self.path_in_repo = path_in_repo

        for thing in (HfApi, CommitOperationAdd, CommitOperationDelete):
            setattr(hub, thing.__name__, thing)
        hub.snapshot_download = self.snapshot_download  # type: ignore[attr-defined]
        hub.errors = errors  # type: ignore[attr-defined]
        return hub


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StubHub:
    hub = StubHub(tmp_path / "hub")
    module = hub.module()
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    monkeypatch.setitem(sys.modules, "huggingface_hub.errors", hub.errors)
    return hub


def fill(folder: Path, pair: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if pair:
        for name in ("options.json", "weights.hdf5"):
            (folder / name).write_bytes((PLAIN / name).read_bytes())
    (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    (folder / "README.md").write_bytes(b"a card")


def add_to_manifest(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    sha256 = hashlib.sha256(content).hexdigest()
    manifest["files"][name] = {"bytes": len(content), "sha256": sha256}
    (folder / "manifest.json").write_text(json.dumps(manifest))


# -- from the hub ------------------------------------------------------------------------------


def test_a_pair(stub: StubHub) -> None:
    fill(stub.repository("me/elmo"))
    path = resolve_model("me/elmo")
    assert sorted(os.listdir(path)) == ["options.json", "weights.hdf5"]
    assert formats.read(path).fingerprint == formats.read(PLAIN).fingerprint


def test_our_own_format(stub: StubHub, bilm: BiLM) -> None:
    fill(stub.repository("me/elmo"))  # both: ours is preferred, the other stays there
    formats.write(bilm, stub.repository("me/elmo"))
    path = resolve_model("me/elmo")
    assert "weights.hdf5" not in os.listdir(path)
    assert formats.read(path).fingerprint == bilm.fingerprint


def test_our_own_format_may_grow(stub: StubHub, bilm: BiLM, tmp_path: Path) -> None:
    """What the manifest lists is what a model has, there and back."""
    formats.write(bilm, tmp_path / "m")
    add_to_manifest(tmp_path / "m", "later.json", b"[]")
    push_to_hub(tmp_path / "m", "me/elmo")
    assert (resolve_model("me/elmo") / "later.json").read_bytes() == b"[]"


def test_a_manifest_cannot_ask_for_more(stub: StubHub, bilm: BiLM) -> None:
    there = stub.repository("me/elmo")
    formats.write(bilm, there)
    manifest = json.loads((there / "manifest.json").read_text())
    manifest["files"]["*.json"] = {"bytes": 1, "sha256": ""}
    (there / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FormatError, match=r"the manifest of me/elmo on the hub lists '\*\.json'"):
        resolve_model("me/elmo")


def test_folders_in_the_repository_stay_there(stub: StubHub) -> None:
    fill(stub.repository("me/elmo"))
    old = stub.repository("me/elmo") / "old"
    old.mkdir()
    for name in ("x_options.json", "x_weights.hdf5"):
        (old / name).write_bytes(b"of another model")
    assert sorted(os.listdir(resolve_model("me/elmo"))) == ["options.json", "weights.hdf5"]


@pytest.mark.parametrize(
    ("asked", "revision"),
    [
        ("me/elmo@v1.0", "v1.0"),
        ("hf://me/elmo", None),
        ("https://huggingface.co/me/elmo", None),
        ("https://huggingface.co/me/elmo/tree/refs/pr/1/", "refs/pr/1"),
    ],
)
def test_the_revision(stub: StubHub, asked: str, revision: str | None) -> None:
    fill(stub.repository("me/elmo"))
    resolve_model(asked)
    assert {s["revision"] for s in stub.snapshots} == {revision}
    assert {s["name"] for s in stub.snapshots} == {"me/elmo"}


def test_of_another_model_no_weights_are_downloaded(stub: StubHub) -> None:
    other = stub.repository("google/bert")
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (other / name).write_bytes(b"{}")
    with pytest.raises(
        ModelNotFound, match=r"google/bert on the hub is not an ELMo model.*manifest\.json"
    ):
        resolve_model("google/bert")
    asked = {pattern for s in stub.snapshots for pattern in s["allow_patterns"]}
    assert not asked & set(BIG)


def test_a_pair_without_weights(stub: StubHub) -> None:
    fill(stub.repository("me/elmo"))
    (stub.repository("me/elmo") / "weights.hdf5").unlink()
    with pytest.raises(FormatError, match="me/elmo on the hub: no model"):
        resolve_model("me/elmo")


@pytest.mark.parametrize("how", ["argument", "ELMOKIT_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline(stub: StubHub, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    fill(stub.repository("me/elmo"))
    if how != "argument":
        monkeypatch.setenv(how, "1")
    only = how == "argument"
    with pytest.raises(ModelNotFound, match="not in the hub's cache"):
        resolve_model("me/elmo", local_files_only=only)
    assert all(s["local_files_only"] for s in stub.snapshots)
    if how != "argument":
        monkeypatch.delenv(how)
    resolve_model("me/elmo")
    stub.snapshots.clear()
    if how != "argument":
        monkeypatch.setenv(how, "1")
    formats.read(resolve_model("me/elmo", local_files_only=only))
    assert stub.snapshots and all(s["local_files_only"] for s in stub.snapshots)


def test_offline_with_half_a_model(stub: StubHub) -> None:
    here = stub.root / "here" / "me" / "elmo" / "main"
    here.mkdir(parents=True)
    (here / "options.json").write_bytes((PLAIN / "options.json").read_bytes())
    with pytest.raises(ModelNotFound, match="not in the hub's cache"):
        download_from_hub("me/elmo", local_files_only=True)


@pytest.mark.parametrize(
    ("kind", "expected", "words"),
    [
        ("RepositoryNotFoundError", ModelNotFound, "there is no me/elmo on the hub"),
        ("GatedRepoError", ModelNotFound, "conditions"),
        ("RevisionNotFoundError", ModelNotFound, "no revision 'v9'"),
        ("LocalEntryNotFoundError", ModelNotFound, "cannot be reached"),
        ("HfHubHTTPError", ElmoError, "refused the request for me/elmo@v9: 500 Server Error$"),
        ("HFValidationError", InputError, "expected owner/name"),
    ],
)
def test_errors_of_the_package(
    stub: StubHub, kind: str, expected: type[Exception], words: str
) -> None:
    stub.fails = getattr(stub.errors, kind)("500 Server Error\nlong story")
    with pytest.raises(expected, match=words):
        download_from_hub("me/elmo", "v9")


def test_no_connection(stub: StubHub) -> None:
    stub.fails = type("ConnectError", (Exception,), {})("refused")  # as httpx has it
    with pytest.raises(ModelNotFound, match="the hub cannot be reached: refused"):
        download_from_hub("me/elmo")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"pip install 'elmokit\[hub\]'"):
        resolve_model("me/elmo")
    with pytest.raises(MissingExtra, match=r"pip install 'elmokit\[hub\]'"):
        push_to_hub(PLAIN, "me/elmo")


def test_importing_loads_no_hub() -> None:
    code = (
        "import sys, elmokit.fetch; print('huggingface_hub' in sys.modules, 'rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# -- to the hub --------------------------------------------------------------------------------


def test_there_and_back(stub: StubHub, bilm: BiLM, tmp_path: Path) -> None:
    files = formats.write(bilm, tmp_path / "model")
    page = push_to_hub(
        tmp_path / "model", "me/new", private=True, token="t", language="en", license="mit"
    )
    assert page == "https://hub.invalid/me/new"
    assert stub.token == "t"
    assert stub.created == [
        {"name": "me/new", "private": True, "repo_type": "model", "exist_ok": True}
    ]
    (commit,) = stub.commits
    assert bilm.fingerprint[:12] in commit["commit_message"]
    there = stub.repository("me/new")
    assert set(os.listdir(there)) == {MODEL_CARD, *(file.name for file in files)}
    assert bilm.fingerprint in (there / MODEL_CARD).read_text()
    assert formats.read(resolve_model("me/new")).fingerprint == bilm.fingerprint


@pytest.mark.parametrize("given", ["directory", "file", "files"])
def test_a_pair_is_pushed(stub: StubHub, tmp_path: Path, given: str) -> None:
    fill(tmp_path / "m")
    (tmp_path / "m" / "README.md").unlink()
    (tmp_path / "m" / "config.json").write_bytes(b"of something else")
    what: Any = {
        "directory": str(tmp_path / "m"),
        "file": tmp_path / "m" / "weights.hdf5",
        "files": [tmp_path / "m" / "options.json", tmp_path / "m" / "weights.hdf5"],
    }[given]
    push_to_hub(what, "me/new", commit_message="mine")
    assert stub.commits[0]["commit_message"] == "mine"
    there = sorted(os.listdir(stub.repository("me/new")))
    assert there == [MODEL_CARD, "options.json", "weights.hdf5"]  # and no other file of the folder


def test_cards(stub: StubHub, bilm: BiLM, tmp_path: Path) -> None:
    formats.write(bilm, tmp_path / "model")
    card = stub.repository("me/new") / MODEL_CARD
    push_to_hub(tmp_path / "model", "me/new")
    made = card.read_text()
    card.write_text(made + "\nedited on the hub\n")
    push_to_hub(tmp_path / "model", "me/new")
    assert "edited on the hub" in card.read_text()  # stays
    (tmp_path / "model" / MODEL_CARD).write_text("beside the model")
    push_to_hub(tmp_path / "model", "me/new")
    assert card.read_text() == "beside the model"
    push_to_hub(tmp_path / "model", "me/new", card="given")
    assert card.read_text() == "given"


def test_files_of_an_older_model_go(stub: StubHub, bilm: BiLM, tmp_path: Path) -> None:
    there = stub.repository("me/new")
    for name in ("vocab.txt", "settled.safetensors", "notes.md"):
        (there / name).write_text("old")
    names = {file.name for file in formats.write(bilm, tmp_path / "model")}
    push_to_hub(tmp_path / "model", "me/new")
    assert set(os.listdir(there)) == {MODEL_CARD, "notes.md", *names}


def test_what_cannot_be_read_is_not_pushed(stub: StubHub, bilm: BiLM, tmp_path: Path) -> None:
    formats.write(bilm, tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(FormatError):
        push_to_hub(tmp_path / "model", "me/new")
    assert not stub.created


def test_archives_are_not_pushed(stub: StubHub, bilm: BiLM, tmp_path: Path) -> None:
    formats.write(bilm, tmp_path / "m.zip")
    with pytest.raises(InputError, match=r"in an archive.*elmo convert"):
        push_to_hub(tmp_path / "m.zip", "me/new")
    with pytest.raises(InputError, match="one directory"):
        push_to_hub([tmp_path / "a" / "options.json", tmp_path / "b" / "weights.hdf5"], "me/new")


def test_a_push_that_is_refused(stub: StubHub) -> None:
    stub.fails = stub.errors.HfHubHTTPError("403 Forbidden: no rights\nmore")
    with pytest.raises(
        ElmoError, match=r"the hub refused the request for me/new: 403 Forbidden: no rights$"
    ):
        push_to_hub(PLAIN, "me/new")


# -- the real package, against a hub on the loopback interface -----------------------------------

needs_package = pytest.mark.skipif(
    importlib.util.find_spec("huggingface_hub") is None,
    reason="huggingface_hub is not installed: pip install 'elmokit[hub]'",
)
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def host(site: Site, name: str, files: dict[str, bytes]) -> None:
    """The few answers of the hub that a download needs."""
    info = {
        "_id": "1",
        "id": name,
        "modelId": name,
        "sha": COMMIT,
        "private": False,
        "siblings": [{"rfilename": file} for file in files],
    }
    tree = [
        {"type": "file", "path": path, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}
        for path, body in files.items()
    ]
    for revision in ("main", COMMIT):
        body = json.dumps(info).encode()
        site.put(f"/api/models/{name}/revision/{revision}", body, kind="application/json")
        body = json.dumps(tree).encode()
        site.put(f"/api/models/{name}/tree/{revision}", body, kind="application/json")
        for path, content in files.items():
            headers = {"X-Repo-Commit": COMMIT, "X-Linked-Size": str(len(content))}
            site.put(f"/{name}/resolve/{revision}/{path}", content, headers=headers)


def run(
    site: Site, tmp_path: Path, code: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since the package reads its environment when it is imported."""
    return subprocess.run(
        [sys.executable, "-c", f"from elmokit.fetch import resolve_model\n{code}"],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "HF_ENDPOINT": site.address,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            **environment,
        },
    )


@needs_package
def test_the_real_package(site: Site, tmp_path: Path) -> None:
    files = {name: (PLAIN / name).read_bytes() for name in ("options.json", "weights.hdf5")}
    host(site, "me/elmo", {**files, "pytorch_model.bin": b"x" * 1000, "sub/weights.hdf5": b"x"})
    done = run(site, tmp_path, "print(resolve_model('me/elmo'))")
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip())
    assert sorted(os.listdir(path)) == ["options.json", "weights.hdf5"]
    assert formats.read(path).fingerprint == formats.read(PLAIN).fingerprint
    assert not [r for r in site.requests if "pytorch_model" in r.path or "sub/" in r.path]

    asked = len(site.requests)
    done = run(site, tmp_path, "print(resolve_model('me/elmo', local_files_only=True))")
    assert (done.stdout.strip(), len(site.requests)) == (str(path), asked), done.stderr
    done = run(site, tmp_path, "print(resolve_model('me/elmo'))", HF_HUB_OFFLINE="1")
    assert (done.stdout.strip(), len(site.requests)) == (str(path), asked), done.stderr


@needs_package
def test_the_real_package_with_our_format(site: Site, bilm: BiLM, tmp_path: Path) -> None:
    files = {file.name: file.read_bytes() for file in formats.write(bilm, tmp_path / "m")}
    host(site, "me/ours", files)
    done = run(site, tmp_path, f"print(resolve_model('me/ours@{COMMIT}'))")
    assert done.returncode == 0, done.stderr
    assert formats.read(Path(done.stdout.strip())).fingerprint == bilm.fingerprint


@needs_package
def test_the_real_package_pushes(site: Site, bilm: BiLM, tmp_path: Path) -> None:
    names = [file.name for file in formats.write(bilm, tmp_path / "m")]
    modes = [
        {"path": name, "uploadMode": "regular", "shouldIgnore": False, "oid": None}
        for name in (*names, MODEL_CARD)
    ]
    host(site, "me/new", {"vocab.txt": b"old"})
    for path, answer in {
        "/api/repos/create": {"url": site.address + "/me/new", "id": "me/new", "name": "me/new"},
        "/api/validate-yaml": {"errors": [], "warnings": []},
        "/api/models/me/new/preupload/main": {"files": modes},
        "/api/models/me/new/commit/main": {
            "success": True,
            "commitOid": COMMIT,
            "commitUrl": f"{site.address}/me/new/commit/{COMMIT}",
        },
    }.items():
        site.put(path, json.dumps(answer).encode(), kind="application/json")
    code = f"""
from elmokit.fetch import push_to_hub
print(push_to_hub({str(tmp_path / "m")!r}, "me/new", token="hf_x", private=True, license="mit"))
"""
    done = run(site, tmp_path, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == site.address + "/me/new"
    assert b"private" in site.asked("/api/repos/create")[0].body  # newer: "visibility"
    (commit,) = site.asked("/api/models/me/new/commit/main")
    assert commit.headers["Authorization"] == "Bearer hf_x"
    lines = [json.loads(line) for line in commit.body.splitlines()]
    files = {
        line["value"]["path"]: base64.b64decode(line["value"]["content"])
        for line in lines
        if line["key"] == "file"
    }
    assert set(files) == {*names, MODEL_CARD}
    assert files["model.safetensors"] == (tmp_path / "m" / "model.safetensors").read_bytes()
    assert bilm.fingerprint.encode() in files[MODEL_CARD]
    assert [line["value"]["path"] for line in lines if line["key"] == "deletedFile"] == [
        "vocab.txt"
    ]


@needs_package
def test_the_errors_of_the_real_package(site: Site, tmp_path: Path) -> None:
    missing = {"X-Error-Code": "RepoNotFound"}
    site.put("/api/models/me/none/revision/main", b"{}", status=404, headers=missing)
    code = """
from elmokit.errors import ElmoError
for name, only in (('me/none', False), ('me/none', True), ('me/..none', False)):
    try:
        resolve_model(name, local_files_only=only)
    except ElmoError as error:
        print(type(error).__name__, error)
"""
    lines = run(site, tmp_path, code).stdout.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("ModelNotFound there is no me/none on the hub")
    assert lines[1].startswith("ModelNotFound me/none is not in the hub's cache")
    assert lines[2].startswith("ModelNotFound no model at 'me/..none'")
    site.address = "http://127.0.0.1:9"
    (line,) = run(site, tmp_path, code).stdout.splitlines()[:1]
    assert line.startswith("ModelNotFound me/none is not on this disk, and the hub cannot be")
