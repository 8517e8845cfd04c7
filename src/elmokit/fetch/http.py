"""One HTTP request with the standard library, and clear reasons when it fails.

Only http and https are used, also after a redirect, and never http after https. Knows nothing about
files.
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
"""How long the server may be silent; a download as a whole may take longer."""


class Unavailable(Exception):
    """An address does not give the file; the reason is a phrase for messages."""

    def __init__(self, reason: str, *, temporary: bool = False, status: int | None = None) -> None:
        """Store the reason.

        Args:
            reason: Why the file is unavailable.
            temporary: Trying again may help.
            status: HTTP status of the response, if there was one.
        """
        super().__init__(reason)
        self.reason = reason
        self.temporary = temporary
        self.status = status

    @property
    def absent(self) -> bool:
        """Whether the server says that it has no such file; S3 answers 403 in that case."""
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
        scheme = urlsplit(newurl).scheme.lower()
        if scheme not in ("http", "https") or (req.type == "https" and scheme == "http"):
            raise Unavailable(
                f"the server redirects to {public_address(newurl)}, which is not allowed"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def open_address(address: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
    """Return the response to a GET request, with status 200 or 206; else raise `Unavailable`."""
    agent = {"User-Agent": f"elmokit/{elmokit.__version__}", "Accept-Encoding": "identity"}
    try:
        request = urllib.request.Request(address, headers={**agent, **headers})
        response: http.client.HTTPResponse = _opener().open(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            raise _error_status(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise connection_failure(error) from None
    if response.status not in (200, 206):
        response.close()
        raise Unavailable(
            f"the server answered without a file (status {response.status})", status=response.status
        )
    return response


def _opener() -> urllib.request.OpenerDirector:
    """Return what `build_opener` makes, without the handlers for file, ftp and data addresses."""
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


def _error_status(error: urllib.error.HTTPError) -> Unavailable:
    code = error.code
    if code in (404, 410):
        reason = "not found"
    elif code in (401, 403):
        reason = "access denied"
    elif 300 <= code < 400:
        reason = "a redirect that is not allowed"
    else:
        reason = str(error.reason)
    temporary = code in (408, 416, 425, 429) or code >= 500
    return Unavailable(f"{reason} (status {code})", temporary=temporary, status=code)


def connection_failure(error: Exception) -> Unavailable:
    """Return the `Unavailable` for a connection that could not be made, or broke."""
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unavailable(f"the certificate of the server is not trusted: {error.verify_message}")
    if isinstance(error, socket.gaierror):
        return Unavailable("the name of the server cannot be resolved (no network?)")
    if isinstance(error, TimeoutError):
        return Unavailable(
            f"the server sent nothing for {TIMEOUT_SECONDS:g} seconds", temporary=True
        )
    if isinstance(error, (OSError, http.client.HTTPException)):
        return Unavailable(f"the connection failed: {error}", temporary=True)
    return Unavailable(str(error))


def public_address(address: str) -> str:
    """Return an address for messages and records, without its query, which may hold a secret."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
