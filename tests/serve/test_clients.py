"""The clients that people have already: openai's and LangChain's; and schemathesis as the worst."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo

TEXTS = ["She went to the bank.", "Plays, and cells!", "日本語 のテキスト"]


@pytest.fixture
def address(start_server: Callable[..., Any]) -> Iterator[str]:
    server = start_server(ELMO_API_KEY="a key")
    yield server.address


@pytest.fixture(scope="module")
def plain() -> Elmo:
    return Elmo.load(GOLDEN / "models" / "plain")


def check(data: Any, plain: Elmo) -> None:
    for item, text in zip(data, TEXTS, strict=True):
        assert np.array(item.embedding, np.float32).tobytes() == plain.encode(text).tobytes()


def test_openai(address: str, plain: Elmo) -> None:
    openai = pytest.importorskip("openai", reason="runs in the part serve of CI")
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="a key", max_retries=0)
    check(client.embeddings.create(model="plain", input=TEXTS).data, plain)  # base64
    floats = client.embeddings.create(model="plain", input=TEXTS, encoding_format="float")
    check(floats.data, plain)
    assert floats.usage.total_tokens == sum(len(plain.tokenize(text)) for text in TEXTS)
    assert [model.id for model in client.models.list()] == ["plain"]
    assert client.models.retrieve("plain").id == "plain"
    with pytest.raises(openai.NotFoundError, match="available: plain"):
        client.embeddings.create(model="gpt", input="a")
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model="plain", input="a", dimensions=2)
    with pytest.raises(openai.BadRequestError, match="token ids"):
        client.embeddings.create(model="plain", input=[[1, 2]])
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="another").embeddings.create(model="plain", input="a")


def test_openai_async(address: str, plain: Elmo) -> None:
    openai = pytest.importorskip("openai", reason="runs in the part serve of CI")

    async def main() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="a key") as client:
            calls = (client.embeddings.create(model="plain", input=TEXTS) for _ in range(20))
            return await asyncio.gather(*calls)

    for answer in asyncio.run(main()):
        check(answer.data, plain)


def test_langchain(address: str, plain: Elmo) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="runs in the part serve of CI")
    options = {"model": "plain", "base_url": f"{address}/v1", "api_key": "a key"}
    embeddings = langchain.OpenAIEmbeddings(check_embedding_ctx_length=False, **options)
    for vector, text in zip(embeddings.embed_documents(TEXTS), TEXTS, strict=True):
        assert np.array(vector, np.float32).tobytes() == plain.encode(text).tobytes()
    assert np.array_equal(np.array(embeddings.embed_query("hi"), np.float32), plain.encode("hi"))


def test_schemathesis_finds_nothing(
    start_server: Callable[..., Any], index_directory: Path, tmp_path: Path
) -> None:
    pytest.importorskip("schemathesis", reason="runs in the part serve of CI")
    from elmokit.tasks import Settings, Trained

    settings = Settings(task="ner", elmo="none", vectors="none")
    Trained.assemble(settings, {"types": ["LOC"]}, ["in"], None).save(tmp_path / "ner")
    server = start_server(
        *("-m", "builtin", "--index", f"i={index_directory}", "--task", str(tmp_path / "ner")),
        "--preload",
    )
    done = subprocess.run(
        [
            *(str(Path(sys.executable).parent / "schemathesis"), "run"),
            *(f"{server.address}/openapi.json", "--max-examples", "15", "--seed", "1"),
            *("--request-timeout", "60"),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    lines = [line[:200] for line in done.stdout.splitlines()]
    assert done.returncode == 0, "\n".join(lines[-60:])
