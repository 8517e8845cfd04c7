"""Two processes that learn together: the same as one."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from safetensors.numpy import load_file  # noqa: E402
from tests.train.toy import PASSAGES, SENTENCES, STREAM, TINY, in_processes, toy_corpus  # noqa: E402

from elmokit.train.budget import Budget  # noqa: E402
from elmokit.train.distributed import SingleProcess, local_device, process_group, world_size  # noqa: E402
from elmokit.train.pretraining import pretrain, resume  # noqa: E402
from elmokit.train.recipe import Recipe  # noqa: E402
from elmokit.train.run import TrainingRun  # noqa: E402

needs_gloo = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed"
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_corpus(tmp_path_factory.mktemp("toy")).path


def learn_together(
    rank: int, ports: list[int], corpus: Path, out: Path, how: dict[str, Any]
) -> None:
    """As torchrun would have it. A signal to the second process stops both; then they go on."""
    os.environ |= {"RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{ports[0]}"}
    plain_after = TrainingRun._after_step

    def after(self: TrainingRun, step: Any) -> None:
        plain_after(self, step)
        if rank == 1 and self._loop.progress.step == 3:
            os.kill(os.getpid(), signal.SIGTERM)

    TrainingRun._after_step = after  # type: ignore[method-assign]
    try:
        pretrain(corpus, out, **how)
    except KeyboardInterrupt:
        os.environ["MASTER_PORT"] = f"{ports[1]}"
        resume(corpus, out, checkpoint_minutes=0)
    else:
        raise SystemExit("nobody stopped")


def free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as two:
        for each in (one, two):
            each.bind(("127.0.0.1", 0))
        return [one.getsockname()[1], two.getsockname()[1]]


@needs_gloo
@pytest.mark.parametrize(
    "recipe",
    [SENTENCES, PASSAGES, STREAM, SENTENCES.replace(shards=4, optimizer="muon")],
    ids=["sentences", "passages", "stream", "four-muon"],
)
def test_two_processes(recipe: Recipe, corpus: Path, tmp_path: Path) -> None:
    how = {"config": TINY, "recipe": recipe, "budget": Budget(tokens=700)}
    pretrain(corpus, tmp_path / "one", **how)  # type: ignore[arg-type]
    ports, out = free_ports(), tmp_path / "two"
    arguments = [(rank, ports, corpus, out, how) for rank in range(2)]
    assert in_processes(learn_together, arguments) == [0, 0]
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name, array in one.items():
        if recipe.shards == 2:
            assert (array == two[name]).all(), name
        else:  # four numbers are added in another order
            assert np.allclose(array, two[name], atol=1e-5), name
    assert len(list((out / "training/checkpoints").iterdir())) == 2


@needs_gloo
def test_processes_that_disagree(corpus: Path, tmp_path: Path) -> None:
    ports, out = free_ports(), tmp_path / "model"
    arguments = [
        (rank, ports, corpus, out, {"config": TINY, "recipe": recipe, "budget": Budget(tokens=700)})
        for rank, recipe in enumerate((SENTENCES, SENTENCES.replace(rate=0.1)))
    ]
    assert in_processes(learn_together, arguments) == [1, 1]
    assert not out.exists()


def test_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with process_group(torch.device("cpu")) as group:
        assert isinstance(group, SingleProcess)
    tensor = torch.arange(3.0)
    group.sum_(tensor)
    assert tensor.tolist() == [0, 1, 2]
    assert group.gather(tensor) == [tensor]
    assert group.broadcast(0.5) == 0.5
    assert group.any(True)
    assert not group.any(False)


def test_what_torchrun_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert world_size() == 4
    assert local_device("cuda") == torch.device("cuda", 3)
    assert local_device("cpu") == torch.device("cpu")
