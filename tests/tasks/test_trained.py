"""A saved task model: one directory that loads, answers the same, and is refused when damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tasks import toy

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import convert_model, tasks  # noqa: E402
from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import ConfigError, FormatError, InputError, ModelNotFound  # noqa: E402
from elmokit.json_text import seal  # noqa: E402
from elmokit.tasks.fitting import fit  # noqa: E402
from elmokit.tasks.trained import Trained  # noqa: E402

TEXT = "Dr. Ada in Paris ."


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))


def make(tmp_path: Path, **changes: object) -> Trained:
    train, dev = (tasks.read("ner", path) for path in toy.files(tmp_path))
    settings = toy.settings(**({"epochs": 1, "elmo": str(toy.model(tmp_path))} | changes))
    static = None if settings.vectors == "none" else toy.static()
    return fit(settings, train, dev, tmp_path / "out", static=static)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"elmo": "none"},
        {"vectors": "none"},
        {"placement": "both", "layers": "projection"},
        {"layers": "last"},
        {"tune": True},
    ],
    ids=str,
)
def test_it_answers_the_same_from_disk(tmp_path: Path, changes: dict[str, object]) -> None:
    trained = make(tmp_path, **changes)
    again = Trained.load(tmp_path / "out")
    assert again.predict(TEXT) == trained.predict(TEXT)
    assert again.settings == trained.settings and again.scores == trained.scores
    for name, array in trained.state_dict().items():
        assert torch.equal(array, again.state_dict()[name])
    dev = tasks.read("ner", tmp_path / "dev.conll")
    assert again.evaluate(dev) == pytest.approx(trained.scores)


def test_a_loaded_model_that_is_saved_again_keeps_its_metadata(tmp_path: Path) -> None:
    trained = make(tmp_path, elmo="none")
    again = Trained.load(tmp_path / "out")
    assert again.metadata == trained.metadata and again.metadata["train"]["examples"] == 60
    again.save(tmp_path / "copy")
    assert json.loads((tmp_path / "copy/task.json").read_text()) == json.loads(
        (tmp_path / "out/task.json").read_text()
    )


def test_answers_keep_their_order(tmp_path: Path) -> None:
    trained = make(tmp_path, elmo="none", epochs=3)
    examples = tasks.read("ner", tmp_path / "train.conll").items
    together = trained.predict_examples(examples)
    assert together == [trained.predict_examples([example])[0] for example in examples]


def test_the_bilm_is_known_by_its_checksum(tmp_path: Path) -> None:
    make(tmp_path)
    about = json.loads((tmp_path / "out/task.json").read_text())
    assert about["biLM"] == Elmo.load(tmp_path / "bilm").bilm.fingerprint
    (tmp_path / "bilm").rename(tmp_path / "moved")
    with pytest.raises(InputError, match="was trained with the biLM"):
        Trained.load(tmp_path / "out")
    Trained.load(tmp_path / "out", elmo=tmp_path / "moved")


def test_the_builtin_is_found(tmp_path: Path) -> None:
    make(tmp_path, elmo="builtin")
    assert Trained.load(tmp_path / "out").predict(TEXT)["words"] == TEXT.split()
    convert_model("builtin", tmp_path / "export", format="allennlp")
    Trained.load(tmp_path / "out", elmo=tmp_path / "export")


@pytest.mark.parametrize("name", ["model.safetensors", "x.keys.npy", "x.vectors.npy"])
def test_damage_is_noticed(tmp_path: Path, name: str) -> None:
    make(tmp_path, elmo="none")
    path = tmp_path / "out" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(FormatError, match=name):
        Trained.load(tmp_path / "out")
    path.unlink()
    with pytest.raises(FormatError, match=f"lacks {name}"):
        Trained.load(tmp_path / "out")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": "other"}'])
def test_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / "task.json").write_text(text)
    with pytest.raises(FormatError, match=r"task\.json is damaged"):
        Trained.load(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="elmo task train"):
        Trained.load(tmp_path / "missing")


def test_settings_of_another_version(tmp_path: Path) -> None:
    make(tmp_path, elmo="none")
    path = tmp_path / "out/task.json"
    about = json.loads(path.read_text())
    path.write_text(json.dumps(about | {"version": 3}))
    with pytest.raises(FormatError, match="newer"):
        Trained.load(tmp_path / "out")
    about["settings"]["color"] = "red"
    path.write_text(json.dumps(about))
    with pytest.raises(FormatError, match="its checksum differs"):
        Trained.load(tmp_path / "out")
    path.write_text(json.dumps(seal(about)))
    with pytest.raises(ConfigError, match="another version of elmokit"):
        Trained.load(tmp_path / "out")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"sizes": {"hidden": 2000}}}, "describes a network of .* parameters or more"),
        ({"settings": {"sizes": {"layers": 3000}}}, "describes a network of .* parameters or more"),
        ({"settings": {"sizes": {"longest": 1 << 30}}}, "longest is 1073741824; expected a whole"),
        ({"settings": {"batch": 1.5}}, "batch is 1.5; expected a whole number"),
        ({"facts": {"types": [str(k) for k in range(3000)]}}, "has 3,000 labels; .* too small"),
        ({"facts": {"types": "ab"}}, "its labels are"),
        ({"vocabulary": "ab"}, "its vocabulary is not a list of words"),
        ({"version": 0}, "its version is 0"),
        ({"files": {}}, r"does not list model\.safetensors"),
    ],
    ids=str,
)
def test_a_network_that_the_file_does_not_hold(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    make(tmp_path, elmo="none", vectors="none")
    path = tmp_path / "out/task.json"
    content = json.loads(path.read_text())
    for key, value in changes.items():
        old = content[key]
        content[key] = old | value if key == "settings" and isinstance(value, dict) else value
    path.write_text(json.dumps(seal(content)))
    with pytest.raises((ConfigError, FormatError), match=message):
        Trained.load(tmp_path / "out")


def test_how_many_texts(tmp_path: Path) -> None:
    trained = make(tmp_path, elmo="none")
    with pytest.raises(InputError, match="2 texts given; ner takes 1: sentence"):
        trained.predict("one", "two")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "chess"}, "unknown task"),
        ({"preset": "huge"}, "preset is 'huge'"),
        ({"placement": "top"}, "placement is 'top'"),
        ({"layers": "first"}, "layers is 'first'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"share": 0.0}, "share is 0.0"),
        ({"rate": 0.0}, "rate is 0.0"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"sizes": {"color": 3}}, "no size named color"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises((ConfigError, InputError), match=message):
        toy.settings(**changes)


def test_a_bilm_that_does_not_exist_is_not_replaced(tmp_path: Path) -> None:
    """Without a name the built-in model may serve; where one was given, a typing error is told."""
    from elmokit.tasks.trained import find_bilm

    builtin = Elmo.load().bilm.fingerprint
    gone = str(tmp_path / "gone.hdf5")
    assert find_bilm(builtin, gone, None).bilm.fingerprint == builtin
    for name in (gone, "buitin"):
        with pytest.raises(ModelNotFound, match=Path(name).name):
            find_bilm(builtin, "builtin", name)


def test_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="gone does not exist"):
        Trained.load(tmp_path / "gone")
