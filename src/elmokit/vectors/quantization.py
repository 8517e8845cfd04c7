"""Vectors in fewer bytes: float16, int8 with a scale per vector, or k-means codes.

All of it is exact integer or elementwise arithmetic, so that the code of a vector depends on the
vector alone: not on its batch, its shard or the machine.

Shape letters: N vectors, D numbers of a vector, P parts of a vector, W = D / P numbers of a part,
K clusters.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from elmokit.bilm.weights import FloatArray
from elmokit.errors import InputError

StoredAs = Literal["float32", "float16", "int8", "kmeans"]
"""How vectors are stored."""
STORED_AS: tuple[StoredAs, ...] = get_args(StoredAs)
_BLOCK = 1024


def quantize_int8(vectors_ND: FloatArray) -> tuple[npt.NDArray[np.int8], FloatArray]:
    """Return vectors as int8, and the scale of each: a vector is about its code times its scale."""
    largest_N1 = np.abs(vectors_ND).max(axis=-1, keepdims=True, initial=0.0)
    scale_N1 = (largest_N1 / np.float32(127)).astype(np.float32)
    safe = np.where(scale_N1 > 0, scale_N1, np.float32(1))
    codes = np.rint(vectors_ND / safe).astype(np.int8)
    return codes, scale_N1[..., 0]


def dequantize_int8(codes_ND: npt.NDArray[np.int8], scale_N: FloatArray) -> FloatArray:
    """Return the vectors that `quantize_int8` has coded, to half a scale."""
    vectors: FloatArray = codes_ND.astype(np.float32) * scale_N[..., None]
    return vectors


@dataclass(frozen=True)
class Codebook:
    """The centers of clusters, part by part: a product quantizer; with one part, plain k-means.

    A vector is rounded to multiples of `scale` first, and the centers are such multiples too, so
    that all distances are integers.
    """

    centers_PKW: npt.NDArray[np.int8]
    """Centers of the clusters, in multiples of the scale."""
    scale: float
    """Size of a step."""

    @property
    def parts(self) -> int:
        """Number of parts, and of codes per vector."""
        return len(self.centers_PKW)

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return self.parts * int(self.centers_PKW.shape[2])

    @property
    def fingerprint(self) -> str:
        """Hash of the codebook."""
        data = self.centers_PKW.tobytes() + f"{self.centers_PKW.shape} {self.scale!r}".encode()
        return hashlib.sha256(data).hexdigest()

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of a code."""
        return np.dtype("u1" if self.centers_PKW.shape[1] <= 256 else "<u2")

    def encode(self, vectors_ND: FloatArray) -> npt.NDArray[Any]:
        """Return the codes (N, P) of vectors: the number of the nearest center of each part."""
        steps_PNW = self._steps(vectors_ND)
        codes = [
            _nearest(steps_NW, centers_KW)
            for steps_NW, centers_KW in zip(steps_PNW, self.centers_PKW, strict=True)
        ]
        return np.stack(codes, axis=1).astype(self.dtype)

    def decode(self, codes_NP: npt.NDArray[Any]) -> FloatArray:
        """Return the centers (N, D) that codes stand for."""
        parts = [self.centers_PKW[p][codes_NP[:, p]] for p in range(self.parts)]
        vectors: FloatArray = np.concatenate(parts, axis=1).astype(np.float32)
        return vectors * np.float32(self.scale)

    def _steps(self, vectors_ND: FloatArray) -> npt.NDArray[np.int8]:
        return _divide(_round_to_steps(vectors_ND, self.scale), self.parts)


def learn_codebook(
    vectors_ND: FloatArray, clusters: int = 256, parts: int = 16, rounds: int = 10
) -> Codebook:
    """Return the codebook of a sample of vectors, by k-means with integer arithmetic.

    Args:
        vectors_ND: The sample.
        clusters: Clusters of each part, up to 65,536; fewer if the sample has fewer vectors.
        parts: Parts of a vector with clusters of their own; must divide D.
        rounds: Rounds of k-means.
    """
    count, dim = vectors_ND.shape
    if parts < 1 or dim % parts:
        raise InputError(f"parts is {parts}; expected a number that divides {dim}, such as 16")
    if not 2 <= clusters <= 1 << 16:
        raise InputError(f"clusters is {clusters}; expected 2 to 65,536")
    if count < 2:
        raise InputError(f"the text has {count} words, too few to learn clusters from")
    clusters = min(clusters, count)
    # All but one number of 10,000 fit in int8; those beyond are clipped.
    scale = float(np.quantile(np.abs(vectors_ND), 0.9999)) / 127 or 1.0
    steps_PNW = _divide(_round_to_steps(vectors_ND, scale), parts)
    centers = []
    for steps_NW in steps_PNW:
        centers_KW = steps_NW[np.arange(clusters) * count // clusters].copy()
        for _ in range(rounds):
            nearest_N = _nearest(steps_NW, centers_KW)
            sums_KW = np.zeros(centers_KW.shape, np.int64)
            np.add.at(sums_KW, nearest_N, steps_NW.astype(np.int64))
            sizes_K1 = np.bincount(nearest_N, minlength=clusters)[:, None]
            means_KW = np.rint(sums_KW / np.maximum(sizes_K1, 1)).astype(np.int8)
            # A cluster without vectors moves to one of those that are farthest from their own.
            distance_N = ((steps_NW.astype(np.int64) - centers_KW[nearest_N]) ** 2).sum(axis=1)
            far_KW = steps_NW[np.argsort(-distance_N, kind="stable")[:clusters]]
            centers_KW = means_KW
            empty = np.flatnonzero(sizes_K1[:, 0] == 0)
            centers_KW[empty] = far_KW[: len(empty)]
        centers.append(centers_KW)
    return Codebook(np.stack(centers), scale)


def _round_to_steps(vectors_ND: FloatArray, scale: float) -> npt.NDArray[np.int8]:
    steps = np.rint(vectors_ND / np.float32(scale))
    clipped: npt.NDArray[np.int8] = np.clip(steps, -127, 127).astype(np.int8)
    return clipped


def _divide(steps_ND: npt.NDArray[np.int8], parts: int) -> npt.NDArray[np.int8]:
    return steps_ND.reshape(len(steps_ND), parts, -1).transpose(1, 0, 2)


def _nearest(
    steps_NW: npt.NDArray[np.int8], centers_KW: npt.NDArray[np.int8]
) -> npt.NDArray[np.int64]:
    """Return the nearest center of each row; the first of equally near ones.

    Sums of products of int8 are integers below 2^24 for up to 256 numbers, so float32 represents
    them exactly, in whatever order BLAS adds them; longer parts take float64.
    """
    exact: Any = np.float32 if centers_KW.shape[1] <= 256 else np.float64
    centers = centers_KW.astype(exact)
    squares_K = (centers * centers).sum(axis=1)
    nearest = np.empty(len(steps_NW), np.int64)
    for k in range(0, len(steps_NW), _BLOCK):
        block = steps_NW[k : k + _BLOCK].astype(exact)
        nearest[k : k + _BLOCK] = (squares_K - 2 * (block @ centers.T)).argmin(axis=1)
    return nearest
