"""ONNX files: onnxruntime computes the vectors of the engine, for every golden model."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN, REPOSITORY, random_bilm, small_config

from elmokit import Elmo, convert_model, formats, inspect_model, staging
from elmokit.bilm.model import BiLM
from elmokit.engine.reference import ReferenceNetwork
from elmokit.engine.runner import Runner
from elmokit.errors import FormatError, InputError, WriteError
from elmokit.formats.onnx import files
from elmokit.text.characters import encode_sentences

onnx: Any = pytest.importorskip("onnx", reason="writing ONNX files needs onnx")
onnxruntime: Any = pytest.importorskip("onnxruntime", reason="the tests run the files by it")

MODELS = sorted(
    [path for path in (GOLDEN / "models").iterdir() if path.is_dir()]
    + [path / "native" for path in (GOLDEN / "many_langs" / "models").iterdir()]
    + [path for path in (GOLDEN / "tf").iterdir() if path.is_dir()]
)
VOCABULARY = [
    *"She went to the bank . überraschung 東京 <S> a </S> ' 1,234 straße die und".split(),
    "",
    "🦆" * 13,
    "internationalization" * 5,
]


def make_sentences(lengths: list[int], seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[VOCABULARY[i] for i in rng.integers(0, len(VOCABULARY), n)] for n in lengths]


def open_session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options)


def make_feed(sentences: list[list[str]], about: dict[str, Any]) -> dict[str, np.ndarray]:
    """The inputs, made from the metadata alone, as any program would."""
    rules, known = about["characters"], about.get("known_words")
    longest, width = max(map(len, sentences), default=0), about["max_characters"]
    ids = np.zeros((len(sentences), longest, width), np.int64)
    rows = np.zeros((len(sentences), longest), np.int64)
    for b, words in enumerate(sentences):
        for t, word in enumerate(words):
            most = rules["most_per_word"]
            if word in rules["sentence_mark_words"]:
                characters = [rules["sentence_mark_words"][word]]
            elif "alphabet" not in rules:
                characters = [byte + 1 for byte in word.encode()[:most]]
            else:
                alphabet = {entry: i + 1 for i, entry in enumerate(rules["alphabet"])}
                characters = [alphabet.get(c, rules["unknown"]) for c in word[:most]]
            ids[b, t] = rules["padding"]
            ids[b, t, : len(characters) + 2] = [rules["begin_word"], *characters, rules["end_word"]]
            if known:
                entries = {entry: i for i, entry in enumerate(known["entries"])}
                rows[b, t] = entries.get(word[:most], known["unknown"])
    lengths = np.array([len(words) for words in sentences], np.int64)
    return {"character_ids": ids, "lengths": lengths} | ({"word_ids": rows} if known else {})


def largest_difference(
    elmo: Elmo, session: Any, about: dict[str, Any], sentences: list[list[str]]
) -> float:
    """The largest difference to the engine: absolute below 1, relative above."""
    layers_LBTD, mix_BTD = session.run(["layers", "mix"], make_feed(sentences, about))
    assert layers_LBTD.shape[:2] == (elmo.layers, len(sentences))
    worst = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # long words are cut
        expected, mixed = elmo.embed(sentences, "all"), elmo.embed(sentences)
    for b, words in enumerate(sentences):
        assert not layers_LBTD[:, b, len(words) :].any() and not mix_BTD[b, len(words) :].any()
        for ours, theirs in (
            (layers_LBTD[:, b, : len(words)], expected[b]),
            (mix_BTD[b, : len(words)], mixed[b]),
        ):
            error = np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))
            worst = max(worst, float(error.max(initial=0)))
    return worst


@pytest.mark.parametrize("model", MODELS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_every_golden_model_at_every_length(model: Path, tmp_path: Path) -> None:
    elmo = Elmo.load(model)
    written = elmo.save(tmp_path / "m.onnx")
    assert [file.name for file in written] == ["m.onnx", "m.onnx.json"]
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    session = open_session(tmp_path / "m.onnx")
    about = json.loads((tmp_path / "m.onnx.json").read_text(encoding="utf-8"))
    assert json.loads(session.get_modelmeta().custom_metadata_map["elmokit"]) == about
    for lengths in ([1], [2], [17], [1, 30, 0, 7, 7], [200], [200, 1, 90, 150]):
        sentences = make_sentences(lengths, seed=len(lengths))
        tolerance = 1e-5
        if max(lengths) > 30:
            # Some random networks amplify rounding from word to word: after 200 words our own two
            # implementations differ by more than 1e-5, and so may a third.
            tolerance = max(tolerance, 10 * difference_of_engines(elmo, sentences))
        assert largest_difference(elmo, session, about, sentences) < tolerance


def difference_of_engines(elmo: Elmo, sentences: list[list[str]]) -> float:
    """The largest difference between the compiled kernel and the reference."""
    bilm = elmo.bilm
    reference = Runner(bilm, ReferenceNetwork(bilm.config, bilm.weights), cache_bytes=0)
    start = elmo.settled.repeat(len(sentences))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected, _ = reference.run(sentences, start, lambda layers: layers)
        ours = elmo.embed(sentences, "all")
    pairs = zip(ours, expected, strict=True)
    return max(float(np.abs(a - b).max(initial=0)) for a, b in pairs)


def test_the_builtin_model(tmp_path: Path) -> None:
    elmo, path = Elmo.load(), tmp_path / "model.onnx"
    assert convert_model("builtin", path).left_out == ["the softmax"]
    session = open_session(path)
    about = json.loads((tmp_path / "model.onnx.json").read_text(encoding="utf-8"))
    assert about["license"] == "cc-by-sa-3.0"
    assert about["fingerprint"] == elmo.bilm.fingerprint and about["stored_weights"] == "float16"
    sentences = make_sentences([*range(1, 200, 13), 0], seed=1)
    assert largest_difference(elmo, session, about, sentences) < 1e-5
    alone = session.run(["mix"], make_feed(sentences[:1], about))[0]
    np.testing.assert_allclose(alone[0], elmo.embed(sentences[:1])[0], atol=1e-5)
    info = inspect_model(path)
    assert info["format"] == "onnx" and info["fingerprint"] == elmo.bilm.fingerprint
    assert info["parameters"] == elmo.bilm.parameters and list(info["files"]) == [
        "model.onnx",
        "model.onnx.json",
    ]
    with pytest.raises(FormatError, match=r"is an ONNX file: run it with onnxruntime"):
        Elmo.load(path)


def test_the_ids_are_those_of_batch_to_ids(bilm: BiLM, tmp_path: Path) -> None:
    Elmo(bilm).save(tmp_path / "m.onnx")
    about = json.loads((tmp_path / "m.onnx.json").read_text(encoding="utf-8"))
    sentences = make_sentences([5, 0, 3])
    ids = encode_sentences(sentences, bilm.config.char_cnn.max_characters)
    np.testing.assert_array_equal(make_feed(sentences, about)["character_ids"], ids)


def test_empty_batches_and_sentences(bilm: BiLM, tmp_path: Path) -> None:
    elmo = Elmo(bilm)
    elmo.save(tmp_path / "m.onnx")
    session, about = open_session(tmp_path / "m.onnx"), inspect_metadata(tmp_path / "m.onnx")
    for lengths in ([], [0], [0, 0]):
        assert largest_difference(elmo, session, about, make_sentences(lengths)) == 0


def inspect_metadata(path: Path) -> dict[str, Any]:
    return json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))


def test_what_follows_a_sentence_changes_nothing(bilm: BiLM, tmp_path: Path) -> None:
    """Garbage in the padding, as a caller who reuses a buffer leaves there."""
    Elmo(bilm).save(tmp_path / "m.onnx")
    session = open_session(tmp_path / "m.onnx")
    feed = make_feed(make_sentences([3, 9]), inspect_metadata(tmp_path / "m.onnx"))
    clean = session.run(None, feed)
    feed["character_ids"][0, 3:] = 77
    for ours, theirs in zip(session.run(None, feed), clean, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_half_precision(tmp_path: Path) -> None:
    bilm = random_bilm(small_config())
    elmo = Elmo(bilm)
    sizes = {}
    for dtype, tolerance in (("float32", 1e-5), ("float16", 5e-2)):
        path = tmp_path / f"{dtype}.onnx"
        elmo.save(path, dtype=dtype)
        onnx.checker.check_model(str(path), full_check=True)
        about = inspect_metadata(path)
        assert about["stored_weights"] == dtype
        sentences = make_sentences([9, 20])
        assert largest_difference(elmo, open_session(path), about, sentences) < tolerance
        weights = onnx.load(str(path)).graph.initializer
        sizes[dtype] = sum(len(tensor.raw_data) for tensor in weights)
    assert sizes["float16"] < 0.6 * sizes["float32"]
    large = dict(bilm.weights) | {"forward.0.recurrent.weight": np.full((6, 44), 1e5, np.float32)}
    with pytest.raises(InputError, match=r"forward\.0\.recurrent\.weight has values up to 100000"):
        Elmo(BiLM(bilm.config, large)).save(tmp_path / "large.onnx", dtype="float16")
    assert not (tmp_path / "large.onnx").exists()


def test_weights_beside_a_file_that_would_be_too_large(
    bilm: BiLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST_FILE", 1000)
    monkeypatch.setattr(files, "ALIGNMENT", 64)
    elmo, path = Elmo(bilm), tmp_path / "m.onnx"
    assert [file.name for file in elmo.save(path)] == ["m.onnx", "m.onnx.json", "m.onnx.data"]
    onnx.checker.check_model(str(path), full_check=True)
    about = inspect_metadata(path)
    assert largest_difference(elmo, open_session(path), about, make_sentences([9, 3])) < 1e-5
    assert list(inspect_model(path)["files"]) == ["m.onnx", "m.onnx.data", "m.onnx.json"]
    monkeypatch.undo()
    elmo.save(path)
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.json"]
    assert largest_difference(elmo, open_session(path), about, make_sentences([9, 3])) < 1e-5


def test_where_it_is_written(bilm: BiLM, tmp_path: Path) -> None:
    elmo = Elmo(bilm)
    written = elmo.save(tmp_path / "new" / "folder", format="onnx")
    assert written[0] == tmp_path / "new" / "folder" / "model.onnx"
    assert formats.detect_format(tmp_path / "new" / "folder").kind == "onnx"
    first = written[0].read_bytes()
    elmo.save(tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == first, "the same bytes for the same model"
    (tmp_path / "taken.onnx.json").touch()
    for target in ("again.onnx", "taken.onnx"):
        with pytest.raises(InputError, match="exists; nothing was written"):
            convert_model(GOLDEN / "models" / "plain", tmp_path / target)
    with pytest.raises(InputError, match="only ONNX files can store weights in another type"):
        convert_model("builtin", tmp_path / "m", dtype="float16")
    with pytest.raises(InputError, match="an ONNX file stores 'float32' or 'float16'"):
        elmo.save(tmp_path / "m.onnx", dtype="int8")
    with pytest.raises(InputError, match="not the name of an ONNX file"):
        elmo.save(tmp_path / "m.zip", format="onnx")


def test_a_failed_write_leaves_the_old_file(
    bilm: BiLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.onnx"
    Elmo(bilm).save(path)
    before = path.read_bytes()

    def fail(target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(staging, "sync_file", fail)
    with pytest.raises(WriteError, match="No space left on device; what was there before is"):
        Elmo(random_bilm(small_config(), seed=5)).save(path)
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["m.onnx", "m.onnx.json"]


def test_the_python_of_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "onnx.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    elmo = Elmo.load()
    elmo.save(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(code, scope)
    for i, words in enumerate(scope["sentences"]):
        np.testing.assert_allclose(scope["mix"][i, : len(words)], elmo.embed([words])[0], atol=1e-5)
