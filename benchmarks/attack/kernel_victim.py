"""Wrong calls of every function of `elmokit._native`, in a process that may die.

`MUTATIONS` spoil an argument of a valid call of `kernel_calls.py`. A `Victim` is a child process
that does the calls, so that a crash is seen from outside.
"""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from kernel_calls import (
    OUTPUTS,
    VALID_CALLS,
    WITH_NAMES,
    Arguments,
    argument_names,
    guarded,
    random_network,
    sentence_arguments,
    weights_of,
    word_arguments,
)

from elmokit.engine import native

Case = dict[str, Any]
"""A call as JSON: `function`, `seed`, and `mutations`, pairs of argument and mutation."""

EXPECTED_ERRORS = (TypeError, ValueError, IndexError, OverflowError, MemoryError)
MEMORY = 8 << 30
"""Address space of a victim in bytes, so that a size that is too large is an error."""

INTEGERS = [0, -1, 1, 2, 3, 7, 255, 2**15, 2**20, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63, 10**30]
OTHER_VALUES: list[Any] = [
    *INTEGERS,
    *(None, True, False, 0.5, math.nan, math.inf, -math.inf, -0.0, 1e308),
    *("", "avx9", "\ud800", "portable\0", b"", [], {}, (), [(0, 1)], [(1, 0)], [(-1, 5)]),
    *([(2**31 - 1, 2**31 - 1)], [(1, 2**20)] * 3, [(1,)], object(), np.float32(1), np.int64(-5)),
    *(np.zeros(0, np.float32), np.zeros((3, 0), np.float32), np.array(1.0, np.float32), len),
]
DTYPES = "f2 f8 >f4 i1 i2 i4 i8 u2 u8 >i8 c8 ? O U3 M8[s]".split()
FLOATS = [math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-45, 0.0, -0.0]

MUTATIONS = (
    "value value dtype axes strided reversed transposed read-only unaligned size empty "
    "fill one fill one list view broadcast share missing"
).split()
"""What can be done to an argument; the more promising ones twice."""
ALWAYS_WRONG = {"dtype", "axes", "strided", "unaligned", "list", "broadcast"}
"""Mutations of an array that no function may accept."""


def mutate(arguments: Arguments, name: str, mutation: str, rng: np.random.Generator) -> bool:
    """Spoil one argument in place; return whether the call must be refused."""
    if mutation == "missing":
        del arguments[name]
        return True
    if name == "self":
        arguments[name] = _wrong_network(rng)
        return False
    array = arguments[name]
    if mutation == "value" or not isinstance(array, np.ndarray):
        arguments[name] = OTHER_VALUES[rng.integers(len(OTHER_VALUES))]
        return False
    arguments[name] = changed = _mutate_array(arguments, array, mutation, rng)
    if isinstance(changed, np.ndarray) and changed.size == array.size == 0:
        return mutation == "dtype" and changed.dtype != array.dtype
    return mutation in ALWAYS_WRONG and changed is not array


def _wrong_network(rng: np.random.Generator) -> Any:
    """Return a network of another architecture, one without weights, or none at all."""
    kind = rng.integers(4)
    if kind < 2:
        return random_network(rng, loaded=kind == 0)[0]
    return native._native.Network.__new__(native._native.Network) if kind == 2 else object()


def _mutate_array(
    arguments: Arguments, array: np.ndarray, mutation: str, rng: np.random.Generator
) -> Any:
    axis = int(rng.integers(array.ndim))
    if mutation == "dtype":
        others = [dtype for dtype in DTYPES if np.dtype(dtype) != array.dtype]
        return np.zeros(array.shape, others[rng.integers(len(others))])
    if mutation == "axes":
        return array.ravel() if array.ndim > 1 and rng.integers(2) else array[..., None]
    if mutation == "strided":
        wide = np.repeat(array, 2, axis=-1)[..., ::2]
        return wide if wide.size > 1 and array.shape[-1] > 1 else array
    if mutation == "reversed":
        return array[::-1]
    if mutation == "transposed":
        return array.T
    if mutation == "read-only":
        array.flags.writeable = False
        return array
    if mutation == "unaligned":
        memory = np.zeros(array.nbytes + 1, np.uint8)
        return memory[1:].view(array.dtype).reshape(array.shape)
    if mutation == "size":
        shape = list(array.shape)
        shape[axis] = max(0, shape[axis] + int(rng.choice([-1, 1, 2, 100])))
        return guarded(np.zeros(shape, array.dtype))
    if mutation == "empty":
        shape = list(array.shape)
        shape[axis] = 0
        return guarded(np.zeros(shape, array.dtype))
    if mutation in ("fill", "one"):
        if array.dtype == np.float32:
            value: Any = FLOATS[rng.integers(len(FLOATS))]
        else:
            limits = np.iinfo(array.dtype)
            values = [-1, limits.min, limits.max, array.size, 261, 0, 1]
            value = np.clip(values[rng.integers(len(values))], limits.min, limits.max)
        if mutation == "fill":
            array[...] = value
        elif array.size:
            array.flat[rng.integers(array.size)] = value
        return array
    if mutation == "list":
        return array.tolist()
    if mutation == "view":
        return memoryview(array)
    if mutation == "broadcast":
        flat = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        return flat if array.size > 1 else array
    others = [x for x in arguments.values() if isinstance(x, np.ndarray) and x is not array]
    same = [x for x in others if x.dtype == array.dtype and x.size >= array.size]
    if not same:
        return array
    return same[rng.integers(len(same))].ravel()[: array.size].reshape(array.shape)


def random_case(function: str, rng: np.random.Generator) -> Case:
    """Return a random wrong call of a function: up to three mutations of a valid one."""
    seed = int(rng.integers(2**31))
    names = argument_names(function)
    mutations = [
        [names[rng.integers(len(names))], MUTATIONS[rng.integers(len(MUTATIONS))]]
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 3]))
    ]
    return {"function": function, "seed": seed, "mutations": mutations}


def do_case(case: Case) -> dict[str, Any]:
    """Do a call; return its outcome: `returned` or `raised`, and a `finding` if that is wrong."""
    rng = np.random.default_rng(case["seed"])
    function = case["function"]
    arguments = VALID_CALLS[function](rng)
    must_fail, applied = False, set()
    for name, mutation in case["mutations"]:
        if name in arguments and name not in applied:
            applied.add(name)
            must_fail |= mutate(arguments, name, mutation, rng)
            if mutation == "read-only":
                must_fail |= name in OUTPUTS.get(function, ())
    optional = {"projection", "hidden_gradient", "weight_gradient", "bias_gradient"}
    if optional & applied:
        must_fail = False
    target: Any = native._native
    for part in function.split("."):
        target = getattr(target, part)
    try:
        if function == "Network":
            _use(target(**arguments), arguments, rng)
        elif function in WITH_NAMES:
            target(**arguments)
        else:
            target(*arguments.values())
    except EXPECTED_ERRORS as error:
        found = None if case["mutations"] else f"a valid call raised {error!r}"
        return {"outcome": "raised", "error": f"{type(error).__name__}: {error}", "finding": found}
    except Exception as error:
        missing = isinstance(error, RuntimeError) and "cannot start thread" in str(error)
        found = None if missing else f"an error of another kind: {error!r}"
        return {"outcome": "raised", "error": repr(error), "finding": found}
    finally:
        native._native.inject_failure(worker=False, after=-1)
    finding = "a wrong call was accepted" if must_fail else None
    return {"outcome": "returned", "error": None, "finding": finding}


def _use(network: Any, sizes: Arguments, rng: np.random.Generator) -> None:
    """Load and run a network whose architecture was accepted, unless it is very large."""
    numbers = [value for value in sizes.values() if isinstance(value, int)]
    if max(numbers) > 300 or any(count > 300 for _, count in sizes["filters"]):
        return
    for name, arguments in weights_of(rng, sizes):
        getattr(network, name)(*arguments.values())
    network.word_vectors(*word_arguments(rng, sizes).values())
    network.contextualize(*sentence_arguments(rng, sizes).values())


# -- the process that does them --------------------------------------------------------------------


class Victim:
    """A child process that does calls, and may die of one."""

    def __init__(self, timeout: float = 60) -> None:
        """Start the process.

        Args:
            timeout: Seconds after which a call counts as hanging.
        """
        self._timeout = timeout
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        here = str(Path(__file__).resolve().parent)
        path = os.pathsep.join([here, *(part for part in sys.path if part)])
        return subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", "import kernel_victim as k; k.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )

    def call(self, case: Case) -> dict[str, Any]:
        """Do a call in the process; return its outcome, with a `finding` if the process died."""
        calls, answers = self._process.stdin, self._process.stdout
        assert calls is not None and answers is not None  # they are pipes
        calls.write(json.dumps(case) + "\n")
        calls.flush()
        ready, _, _ = select.select([answers], [], [], self._timeout)
        answer = answers.readline() if ready else ""
        if answer:
            outcome: dict[str, Any] = json.loads(answer)
            return outcome
        if ready:
            finding = f"the process died with exit code {self._process.wait()}"
        else:
            finding = f"the call did not return within {self._timeout} s"
        self.close()
        self._process = self._start()
        return {"outcome": "died", "error": None, "finding": finding}

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """Do the calls that arrive on stdin, one per line."""
    warnings.simplefilter("ignore")
    if "ELMOKIT_SANITIZER" not in os.environ:  # sanitizers reserve terabytes
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin:
        print(json.dumps(do_case(json.loads(line))), flush=True)
