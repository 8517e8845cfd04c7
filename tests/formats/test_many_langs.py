"""ELMoForManyLangs: the package's own vectors, its odd files, and files that mean harm.

`tests/golden/many_langs` holds tiny models as the package reads them, each with its vectors and
with our conversion. Only the tests that write .pkl files anew need torch.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import formats
from elmokit.bilm.model import BiLM
from elmokit.elmo import Elmo
from elmokit.errors import ConfigError, ElmoError, FormatError, InputError
from elmokit.formats import many_langs
from elmokit.formats.source import ModelSource

FOLDER = GOLDEN / "many_langs"
MODELS = sorted(path.name for path in (FOLDER / "models").iterdir())
SENTENCES = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-5


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="writing .pkl files needs torch")


def read(folder: Path) -> BiLM:
    return many_langs.read(ModelSource(folder))


def copy(name: str, target: Path) -> Path:
    shutil.copytree(FOLDER / "models" / name, target, ignore=shutil.ignore_patterns("native"))
    return target


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return copy("plain", tmp_path / "model")


def differ(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference: absolute below 1, relative above."""
    assert ours.shape == theirs.shape
    return float((np.abs(ours - theirs) / np.maximum(1, np.abs(theirs))).max())


# -- the package's own vectors ---------------------------------------------------------------------


def test_there_are_golden_models() -> None:
    assert {"plain", "no_words", "no_highway", "quirks", "words_only"} <= set(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_the_vectors_are_those_of_the_package(name: str) -> None:
    golden = np.load(FOLDER / "models" / name / "vectors.npz")
    elmo = Elmo.load(FOLDER / "models" / name / "native", state="zero")
    layers = np.concatenate(elmo.embed(SENTENCES, layers="all"), axis=1)
    assert differ(layers, golden["all"]) < TOLERANCE
    assert differ(np.concatenate(elmo.embed(SENTENCES)), golden["average"]) < TOLERANCE


@pytest.mark.parametrize("name", MODELS)
def test_carried_over_as_the_package_does(name: str) -> None:
    """Its rows are the sentences from the longest to the shortest."""
    golden = np.load(FOLDER / "models" / name / "vectors.npz")
    elmo = Elmo.load(FOLDER / "models" / name / "native", state="carry")
    order = sorted(range(len(SENTENCES)), key=lambda i: -len(SENTENCES[i]))
    for _ in range(2):
        found = elmo.embed([SENTENCES[i] for i in order], layers="all")
    by_place = dict(zip(order, found, strict=True))
    again = np.concatenate([by_place[i] for i in range(len(order))], axis=1)
    assert differ(again, golden["again"]) < TOLERANCE
    assert differ(again, golden["all"]) > 0.1, "the state made no difference: nothing was tested"


@pytest.mark.parametrize("name", MODELS)
def test_the_files_give_the_model_that_was_converted(name: str) -> None:
    here = read(FOLDER / "models" / name)
    converted = formats.read(FOLDER / "models" / name / "native")
    assert here.fingerprint == converted.fingerprint
    assert (here.config, here.alphabet, here.lexicon) == (
        converted.config,
        converted.alphabet,
        converted.lexicon,
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_sentence_is_alone_in_any_batch(name: str) -> None:
    """Bit for bit with the kernel; NumPy's products round by the size of a batch."""
    elmo = Elmo.load(FOLDER / "models" / name / "native")
    together = elmo.embed(SENTENCES, layers="all")
    elmo.clear_word_cache()
    for sentence, vectors in zip(SENTENCES, together, strict=True):
        alone = elmo.embed([sentence], layers="all")[0]
        if elmo.engine.startswith("kernel"):
            assert alone.tobytes() == vectors.tobytes()
        assert np.allclose(alone, vectors, atol=1e-5)


def test_conversion_keeps_every_bit(tmp_path: Path) -> None:
    for name in MODELS:
        elmo = Elmo.load(FOLDER / "models" / name / "native")
        elmo.save(tmp_path / name)
        again = formats.read(tmp_path / name)
        assert again.fingerprint == elmo.bilm.fingerprint
        assert (again.alphabet, again.lexicon) == (elmo.bilm.alphabet, elmo.bilm.lexicon)
        with pytest.raises(ConfigError, match=r"its own alphabet.*own format"):
            elmo.save(tmp_path / "x.hdf5")


def test_a_converted_model_is_replaced_whole(tmp_path: Path) -> None:
    formats.write(formats.read(FOLDER / "models" / "plain" / "native"), tmp_path / "m")
    assert {"characters.json", "words.json"} <= {path.name for path in (tmp_path / "m").iterdir()}
    plain = formats.read(GOLDEN / "models" / "plain")
    formats.write(plain, tmp_path / "m")
    assert formats.read(tmp_path / "m").fingerprint == plain.fingerprint
    assert not (tmp_path / "m" / "words.json").exists(), "of the old model"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "words.json").write_text("mine")
    with pytest.raises(InputError, match=r"holds words\.json, but is not a model"):
        formats.write(plain, tmp_path / "other")


@pytest.mark.parametrize("name", ["characters.json", "words.json"])
def test_a_converted_model_is_checked(name: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "models" / "plain" / "native", tmp_path / "m")
    data = bytearray((tmp_path / "m" / name).read_bytes())
    data[10] ^= 1
    (tmp_path / "m" / name).write_bytes(data)
    with pytest.raises(FormatError, match="its checksum differs"):
        formats.read(tmp_path / "m")
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    del manifest["files"][name]
    (tmp_path / "m" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ElmoError, match=r"has no (alphabet|lexicon), which its architecture needs"):
        formats.read(tmp_path / "m")


def test_what_is_said_about_it() -> None:
    from elmokit.inspect import describe_model, inspect_model

    rows = dict(describe_model(inspect_model(FOLDER / "models" / "plain" / "native")))
    assert rows["characters"].endswith(
        "code points, embeddings of size 4, at most 50 characters per word"
    )
    assert rows["known words"] == "15, embeddings of size 5"
    assert "known words" not in dict(describe_model(inspect_model(GOLDEN / "models" / "plain")))


def test_what_the_model_is() -> None:
    bilm = formats.read(FOLDER / "models" / "plain" / "native")
    assert bilm.config.to_dict()["words"] == {"entries": 15, "dim": 5}
    assert bilm.config.to_dict()["char_cnn"]["scheme"] == "code_points"
    assert bilm.config.extra["many_langs"]["lr"] == 0.001
    assert bilm.parameters == sum(array.size for array in bilm.weights.values())


# -- the files around the weights ------------------------------------------------------------------


def test_an_archive_will_do(model: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "144.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in model.iterdir():
            archive.write(file, f"en.model/{file.name}")
    assert read(tmp_path / "144.zip").fingerprint == read(model).fingerprint


@pytest.mark.parametrize(
    "path", ["/etc/{}", "../../{}", "C:\\models\\{}", "{}", "./{}", "a/../../{}"]
)
def test_the_second_file_is_looked_for_beside_the_first(
    model: Path, path: str, tmp_path: Path
) -> None:
    (tmp_path / "cnn_tiny.json").write_text("{}")  # what ../cnn_tiny.json would be
    (model / "config.json").write_text(json.dumps({"config_path": path.format("cnn_tiny.json")}))
    assert read(model).config.lstm.cells == 20


def test_a_second_file_elsewhere_is_not_read(model: Path, tmp_path: Path) -> None:
    (model / "cnn_tiny.json").rename(tmp_path / "cnn_tiny.json")
    for path in (str(tmp_path / "cnn_tiny.json"), "../cnn_tiny.json", "..", "", "/"):
        (model / "config.json").write_text(json.dumps({"config_path": path}))
        with pytest.raises(FormatError, match=r"which its config\.json names.*copy it there"):
            read(model)


def test_the_published_models_lack_their_second_file(model: Path) -> None:
    """The package brings it along; so do we."""
    path = "/Users/someone/models/word_elmo/cnn_50_100_512_4096_sample.json"
    (model / "config.json").write_text(json.dumps({"config_path": path}))
    with pytest.raises(FormatError, match=r"shape \(\d+, 4\); the configuration requires .*50\)"):
        read(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token_embedder.name": "lstm"}, r"token_embedder\.name is 'lstm'; expected 'cnn'"),
        ({"encoder.name": "lstm"}, r"encoder\.name is 'lstm'; expected 'elmo'"),
        ({"token_embedder.char_dim": -1}, "char_dim is -1; expected a whole number"),
        ({"token_embedder.char_dim": 0, "token_embedder.word_dim": 0}, "both 0"),
        ({"token_embedder.char_dim": 1 << 40}, r"embedding_dim is 1099511627776"),
        ({"token_embedder.filters": [[51, 3]]}, "a filter 51 characters wide"),
        ({"token_embedder.activation": "gelu"}, "activation is 'gelu'"),
        ({"token_embedder.max_characters_per_token": 6}, "max_characters is 6; .* from 7 to"),
        ({"token_embedder.n_highway": None}, "highways is None"),
        ({"encoder.dim": "64"}, r"lstm\.cells is '64'"),
        ({"encoder.cell_clip": float("nan")}, "cell_clip is nan"),
        ({"encoder": []}, r"encoder\.name is missing"),
    ],
)
def test_an_impossible_architecture(model: Path, change: dict[str, Any], message: str) -> None:
    data = json.loads((model / "cnn_tiny.json").read_text())
    for key, value in change.items():
        section, _, name = key.partition(".")
        data[section] = data[section] | {name: value} if name else value
    (model / "cnn_tiny.json").write_text(json.dumps(data))
    with pytest.raises(ConfigError, match=message) as raised:
        read(model)
    assert "cnn_tiny.json" in str(raised.value)


@pytest.mark.parametrize("file", ["config.json", "cnn_tiny.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "1" * 5000, "[" * 100_000, "{}", "\udcff"])
def test_damaged_json(model: Path, file: str, text: str) -> None:
    (model / file).write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ElmoError, match=r"JSON|missing|config_path is None"):
        read(model)


def parsed(text: str) -> dict[str, int]:
    return many_langs._parse_dic(text.encode(), "char.dic")


def test_lines_of_a_dictionary() -> None:
    """As the package's `line.strip().split("\\t")` has them, whose vectors `quirks` holds."""
    assert parsed("a\t3\r\nb\t 1 \n\n c d \t0") == {"a": 3, "b": 1, "c d ": 0}
    assert parsed("a\t3\nb\t1\na\t7\n") == {"a": 7, "b": 1}, "the last counts"
    assert parsed("\xa0\t5\n") == parsed("\u3000\t5\n") == parsed("\t5\n") == {"\u3000": 5}
    assert parsed("a\t1\x85b\t2\u2028c\t3\x0c") == {"a": 1, "b": 2, "c": 3}
    for line in ("a", "a\tb", "a\t1\t2", "a\t-1", "a\t1.0", "a\t" + "9" * 5000, "a\t٣", "a 1"):
        with pytest.raises(FormatError, match=r"char\.dic, line 2: found .*a tab and a number"):
            parsed("x\t0\n" + line)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("char.dic", lambda t: t.replace("<bow>", "<b>"), "lacks <bow>; expected all of <bos>"),
        ("char.dic", lambda t: "", "lacks <bos>"),
        ("word.dic", lambda t: t.replace("<oov>", "oov"), "lacks <oov>"),
        ("char.dic", lambda t: t + "é\t70000\n", "numbers up to 70000, but char_emb_layer"),
        (
            "word.dic",
            lambda t: t + "é\t15\nè\t16\n",
            "17 entries.*the files do not belong together",
        ),
        ("word.dic", lambda t: "\n".join(t.split("\n")[:-3]), "the files do not belong together"),
        ("word.dic", lambda t: t + "é\t0\nè\t0\n", "17 entries with numbers up to 14, but"),
    ],
)
def test_dictionaries_that_do_not_fit(model: Path, file: str, change: Any, message: str) -> None:
    text = (model / file).read_text(encoding="utf-8")
    (model / file).write_text(change(text), encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read(model)


def test_entries_that_become_one(model: Path) -> None:
    """Two kinds of white space are one entry. The package then refuses the file; we need not."""
    before = read(model)
    assert before.alphabet is not None and "n" in before.alphabet and "\u3000" in before.alphabet
    text = (model / "char.dic").read_text(encoding="utf-8")
    (model / "char.dic").write_text(text.replace("n\t", "\u2002\t"), encoding="utf-8")
    after = read(model)
    assert after.alphabet is not None and len(after.alphabet) == len(before.alphabet) - 1
    row, same = after.alphabet.index_of("<pad>"), before.alphabet.index_of("<pad>")
    tables = after.weights["characters.embedding"], before.weights["characters.embedding"]
    assert (tables[0][row] == tables[1][same]).all(), "rows moved with their entries"


def test_a_dictionary_that_is_no_text(model: Path) -> None:
    (model / "char.dic").write_bytes(b"a\t0\n\xff\t1\n")
    with pytest.raises(FormatError, match=r"char\.dic, line 2: not UTF-8"):
        read(model)
    (model / "char.dic").unlink()
    with pytest.raises(FormatError, match=r"has no char\.dic"):
        read(model)


def test_more_characters_than_ids(model: Path) -> None:
    lines = "".join(f"{chr(0x10000 + i)}\t{i}\n" for i in range(40_000))
    marks = (model / "char.dic").read_text(encoding="utf-8")
    (model / "char.dic").write_text(marks + lines, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"characters is 4.* from 6 to 32768"):
        read(model)


# -- the weights -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_without_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # importing it raises
    converted = formats.read(FOLDER / "models" / name / "native")
    assert read(FOLDER / "models" / name).fingerprint == converted.fingerprint


def change(file: Path, action: Any, torch: Any, **saved: Any) -> None:
    """Load a .pkl, change its tensors, save it."""
    state = torch.load(file, weights_only=True)
    action(state)
    torch.save(state, file, **saved)


PROJECTION = "forward_layer_0.state_projection.weight"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda s, t: s.pop(PROJECTION), f"has no tensor {PROJECTION}"),
        (lambda s, t: s.update(more=t.zeros(1)), "also holds more, which"),
        (
            lambda s, t: s.update({PROJECTION: t.zeros(8, 21)}),
            r"weight has the shape \(8, 21\); the configuration requires \(8, 20\)",
        ),
        (lambda s, t: s.update({PROJECTION: t.zeros(8)}), r"shape \(8,\)"),
        (lambda s, t: s.update({PROJECTION: 3}), "is not a dense tensor"),
        (
            lambda s, t: s.update({PROJECTION: t.zeros(8, 20, dtype=t.int32)}),
            "is not a dense tensor",
        ),
        (lambda s, t: s.update({PROJECTION: t.zeros(8, 20).to_sparse()}), "is not a dense tensor"),
        (
            lambda s, t: s.update({PROJECTION: t.zeros(8, 20, device="meta")}),
            "is not a dense tensor",
        ),
        (
            lambda s, t: s.update({PROJECTION: t.zeros(1).expand(1 << 20, 1 << 20)}),
            r"bytes, but its tensors claim 4,398,",
        ),
        (lambda s, t: s.update({PROJECTION: t.full((8, 20), t.nan)}), "NaN or infinite"),
        (
            lambda s, t: s.update({PROJECTION: t.full((8, 20), 1e300, dtype=t.float64)}),
            "NaN or infinite",
        ),
        (lambda s, t: s.update({3: t.zeros(1)}), "does not hold named tensors"),
    ],
)
def test_tensors_that_do_not_fit(model: Path, action: Any, message: str, torch: Any) -> None:
    change(model / "encoder.pkl", lambda state: action(state, torch), torch)
    with pytest.raises(ElmoError, match=message):
        read(model)


def test_other_precisions_and_parameters(model: Path, torch: Any) -> None:
    """Whatever torch would copy into the network."""

    def soften(state: dict[Any, Any]) -> None:
        for key in list(state)[::2]:
            state[key] = torch.nn.Parameter(state[key].double())
        state[PROJECTION] = state[PROJECTION].bfloat16()

    before = read(model)
    change(model / "encoder.pkl", soften, torch)
    after = read(model)
    assert after.weights["forward.0.bias"].dtype == np.float32
    rounded = after.weights["forward.0.projection.weight"]
    assert np.allclose(rounded, before.weights["forward.0.projection.weight"], rtol=1e-2)
    assert (after.weights["backward.1.bias"] == before.weights["backward.1.bias"]).all()


def test_a_pickle_with_code_runs_nothing(model: Path, tmp_path: Path, torch: Any) -> None:
    class Evil:
        def __init__(self, function: Any, *arguments: str) -> None:
            self.call = function, arguments

        def __reduce__(self) -> tuple[Any, ...]:
            return self.call

    ran = tmp_path / "ran"
    for evil in (Evil(os.mkdir, str(ran)), Evil(exec, f"import os; os.mkdir({str(ran)!r})")):
        plain = pickle.dumps(evil, protocol=2)
        (model / "encoder.pkl").write_bytes(plain)
        with pytest.raises(
            FormatError, match=r"encoder\.pkl tries to run \S*(mkdir|exec);.*was run"
        ):
            read(model)
        for zipped in (True, False):
            torch.save({"x": evil}, model / "encoder.pkl", _use_new_zipfile_serialization=zipped)
            with pytest.raises(FormatError, match=r"tries to run \S*(mkdir|exec);.*was run"):
                read(model)
        (model / "encoder.pkl").write_bytes(pickle.dumps(evil, protocol=5))
        with pytest.raises(FormatError, match=r"tries to run \S*(mkdir|exec);.*was run"):
            read(model)
        assert not ran.exists()
        pickle.loads(plain)
        assert ran.exists(), "it does nothing even where it may: nothing was tested"
        ran.rmdir()


@pytest.mark.parametrize("zipped", [True, False])
def test_damaged_weights(model: Path, zipped: bool, torch: Any) -> None:
    """Cut anywhere, and a bit wrong anywhere that is looked at."""
    file = model / "encoder.pkl"
    change(file, lambda state: None, torch, _use_new_zipfile_serialization=zipped)
    data = file.read_bytes()
    cuts = [data[:n] for n in (0, 1, 2, 10, len(data) // 3, len(data) // 2, len(data) - 9)]
    for damaged in (*cuts, b"\0" * 100, b"hello", b"PK\x03\x04" + b"\0" * 60):
        file.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"encoder\.pkl (is damaged|holds no|has)"):
            read(model)


def test_a_wrong_bit_among_the_numbers(model: Path, torch: Any) -> None:
    """Newer files have checksums, which torch itself does not look at."""
    file = model / "encoder.pkl"
    change(file, lambda state: None, torch)
    with zipfile.ZipFile(file) as archive:
        name = max(archive.infolist(), key=lambda entry: entry.file_size).filename
        numbers = archive.read(name)
    data = bytearray(file.read_bytes())
    data[data.index(numbers) + 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(FormatError, match="a checksum is wrong"):
        read(model)


def test_a_bomb_is_not_unpacked(model: Path, tmp_path: Path, torch: Any) -> None:
    file = model / "encoder.pkl"
    change(file, lambda state: None, torch)
    with (
        zipfile.ZipFile(file) as archive,
        zipfile.ZipFile(tmp_path / "packed", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for entry in archive.infolist():
            packed.writestr(entry.filename, archive.read(entry))
    (tmp_path / "packed").rename(file)
    with pytest.raises(FormatError, match="its parts are compressed, which PyTorch never does"):
        read(model)
