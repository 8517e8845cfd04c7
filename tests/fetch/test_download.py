"""One file from the network: whole, resumed, changed, damaged, absent."""

from __future__ import annotations

import errno
import hashlib
import os
import random
from collections import namedtuple
from pathlib import Path

import pytest
from tests.fetch.site import Site

from elmokit.errors import ElmoError, FormatError, ModelNotFound
from elmokit.fetch import download as module
from elmokit.fetch.cache import CachedFile
from elmokit.fetch.download import download
from elmokit.fetch.published import RemoteFile

DATA = random.Random(1).randbytes(1_000_000)
OTHER = random.Random(2).randbytes(1_000_000)
SHA = hashlib.sha256(DATA).hexdigest()


def get(
    folder: Path, *addresses: str, bytes: int | None = None, sha: str | None = None
) -> CachedFile:
    return download(RemoteFile("weights.hdf5", addresses, bytes), folder, lambda *_: None, sha)


def test_a_whole_file(site: Site, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    file = RemoteFile("weights.hdf5", (site.put("/w", DATA),), len(DATA))
    entry = download(file, tmp_path, lambda *step: told.append(step), SHA)
    assert (tmp_path / "weights.hdf5").read_bytes() == DATA
    assert entry == CachedFile(len(DATA), SHA, site.address + "/w")
    assert os.listdir(tmp_path) == ["weights.hdf5"]
    assert told[0] == ("weights.hdf5", 0, len(DATA))
    assert told[-1] == ("weights.hdf5", len(DATA), len(DATA))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    (request,) = site.requests
    assert "Range" not in request.headers
    assert request.headers["User-Agent"].startswith("elmokit/")


def test_a_cut_connection_is_resumed_at_once(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA, cuts=[300_000, 400_000])
    assert get(tmp_path, address, sha=SHA).sha256 == SHA
    assert [r.headers.get("Range") for r in site.requests] == [
        None,
        "bytes=300000-",
        "bytes=700000-",
    ]
    assert all(r.headers["If-Range"] == site.pages["/w"].tag for r in site.requests[1:])
    assert [r.status for r in site.requests] == [200, 206, 206]
    assert sum(r.sent for r in site.requests) == len(DATA)  # no byte twice


def test_an_interrupted_download_is_resumed_by_the_next_process(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA)

    def interrupt(name: str, done: int, total: int | None) -> None:
        if done > 400_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(RemoteFile("weights.hdf5", (address,)), tmp_path, interrupt)
    assert not (tmp_path / "weights.hdf5").exists()
    here = (tmp_path / "weights.hdf5.part").stat().st_size
    assert 400_000 < here < len(DATA)
    get(tmp_path, address)
    assert site.requests[-1].headers["Range"] == f"bytes={here}-"
    assert site.requests[-1].sent == len(DATA) - here
    assert (tmp_path / "weights.hdf5").read_bytes() == DATA


def test_a_date_serves_where_there_is_no_strong_etag(site: Site, tmp_path: Path) -> None:
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    address = site.put("/w", DATA, etag='W/"weak"', modified=date, cuts=[300_000])
    get(tmp_path, address, sha=SHA)
    assert site.requests[1].headers["If-Range"] == date
    assert site.requests[1].status == 206


def test_without_etag_and_date_it_starts_over(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA, etag=None, cuts=[300_000])
    assert get(tmp_path, address).sha256 == SHA
    assert [r.headers.get("Range") for r in site.requests] == [None, None]


def test_a_server_without_ranges_starts_over(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA, ranges=False, cuts=[300_000])
    assert get(tmp_path, address).sha256 == SHA
    assert [r.status for r in site.requests] == [200, 200]


def test_a_file_that_changed_between_the_parts_is_not_spliced(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA)
    with pytest.raises(KeyboardInterrupt):
        download(RemoteFile("weights.hdf5", (address,)), tmp_path, _stop_after(200_000))
    site.put("/w", OTHER)
    get(tmp_path, address)
    assert (tmp_path / "weights.hdf5").read_bytes() == OTHER
    assert site.requests[-1].status == 200


def test_nor_where_the_server_ignores_if_range(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA)
    with pytest.raises(KeyboardInterrupt):
        download(RemoteFile("weights.hdf5", (address,)), tmp_path, _stop_after(200_000))
    site.put("/w", OTHER, heeds_if_range=False)
    get(tmp_path, address)
    assert [r.status for r in site.requests] == [200, 206, 200]
    assert (tmp_path / "weights.hdf5").read_bytes() == OTHER


def test_a_part_that_is_longer_than_the_file_is_thrown_away(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA)
    with pytest.raises(KeyboardInterrupt):
        download(RemoteFile("weights.hdf5", (address,)), tmp_path, _stop_after(200_000))
    site.put("/w", DATA[:1000], heeds_if_range=False)
    get(tmp_path, address)
    assert [r.status for r in site.requests] == [200, 416, 200]
    assert (tmp_path / "weights.hdf5").read_bytes() == DATA[:1000]


def test_a_part_of_another_address_is_not_continued(site: Site, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        first = RemoteFile("weights.hdf5", (site.put("/w", OTHER),))
        download(first, tmp_path, _stop_after(200_000))
    get(tmp_path, site.put("/v", DATA))
    assert (tmp_path / "weights.hdf5").read_bytes() == DATA


def test_a_whole_part_is_only_checked_and_renamed(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA)
    with pytest.raises(KeyboardInterrupt):
        download(RemoteFile("weights.hdf5", (address,)), tmp_path, _stop_after(len(DATA)))
    get(tmp_path, address, sha=SHA)
    assert len(site.requests) == 1


def test_a_wrong_checksum_leaves_nothing(site: Site, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="checksum") as caught:
        get(tmp_path, site.put("/w", DATA), sha="0" * 64)
    assert SHA in str(caught.value) and "0" * 64 in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_wrong_size_is_seen_before_the_download(site: Site, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="1,000,000 bytes, expected 5"):
        get(tmp_path, site.put("/w", DATA), bytes=5)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("size", [len(DATA) - 1, len(DATA) + 1])
def test_a_wrong_size_without_content_length(site: Site, tmp_path: Path, size: int) -> None:
    with pytest.raises(FormatError, match=r"the server sent .*bytes"):
        get(tmp_path, site.put("/w", DATA, length=False), bytes=size)
    assert os.listdir(tmp_path) == []


def test_without_content_length(site: Site, tmp_path: Path) -> None:
    assert get(tmp_path, site.put("/w", DATA, length=False)).sha256 == SHA


def test_chunks_that_break_off(site: Site, tmp_path: Path) -> None:
    chunked = {"Transfer-Encoding": "chunked"}
    address = site.put("/w", b"5\r\nhello\r\nff\r\nwor", length=False, headers=chunked)
    with pytest.raises(ModelNotFound, match="the connection failed"):
        get(tmp_path, address)
    assert not (tmp_path / "weights.hdf5").exists()
    site.put("/w", b"5\r\nhello\r\n0\r\n\r\n", length=False, headers=chunked)
    get(tmp_path, address)
    assert (tmp_path / "weights.hdf5").read_bytes() == b"hello"


def test_404_says_what_was_tried_and_what_to_do(site: Site, tmp_path: Path) -> None:
    one, two = site.address + "/one?key=secret", site.address + "/two"
    with pytest.raises(ModelNotFound) as caught:
        get(tmp_path, one, two)
    message = str(caught.value)
    assert f"{site.address}/one: not found (status 404)" in message
    assert f"{two}: not found" in message
    assert "yourself" in message
    assert "secret" not in message
    assert len(site.requests) == 2  # not tried again
    assert os.listdir(tmp_path) == []


def test_the_second_address_where_the_first_has_nothing(site: Site, tmp_path: Path) -> None:
    site.put("/denied", b"AccessDenied", status=403)
    entry = get(tmp_path, site.address + "/denied", site.put("/w", DATA))
    assert entry == CachedFile(len(DATA), SHA, site.address + "/w")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<p>Please log in", "text/html; charset=utf-8"),
        (b"\xef\xbb\xbf\n <!DOCTYPE HTML><p>Please log in", "application/octet-stream"),
        (b"<?xml version='1.0'?><Error>", "application/xml"),
    ],
)
def test_a_web_page_is_no_model(site: Site, tmp_path: Path, body: bytes, kind: str) -> None:
    with pytest.raises(FormatError, match=r"the server sent a web page instead of weights.hdf5"):
        get(tmp_path, site.put("/w", body, kind=kind))
    assert os.listdir(tmp_path) == []


def test_a_vocabulary_that_begins_with_a_mark_is_no_web_page(site: Site, tmp_path: Path) -> None:
    file = RemoteFile("vocab.txt", (site.put("/v", b"<S>\n</S>\n<UNK>\n", kind="text/plain"),))
    download(file, tmp_path, lambda *_: None)
    assert (tmp_path / "vocab.txt").read_bytes() == b"<S>\n</S>\n<UNK>\n"


def test_a_pointer_of_git_lfs_is_no_model(site: Site, tmp_path: Path) -> None:
    body = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
    with pytest.raises(FormatError, match="Git LFS pointer"):
        get(tmp_path, site.put("/w", body))


def test_a_packed_answer_is_refused(site: Site, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="compressed"):
        get(tmp_path, site.put("/w", DATA, headers={"Content-Encoding": "gzip"}))


def test_redirects_are_followed_to_http(site: Site, tmp_path: Path) -> None:
    site.put("/w", DATA, cuts=[300_000])
    address = site.put("/go", status=302, headers={"Location": "/w"})
    assert get(tmp_path, address).sha256 == SHA
    assert [r.headers.get("Range") for r in site.asked("/w")] == [None, "bytes=300000-"]


@pytest.mark.parametrize("where", ["file", "ftp"])
def test_redirects_elsewhere_are_refused(site: Site, tmp_path: Path, where: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    folder = tmp_path / "model"
    folder.mkdir()
    target = secret.as_uri() if where == "file" else "ftp://127.0.0.1/secret"
    address = site.put("/go", status=302, headers={"Location": target})
    with pytest.raises(ModelNotFound, match="not allowed"):
        get(folder, address)
    assert os.listdir(folder) == []


def test_endless_redirects_end(site: Site, tmp_path: Path) -> None:
    address = site.put("/go", status=302, headers={"Location": "/go"})
    with pytest.raises(ModelNotFound):
        get(tmp_path, address)


def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", status=503)
    with pytest.raises(ModelNotFound, match=r"status 503.*Try again"):
        get(tmp_path, address)
    assert len(site.requests) == module.TRIES


def test_a_server_that_always_cuts_at_the_same_place_is_given_up(
    site: Site, tmp_path: Path
) -> None:
    address = site.put("/w", DATA, ranges=False, cuts=[1000] * 50)
    with pytest.raises(ModelNotFound, match="closed before the end"):
        get(tmp_path, address)
    assert len(site.requests) == 1 + module.TRIES


def test_one_that_makes_some_way_each_time_is_not(site: Site, tmp_path: Path) -> None:
    address = site.put("/w", DATA, cuts=[100_000] * 9)
    assert get(tmp_path, address, sha=SHA).sha256 == SHA
    assert len(site.requests) == 10
    assert sum(r.sent for r in site.requests) == len(DATA)


def test_no_network(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"cannot be resolved.*yourself"):
        get(tmp_path, "https://models.invalid/w")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="the connection failed"):
        get(tmp_path, "http://127.0.0.1:9/w")


def test_a_full_disk_is_seen_first(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage(10**9, 10**9, 10**6))
    with pytest.raises(ElmoError, match=r"1 MB of free space, 1 MB are needed.*ELMOKIT_CACHE"):
        get(tmp_path, site.put("/w", DATA))
    assert not (tmp_path / "weights.hdf5").exists()


def _stop_after(count: int) -> module.Report:
    def interrupt(name: str, done: int, total: int | None) -> None:
        if done >= count:
            raise KeyboardInterrupt

    return interrupt


def test_a_disk_that_fills_up(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, block: bytes) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real = module._write
    monkeypatch.setattr(module, "_write", lambda out, block, part: real(Full(), block, part))  # type: ignore[arg-type]
    with pytest.raises(ElmoError, match=r"cannot write to .*No space left.*ELMOKIT_CACHE"):
        get(tmp_path, site.put("/w", DATA))
