"""Pack a trained model as package data: weights in float16, and what that costs.

    python runs/builtin/pack.py RUN_DIR OUT_DIR [--data DIR --report packed.json]

RUN_DIR is the directory of a finished training run. OUT_DIR gets the model in elmokit's own format,
with its softmax, vocabulary and settled state; float16 is read back as float32. With --data, the
perplexity of held-out text is measured with float32, with float16, and with float16 and an 8-bit
softmax. The last is only compared, not written: no format of elmokit has it.
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

import data_files
from elmokit import Elmo, formats
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import SOFTMAX
from elmokit.errors import ElmoError, InputError
from elmokit.lm import perplexity
from measure import write_file

MAX_BYTES = 25_000_000
"""Size of the model that the package has room for."""
WORDS = 20_000
"""Words of held-out text for the comparison."""


def to_float16(bilm: BiLM) -> BiLM:
    """Return the model with its weights in float16."""
    weights = {}
    for name, array in bilm.weights.items():
        largest = float(np.abs(array).max(initial=0))
        if largest > float(np.finfo(np.float16).max):
            raise InputError(f"{name} has the value {largest:g}, which is too large for float16")
        weights[name] = array.astype(np.float16)
    return replace(bilm, weights=weights)


def with_8_bit_softmax(bilm: BiLM) -> BiLM:
    """Return the model as if each row of its softmax were stored as 8-bit integers and a scale."""
    rows_VP = np.asarray(bilm.weights[SOFTMAX[0]], np.float32)
    scale_V1 = np.abs(rows_VP).max(axis=1, keepdims=True) / 127
    rounded: npt.NDArray[np.float32] = np.rint(rows_VP / np.maximum(scale_V1, 1e-12)) * scale_V1
    return replace(bilm, weights={**bilm.weights, SOFTMAX[0]: rounded})


def pack(run: Path, out: Path) -> tuple[BiLM, BiLM, list[Path]]:
    """Write the packed model, and return the model before and after, and the files written."""
    before = formats.read(run)
    if before.vocabulary is None or SOFTMAX[0] not in before.weights or before.settled is None:
        raise InputError(
            f"{run} lacks its vocabulary, its softmax or its settled state; expected a model that "
            "was trained by `elmo pretrain`"
        )
    after = to_float16(before)
    files = formats.write(after, out, "native")
    size = sum(file.stat().st_size for file in files)
    if size > MAX_BYTES:
        raise InputError(f"{out} has {size:,} bytes; at most {MAX_BYTES:,} fit into the package")
    return before, after, files


def compare_perplexity(before: BiLM, after: BiLM, data: Path) -> dict[str, Any]:
    """Return the perplexities of the model before and after packing, and with an 8-bit softmax."""
    variants = {
        "float32": before,
        "float16": after,
        "float16, softmax in 8 bits": with_8_bit_softmax(after),
    }
    return {
        name: perplexity(
            Elmo(bilm), data_files.read_sentences(data, "lm-en-valid"), max_words=WORDS
        ).to_dict()
        for name, bilm in variants.items()
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("run", type=Path, help="Directory of the training run.")
    parser.add_argument("out", type=Path, help="Directory of the packed model.")
    parser.add_argument("--data", type=Path, help="Directory of the data, to compare perplexity.")
    parser.add_argument("--report", type=Path, help="JSON file for sizes and perplexities.")
    options = parser.parse_args()
    try:
        before, after, files = pack(options.run, options.out)
        sizes = {file.name: file.stat().st_size for file in files}
        report: dict[str, Any] = {
            "fingerprint": after.fingerprint,
            "of": before.fingerprint,
            "files": sizes,
            "bytes": sum(sizes.values()),
        }
        print(f"{report['bytes'] / 1e6:.1f} MB -> {options.out}")
        if options.data:
            report["perplexity"] = compare_perplexity(before, after, options.data)
            for name, values in report["perplexity"].items():
                print(f"{name:<28} {values['forward']:.3f} {values['backward']:.3f}")
    except (ElmoError, OSError) as error:
        sys.exit(f"pack: {error}")
    if options.report:
        write_file(options.report, json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
