"""Which network runs: the kernel where there is one, else the reference, said once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.engine import native, networks
from elmokit.engine.networks import ENGINE_VARIABLE, choose_network
from elmokit.errors import InputError


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_import_error", "it was not built")
    networks._warn_once.cache_clear()


def test_without_the_kernel_it_works_and_says_why_once(bilm: BiLM, no_kernel: None) -> None:
    with pytest.warns(RuntimeWarning, match=r"it was not built.*runs on NumPy.*C\+\+17 compiler"):
        assert choose_network(bilm, "float32", None).name == "reference"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choose_network(bilm, "float32", None)


def test_int8_needs_the_kernel(bilm: BiLM, no_kernel: None) -> None:
    with pytest.raises(InputError, match=r"dtype='int8' needs the compiled kernel.*not built"):
        choose_network(bilm, "int8", None)


def test_the_reference_can_be_asked_for(bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = Elmo(bilm).embed("one two three", layers="all")
    monkeypatch.setenv(ENGINE_VARIABLE, "reference")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reference = Elmo(bilm)
    assert reference.engine == "reference"
    assert np.allclose(reference.embed("one two three", layers="all"), vectors, atol=1e-5)
    with pytest.raises(InputError, match="disables it"):
        Elmo(bilm, dtype="int8")
    monkeypatch.setenv(ENGINE_VARIABLE, "gpu")
    with pytest.raises(InputError, match="ELMOKIT_ENGINE is 'gpu'; expected 'kernel'"):
        Elmo(bilm)


def test_the_kernel_runs_where_it_is_built(bilm: BiLM) -> None:
    if not native.kernel_available():
        pytest.skip(f"the kernel is not built: {native.kernel_error()}")
    assert choose_network(bilm, "float32", 1).name.startswith("kernel")
    assert choose_network(bilm, "int8", 1).name.endswith("int8)")
