"""The routes: what they answer, in which shape, and what they refuse."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.bilm.mix import Mix
from elmokit.lm import substitutes

pytest.importorskip("starlette", reason="needs the extra serve")

TEXTS = ["She went to the bank.", "Plays, and cells!", "日本語 のテキスト", " \u200b"]
JSON = {"Content-Type": "application/json"}


def post(client: Any, path: str, body: Any, status: int = 200, **headers: str) -> Any:
    response = client.post(path, json=body, headers=headers)
    assert response.status_code == status, response.text[:500]
    return response.json()


def error(client: Any, path: str, body: Any, status: int) -> dict[str, Any]:
    answer = post(client, path, body, status)
    assert set(answer) == {"error"}
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    return answer["error"]


# -- /v1/embeddings --------------------------------------------------------------------------------


def test_embeddings_are_those_of_encode(client: Any, english: Elmo) -> None:
    answer = post(client, "/v1/embeddings", {"input": TEXTS, "model": "builtin"})
    assert answer["object"] == "list" and answer["model"] == "builtin"
    words = sum(len(english.tokenize(text)) for text in TEXTS)
    assert answer["usage"] == {"prompt_tokens": words, "total_tokens": words}
    for i, (item, text) in enumerate(zip(answer["data"], TEXTS, strict=True)):
        assert item["index"] == i and item["object"] == "embedding"
        assert item["embedding"] == english.encode(text).tolist()


def test_embeddings_in_base64_have_the_same_bits(client: Any, english: Elmo) -> None:
    body = {"input": TEXTS[0], "encoding_format": "base64", "user": "me", "model": None}
    (item,) = post(client, "/v1/embeddings", body)["data"]
    vector = np.frombuffer(base64.b64decode(item["embedding"]), "<f4")
    assert vector.tobytes() == english.encode(TEXTS[0]).tobytes()


@pytest.mark.parametrize(
    ("body", "status", "param", "words"),
    [
        ({"input": ""}, 400, "input", "empty"),
        ({"input": []}, 400, "input", "empty"),
        ({"input": ["a", ""]}, 400, "input[1]", "empty"),
        ({"input": [1, 2, 3]}, 400, "input", "check_embedding_ctx_length=False"),
        ({"input": [[1, 2], [3]]}, 400, "input", "token ids"),
        ({"input": None}, 400, "input", "null"),
        ({}, 400, "input", "missing"),
        ({"input": "a", "dimensions": 64}, 400, "dimensions", "leave dimensions out"),
        ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format", "'base64'"),
        ({"input": "a", "model": "gpt"}, 404, "model", "available: builtin, plain"),
        ({"input": "a", "model": 3}, 400, "model", "3"),
        ({"input": "a", "more": 3}, 400, "more", "not known"),
        ({"input": ["a"] * 2049}, 422, "input", "at most 2,048"),
        ({"input": "a" * 100_001}, 422, "input", "at most 100,000"),
        ({"input": ["a b " * 100] * 300}, 422, "input", "words; expected at most 50,000"),
        ([], 400, None, "an object"),
    ],
)
def test_embeddings_that_are_refused(
    client: Any, body: Any, status: int, param: str | None, words: str
) -> None:
    found = error(client, "/v1/embeddings", body, status)
    assert found["param"] == param and words in found["message"]
    assert found["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b'{"input": NaN}', JSON, 400),
        (b'{"input": "\xff"}', JSON, 400),
        (b'{"input": "\\ud800"}', JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b"", JSON, 400),
        (b'\xef\xbb\xbf{"input": "a"}', JSON, 400),
        (b'{"input": "a"}', {"Content-Type": "text/plain"}, 415),
        (b'{"input": "a"}', {}, 415),
        (b'{"input": "a"}', {**JSON, "Content-Encoding": "gzip"}, 415),
        (b" " * (8 << 20) + b"{}", JSON, 413),
        (b'{"input": "a\\u0000b", "model": "builtin"}', JSON, 200),
        (b'{"input": "a"}', {"Content-Type": "Application/JSON; charset=utf-8"}, 200),
    ],
)
def test_bodies_of_all_kinds(
    client: Any, content: bytes, headers: dict[str, str], status: int
) -> None:
    response = client.post("/v1/embeddings", content=content, headers=headers)
    assert response.status_code == status, response.text[:300]
    assert ("error" in response.json()) == (status != 200)


# -- /v1/words -------------------------------------------------------------------------------------


def test_words_have_offsets_and_the_vectors_of_embed(client: Any, english: Elmo) -> None:
    given = [*TEXTS, ["two words", "given"]]
    answer = post(client, "/v1/words", {"input": given})
    for item, sentence in zip(answer["data"], given, strict=True):
        assert item["vectors"] == english.embed([sentence])[0].tolist()
        if isinstance(sentence, str):
            assert [sentence[a:b] for a, b in item["offsets"]] == item["words"]
        else:
            assert item["words"] == sentence and item["offsets"] is None


@pytest.mark.parametrize("layers", ["mix", "top", "all", 0, 1, [2, 0]])
def test_words_of_chosen_layers(client: Any, english: Elmo, layers: Any) -> None:
    (item,) = post(client, "/v1/words", {"input": TEXTS[0], "layers": layers})["data"]
    expected = english.embed(TEXTS[0], "all" if isinstance(layers, list) else layers)
    if isinstance(layers, list):
        expected = expected[layers]
    assert item["vectors"] == expected.tolist()


def test_words_with_a_mix_of_ones_own(client: Any, english: Elmo) -> None:
    layers = {"scalars": [0.5, -1, 2], "gamma": 3}
    (item,) = post(client, "/v1/words", {"input": TEXTS[0], "layers": layers})["data"]
    expected = Mix((0.5, -1, 2), 3).apply(english.embed(TEXTS[0], "all"))
    assert item["vectors"] == expected.tolist()
    error(client, "/v1/words", {"input": "a", "layers": {"scalars": [1]}}, 400)


def test_words_as_npz(client: Any, english: Elmo) -> None:
    body = {"input": TEXTS, "layers": "all"}
    response = client.post("/v1/words", json=body, headers={"Accept": "application/x-npz"})
    assert response.headers["content-type"] == "application/x-npz"
    with np.load(io.BytesIO(response.content), allow_pickle=False) as arrays:
        ends = np.cumsum(arrays["lengths"])[:-1]
        parts = np.split(arrays["vectors"], ends, axis=1)
        for part, text in zip(parts, TEXTS, strict=True):
            assert part.tobytes() == english.embed(text, "all").tobytes()
        assert arrays["words"][:2].tolist() == ["She", "went"]
        assert arrays["offsets"][1].tolist() == [4, 8]


def test_words_as_arrow(client: Any, english: Elmo) -> None:
    pa = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    accept = {"Accept": "application/vnd.apache.arrow.stream"}
    response = client.post("/v1/words", json={"input": TEXTS}, headers=accept)
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column_names == ["sentence", "word", "start", "end", "vector"]
    expected = np.concatenate(english.embed(TEXTS))
    assert np.array(table["vector"].to_pylist(), np.float32).tobytes() == expected.tobytes()
    response = client.post(
        "/v1/words", json={"input": [["a", "b"]], "layers": [0, 2]}, headers=accept
    )
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column_names[-2:] == ["vector_0", "vector_1"] and table["start"].null_count == 2


def test_words_that_nobody_accepts(client: Any) -> None:
    for accept, status in [("text/html", 406), ("text/html, */*;q=0.1", 200), ("", 200)]:
        response = client.post("/v1/words", json={"input": "a"}, headers={"Accept": accept})
        assert response.status_code == status


def test_answers_that_would_be_too_large(client: Any) -> None:
    body = {"input": ["word " * 4000] * 5, "layers": "all"}
    assert error(client, "/v1/words", body, 422)["code"] == "too_many_numbers"


# -- predictions, neighbors, tasks -----------------------------------------------------------------


def test_substitutes(client: Any, english: Elmo) -> None:
    answer = post(client, "/v1/substitutes", {"input": ["The bank.", ["A", "b"]], "k": 3})
    expected = substitutes(english, ["The bank.", ["A", "b"]], 3)
    for item, positions in zip(answer["data"], expected, strict=True):
        for found, position in zip(item["positions"], positions, strict=True):
            assert found["word"] == position.word
            assert found["both"]["rank"] == position.both.rank
            for each, (word, probability) in zip(
                found["both"]["best"], position.both.best, strict=True
            ):
                assert each["word"] == word
                assert each["probability"] == pytest.approx(probability)
    assert answer["data"][0]["positions"][1]["start"] == 4
    assert error(client, "/v1/substitutes", {"input": "a", "model": "plain"}, 404)["message"]
    error(client, "/v1/substitutes", {"input": "a", "k": 0}, 400)
    error(client, "/v1/substitutes", {"input": "a b " * 3000}, 422)


def test_neighbors(client: Any) -> None:
    body = {"input": "The bank is near the river .", "word": "BANK", "k": 3, "same_word": True}
    answer = post(client, "/v1/neighbors", body)
    assert answer["position"] == 1 and answer["index"] == "small" and answer["layer"] == 2
    assert len(answer["data"]) == 3
    for item in answer["data"]:
        assert item["words"][item["position"]] == "bank" and item["words"] != answer["words"]
    assert answer["context_free"][0]["word"] != "bank"
    assert error(client, "/v1/neighbors", {"input": "a", "word": "b"}, 404)["param"] == "word"
    assert error(client, "/v1/neighbors", {**body, "occurrence": 2}, 404)["param"] == "occurrence"
    found = error(client, "/v1/neighbors", {**body, "index": "other"}, 404)
    assert found["message"] == "the index 'other' does not exist; available: small"


def test_tasks(tmp_path: Any) -> None:
    pytest.importorskip("torch", reason="needs the extra train")
    from starlette.testclient import TestClient

    from elmokit.serve import ServeConfig, create_app
    from elmokit.tasks import Settings, Trained

    settings = Settings(task="ner", elmo="none", vectors="none")
    trained = Trained.assemble(settings, {"types": ["LOC"]}, ["in"], None)
    trained.save(tmp_path)
    config = ServeConfig(models={"plain": GOLDEN / "models" / "plain"}, tasks={"names": tmp_path})
    with TestClient(create_app(config)) as client:
        text = "Ada lived in London. She wrote."
        answer = post(client, "/v1/tasks/names", {"text": text})
        assert answer["data"] == trained.predict_text(text) and answer["task"] == "ner"
        answer = post(client, "/v1/tasks/names", {"sentence": "Ada ran."})
        assert answer["data"] == [trained.predict("Ada ran.")]
        inputs = [{"sentence": "Ada ran."}, {"sentence": "In London."}]
        assert len(post(client, "/v1/tasks/names", {"inputs": inputs})["data"]) == 2
        error(client, "/v1/tasks/names", {"sentence": " \u200b"}, 400)
        error(client, "/v1/tasks/names", {"premise": "a"}, 400)
        assert "available: names" in error(client, "/v1/tasks/other", {}, 404)["message"]


# -- the rest --------------------------------------------------------------------------------------


def test_models_are_listed(client: Any) -> None:
    models = client.get("/v1/models").json()
    assert [each["id"] for each in models["data"]] == ["builtin", "plain"]
    assert client.get("/v1/models/builtin").json()["dimensions"] == 384
    assert client.get("/v1/models/a/b").status_code == 404


def test_health_and_metrics(client: Any) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    post(client, "/v1/embeddings", {"input": "a"})
    text = client.get("/metrics").text
    assert 'elmo_requests_total{route="/v1/embeddings",method="POST",status="200"}' in text
    for name in (
        "elmo_request_seconds_bucket",
        "elmo_batch_sentences_count",
        "elmo_queue_requests",
    ):
        assert name in text


def test_wrong_paths_and_methods(client: Any) -> None:
    response = client.get("/v1/embeddings")
    assert response.status_code == 405 and response.headers["allow"] == "POST"
    assert response.json()["error"]["message"]
    response = client.delete("/v1/models")
    assert response.status_code == 405 and "GET" in response.headers["allow"]
    assert client.post("/nothing", json={}).status_code == 404
    assert client.get("/v1/models/").status_code == 404


def test_the_document_describes_all_routes(client: Any) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert {"/v1/embeddings", "/v1/words", "/v1/substitutes", "/v1/neighbors"} <= set(
        document["paths"]
    )
    for path in document["paths"].values():
        for operation in path.values():
            assert operation["summary"].endswith(".") and "200" in operation["responses"]
