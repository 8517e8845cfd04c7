"""PyTorch's threads are restored, whatever happens."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from elmokit.nn.threads import torch_threads  # noqa: E402


def test_the_callers_number_is_restored() -> None:
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError), torch_threads(before + 1):
        raise RuntimeError
    assert torch.get_num_threads() == before
