"""Requests and their failures in words."""

from __future__ import annotations

import http.client
import io
import ssl
import threading
import urllib.request

import pytest
from tests.fetch.site import Site

from elmokit.fetch import http as module
from elmokit.fetch.http import Unavailable, connection_failure, open_address, public_address


def test_silence_ends(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_SECONDS", 0.1)
    gate = threading.Event()
    with open_address(site.put("/w", b"body", gate=gate), {}) as response:
        with pytest.raises(TimeoutError) as caught:
            response.read()
        gate.set()
    assert connection_failure(caught.value).reason == "the server sent nothing for 0.1 seconds"
    assert connection_failure(caught.value).temporary


def test_from_https_never_back_to_http() -> None:
    request = urllib.request.Request("https://127.0.0.1/w")
    headers = http.client.HTTPMessage()
    redirect = module._Redirects().redirect_request
    with pytest.raises(Unavailable, match=r"to http://127\.0\.0\.1/w, which is not allowed"):
        redirect(request, io.BytesIO(), 302, "", headers, "http://127.0.0.1/w?key=secret")
    followed = redirect(request, io.BytesIO(), 302, "", headers, "https://127.0.0.1/v")
    assert followed is not None and followed.full_url == "https://127.0.0.1/v"


def test_a_certificate_is_not_tried_again() -> None:
    error = ssl.SSLCertVerificationError()
    error.verify_message = "self-signed certificate"
    told = connection_failure(urllib.request.URLError(error))  # type: ignore[attr-defined]
    assert told.reason == "the certificate of the server is not trusted: self-signed certificate"
    assert not told.temporary


@pytest.mark.parametrize(
    ("status", "absent", "passing"),
    [
        (401, True, False),
        (403, True, False),
        (404, True, False),
        (410, True, False),
        (400, False, False),
        (416, False, True),
        (429, False, True),
        (500, False, True),
        (204, False, False),
    ],
)
def test_statuses(site: Site, status: int, absent: bool, passing: bool) -> None:
    with pytest.raises(Unavailable) as caught:
        open_address(site.put("/w", status=status), {})
    assert (caught.value.absent, caught.value.temporary) == (absent, passing)


def test_what_is_shown_holds_no_secret() -> None:
    assert public_address("https://me:pass@host:81/a/b?token=x#y") == "https://host:81/a/b"
