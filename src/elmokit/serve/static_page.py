"""The page without a server: files for any static host, with the model as ONNX.

    from elmokit.serve import build_static_page

    build_static_page("site/play", runtime="node_modules/onnxruntime-web")

The page then runs the model in the browser with onnxruntime-web, which npm installs. What the
layers alone do not give (guesses, neighbors, the steps of the network) is computed by the page's
scripts from further files, which are loaded when a view needs them. Shape letters: L layers,
N uses, D size of a vector, P width, U distinct words.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import elmokit
from elmokit.bilm.weights import SOFTMAX
from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import InputError
from elmokit.inspect import inspect_model
from elmokit.serve.corpus_search import sample_corpus, spelled_words
from elmokit.serve.page_questions import describe_model, describe_samples
from elmokit.storage import explain_write_errors

PAGE = Path(__file__).parent / "page"
RUNTIME_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""The files of onnxruntime-web that the page needs."""
SERVER_MARK, BROWSER_MARK = (
    f'<meta name="elmo-source" content="{kind}">' for kind in ("server", "browser")
)


def build_static_page(
    out: str | Path, *, model: str | Path = BUILTIN, runtime: str | Path | None = None
) -> list[Path]:
    """Write the page with its model to a directory for any static host, and return the files.

    The command `elmo serve --static` does this. Needs `pip install 'elmokit[onnx]'`, and
    onnxruntime-web from npm.

    Args:
        out: Directory to write; an older page in it is replaced once the new one is complete.
        model: The model; one that reads bytes, as all but those of ELMoForManyLangs do.
        runtime: Directory of the npm package onnxruntime-web; by default
            `node_modules/onnxruntime-web`.
    """
    package = _find_runtime(runtime)
    target = Path(out).expanduser()
    if target.exists() and not _is_page(target):
        raise InputError(
            f"{out} exists and is not a page that elmokit wrote; choose another directory"
        )
    elmo = Elmo.load(model)
    if elmo.bilm.alphabet is not None:
        raise InputError(
            f"{model} reads code points; the page without a server runs models that read bytes, "
            "such as builtin. With a server it runs any model: elmo serve"
        )
    stage = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    with explain_write_errors(out):
        try:
            shutil.copytree(PAGE, stage / "page")
            _write_index(stage)
            (stage / "page" / "runtime").mkdir()
            for name in RUNTIME_FILES:
                shutil.copyfile(package / name, stage / "page" / "runtime" / name)
            _write_model(elmo, stage / "page" / "model", str(model))
            if target.exists():
                shutil.rmtree(target)
            os.replace(stage, target)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    return sorted(path for path in target.rglob("*") if path.is_file())


def _find_runtime(runtime: str | Path | None) -> Path:
    """Return the directory of the runtime's files, or raise an error that says how to get them."""
    package = Path(runtime or "node_modules/onnxruntime-web").expanduser()
    for directory in (package / "dist", package):
        if all((directory / name).is_file() for name in RUNTIME_FILES):
            return directory
    raise InputError(
        f"{package} does not have the files of onnxruntime-web; run `npm install onnxruntime-web` "
        "and give the directory node_modules/onnxruntime-web"
    )


def _is_page(directory: Path) -> bool:
    """Return whether a directory is empty, or a page of ours that may be replaced."""
    if not directory.is_dir():
        return False
    index = directory / "index.html"
    return not any(directory.iterdir()) or (
        index.is_file() and BROWSER_MARK in index.read_text(encoding="utf-8", errors="replace")
    )


def _write_index(stage: Path) -> None:
    index = stage / "page" / "index.html"
    text = index.read_text(encoding="utf-8")
    index.unlink()
    (stage / "index.html").write_text(text.replace(SERVER_MARK, BROWSER_MARK), encoding="utf-8")


def _write_model(elmo: Elmo, directory: Path, name: str) -> None:
    """Write the model, and what the views need beyond its layers."""
    directory.mkdir()
    elmo.save(directory / "model.onnx", "onnx")
    weights = elmo.bilm.weights
    state = elmo.settled
    network = {key: array for key, array in weights.items() if key not in SOFTMAX}
    network |= {"settled.hidden": state.hidden[:, :, 0], "settled.cell": state.cell[:, :, 0]}
    _save(directory / "network.safetensors", network)
    predicts = elmo.bilm.vocabulary is not None and SOFTMAX[0] in weights
    if predicts and elmo.bilm.vocabulary is not None:
        _save(directory / "softmax.safetensors", {key: weights[key] for key in SOFTMAX})
        (directory / "vocab.txt").write_bytes(elmo.bilm.vocabulary.dump())
    _write_neighbors(elmo, directory)
    label = BUILTIN if name == BUILTIN else Path(name).name
    info = {
        "version": elmokit.__version__,
        "offline": True,
        "models": [describe_model(label, dict(inspect_model(name)))],
        "predicts": predicts,
        "tasks": [],
        "indexes": [],
        **describe_samples(),
    }
    (directory / "info.json").write_text(json.dumps(info, ensure_ascii=False), encoding="utf-8")


def _write_neighbors(elmo: Elmo, directory: Path) -> None:
    """Write the vectors of the page's corpus, and those of frequent words by their characters.

    Half precision is enough to compare them; layer 0 is stored once per distinct word.
    """
    corpus, spelled = sample_corpus(elmo), spelled_words(elmo)
    width = elmo.config.lstm.width
    words = [word for sentence in corpus.sentences for word in sentence]
    number: dict[str, int] = {}
    form_N = np.array([number.setdefault(word, len(number)) for word in words], np.int32)
    first_U = np.unique(form_N, return_index=True)[1]
    arrays: dict[str, npt.NDArray[Any]] = {
        "spelling": corpus.layers_LND[0, first_U, :width].astype(np.float16),
        "form": form_N,
        "context": corpus.layers_LND[1:].astype(np.float16),
    }
    _save(directory / "corpus.safetensors", arrays, sentences=list(map(list, corpus.sentences)))
    vectors_VP = spelled.vectors_VP.astype(np.float16)
    _save(directory / "spelled.safetensors", {"vectors": vectors_VP}, words=spelled.words)


def _save(path: Path, arrays: dict[str, npt.NDArray[Any]], **metadata: Any) -> None:
    from safetensors.numpy import save_file

    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous, path, {name: json.dumps(value) for name, value in metadata.items()})
