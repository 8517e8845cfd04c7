"""The parts of AllenNLP's ELMo that old code takes by themselves, replaces, or listens to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import GOLDEN

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from elmokit import compat  # noqa: E402
from elmokit.compat import allennlp  # noqa: E402
from elmokit.compat.allennlp import (  # noqa: E402
    Elmo,
    ELMoCharacterMapper,
    ElmoEmbedder,
    ElmoLstm,
    ELMoTokenCharactersIndexer,
    ElmoTokenEmbedder,
    _ElmoBiLm,
    _ElmoCharacterEncoder,
    add_sentence_boundary_token_ids,
    batch_to_ids,
    remove_sentence_boundaries,
)
from elmokit.errors import ConfigError, FormatError, InputError, InputTypeError  # noqa: E402

MODELS = sorted(path.stem for path in (GOLDEN / "allennlp").glob("*.npz"))
BATCHES = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
BOTH = pytest.mark.parametrize("learns", [False, True], ids=["frozen", "trainable"])


def files(model: str = "plain") -> tuple[str, str]:
    folder = GOLDEN / "models" / model
    return str(folder / "options.json"), str(folder / "weights.hdf5")


def elmo(model: str = "plain", **options: Any) -> Elmo:
    return Elmo(*files(model), 1, dropout=0.0, **options).eval()


def vectors(module: Elmo, batch: list[list[str]] = BATCHES[1]) -> torch.Tensor:
    found: torch.Tensor = module(batch_to_ids(batch))["elmo_representations"][0]
    return found.detach()


# -- the character encoder -------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("model", MODELS)
def test_the_token_embedder_can_be_called(model: str, learns: bool) -> None:
    """Its vectors are layer 0 of the golden ones, and it is the same module as the class."""
    module = elmo(model, requires_grad=learns)
    found = module._elmo_lstm._token_embedder(batch_to_ids(BATCHES[0]))
    assert set(found) == {"mask", "token_embedding"}
    mask, embedded = found["mask"], found["token_embedding"]
    lengths = [len(words) + 2 for words in BATCHES[0]]
    assert mask.dtype == torch.bool and mask.sum(dim=1).tolist() == lengths
    width = module.get_output_dim() // 2
    assert embedded.shape == (*mask.shape, width) and embedded.requires_grad is learns
    words = torch.cat([row[1 : n - 1] for row, n in zip(embedded, lengths, strict=True)])
    golden = np.load(GOLDEN / "models" / model / "vectors.npz")["fresh_0"][0]
    assert np.abs(words.detach().numpy() - golden[:, :width]).max() < 1e-5
    alone = _ElmoCharacterEncoder(*files(model), requires_grad=learns)
    assert torch.equal(alone(batch_to_ids(BATCHES[0]))["token_embedding"], embedded)
    assert alone.get_output_dim() == alone.output_dim == width


def test_padding_has_the_vector_of_the_mask_character() -> None:
    """As in AllenNLP: id 0 is a character whose embedding is zeros."""
    encoder = _ElmoCharacterEncoder(*files())
    found = encoder(batch_to_ids([["a", "b"], ["a"]]))["token_embedding"]
    characters = torch.zeros(1, encoder._char_embedding_weights.shape[1], 50)
    pooled = [conv(characters).amax(dim=-1).relu() for conv in encoder._convolutions]
    expected = encoder._projection(encoder._highways(torch.cat(pooled, dim=-1)))[0]
    assert torch.allclose(found[1, 3], expected, atol=1e-6)


def test_what_a_script_reads_from_the_encoder() -> None:
    encoder = elmo()._elmo_lstm._token_embedder
    options, weights = files()
    assert encoder._weight_file == weights
    assert encoder._options["lstm"] == json.loads(Path(options).read_text())["lstm"]
    assert encoder._char_embedding_weights.shape[0] == 262
    assert isinstance(encoder.char_conv_0, torch.nn.Conv1d)
    assert isinstance(encoder._projection, torch.nn.Linear)
    assert encoder._beginning_of_sentence_characters[:4].tolist() == [259, 257, 260, 261]


def test_the_encoder_refuses() -> None:
    encoder = _ElmoCharacterEncoder(*files())
    with pytest.raises(InputError, match=r"expected \(B, T, 50\)"):
        encoder(torch.ones(2, 3, 16, dtype=torch.long))
    with pytest.raises(InputError, match=r"go from 0 to 300"):
        encoder(torch.full((1, 1, 50), 300) * torch.tensor([0] + [1] * 49))


# -- the LSTMs -------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("model", ["plain", "odd", "one_layer"])
def test_the_lstms_can_be_called(model: str, learns: bool) -> None:
    """The parts called one after another give what the whole gives, over carried calls."""
    whole, parts = (_ElmoBiLm(*files(model), requires_grad=learns) for _ in range(2))
    for batch in BATCHES:
        expected = whole(batch_to_ids(batch))
        embedded = parts._token_embedder(batch_to_ids(batch))
        found = parts._elmo_lstm(embedded["token_embedding"], embedded["mask"])
        assert found.shape == (whole.num_layers - 1, *expected["activations"][0].shape)
        for ours, theirs in zip(found, expected["activations"][1:], strict=True):
            assert torch.allclose(ours, theirs, atol=1e-5)
    for ours, theirs in zip(parts._elmo_lstm._states, whole._elmo_lstm._states, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_lstms_of_ones_own() -> None:
    """Built and loaded as `_ElmoBiLm` does in AllenNLP."""
    options = json.loads(Path(files()[0]).read_text())["lstm"]
    lstm = ElmoLstm(
        input_size=options["projection_dim"],
        hidden_size=options["projection_dim"],
        cell_size=options["dim"],
        num_layers=options["n_layers"],
        memory_cell_clip_value=options["cell_clip"],
        state_projection_clip_value=options["proj_clip"],
    )
    lstm.load_weights(files()[1])
    bilm = _ElmoBiLm(*files())
    embedded = bilm._token_embedder(batch_to_ids(BATCHES[0]))
    found = lstm(embedded["token_embedding"], embedded["mask"])
    assert torch.equal(found, bilm._elmo_lstm(embedded["token_embedding"], embedded["mask"]))
    assert sorted(lstm.state_dict()) == sorted(bilm._elmo_lstm.state_dict())
    assert (lstm.hidden_size, lstm.cell_size, len(lstm.forward_layers)) == (8, options["dim"], 2)
    with pytest.raises(FormatError, match="has the shape"):
        ElmoLstm(4, 4, 8, 2).load_weights(files()[1])
    with pytest.raises(ConfigError, match="expected equal sizes"):
        ElmoLstm(3, 5, 7, 2)
    with pytest.raises(ConfigError, match="expected 0"):
        ElmoLstm(5, 5, 7, 2, recurrent_dropout_probability=0.1)


def test_sentences_of_any_length_in_the_lstms() -> None:
    lstm = ElmoLstm(5, 5, 7, 2, requires_grad=True)
    inputs = torch.rand(4, 3, 5, requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]])
    found = lstm(inputs, mask)
    assert found.shape == (2, 4, 3, 10)
    assert not found[:, 1].any() and not found[:, 2, 1:].any() and found[:, 3, 1].all()
    found.sum().backward()
    assert inputs.grad is not None and inputs.grad[0].any() and not inputs.grad[1].any()
    with pytest.raises(InputError, match="after an empty position"):
        lstm(inputs, mask.flip(1))


# -- parts that old code changes -------------------------------------------------------------------


class Wrapped(torch.nn.Module):
    """LSTMs behind a transformation of their input, as a script of retrofitting has them."""

    def __init__(self, inner: torch.nn.Module, scale: float) -> None:
        super().__init__()
        self.inner, self.M = inner, torch.nn.Parameter(scale * torch.eye(inner.hidden_size))

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(inputs @ self.M, mask)
        return result


def test_a_part_that_was_replaced_is_called() -> None:
    module, other = elmo(), elmo()
    bilm = other._elmo_lstm
    bilm._elmo_lstm = Wrapped(bilm._elmo_lstm, 1.0)
    assert torch.allclose(vectors(other), vectors(module), atol=1e-5)
    with torch.no_grad():
        bilm._elmo_lstm.M *= 2
    assert not torch.allclose(vectors(other), vectors(module), atol=1e-2)
    other(batch_to_ids(BATCHES[0]))["elmo_representations"][0].sum().backward()
    assert bilm._elmo_lstm.M.grad.abs().sum() > 0


def test_hooks_are_called() -> None:
    """Gradients of word vectors, for example, with frozen weights."""
    module, seen = elmo(), []

    def keep(_: Any, __: Any, output: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        seen.append(output["token_embedding"].requires_grad_())
        return output

    handle = module._elmo_lstm._token_embedder.register_forward_hook(keep)
    expected = vectors(elmo())
    found = module(batch_to_ids(BATCHES[1]))["elmo_representations"][0]
    assert torch.allclose(found, expected, atol=1e-5)
    found.sum().backward()
    assert seen[0].grad.shape == seen[0].shape and seen[0].grad.any()
    handle.remove()
    vectors(module)
    assert len(seen) == 1


def test_a_vocabulary_without_the_character_network() -> None:
    """Frees its memory: `del elmo._elmo_lstm._token_embedder`; words are given by their numbers."""
    vocabulary = ["@@PADDING@@", "@@UNKNOWN@@", "She", "went"]
    words = torch.tensor([[2, 3], [3, 0]])
    module, whole = (elmo(vocab_to_cache=vocabulary) for _ in range(2))
    del module._elmo_lstm._token_embedder
    found = module(words, words)["elmo_representations"][0]
    ids = batch_to_ids([["She", "went"], ["went"]])
    assert torch.allclose(found, whole(ids, words)["elmo_representations"][0], atol=1e-5)
    table = whole._elmo_lstm._word_embedding
    assert torch.equal(table(words)[1, 0], table.weight[3])


@pytest.mark.parametrize("part", ["_token_embedder", "_elmo_lstm"])
def test_random_weights_through_data(part: str) -> None:
    """Probing papers compare with an ELMo of random weights, written through `.data`."""
    embedder = ElmoEmbedder(*files())
    before = embedder.embed_sentence(["A", "bank"])
    embedder.elmo_bilm._elmo_lstm.reset_states()

    def initialize(module: torch.nn.Module) -> None:
        if isinstance(module, (torch.nn.Linear, torch.nn.Conv1d)):
            torch.nn.init.xavier_normal_(module.weight.data)

    getattr(embedder.elmo_bilm, part).apply(initialize)
    after = embedder.embed_sentence(["A", "bank"])
    assert np.abs(after - before)[-1].max() > 1e-3
    assert np.array_equal(after[0], before[0]) is (part == "_elmo_lstm")


def test_words_padded_with_zeros(caplog: pytest.LogCaptureFixture) -> None:
    """Not as the models were trained, but AllenNLP reads them."""
    ids = batch_to_ids([["She", "went"]])
    zeros = ids.masked_fill(ids == 261, 0)
    found = elmo()(zeros)
    assert found["mask"].tolist() == [[True, True]]
    assert "contain 0" in caplog.text and "with 261" in caplog.text
    assert not torch.allclose(
        found["elmo_representations"][0], elmo()(ids)["elmo_representations"][0], atol=1e-3
    )


def test_quantization_leaves_elmo_alone() -> None:
    """PyTorch replaces modules of exactly the type that it is given, usually `Linear`."""
    types = [type(part) for part in elmo().modules()]
    assert torch.nn.Linear not in types and any(issubclass(t, torch.nn.Linear) for t in types)


# -- sentence boundaries ---------------------------------------------------------------------------


def test_boundaries_of_ids() -> None:
    ids = torch.tensor([[1, 2, 3], [4, 5, 0], [0, 0, 0]])
    marked, mask = add_sentence_boundary_token_ids(ids, ids > 0, 9, 10)
    assert marked.tolist() == [[9, 1, 2, 3, 10], [9, 4, 5, 10, 0], [9, 10, 0, 0, 0]]
    assert mask.sum(dim=1).tolist() == [5, 4, 2]
    with pytest.raises(InputError, match=r"expected \(B, T\)"):
        add_sentence_boundary_token_ids(ids[0], ids[0] > 0, 9, 10)


def test_boundaries_of_vectors_and_back() -> None:
    words, mask = torch.rand(2, 3, 4), torch.tensor([[1, 1, 1], [1, 0, 0]])
    marked, marked_mask = add_sentence_boundary_token_ids(
        words, mask, torch.ones(4), -torch.ones(4)
    )
    assert (marked[:, 0] == 1).all() and (marked[1, 2] == -1).all()
    back, kept = remove_sentence_boundaries(marked, marked_mask)
    assert torch.equal(back, words * mask[..., None]) and torch.equal(kept, mask.bool())


# -- indexers --------------------------------------------------------------------------------------


class Token:
    """What AllenNLP's and spaCy's tokens have in common."""

    def __init__(self, text: str) -> None:
        self.text = text


def test_the_character_mapper() -> None:
    expected = batch_to_ids([["hello"]])[0, 0].tolist()
    assert ELMoCharacterMapper.convert_word_to_char_ids("hello") == expected  # AllenNLP 0.4
    assert ELMoCharacterMapper().convert_word_to_char_ids("hello") == expected
    added = ELMoCharacterMapper({"<mask>": 7}).convert_word_to_char_ids("<mask>")
    assert added[:4] == [259, 8, 260, 261]
    assert ELMoCharacterMapper.max_word_length == 50
    begin = ELMoCharacterMapper.beginning_of_sentence_characters
    assert begin[:4] == [258, 256, 259, 260] and len(begin) == 50


def test_the_token_indexer_of_every_version() -> None:
    indexer = ELMoTokenCharactersIndexer()
    sentence = [Token("First"), "sentence"]
    expected = batch_to_ids([["First", "sentence", ""]])[0].tolist()
    expected[2] = [0] * 50
    new = indexer.tokens_to_indices(sentence, None)
    assert indexer.get_padding_lengths(new) == {"elmo_tokens": 2}
    padded = indexer.as_padded_tensor_dict(new, {"elmo_tokens": 3})["elmo_tokens"]
    assert padded.dtype == torch.long and padded.tolist() == expected
    assert indexer.as_padded_tensor_dict(indexer.get_empty_token_list(), {"elmo_tokens": 2})
    named = indexer.tokens_to_indices(sentence, None, "elmo")  # 0.9
    assert indexer.as_padded_tensor(named, {"elmo": 3}, {})["elmo"].tolist() == expected
    assert indexer.pad_token_sequence(named, {"elmo": 3}, {}) == {"elmo": expected}  # 0.8
    single = [indexer.token_to_indices(token, None) for token in sentence]  # 0.4
    assert indexer.pad_token_sequence(single, 3, {}) == expected
    assert indexer.get_padding_lengths(single[0]) == {} and indexer.get_keys("elmo") == ["elmo"]
    with pytest.raises(InputTypeError, match="token is int 5"):
        indexer.tokens_to_indices([5])


def test_from_params() -> None:
    options, weights = files()

    class Params:
        def as_dict(self) -> dict[str, Any]:
            return {"type": "elmo_token_embedder", "projection_dim": 20} | files_by_name

    files_by_name = {"options_file": options, "weight_file": weights}
    embedder = ElmoTokenEmbedder.from_params(vocab=None, params=Params())
    assert embedder(batch_to_ids([["A", "bank"]])).shape == (1, 2, 20)
    module = Elmo.from_params(files_by_name | {"num_output_representations": 2})
    assert len(module(batch_to_ids([["A"]]))["elmo_representations"]) == 2


def test_what_is_not_here_is_explained() -> None:
    with pytest.raises(ImportError, match=r"ELMo has no vocabulary: give None"):
        from elmokit.compat.allennlp import Vocabulary  # noqa: F401
    with pytest.raises(ImportError, match=r"batch_to_ids\(sentences\)"):
        from elmokit.compat.allennlp import TextField  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = allennlp.Nothing
    assert "Vocabulary" not in dir(allennlp) and compat.__doc__


@pytest.mark.parametrize("name", ["plain", "no_projection", "no_clips"])
def test_a_cell_by_itself(name: str) -> None:
    """A cell gives what the whole gives for the first layer, in both directions."""
    from elmokit.compat.allennlp import _ElmoBiLm, batch_to_ids

    folder = GOLDEN / "models" / name
    bilm = _ElmoBiLm(folder / "options.json", folder / "weights.hdf5")
    ids = batch_to_ids([["A", "bank", "."], ["Yes"]])
    words = bilm._token_embedder(ids)["token_embedding"]
    lengths = [5, 3]
    expected = bilm(ids)["activations"][1]
    lstm = bilm._elmo_lstm
    for k, cell in enumerate((lstm.forward_layers[0], lstm.backward_layers[0])):
        found, (hidden, memory) = cell(words, lengths)
        half = expected[..., k * cell.hidden_size : (k + 1) * cell.hidden_size]
        assert torch.allclose(found, half, atol=1e-5)
        assert memory.shape == (1, 2, cell.cell_size)
        last = found[[0, 1], [4, 2]] if cell.go_forward else found[:, 0]
        assert torch.equal(hidden[0], last)
        parts = [cell(words[:, :2], [2, 2])[1]] if cell.go_forward else []
        for state in parts:  # goes on from a state
            rest, _ = cell(words[:, 2:], [3, 1], state)
            assert torch.allclose(rest, half[:, 2:], atol=1e-5)


def test_a_new_cell_has_random_weights_and_dropout() -> None:
    from elmokit.compat.allennlp import LstmCellWithProjection

    cell = LstmCellWithProjection(3, 3, 5, recurrent_dropout_probability=0.5)
    inputs = torch.randn(4, 6, 3)
    outputs, _ = cell(inputs, [6, 6, 2, 0])
    assert outputs.shape == (4, 6, 3) and not outputs[3].any() and not outputs[2, 2:].any()
    assert not torch.equal(outputs, cell(inputs, [6, 6, 2, 0])[0])
    cell.eval()
    assert torch.equal(cell(inputs, [6] * 4)[0], cell(inputs, [6] * 4)[0])


def test_ids_with_the_sentence_marks() -> None:
    from elmokit.compat.allennlp import ELMoCharacterMapper, _ElmoBiLm, batch_to_ids

    folder = GOLDEN / "models" / "plain"
    bilm = _ElmoBiLm(folder / "options.json", folder / "weights.hdf5")
    marked, mask = bilm.add_bos_and_eos(batch_to_ids([["A", "bank"], ["Yes"]]))
    assert marked.shape == (2, 4, 50) and mask.sum(dim=1).tolist() == [4, 3]
    end = [k + 1 for k in ELMoCharacterMapper.end_of_sentence_characters]
    assert marked[0, 3].tolist() == marked[1, 2].tolist() == end
