"""A trained model as package data: its weights in float16, and what that costs.

    python runs/builtin/pack.py RUN_DIR OUT_DIR [--data DIR --report packed.json]

RUN_DIR is a model directory, as a run leaves it. OUT_DIR gets our own format, softmax, vocabulary
and settled state included; float16 is read back as float32. With --data, the perplexity of held-out
text is measured with float32, with float16, and with float16 and the softmax in 8 bits: the last
is not written (no format of ours has it), only compared, to know what it would cost.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import texts
from elmokit import Elmo, formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.errors import ElmoError, InputError
from elmokit.lm import perplexity
from measure import write

MOST_BYTES = 25_000_000
WORDS = 20_000
"""Of held-out text, for the comparison."""


def halved(bilm: BiLM) -> BiLM:
    """The same with its weights in float16."""
    weights = {}
    for name, array in bilm.weights.items():
        largest = float(np.abs(array).max(initial=0))
        if largest > float(np.finfo(np.float16).max):
            raise InputError(f"{name} holds {largest:g}, which float16 cannot")
        weights[name] = array.astype(np.float16)
    return replace(bilm, weights=weights)


def with_8_bit_softmax(bilm: BiLM) -> BiLM:
    """What the softmax would be if each row were 8-bit integers and a scale."""
    rows_VP = np.asarray(bilm.weights[SOFTMAX[0]], np.float32)
    scale_V1 = np.abs(rows_VP).max(axis=1, keepdims=True) / 127
    rounded: npt.NDArray[np.float32] = np.rint(rows_VP / np.maximum(scale_V1, 1e-12)) * scale_V1
    return replace(bilm, weights={**bilm.weights, SOFTMAX[0]: rounded})


def pack(run: Path, out: Path) -> tuple[BiLM, BiLM, list[Path]]:
    """Write the packed model; gives it before and after, and its files."""
    before = formats.read(run)
    if before.vocabulary is None or SOFTMAX[0] not in before.weights or before.settled is None:
        raise InputError(
            f"{run} lacks its vocabulary, its softmax or its settled state; expected a model that "
            "was trained by elmo pretrain"
        )
    after = halved(before)
    files = formats.write(after, out, "native")
    size = sum(file.stat().st_size for file in files)
    if size > MOST_BYTES:
        raise InputError(f"{out} has {size:,} bytes; at most {MOST_BYTES:,} fit into the package")
    return before, after, files


def compared(before: BiLM, after: BiLM, data: Path) -> dict[str, Any]:
    """The perplexities of each."""
    arms = {
        "float32": before,
        "float16": after,
        "float16, softmax in 8 bits": with_8_bit_softmax(after),
    }
    return {
        name: perplexity(Elmo(bilm), texts.sentences(data, "lm-en-valid"), words=WORDS).to_dict()
        for name, bilm in arms.items()
    }


def main() -> None:
    """The command."""
    about = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    about.add_argument("run", type=Path)
    about.add_argument("out", type=Path)
    about.add_argument("--data", type=Path, help="The directory of the data, to compare.")
    about.add_argument("--report", type=Path, help="A file of JSON for what was found.")
    given = about.parse_args()
    try:
        before, after, files = pack(given.run, given.out)
        sizes = {file.name: file.stat().st_size for file in files}
        found: dict[str, Any] = {
            "fingerprint": after.fingerprint,
            "of": before.fingerprint,
            "files": sizes,
            "bytes": sum(sizes.values()),
        }
        print(f"{found['bytes'] / 1e6:.1f} MB -> {given.out}")
        if given.data:
            found["perplexity"] = compared(before, after, given.data)
            for name, values in found["perplexity"].items():
                print(f"{name:<28} {values['forward']:.3f} {values['backward']:.3f}")
    except (ElmoError, OSError) as error:
        sys.exit(f"pack: {error}")
    if given.report:
        write(given.report, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
