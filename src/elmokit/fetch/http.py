"""One HTTP request with the standard library, and its failures in our own words.

Only http and https, also where a server redirects to; from https never back to http. Knows nothing
about files.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO
from urllib.parse import urlsplit, urlunsplit

import elmokit

TIMEOUT_SECONDS = 30.0
"""Of silence, not of a whole download."""


class Unavailable(Exception):
    """An address that does not give the file, with the reason in words."""

    def __init__(self, reason: str, *, passing: bool = False, status: int | None = None) -> None:
        """`passing`: trying again may help. `status`: what the server answered, if it did."""
        super().__init__(reason)
        self.reason = reason
        self.passing = passing
        self.status = status

    @property
    def absent(self) -> bool:
        """Whether the server said that it has no such file; S3 says 403 for it."""
        return self.status in (401, 403, 404, 410)


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        there = urlsplit(newurl).scheme.lower()
        if there not in ("http", "https") or (req.type == "https" and there == "http"):
            raise Unavailable(f"redirects to {shown(newurl)}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_address(address: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    """A response with status 200 or 206; everything else is `Unavailable`."""
    agent = {"User-Agent": f"elmokit/{elmokit.__version__}", "Accept-Encoding": "identity"}
    try:
        request = urllib.request.Request(address, headers={**agent, **headers})
        response: http.client.HTTPResponse = _opener().open(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise broken(error) from None
    if response.status not in (200, 206):
        response.close()
        raise Unavailable("an answer without a file", status=response.status)
    return response


def _opener() -> urllib.request.OpenerDirector:
    """As `build_opener`, but without the handlers for files, ftp and data addresses."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        _Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _refused(error: urllib.error.HTTPError) -> Unavailable:
    code = error.code
    if code in (404, 410):
        reason = "not found"
    elif code in (401, 403):
        reason = "access denied"
    elif 300 <= code < 400:
        reason = "redirects to somewhere that is not followed"
    else:
        reason = str(error.reason)
    passing = code in (408, 416, 425, 429) or code >= 500
    return Unavailable(f"{reason} (status {code})", passing=passing, status=code)


def broken(error: Exception) -> Unavailable:
    """A connection that could not be made, or broke."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unavailable(f"its certificate is not trusted: {error.verify_message}")
    if isinstance(error, socket.gaierror):
        return Unavailable("the name of the server cannot be resolved (no network?)")
    if isinstance(error, TimeoutError):
        return Unavailable("no answer in time", passing=True)
    if isinstance(error, (OSError, http.client.HTTPException)):
        return Unavailable(f"the connection failed: {error}", passing=True)
    return Unavailable(str(error))


def shown(address: str) -> str:
    """An address for messages and records: without its query, which may hold a secret."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
