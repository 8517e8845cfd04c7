"""AllenNLP's face against numbers that AllenNLP's own module computed (tests/golden/allennlp)."""

from __future__ import annotations

import copy
import functools
import http.server
import json
import pickle
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN, REPOSITORY

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import formats  # noqa: E402
from elmokit.compat.allennlp import (  # noqa: E402
    Elmo,
    ElmoEmbedder,
    ElmoTokenEmbedder,
    ScalarMix,
    batch_to_ids,
)
from elmokit.errors import ConfigError, InputError, ModelNotFound  # noqa: E402

MODELS = sorted(path.stem for path in (GOLDEN / "allennlp").glob("*.npz"))
BATCHES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
TOLERANCE = 1e-5
BOTH = pytest.mark.parametrize("learns", [False, True], ids=["frozen", "trainable"])


@functools.cache
def golden(model: str = "plain") -> dict[str, np.ndarray]:
    return dict(np.load(GOLDEN / "allennlp" / f"{model}.npz"))


def files(model: str = "plain") -> tuple[str, str]:
    folder = GOLDEN / "models" / model
    return str(folder / "options.json"), str(folder / "weights.hdf5")


def elmo(model: str = "plain", representations: int = 1, **options: Any) -> Elmo:
    return Elmo(*files(model), representations, **options).eval()


def part(case: str, kind: str, model: str = "plain") -> dict[str, torch.Tensor]:
    """The golden arrays below `case/kind/`, by name."""
    start = f"{case}/{kind}/"
    found = {
        name[len(start) :]: torch.from_numpy(array)
        for name, array in golden(model).items()
        if name.startswith(start)
    }
    assert found
    return found


def put(module: torch.nn.Module, numbers: dict[str, torch.Tensor]) -> None:
    found = module.load_state_dict(numbers, strict=False)
    assert not found.unexpected_keys


def near(
    ours: torch.Tensor, theirs: np.ndarray | torch.Tensor, tolerance: float = TOLERANCE
) -> bool:
    a, b = ours.detach().numpy(), np.asarray(theirs)
    assert a.shape == b.shape
    return bool((np.abs(a - b) / np.maximum(1, np.abs(b))).max(initial=0) < tolerance)


def check(found: dict[str, Any], case: str, call: int, model: str = "plain") -> None:
    expected = golden(model)
    assert set(found) == {"elmo_representations", "mask"}
    assert found["mask"].dtype == torch.bool
    assert np.array_equal(found["mask"], expected[f"{case}/mask_{call}"])
    number = sum(
        name.startswith(f"{case}/vectors_") and name.endswith(f"_{call}") for name in expected
    )
    assert len(found["elmo_representations"]) == number > 0
    for k, vectors in enumerate(found["elmo_representations"]):
        assert near(vectors, expected[f"{case}/vectors_{k}_{call}"])


def test_there_are_golden_files() -> None:
    assert {"plain", "odd", "tanh", "one_layer", "no_clips"} <= set(MODELS)


# -- vectors ---------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("model", MODELS)
def test_calls_one_after_another(model: str, learns: bool) -> None:
    """Two representations, batches that grow and shrink, the state carried as in AllenNLP."""
    module = elmo(model, 2, requires_grad=learns)
    put(module, part("carried", "before", model))
    for call, batch in enumerate(BATCHES):
        check(module(batch_to_ids(batch)), "carried", call, model)
    hidden, cell = module._elmo_lstm._elmo_lstm._states
    states = np.load(GOLDEN / "models" / model / "vectors.npz")
    for ours, theirs in ((hidden, states["hidden"]), (cell, states["cell"])):
        assert near(torch.stack(ours.chunk(2, dim=-1), dim=1), theirs)


@BOTH
@pytest.mark.parametrize("model", MODELS)
def test_layer_norm_over_the_whole_batch(model: str, learns: bool) -> None:
    module = elmo(model, do_layer_norm=True, requires_grad=learns)
    for call in range(2):
        check(module(batch_to_ids(BATCHES[call])), "layer_norm", call, model)


@BOTH
@pytest.mark.parametrize(
    ("case", "options"),
    [
        ("boundaries", {"keep_sentence_boundaries": True}),
        ("layer_norm_boundaries", {"keep_sentence_boundaries": True, "do_layer_norm": True}),
        ("fixed", {"scalar_mix_parameters": [0.5, -1.0, 2.0]}),
    ],
)
def test_options(case: str, options: dict[str, Any], learns: bool) -> None:
    module = elmo(requires_grad=learns, **options)
    for call in range(2):
        check(module(batch_to_ids(BATCHES[call])), case, call)
    fixed = "scalar_mix_parameters" in options
    assert module.get_parameter("scalar_mix_0.gamma").requires_grad is not fixed


def test_dropout_draws_as_allennlp_does() -> None:
    module = elmo(representations=2, dropout=0.5).train()
    torch.manual_seed(1)
    for call in range(2):
        found = module(batch_to_ids(BATCHES[call]))
        check(found, "dropout", call)
    assert 0.3 < (found["elmo_representations"][0][0] == 0).float().mean() < 0.7
    assert (module.eval()(batch_to_ids(BATCHES[0]))["elmo_representations"][0][0] != 0).all()


def test_more_dimensions() -> None:
    ids = batch_to_ids(BATCHES[3])[None].repeat(2, 1, 1, 1)
    check(elmo()(ids), "four_dimensions", 0)
    kept = elmo(keep_sentence_boundaries=True)(ids)
    assert kept["mask"].shape == (2, 3, 13)
    assert kept["elmo_representations"][0].shape == (2, 3, 13, 16)


@BOTH
def test_cached_vocabulary(learns: bool) -> None:
    words = torch.from_numpy(golden()["cached/words_0"])
    vocabulary = ["@@PADDING@@", "@@UNKNOWN@@", "She", "went", "to", "the", "bank", ".", "Yes"]
    module = elmo(vocab_to_cache=vocabulary, requires_grad=learns)
    (name,) = part("cached", "after")
    assert near(module.state_dict()[name], part("cached", "after")[name])
    check(module(batch_to_ids(BATCHES[0]), words), "cached", 0)
    check(module(batch_to_ids(BATCHES[1])), "cached", 1)
    # Words that the table lacks: back to the characters.
    module._elmo_lstm._elmo_lstm.reset_states()
    check(module(batch_to_ids(BATCHES[0]), words + 100), "cached", 0)
    with pytest.raises(InputError, match="after a 0"):
        module(batch_to_ids(BATCHES[0]), words.flip(1))


def test_word_inputs_without_a_cached_vocabulary(caplog: pytest.LogCaptureFixture) -> None:
    words = torch.ones(2, 6, dtype=torch.long)
    one, other = elmo(), elmo()
    expected = one(batch_to_ids(BATCHES[0]))["elmo_representations"][0]
    assert torch.equal(other(batch_to_ids(BATCHES[0]), words)["elmo_representations"][0], expected)
    assert "no cached vocabulary" in caplog.text


def test_batch_to_ids() -> None:
    for line in json.loads((GOLDEN / "characters.json").read_text()):
        assert batch_to_ids([[line["word"]]])[0, 0].tolist() == line["50"]
    ids = batch_to_ids(BATCHES[1])
    assert ids.shape == (4, 6, 50) and ids.dtype == torch.long
    assert (ids[2] == 0).all() and (ids[1, 5] == 0).all()


# -- learning --------------------------------------------------------------------------------------


@BOTH
def test_gradients_of_the_mixes(learns: bool) -> None:
    case = "trained" if learns else "frozen"
    module = elmo(representations=2, requires_grad=learns, dropout=0.0).train()
    learn(module, case)
    for name, gradient in part(case, "gradient").items():
        if name.startswith("scalar_mix"):
            assert near(module.get_parameter(name).grad, gradient, 1e-4)
    if not learns:
        assert all(p.grad is None for p in module._elmo_lstm.parameters())


@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_the_bilm(model: str) -> None:
    module = elmo(model, 2, requires_grad=True, dropout=0.0).train()
    learn(module, "trained", model)
    expected = part("trained", "gradient", model)
    assert sum(name.startswith("_elmo_lstm") for name in expected) >= 8
    for name, gradient in expected.items():
        scale = max(1.0, float(gradient.abs().max()))
        assert near(module.get_parameter(name).grad / scale, gradient / scale), name


def learn(module: Elmo, case: str, model: str = "plain") -> None:
    """Two carried calls and a backward pass through the second."""
    put(module, part(case, "before", model))
    check(module(batch_to_ids(BATCHES[0])), case, 0, model)
    found = module(batch_to_ids(BATCHES[1]))
    check(found, case, 1, model)
    total = torch.zeros(())
    for k, vectors in enumerate(found["elmo_representations"]):
        numbers = np.random.default_rng(k).normal(size=vectors.shape).astype(np.float32)
        total = total + (vectors * torch.from_numpy(numbers)).sum()
    total.backward()


def test_frozen_parameters_can_be_set_free() -> None:
    module = elmo(representations=2, dropout=0.0)
    module(batch_to_ids(BATCHES[0]))
    module._elmo_lstm._elmo_lstm.reset_states()
    for parameter in module.parameters():
        parameter.requires_grad = True
    learn(module, "trained")
    name = "_elmo_lstm._elmo_lstm.backward_layer_1.state_projection.weight"
    assert near(module.get_parameter(name).grad, part("trained", "gradient")[name], 1e-4)


# -- saved task models -----------------------------------------------------------------------------


@BOTH
def test_the_names_are_allennlps(learns: bool) -> None:
    module = elmo(representations=2, requires_grad=learns)
    assert sorted(module.state_dict()) == golden()["state_dict_names"].tolist()
    assert sorted(dict(module.named_parameters())) == golden()["state_dict_names"].tolist()
    assert (
        sum(p.numel() for p in module._elmo_lstm.parameters())
        == 4 + formats.read(GOLDEN / "models" / "plain").parameters
    )  # the mask has a row in the table of characters
    frozen = [p for p in module._elmo_lstm.parameters() if not p.requires_grad]
    assert len(frozen) == (0 if learns else len(list(module._elmo_lstm.parameters())))


@BOTH
@pytest.mark.parametrize("case", ["frozen", "trained"])
def test_a_saved_task_model_loads(case: str, learns: bool) -> None:
    """A state dict that AllenNLP saved after learning, strictly, in the middle of carried calls."""
    module = elmo(representations=2, requires_grad=learns)
    put(module, part(case, "before"))
    for call in range(2):
        check(module(batch_to_ids(BATCHES[call])), case, call)
    module.load_state_dict(part(case, "after"), strict=True)
    check(module(batch_to_ids(BATCHES[3])), case, 2)
    saved = module.state_dict()
    for name, array in part(case, "after").items():
        assert torch.equal(saved[name], array)


def test_a_state_dict_of_another_model_does_not_load() -> None:
    numbers = part("trained", "after")
    del numbers["_elmo_lstm._elmo_lstm.forward_layer_1.state_linearity.bias"]
    with pytest.raises(RuntimeError, match="Missing key"):
        elmo(representations=2).load_state_dict(numbers)
    with pytest.raises(RuntimeError, match="size mismatch"):
        elmo("tanh", 2).load_state_dict(part("trained", "after"))


@BOTH
def test_copies_go_their_own_way(learns: bool) -> None:
    """A copy has the state of its original, and changed weights change only the copy."""
    module = elmo(requires_grad=learns, dropout=0.0)
    module(batch_to_ids(BATCHES[0]))
    twin, pickled = copy.deepcopy(module), pickle.loads(pickle.dumps(module))
    expected = module(batch_to_ids(BATCHES[1]))["elmo_representations"][0]
    for other in (twin, pickled):
        assert near(other(batch_to_ids(BATCHES[1]))["elmo_representations"][0], expected.detach())
        with torch.no_grad():
            other.get_parameter("_elmo_lstm._token_embedder._projection.bias").add_(1)
        changed = other(batch_to_ids(BATCHES[0]))["elmo_representations"][0]
        assert not torch.allclose(
            changed, module(batch_to_ids(BATCHES[0]))["elmo_representations"][0], atol=1e-2
        )


# -- the state -------------------------------------------------------------------------------------


@BOTH
def test_ways_to_be_rid_of_the_state(learns: bool) -> None:
    module = elmo(requires_grad=learns)
    lstm = module._elmo_lstm._elmo_lstm

    def embed() -> torch.Tensor:
        vectors: torch.Tensor = module(batch_to_ids(BATCHES[0]))["elmo_representations"][0]
        return vectors.detach()

    fresh = embed()
    assert not torch.allclose(embed(), fresh, atol=1e-3)
    lstm.reset_states()
    assert torch.equal(embed(), fresh)
    lstm.reset_states(torch.tensor([True, False]))
    half = embed()
    assert torch.equal(half[0], fresh[0]) and not torch.allclose(half[1], fresh[1], atol=1e-3)
    lstm.stateful = False
    assert torch.equal(embed(), fresh) and torch.equal(embed(), fresh)
    with pytest.raises(InputError, match=r"expected \(2,\)"):
        lstm.reset_states(torch.tensor([True]))


@pytest.mark.parametrize("made_inside", [False, True])
def test_inference_mode(made_inside: bool) -> None:
    expected = first(elmo())
    module = elmo()
    with torch.inference_mode():
        assert torch.equal(first(elmo() if made_inside else module), expected)


# -- models ----------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("model", ["no_skip", "bare", "no_projection", "no_cnn_projection_highway"])
def test_models_that_allennlp_refuses(model: str, learns: bool) -> None:
    module = elmo(model, scalar_mix_parameters=[-1e9, -1e9, 0.0], requires_grad=learns)
    expected = np.load(GOLDEN / "models" / model / "vectors.npz")["fresh_0"][-1]
    found = module(batch_to_ids(BATCHES[0]))
    assert near(found["elmo_representations"][0][found["mask"]], expected)


def test_words_of_another_length() -> None:
    module = elmo("short_words")
    with pytest.raises(InputError, match="reads words of 16 characters"):
        module(batch_to_ids(BATCHES[0]))
    found = module(batch_to_ids(BATCHES[0], max_characters=16))
    expected = np.load(GOLDEN / "models" / "short_words" / "vectors.npz")["fresh_0"].mean(axis=0)
    assert near(found["elmo_representations"][0][found["mask"]], expected)


def first(module: Elmo) -> torch.Tensor:
    vectors: torch.Tensor = module(batch_to_ids(BATCHES[0]))["elmo_representations"][0]
    return vectors


def test_files_in_different_places(tmp_path: Path) -> None:
    options, weights = files()
    shutil.copy(options, tmp_path / "some.json")
    (tmp_path / "weights").mkdir()
    shutil.copy(weights, tmp_path / "weights" / "file")
    module = Elmo(tmp_path / "some.json", tmp_path / "weights" / "file", 1).eval()
    assert torch.equal(first(module), first(elmo()))
    with pytest.raises(ModelNotFound, match="no file nowhere/options"):
        Elmo("nowhere/options.json", weights, 1)


def test_any_model_of_ours(tmp_path: Path) -> None:
    formats.write(formats.read(GOLDEN / "models" / "plain"), tmp_path / "native")
    assert torch.equal(first(Elmo(tmp_path / "native", None, 1).eval()), first(elmo()))


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old code names its files by address: here those of a server of our own."""
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path / "cache"))
    handler = functools.partial(
        type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}),
        directory=str(GOLDEN / "models" / "plain"),
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        module = Elmo(f"{base}/options.json", f"{base}/weights.hdf5", 1).eval()
        server.shutdown()
    assert torch.equal(first(module), first(elmo()))
    again = Elmo(f"{base}/options.json", f"{base}/weights.hdf5", 1).eval()  # nobody serves it now
    assert torch.equal(first(again), first(elmo()))


def test_a_module_of_the_users_own() -> None:
    class Own(torch.nn.Module):
        num_layers = 2

        def forward(self, inputs: torch.Tensor, words: torch.Tensor | None) -> dict[str, Any]:
            mask = torch.tensor([[True] * 4, [True, True, False, False]])
            return {"activations": [torch.ones(2, 4, 3), 3 * torch.ones(2, 4, 3)], "mask": mask}

        def get_output_dim(self) -> int:
            return 3

    module = Elmo(None, None, 1, module=Own()).eval()
    found = module(torch.zeros(2, 2, 50))
    assert found["elmo_representations"][0][:, :, 0].tolist() == [[2, 2], [0, 0]]
    assert module.get_output_dim() == 3
    with pytest.raises(ConfigError, match="not both"):
        Elmo(*files(), 1, module=Own())


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match="has 2 numbers; expected 3"):
        elmo(scalar_mix_parameters=[1.0, 2.0])
    with pytest.raises(InputError, match="needs the mask"):
        ScalarMix(1, do_layer_norm=True)([torch.zeros(1, 1, 2)])


# -- ElmoTokenEmbedder -----------------------------------------------------------------------------


def test_token_embedder() -> None:
    module = ElmoTokenEmbedder(*files(), projection_dim=3).eval()
    assert sorted(module.state_dict()) == golden()["token_embedder/names"].tolist()
    put(module, part("token_embedder", "before"))
    for call in range(2):
        vectors = module(batch_to_ids(BATCHES[call]))
        assert near(vectors, golden()[f"token_embedder/vectors_0_{call}"])
    assert module.get_output_dim() == 3
    plain = ElmoTokenEmbedder(*files(), dropout=0.0)
    assert plain.get_output_dim() == 16
    assert torch.allclose(plain(batch_to_ids(BATCHES[0])), first(elmo()))


# -- ElmoEmbedder ----------------------------------------------------------------------------------


def carried(call: int) -> list[np.ndarray]:
    """All layers of every sentence of a batch, batches read one after another, by AllenNLP."""
    flat = np.load(GOLDEN / "models" / "plain" / "vectors.npz")[f"carry_{call}"]
    ends = np.cumsum([len(words) for words in BATCHES[call]])
    return np.split(flat, ends[:-1], axis=1)


def test_embed_batch_carries_its_state() -> None:
    embedder = ElmoEmbedder(*files())
    for call, batch in enumerate(BATCHES):
        found = embedder.embed_batch(batch)
        for ours, theirs in zip(found, carried(call), strict=True):
            assert isinstance(ours, np.ndarray) and ours.shape == theirs.shape
            assert np.allclose(ours, theirs, atol=TOLERANCE)


def test_embed_sentence_and_sentences() -> None:
    embedder, other = ElmoEmbedder(*files()), ElmoEmbedder(*files())
    sentences = [words for batch in BATCHES for words in batch]
    one_by_one = [embedder.embed_sentence(words) for words in sentences]
    for ours, theirs in zip(other.embed_sentences(iter(sentences), 1), one_by_one, strict=True):
        assert np.array_equal(ours, theirs)
    assert one_by_one[4].shape == (3, 0, 16)  # the empty one, which leaves the state as it was
    batched = list(ElmoEmbedder(*files()).embed_sentences(BATCHES[0] + BATCHES[0], 2))
    again = ElmoEmbedder(*files())
    expected = again.embed_batch(BATCHES[0]) + again.embed_batch(BATCHES[0])
    assert all(np.array_equal(a, b) for a, b in zip(batched, expected, strict=True))


def test_batch_to_embeddings() -> None:
    vectors, mask = ElmoEmbedder(*files()).batch_to_embeddings(BATCHES[0])
    assert vectors.shape == (2, 3, 6, 16) and mask.sum(dim=1).tolist() == [6, 1]
    assert np.allclose(vectors[0], carried(0)[0], atol=TOLERANCE)


LINES = ["She went to the bank .", "Yes", "She went to the bank ."]


def embed_file(tmp_path: Path, lines: list[str] = LINES, **options: Any) -> dict[str, np.ndarray]:
    import h5py

    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    file = text.open(encoding="utf-8")
    ElmoEmbedder(*files()).embed_file(file, str(out), batch_size=2, **options)
    assert file.closed
    with h5py.File(out) as hdf5:
        return {name: hdf5[name][...] for name in hdf5}


def test_embed_file(tmp_path: Path) -> None:
    found = embed_file(tmp_path)
    assert set(found) == {"0", "1", "2", "sentence_to_index"}
    assert json.loads(found["sentence_to_index"][0]) == {LINES[0]: "2", "Yes": "1"}
    expected = list(ElmoEmbedder(*files()).embed_sentences([s.split() for s in LINES], 2))
    for i, vectors in enumerate(expected):
        assert found[str(i)].dtype == np.float32
        assert np.array_equal(found[str(i)], vectors)
    assert not np.allclose(found["0"][1:], found["2"][1:], atol=1e-3)  # carried
    top, average = (embed_file(tmp_path, output_format=kind) for kind in ("top", "average"))
    assert np.array_equal(top["1"], expected[1][-1])
    assert np.allclose(average["1"], expected[1].mean(axis=0), atol=1e-6)
    assert set(embed_file(tmp_path, forget_sentences=True)) == {"0", "1", "2"}
    assert set(embed_file(tmp_path, LINES[:2], use_sentence_keys=True)) == set(LINES)


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        (["one", "", "two"], {}, "line 1 of the input"),
        (["one"], {"output_format": "best"}, "'all', 'top' or 'average'"),
        (LINES, {"use_sentence_keys": True}, "occurs twice"),
        (["."], {"use_sentence_keys": True}, "'.' cannot be the name of an HDF5 dataset"),
    ],
)
def test_embed_file_refuses(
    tmp_path: Path, lines: list[str], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        embed_file(tmp_path, lines, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


# -- what others say about it ----------------------------------------------------------------------


def test_the_code_in_the_migration_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = (REPOSITORY / "docs" / "migration.md").read_text(encoding="utf-8")
    section = guide.partition("## From AllenNLP")[2].partition("\n## From")[0]
    right = re.findall(r"</td><td>\n\n```python\n(.*?)```", section, re.DOTALL)
    assert len(right) == 6
    for path in files():
        shutil.copy(path, tmp_path)
    (tmp_path / "sentences.txt").write_text("A bank .\nYes\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in right:
        exec(block, names)
    assert names["mask"].shape == (2, 2) and names["layers"].shape == (3, 3, 16)
    assert (tmp_path / "vectors.hdf5").exists()


def test_the_fixture_of_allennlp(shared: Path) -> None:
    """AllenNLP's own test: three lists of sentences side by side, the top layer of the biLM."""
    import h5py

    folder = shared / "fixtures" / "allennlp"
    lists = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    module = Elmo(folder / "options.json", folder / "lm_weights.hdf5", 1)
    expected = [h5py.File(folder / f"lm_embeddings_{k}.hdf5") for k in range(3)]
    for i in range(10):
        batch = [sentences[i].split() for sentences in lists]
        output = module._elmo_lstm(batch_to_ids(batch))
        for row, file in enumerate(expected):
            theirs = np.concatenate(list(file[str(i)]), axis=1)
            assert near(output["activations"][-1][row, 1 : len(theirs) + 1], theirs, 2e-6)
