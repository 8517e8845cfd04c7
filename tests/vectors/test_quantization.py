"""Codes of vectors depend on the vector alone, and are near it."""

from __future__ import annotations

import numpy as np
import pytest

from elmokit.errors import InputError
from elmokit.vectors.quantization import dequantize_int8, learn_codebook, quantize_int8


def vectors(count: int, dim: int = 24) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, dim)).astype(np.float32)


def test_int8() -> None:
    x_ND = vectors(50)
    x_ND[3] = 0
    codes, scales = quantize_int8(x_ND)
    assert codes.dtype == np.int8 and np.abs(codes).max() == 127
    error = np.abs(dequantize_int8(codes, scales) - x_ND)
    assert (error <= scales[:, None] * 0.5001).all()
    alone, scale = quantize_int8(x_ND[7:8])
    assert np.array_equal(alone[0], codes[7]) and scale[0] == scales[7]


@pytest.mark.parametrize(("dim", "parts"), [(24, 3), (24, 1), (600, 1)])
def test_kmeans(dim: int, parts: int) -> None:
    x_ND = np.concatenate([5 * vectors(4, dim)] * 40)
    book = learn_codebook(x_ND, clusters=8, parts=parts)
    codes = book.encode(x_ND)
    assert codes.shape == (len(x_ND), parts) and codes.dtype == np.uint8
    one_by_one = np.concatenate([book.encode(x_ND[k : k + 1]) for k in range(len(x_ND))])
    assert np.array_equal(codes, one_by_one)
    assert np.abs(book.decode(codes) - x_ND).max() < 0.3
    assert learn_codebook(x_ND, clusters=8, parts=parts).fingerprint == book.fingerprint


def test_wrong_settings() -> None:
    with pytest.raises(InputError, match="divides 24"):
        learn_codebook(vectors(10), parts=7)
    with pytest.raises(InputError, match="2 to 65,536"):
        learn_codebook(vectors(10), clusters=1, parts=3)
    with pytest.raises(InputError, match="too few"):
        learn_codebook(vectors(1), parts=3)
