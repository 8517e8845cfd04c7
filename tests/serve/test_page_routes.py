"""The page's files and questions, without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from elmokit import Elmo

pytest.importorskip("starlette", reason="the server needs pip install 'elmokit[serve]'")
pytest.importorskip("httpx", reason="starlette's test client needs httpx")

from starlette.testclient import TestClient

from elmokit.serve import create_app
from elmokit.serve.array_message import unpack_arrays
from elmokit.serve.page_routes import PAGE, page_files


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with TestClient(create_app()) as client:
        yield client


def test_the_page_and_its_files_have_types_and_tags(client: Any) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "'self'" in answer.headers["content-security-policy"]
    linked = re.findall(r'(?:href|src)="(page/[^"]+)"', answer.text)
    assert len(linked) >= 4
    for name in linked:
        found = client.get(f"/{name}")
        assert found.status_code == 200
        again = client.get(f"/{name}", headers={"If-None-Match": found.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get("/page/app.js").headers["content-type"].startswith("text/javascript")
    for name in ("nothing.js", "../page_routes.py", "%2e%2e/page_routes.py", "views"):
        assert client.get(f"/page/{name}").status_code == 404


def test_scripts_import_files_that_exist_and_nothing_from_elsewhere() -> None:
    for name, file in page_files().items():
        text = file.content.decode()
        if name.endswith((".html", ".css")):
            # What a strict content security policy forbids.
            assert not re.search(r"\sstyle=|<style|<script>|\son\w+=|url\(", text), name
        for target in re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"'$]+)["']""", text):
            path = (PAGE / name).parent / target
            if "/runtime/" not in target:
                assert path.is_file(), f"{name} imports {target}"
        others = set(re.findall(r"https?://[\w.]+", text)) - {"http://www.w3.org"}
        assert not others - {"https"}, name


def test_information_names_no_path(client: Any) -> None:
    info = client.get("/page/info").json()
    assert info["models"][0]["name"] == "builtin"
    assert {"bank", "play", "cell", "left"} <= set(info["samples"])
    assert info["corpus"] > 300
    assert not re.search(r"(?:/\w+){3}", client.get("/page/info").text.replace("</", ""))


def test_layers_are_those_of_the_engine(client: Any) -> None:
    text = "She went to the bank."
    answer = client.post("/page/layers", json={"model": "builtin", "sentence": text})
    header, arrays = unpack_arrays(answer.content)
    elmo = Elmo.load()
    assert header["words"] == elmo.tokenize(text)
    np.testing.assert_array_equal(arrays["layers"], elmo.embed([text], "all")[0])


def test_uses(client: Any) -> None:
    sentences = ["The bank is old.", "Nothing here.", "A bank by the BANK."]
    body = {"model": "builtin", "word": "bank", "sentences": sentences}
    header, arrays = unpack_arrays(client.post("/page/uses", json=body).content)
    assert [(use["sentence"], use["position"]) for use in header["uses"]] == [
        (0, 1),
        (2, 1),
        (2, 4),
    ]
    assert header["without"] == 1
    assert arrays["layers"].shape == (3, 3, 384)


@pytest.mark.parametrize(
    ("question", "body", "status"),
    [
        ("layers", {"model": "builtin", "sentence": "word " * 300}, 422),
        ("layers", {"model": "other", "sentence": "A word."}, 404),
        ("layers", {"model": "builtin"}, 400),
        ("uses", {"model": "builtin", "word": "zebra", "sentences": ["No."]}, 422),
        ("guess", {"model": "builtin", "words": ["a", "b"], "position": 2}, 422),
        ("neighbors", {"model": "builtin", "words": ["a"], "position": 0, "mix": [1]}, 422),
        ("neighbors", {"model": "builtin", "words": ["a"], "position": 0, "index": "no"}, 404),
        ("trace", {"model": "builtin", "words": ["a"], "position": 7}, 422),
        ("tasks", {"task": "ner", "texts": ["Ada lived."]}, 404),
    ],
)
def test_wrong_questions_get_a_message(
    client: Any, question: str, body: dict[str, Any], status: int
) -> None:
    answer = client.post(f"/page/{question}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_a_mix_of_one_layer_finds_its_neighbors(client: Any) -> None:
    words = "The guard opened the cell at dawn .".split()
    body = {"model": "builtin", "words": words, "position": 4, "mix": [-30, -30, 0], "number": 5}
    answer = client.post("/page/neighbors", json=body).json()
    assert len(answer["context"]) == 5
    assert answer["static"][0][0] == "cells"
    for use in answer["context"]:
        assert 0 < use["similarity"] < 1
        assert use["words"][use["position"]]
