"""Valid calls of every function of `elmokit._native`, which `kernel_victim.py` spoils.

All arrays end where their memory ends: whoever reads or writes beyond them dies.
"""

from __future__ import annotations

import ctypes
import math
import mmap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from elmokit.engine import native

Arguments = dict[str, Any]
"""Arguments by name; those of positional-only functions are in order."""


# -- arrays at the end of their memory -------------------------------------------------------------

PROTECTED = 0  # PROT_NONE


def guarded(array: np.ndarray) -> np.ndarray:
    """Return a copy whose last byte is followed by memory that cannot be read or written."""
    array = np.ascontiguousarray(array)
    pages = -(-array.nbytes // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    end = pages * mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start + end), mmap.PAGESIZE, PROTECTED):
        raise OSError(ctypes.get_errno(), "mprotect")
    copy = np.frombuffer(memory, array.dtype, array.size, end - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


# -- valid calls -----------------------------------------------------------------------------------


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return guarded(rng.normal(0, 0.5, shape).astype(np.float32))


def _dtype(rng: np.random.Generator) -> native.Dtype:
    return native.DTYPES[rng.integers(len(native.DTYPES))]


def _isa(rng: np.random.Generator, dtype: native.Dtype = "float32") -> str:
    return str(rng.choice(native.instruction_sets(dtype)))


def _filters(rng: np.random.Generator) -> list[tuple[int, int]]:
    count = rng.integers(1, 4)
    return [(int(rng.integers(1, 5)), int(rng.integers(1, 40))) for _ in range(count)]


def network_arguments(rng: np.random.Generator) -> Arguments:
    """Return the arguments of a small network of any architecture."""
    filters = _filters(rng)
    all_filters = sum(count for _, count in filters)
    character_projection, projection = bool(rng.integers(2)), bool(rng.integers(2))
    width = int(rng.integers(1, 40)) if character_projection else all_filters
    dtype = _dtype(rng)
    return {
        "filters": filters,
        "characters": int(rng.integers(1, 300)),
        "embedding_dim": int(rng.integers(1, 9)),
        "max_characters": int(rng.integers(5, 12)),
        "tanh": bool(rng.integers(2)),
        "highways": int(rng.integers(0, 3)),
        "character_projection": character_projection,
        "cells": int(rng.integers(1, 70)) if projection else width,
        "width": width,
        "layers": int(rng.integers(1, 3)),
        "projection": projection,
        "skip": bool(rng.integers(2)),
        "cell_clip": float(rng.choice([0.5, 3, math.inf])),
        "projection_clip": float(rng.choice([0.5, 3, math.inf])),
        "dtype": dtype,
        "instruction_set": _isa(rng, dtype),
        "threads": int(rng.integers(1, 4)),
    }


def random_network(rng: np.random.Generator, loaded: bool = True) -> tuple[Any, Arguments]:
    """Return a network of any architecture, and the arguments that made it."""
    sizes = network_arguments(rng)
    network = native._native.Network(**sizes)
    if loaded:
        for name, arguments in weights_of(rng, sizes):
            getattr(network, name)(*arguments.values())
    return network, sizes


def weights_of(rng: np.random.Generator, sizes: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Yield each load method and its arguments."""
    n, width = sum(count for _, count in sizes["filters"]), sizes["width"]
    cells, embedding_dim = sizes["cells"], sizes["embedding_dim"]
    yield "load_embedding", {"embedding": _floats(rng, sizes["characters"], embedding_dim)}
    for index, (filter_width, count) in enumerate(sizes["filters"]):
        weight = _floats(rng, filter_width, embedding_dim, count)
        yield "load_filters", {"index": index, "weight": weight, "bias": _floats(rng, count)}
    for index in range(sizes["highways"]):
        carry = {"carry": _floats(rng, n, n), "carry_bias": _floats(rng, n)}
        transform = {"transform": _floats(rng, n, n), "transform_bias": _floats(rng, n)}
        yield "load_highway", {"index": index, **carry, **transform}
    if sizes["character_projection"]:
        yield "load_projection", {"weight": _floats(rng, n, width), "bias": _floats(rng, width)}
    for layer in range(sizes["layers"]):
        for direction in range(2):
            projection = _floats(rng, cells, width) if sizes["projection"] else None
            yield (
                "load_lstm",
                {
                    "layer": layer,
                    "direction": direction,
                    "input": _floats(rng, width, 4 * cells),
                    "recurrent": _floats(rng, width, 4 * cells),
                    "bias": _floats(rng, 4 * cells),
                    "projection": projection,
                },
            )


def _load(name: str) -> Callable[[np.random.Generator], Arguments]:
    def arguments(rng: np.random.Generator) -> Arguments:
        while True:
            network, sizes = random_network(rng, loaded=False)
            found = [arguments for method, arguments in weights_of(rng, sizes) if method == name]
            if found:
                return {"self": network, **found[rng.integers(len(found))]}

    return arguments


def _packing(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return `alive` and `mirror` of sentences of random lengths."""
    lengths = np.sort(rng.integers(1, 9, rng.integers(1, 7)))[::-1]
    alive = np.array([(lengths > step).sum() for step in range(lengths[0])], np.int64)
    starts = np.concatenate([[0], np.cumsum(alive)])
    mirror = np.empty(lengths.sum(), np.int64)
    for rank, length in enumerate(lengths):
        for step in range(length):
            mirror[starts[step] + rank] = starts[length - 1 - step] + rank
    return guarded(alive), guarded(mirror)


def word_arguments(rng: np.random.Generator, sizes: Arguments) -> Arguments:
    """Return the arguments of `word_vectors` for a network of these sizes."""
    words, longest = int(rng.integers(0, 30)), sizes["max_characters"]
    return {
        "ids": guarded(rng.integers(0, sizes["characters"], (words, longest)).astype(np.int16)),
        "lengths": guarded(rng.integers(0, longest + 1, words)),
        "out": _floats(rng, words, sizes["width"]),
    }


def sentence_arguments(rng: np.random.Generator, sizes: Arguments) -> Arguments:
    """Return the arguments of `contextualize` for a network of these sizes."""
    alive, mirror = _packing(rng)
    n, sentences = len(mirror), int(alive[0] + rng.integers(0, 2))
    layers, width, cells = sizes["layers"], sizes["width"], sizes["cells"]
    return {
        "words": _floats(rng, n, width),
        "alive": alive,
        "mirror": mirror,
        "hidden": _floats(rng, layers, 2, sentences, width),
        "cell": _floats(rng, layers, 2, sentences, cells),
        "layers": _floats(rng, layers + 1, n, 2 * width),
    }


def _method(
    arguments: Callable[[np.random.Generator, Arguments], Arguments],
) -> Callable[[np.random.Generator], Arguments]:
    def with_network(rng: np.random.Generator) -> Arguments:
        network, sizes = random_network(rng)
        return {"self": network, **arguments(rng, sizes)}

    return with_network


def _convolution(rng: np.random.Generator) -> tuple[Arguments, int, int, int]:
    filters = _filters(rng)
    words, characters = int(rng.integers(0, 20)), int(rng.integers(1, 30))
    longest = int(rng.integers(5, 12))
    arguments = {
        "isa": _isa(rng),
        "filters": filters,
        "max_characters": longest,
        "tanh": bool(rng.integers(2)),
        "ids": guarded(rng.integers(0, characters, (words, longest)).astype(np.int16)),
        "lengths": guarded(rng.integers(0, longest + 1, words)),
    }
    padded = [count + -count % native._native.PADDED_FILTERS for _, count in filters]
    columns = sum(width * size for (width, _), size in zip(filters, padded, strict=True))
    return arguments, characters, columns, sum(padded)


def _convolution_forward(rng: np.random.Generator) -> Arguments:
    shared, characters, columns, padded = _convolution(rng)
    ids, lengths = shared.pop("ids"), shared.pop("lengths")
    words = len(ids)
    return {
        **shared,
        "table": _floats(rng, characters, columns),
        "biases": _floats(rng, padded),
        "ids": ids,
        "lengths": lengths,
        "outputs": _floats(rng, words, sum(count for _, count in shared["filters"])),
        "positions": guarded(np.zeros((words, padded), np.int16)),
    }


def _convolution_backward(rng: np.random.Generator) -> Arguments:
    shared, characters, columns, padded = _convolution(rng)
    words, filters = len(shared["ids"]), sum(count for _, count in shared["filters"])
    return {
        **shared,
        "outputs": _floats(rng, words, filters),
        "positions": guarded(np.zeros((words, padded), np.int16)),
        "d_outputs": _floats(rng, words, filters),
        "d_biases": _floats(rng, filters),
        "d_table": _floats(rng, characters, columns),
    }


def _lstm(rng: np.random.Generator, backward: bool) -> Arguments:
    alive, mirror = _packing(rng)
    n, b = len(mirror), int(alive[0])
    width, cells = int(rng.integers(1, 40)), 16 * int(rng.integers(1, 4))
    shared = {
        "isa": _isa(rng),
        "alive": alive,
        "recurrent": _floats(rng, width, 4 * cells),
        "projection": _floats(rng, cells, width),
        "cell_clip": float(rng.choice([0.5, 3, math.inf])),
        "projection_clip": float(rng.choice([0.5, 3, math.inf])),
    }
    results = {"gates": _floats(rng, n, 4 * cells), "cells": _floats(rng, n, cells)}
    if not backward:
        return {
            **shared,
            "initial_hidden": _floats(rng, b, width),
            "initial_cell": _floats(rng, b, cells),
            **results,
            "cell_outputs": _floats(rng, n, cells),
            "outputs": _floats(rng, n, width),
        }
    return {
        **shared,
        "initial_cell": _floats(rng, b, cells),
        **results,
        "outputs": _floats(rng, n, width),
        "d_outputs": _floats(rng, n, width),
        "d_hidden": _floats(rng, b, width),
        "d_cell": _floats(rng, b, cells),
        "d_gates": _floats(rng, n, 4 * cells),
        "d_projected": _floats(rng, n, width),
    }


def _softmax(rng: np.random.Generator) -> Arguments:
    rows, width, words = (int(rng.integers(low, 30)) for low in (0, 1, 1))
    candidates = int(rng.integers(0, words + 1))
    columns = candidates + -candidates % native._native.SOFTMAX_COLUMNS
    arguments = {
        "isa": _isa(rng),
        "candidates": candidates,
        "logits": _floats(rng, rows, columns),
        "bias": _floats(rng, columns),
        "hidden": _floats(rng, rows, width),
        "weights": _floats(rng, words, width),
        "targets": guarded(rng.integers(0, words, rows)),
        "target_bias": _floats(rng, rows),
    }
    gradients = (_floats(rng, rows, width), _floats(rng, words, width))
    bias_gradient = _floats(rng, max(words, columns))
    names = ("hidden_gradient", "weight_gradient", "bias_gradient")
    for name, gradient in zip(names, (*gradients, bias_gradient), strict=True):
        arguments[name] = gradient if rng.integers(2) else None
    return arguments


def _halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers of bfloat16 as integers."""
    floats = rng.normal(0, 0.5, shape).astype(np.float32)
    return guarded((floats.view(np.uint32) >> 16).astype(np.uint16).view(np.int16))


def _tile_lstm(rng: np.random.Generator, backward: bool) -> Arguments:
    alive, mirror = _packing(rng)
    n, b = len(mirror), int(alive[0])
    width, cells = int(rng.integers(1, 70)), 16 * int(rng.integers(1, 4))
    depth, rows = native._native.TILE_DEPTH, n + native._native.TILE_MARGIN
    weights = {
        "input": (width, 4 * cells),
        "recurrent": (width, 4 * cells),
        "bias": (4 * cells,),
        "projection": (cells, width),
    }
    shared = {
        "isa": _isa(rng, "bfloat16"),
        "alive": alive,
        **{name: _floats(rng, *shape) for name, shape in weights.items()},
        "cell_clip": float(rng.choice([0.5, 3, math.inf])),
        "projection_clip": float(rng.choice([0.5, 3, math.inf])),
    }
    results = {
        "gates": _floats(rng, n, 4 * cells),
        "cells": _floats(rng, n, cells),
        "factors": _halves(rng, rows, 2 * (width + -width % depth)),
        "cell_outputs": _halves(rng, rows, cells + -cells % depth),
        "outputs": _floats(rng, n, width),
    }
    if not backward:
        return {
            **shared,
            "inputs": _floats(rng, n, width),
            "initial_hidden": _floats(rng, b, width),
            "initial_cell": _floats(rng, b, cells),
            **results,
        }
    return {
        **shared,
        "initial_cell": _floats(rng, b, cells),
        **results,
        "d_outputs": _floats(rng, n, width),
        "d_inputs": _floats(rng, n, width) if rng.integers(2) else None,
        "d_hidden": _floats(rng, b, width),
        "d_cell": _floats(rng, b, cells),
        **{f"d_{name}": _floats(rng, *shape) for name, shape in weights.items()},
    }


def _tile_softmax(rng: np.random.Generator) -> Arguments:
    while True:
        arguments = _softmax(rng)
        if arguments["candidates"] > 0:
            break
    del arguments["logits"]
    return {**arguments, "isa": _isa(rng, "bfloat16")}


def _multiply(rng: np.random.Generator) -> Arguments:
    rows, depth, columns = (int(rng.integers(low, 700)) for low in (0, 1, 1))
    a_transposed, b_transposed = bool(rng.integers(2)), bool(rng.integers(2))
    return {
        "isa": _isa(rng),
        "a": _floats(rng, *((depth, rows) if a_transposed else (rows, depth))),
        "a_transposed": a_transposed,
        "b": _floats(rng, *((columns, depth) if b_transposed else (depth, columns))),
        "b_transposed": b_transposed,
        "bias": _floats(rng, columns) if rng.integers(2) else None,
        "out": _floats(rng, rows, columns),
        "add": bool(rng.integers(2)),
    }


def _tile_affine(rng: np.random.Generator, backward: bool) -> Arguments:
    rows, inputs, outputs = (int(rng.integers(low, 70)) for low in (0, 1, 1))
    shared = {
        "isa": _isa(rng, "bfloat16"),
        "x": _floats(rng, rows, inputs),
        "weight": _floats(rng, inputs, outputs),
    }
    if not backward:
        return {**shared, "bias": _floats(rng, outputs), "y": _floats(rng, rows, outputs)}
    gradients = {"d_x": (rows, inputs), "d_weight": (inputs, outputs), "d_bias": (outputs,)}
    return {
        **shared,
        "d_y": _floats(rng, rows, outputs),
        **{n: _floats(rng, *s) if rng.integers(2) else None for n, s in gradients.items()},
    }


def _measured(rng: np.random.Generator, dtype: native.Dtype) -> Arguments:
    return {
        "instruction_set": _isa(rng, dtype),
        "threads": int(rng.integers(1, 4)),
        "seconds": float(rng.choice([1e-6, 1e-3])),
    }


def _measure_products(rng: np.random.Generator) -> Arguments:
    dtype = _dtype(rng)
    return {**_measured(rng, dtype), "dtype": dtype}


def _measure_reads(rng: np.random.Generator) -> Arguments:
    return {**_measured(rng, "float32"), "bytes": int(rng.integers(1 << 14, 1 << 16))}


def _plan(rng: np.random.Generator) -> Arguments:
    names = ("threads", "sentences", "step_products", "step_bytes")
    return {name: int(rng.integers(1, 4096)) for name in names}


VALID_CALLS: dict[str, Callable[[np.random.Generator], Arguments]] = {
    "Network": network_arguments,
    "Network.load_embedding": _load("load_embedding"),
    "Network.load_filters": _load("load_filters"),
    "Network.load_highway": _load("load_highway"),
    "Network.load_projection": _load("load_projection"),
    "Network.load_lstm": _load("load_lstm"),
    "Network.buffer_bytes": _method(lambda rng, sizes: {}),
    "Network.word_vectors": _method(word_arguments),
    "Network.contextualize": _method(sentence_arguments),
    "convolution_forward": _convolution_forward,
    "convolution_backward": _convolution_backward,
    "lstm_forward": lambda rng: _lstm(rng, backward=False),
    "lstm_backward": lambda rng: _lstm(rng, backward=True),
    "softmax": _softmax,
    "tile_lstm_forward": lambda rng: _tile_lstm(rng, backward=False),
    "tile_lstm_backward": lambda rng: _tile_lstm(rng, backward=True),
    "tile_softmax": _tile_softmax,
    "tile_affine_forward": lambda rng: _tile_affine(rng, backward=False),
    "tile_affine_backward": lambda rng: _tile_affine(rng, backward=True),
    "multiply": _multiply,
    "measure_products": _measure_products,
    "measure_reads": _measure_reads,
    "plan": _plan,
    "inject_failure": lambda rng: {"worker": bool(rng.integers(2)), "after": -1},
    "instruction_sets": lambda rng: {"dtype": _dtype(rng)},
}
"""Every function and method of the module, with a function that makes valid arguments."""
WITH_NAMES = (
    "Network",
    "inject_failure",
    "instruction_sets",
    "measure_products",
    "measure_reads",
    "plan",
)
"""Functions whose arguments are keywords."""
OUTPUTS = {
    "Network.word_vectors": ("out",),
    "Network.contextualize": ("hidden", "cell", "layers"),
    "convolution_forward": ("outputs", "positions"),
    "convolution_backward": ("d_biases", "d_table"),
    "lstm_forward": ("gates", "cells", "cell_outputs", "outputs"),
    "lstm_backward": ("d_hidden", "d_cell", "d_gates", "d_projected"),
    "softmax": ("logits", "hidden_gradient", "weight_gradient", "bias_gradient"),
    "tile_lstm_forward": ("gates", "cells", "factors", "cell_outputs", "outputs"),
    "tile_lstm_backward": (
        "d_inputs",
        "d_hidden",
        "d_cell",
        "d_input",
        "d_recurrent",
        "d_bias",
        "d_projection",
    ),
    "tile_softmax": ("hidden_gradient", "weight_gradient", "bias_gradient"),
    "multiply": ("out",),
    "tile_affine_forward": ("y",),
    "tile_affine_backward": ("d_x", "d_weight", "d_bias"),
}
"""Arguments that a function writes to."""


def names_in_module() -> set[str]:
    """Return the names of all public functions of the module, and of the methods of its classes."""
    names = set()
    for name, value in vars(native._native).items():
        if name.startswith("_") or not callable(value):
            continue
        names.add(name)
        if isinstance(value, type):
            names |= {f"{name}.{method}" for method in vars(value) if not method.startswith("_")}
    return names


@cache
def argument_names(function: str) -> list[str]:
    """Return the names of the arguments of a function."""
    return list(VALID_CALLS[function](np.random.default_rng(0)))
