"""What happens to every request: keys, hosts, headers, and errors without secrets."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.conftest import GOLDEN

pytest.importorskip("starlette", reason="needs the extra serve")

from starlette.testclient import TestClient

from elmokit.errors import InputError
from elmokit.serve import ServeConfig, ServerLimits, create_app
from elmokit.serve.models import Models

MODELS = {"plain": GOLDEN / "models" / "plain"}


MakeClient = Callable[..., TestClient]


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    with ExitStack() as stack:

        def make(**options: Any) -> TestClient:
            app = create_app(ServeConfig(models=MODELS, **options))
            return stack.enter_context(
                TestClient(app, raise_server_exceptions=False, base_url="http://127.0.0.1:8000")
            )

        yield make


def test_a_key_is_needed_where_there_is_one(make_client: MakeClient) -> None:
    client = make_client(api_keys=["secret", "other"])
    body = {"input": "a"}
    for headers, status in [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer secret"}, 200),
        ({"Authorization": "bearer other"}, 200),
        ({"Authorization": "secret"}, 401),
        ({"Authorization": "Bearer sécret".encode("latin-1").decode("latin-1")}, 401),
        ({"Authorization": "Basic " + base64.b64encode(b"me:secret").decode()}, 200),
        ({"Authorization": "Basic !!"}, 401),
    ]:
        encoded = {name: value.encode("latin-1") for name, value in headers.items()}
        response = client.post("/v1/embeddings", json=body, headers=encoded)
        assert response.status_code == status, headers
    response = client.get("/v1/models")
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["error"]["type"] == "authentication_error"
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    assert client.get("/metrics").status_code == client.get("/openapi.json").status_code == 401
    assert client.get("/").headers["www-authenticate"].startswith("Basic")  # a browser asks
    document = client.get("/openapi.json", headers={"Authorization": "Bearer secret"}).json()
    assert document["security"]


def test_other_names_of_the_host_are_refused(make_client: MakeClient) -> None:
    """A page whose name points to this machine must not reach the server (DNS rebinding)."""
    client = make_client(hosts=["localhost", "127.0.0.1", "::1"])
    for host, status in [
        ("127.0.0.1:8000", 200),
        ("LOCALHOST", 200),
        ("[::1]:8000", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8000", 403),
        ("", 403),
    ]:
        assert client.get("/healthz", headers={"Host": host}).status_code == status, host


def test_headers_of_answers(make_client: MakeClient) -> None:
    client = make_client()
    response = client.post("/v1/embeddings", json={"input": "a"})
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    assert len(response.headers["x-request-id"]) == 16
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"


def test_other_origins_are_allowed_only_by_name(make_client: MakeClient) -> None:
    preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    assert (
        "access-control-allow-origin"
        not in make_client().options("/v1/embeddings", headers=preflight).headers
    )
    client = make_client(cors_origins=["https://a.example"], api_keys=["k"])
    response = client.options("/v1/embeddings", headers=preflight)
    assert response.headers["access-control-allow-origin"] == "https://a.example"
    response = client.get("/v1/models", headers={"Origin": "https://b.example"})
    assert "access-control-allow-origin" not in response.headers


def test_a_failure_tells_its_id_and_nothing_else(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*args: object) -> None:
        raise RuntimeError("secret text in /home/me/model")

    monkeypatch.setattr(Models, "embed", fail)
    with caplog.at_level(logging.INFO, "elmokit.serve"):
        response = make_client().post("/v1/embeddings", json={"input": "a"})
    assert response.status_code == 500
    found = response.json()["error"]
    assert found["type"] == "server_error" and "secret" not in response.text
    assert response.headers["x-request-id"] in found["message"]
    logged = json.dumps([vars(record).get("fields") for record in caplog.records])
    assert "RuntimeError" in logged and "secret" not in logged


def test_an_unusable_input_names_no_path(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*args: object) -> None:
        raise InputError("the index /home/me/index was made with another model")

    monkeypatch.setattr(Models, "embed", fail)
    response = make_client().post("/v1/embeddings", json={"input": "a"})
    assert response.status_code == 422 and "/home" not in response.text


def test_a_request_that_takes_too_long(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(*args: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(Models, "embed", wait)
    client = make_client(limits=ServerLimits(request_seconds=0.05))
    response = client.post("/v1/embeddings", json={"input": "a"})
    assert response.status_code == 503 and response.headers["retry-after"]
    assert response.json()["error"]["code"] == "timeout"


def test_logs_have_no_texts(make_client: MakeClient, caplog: pytest.LogCaptureFixture) -> None:
    client = make_client()
    with caplog.at_level(logging.INFO, "elmokit.serve"):
        client.post("/v1/embeddings", json={"input": "private words"})
        client.post("/v1/embeddings", json={"input": {"private": 1}})
        client.get("/v1/models/private")
    fields = [vars(record).get("fields") for record in caplog.records]
    assert "private" not in json.dumps(fields)
    assert {"status": 200, "texts": 1, "words": 2, "route": "/v1/embeddings"}.items() <= next(
        each for each in fields if "words" in each
    ).items()
