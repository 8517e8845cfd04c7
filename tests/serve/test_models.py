"""The models of a server: loaded when needed, unloaded when memory is short, bounded in number."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.errors import ConfigError, InputError, ModelNotFound
from elmokit.serve.errors import ApiError
from elmokit.serve.models import Models
from elmokit.serve.settings import ServeConfig, ServerLimits

PLAIN, ODD = (GOLDEN / "models" / name for name in ("plain", "odd"))
SENTENCE = "She went to the bank ."


def test_models_are_loaded_when_they_are_needed() -> None:
    async def main() -> None:
        models = Models(ServeConfig(models={"a": PLAIN, "b": ODD}))
        assert models.loaded == []
        (one,) = await models.embed("a", [SENTENCE])
        assert models.loaded == ["a"]
        assert one.vectors.tobytes() == Elmo.load(PLAIN).embed(SENTENCE).tobytes()
        assert [word.text for word in one.words] == SENTENCE.split()
        await models.preload()
        assert models.loaded == ["a", "b"]
        await models.close()

    asyncio.run(main())


def test_the_least_recently_used_model_is_unloaded() -> None:
    """With room for one model, there is one model."""

    async def main() -> None:
        models = Models(ServeConfig(models={"a": PLAIN, "b": ODD}, max_memory=1))
        for name in "abab":
            await models.embed(name, [SENTENCE])
            assert models.loaded == []  # even one is too much, once nobody uses it
        await models.close()
        models = Models(ServeConfig(models={"a": PLAIN, "b": ODD}, max_memory=100 << 20))
        for name in "abab":
            await models.embed(name, [SENTENCE])
            assert models.loaded == [name]
        await models.close()

    asyncio.run(main())


def test_concurrent_requests_load_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    load = Elmo.load

    def count(*args: Any, **options: Any) -> Elmo:
        loads.append(args)
        return load(*args, **options)

    monkeypatch.setattr(Elmo, "load", count)

    async def main() -> None:
        models = Models(ServeConfig(models={"a": PLAIN}))
        await asyncio.gather(*(models.embed("a", [SENTENCE]) for _ in range(20)))
        await models.close()

    asyncio.run(main())
    assert len(loads) == 1


def test_a_full_queue_is_an_error() -> None:
    release = threading.Event()

    async def main() -> None:
        limits = ServerLimits(queue=2)
        models = Models(ServeConfig(models={"a": PLAIN}, limits=limits))
        waiting = [asyncio.ensure_future(models.run("a", lambda _: release.wait())) for _ in "ab"]
        await asyncio.sleep(0.2)
        with pytest.raises(ApiError) as caught:
            await models.embed("a", [SENTENCE])
        assert caught.value.status == 429 and int(caught.value.headers["Retry-After"]) >= 1
        release.set()
        await asyncio.gather(*waiting)
        assert len(await models.embed("a", [SENTENCE])) == 1
        await models.close()

    asyncio.run(main())


def test_a_model_that_cannot_be_loaded_names_no_path(tmp_path: Path) -> None:
    model = Elmo.load(PLAIN)
    model.save(tmp_path / "secret")

    async def main() -> None:
        models = Models(ServeConfig(models={"a": tmp_path / "secret"}))
        (tmp_path / "secret" / "model.safetensors").unlink()
        with pytest.raises(ApiError) as caught:
            await models.embed("a", [SENTENCE])
        assert caught.value.status == 503 and "secret" not in caught.value.message
        await models.close()

    asyncio.run(main())


def test_what_cannot_be_served_is_said_at_the_start(tmp_path: Path, index_directory: Path) -> None:
    with pytest.raises(ModelNotFound):
        Models(ServeConfig(models={"a": tmp_path / "nothing"}))
    with pytest.raises(InputError, match="made with another model"):
        Models(ServeConfig(models={"a": PLAIN}, indexes={"i": index_directory}))
    with pytest.raises(ConfigError, match="carry"):
        ServeConfig(state="carry")
    with pytest.raises(ConfigError, match="queue is 0"):
        ServerLimits(queue=0)


def test_too_many_words_are_an_error() -> None:
    async def main() -> None:
        models = Models(ServeConfig(models={"a": PLAIN}, limits=ServerLimits(words=5)))
        with pytest.raises(ApiError, match="6 words; expected at most 5") as caught:
            await models.embed("a", [SENTENCE])
        assert caught.value.status == 422
        await models.close()

    asyncio.run(main())
