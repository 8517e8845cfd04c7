"""ONNX files in onnxruntime-web, by Node, fed by the JavaScript of docs/onnx.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN, REPOSITORY

from elmokit import Elmo

pytest.importorskip("onnx", reason="writing ONNX files needs onnx")
MODULES = os.environ.get("ELMOKIT_NODE_MODULES", "")
"""A directory node_modules with onnxruntime-web, as `.ci/parts/onnx` makes it."""
if not MODULES or shutil.which("node") is None:
    pytest.skip(
        "needs node, and ELMOKIT_NODE_MODULES with onnxruntime-web", allow_module_level=True
    )

ENCODE, EXAMPLE = re.findall(
    r"```js\n(.*?)```", (REPOSITORY / "docs" / "onnx.md").read_text(encoding="utf-8"), re.DOTALL
)
COMPARE = """
import { readFile, writeFile } from "node:fs/promises";
const about = JSON.parse(await readFile("model.onnx.json", "utf8"));
const session = await ort.InferenceSession.create(await readFile("model.onnx"));
const batches = JSON.parse(await readFile("sentences.json", "utf8"));
for (let i = 0; i < batches.length; i++) {
  const { layers } = await session.run(encode(batches[i], about), ["layers"]);
  const { buffer, byteOffset, byteLength } = layers.data;
  await writeFile(`${i}.f32`, new Uint8Array(buffer, byteOffset, byteLength));
}
"""
WORDS = [*"She went to the bank . überraschung 東京 <S> </S> straße constructor".split(), "🦆" * 13]


def run_node(folder: Path, code: str) -> str:
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "program.mjs").write_text(code, encoding="utf-8")
    done = subprocess.run(["node", "program.mjs"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    Elmo.load().save(tmp_path / "model.onnx")
    assert run_node(tmp_path, ENCODE + EXAMPLE).splitlines() == ["[ 2, 6, 384 ]", "384"]


@pytest.mark.parametrize(
    "model", ["builtin", GOLDEN / "models" / "plain", GOLDEN / "many_langs/models/plain/native"]
)
def test_the_vectors_are_those_of_the_engine(model: str | Path, tmp_path: Path) -> None:
    elmo = Elmo.load(model)
    elmo.save(tmp_path / "model.onnx")
    rng = np.random.default_rng(0)
    batches = [
        [[WORDS[i] for i in rng.integers(0, len(WORDS), n)] for n in lengths]
        for lengths in ([1], [200], [5, 0, 30, 1, 90])
    ]
    (tmp_path / "sentences.json").write_text(json.dumps(batches), encoding="utf-8")
    run_node(tmp_path, ENCODE + COMPARE)
    for i, sentences in enumerate(batches):
        longest = max(map(len, sentences))
        layers = np.fromfile(tmp_path / f"{i}.f32", "<f4")
        layers = layers.reshape(elmo.layers, len(sentences), longest, elmo.dim)
        for b, vectors in enumerate(elmo.embed(sentences, "all")):
            error = np.abs(layers[:, b, : vectors.shape[1]] - vectors)
            assert (error / np.maximum(1, np.abs(vectors))).max(initial=0) < 1e-5
            assert not layers[:, b, vectors.shape[1] :].any()
