"""The ELMo parts of public programs, with one import changed; docs/migration.md lists them.

Each test makes the same calls as the program that it names, in its own words, on a tiny model.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from tests.conftest import GOLDEN, REPOSITORY

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

OPTIONS = GOLDEN / "models" / "plain" / "options.json"
WEIGHTS = GOLDEN / "models" / "plain" / "weights.hdf5"
MANY_LANGS = GOLDEN / "many_langs" / "models" / "plain" / "native"
DIM = 16

SENTENCES = [["First", "sentence", "."], ["Another", "."]]


# -- AllenNLP --------------------------------------------------------------------------------------


def test_mheinzinger_SeqVec() -> None:
    """Proteins: batches of sequences, one letter per word, summed over the layers."""
    from elmokit.compat.allennlp import ElmoEmbedder

    model = ElmoEmbedder(weight_file=str(WEIGHTS), options_file=str(OPTIONS), cuda_device=-1)
    proteins = ["SEQWENCE", "MKV"]
    with torch.no_grad():
        embeddings = model.embed_batch([list(protein) for protein in proteins])
    for protein, embedding in zip(proteins, embeddings, strict=True):
        assert embedding.sum(axis=0).mean(axis=0).shape == (DIM,)
        assert np.concatenate(embedding, axis=1).shape == (len(protein), 3 * DIM)
    assert model.embed_sentence("SEQWENCE").shape == (3, 8, DIM)  # a string is its letters


def test_flairNLP_flair() -> None:
    """`ELMoEmbeddings`: batches, and the carried states moved to a device by hand."""
    from elmokit.compat.allennlp import ElmoEmbedder

    embedder = ElmoEmbedder(options_file=OPTIONS, weight_file=WEIGHTS, cuda_device=-1)
    embeddings = embedder.embed_batch(SENTENCES)
    word = torch.cat([torch.FloatTensor(embeddings[1][layer, 0]) for layer in range(3)])
    assert word.shape == (3 * DIM,)
    embedder.cuda_device = -1
    embedder.elmo_bilm.to(device="cpu")
    lstm = embedder.elmo_bilm._elmo_lstm
    lstm._states = tuple([state.to("cpu") for state in lstm._states])
    assert not np.allclose(embedder.embed_batch(SENTENCES)[0], embeddings[0], atol=1e-3)


def test_sunyilgdx_SIFRank() -> None:
    """Key phrases: a weighted mean of the layers of `batch_to_embeddings`."""
    from elmokit.compat.allennlp import ElmoEmbedder

    elmo = ElmoEmbedder(str(OPTIONS), str(WEIGHTS), cuda_device=-1)
    embeddings, mask = elmo.batch_to_embeddings(SENTENCES)
    assert embeddings.shape == (2, 3, 3, DIM) and int(mask[1].sum()) == 2
    weighted = sum(weight * embeddings[0, layer] for layer, weight in enumerate((0.0, 1.0, 0.0)))
    assert weighted.shape == (3, DIM)


def test_allanj_pytorch_neural_crf() -> None:
    """Vectors of a data set for a tagger: one by one, and in batches."""
    from elmokit.compat.allennlp import ElmoEmbedder

    elmo = ElmoEmbedder(str(OPTIONS), str(WEIGHTS))
    for vectors in (elmo.embed_sentence(SENTENCES[0]), *elmo.embed_sentences(SENTENCES, 64)):
        assert np.average(vectors, 0).shape[1] == np.swapaxes(vectors, 0, 1).shape[2] == DIM
        assert vectors[-1, :, :].shape[1] == DIM


def test_iesl_diora() -> None:
    """Context-free vectors of a vocabulary, from the character encoder alone."""
    from elmokit.compat.allennlp import (
        _ElmoCharacterEncoder,
        batch_to_ids,
        remove_sentence_boundaries,
    )

    encoder = _ElmoCharacterEncoder(str(OPTIONS), str(WEIGHTS), requires_grad=False)
    words = ["a", "bank", "sentence"]
    output = encoder(batch_to_ids([[word] for word in words]))
    kept, _ = remove_sentence_boundaries(output["token_embedding"], output["mask"])
    vectors = kept.squeeze(1).cpu().numpy()
    assert vectors.shape == (3, DIM // 2) and np.isfinite(vectors).all()


def test_allenai_allennlp_scripts() -> None:
    """`create_elmo_embeddings_from_vocab`: a vocabulary in sentences of 50 words, padded."""
    from elmokit.compat.allennlp import ELMoTokenCharactersIndexer, _ElmoCharacterEncoder

    indexer = ELMoTokenCharactersIndexer()
    tokens = ["@@UNKNOWN@@", "<S>", "</S>", *(f"word{i}" for i in range(60))]
    indices = indexer.tokens_to_indices(tokens, None)["elmo_tokens"]
    chunks = [indices[i : i + 50] for i in range(0, len(indices), 50)]
    batch = torch.stack(
        [
            indexer.as_padded_tensor_dict({"elmo_tokens": chunk}, {"elmo_tokens": 50})[
                "elmo_tokens"
            ]
            for chunk in chunks
        ]
    )
    embedded = _ElmoCharacterEncoder(OPTIONS, WEIGHTS)(batch)["token_embedding"].data
    vectors = embedded[:, 1:-1, :].contiguous().view(-1, embedded.size(-1))[: len(tokens)]
    assert vectors.shape == (63, DIM // 2)
    assert len({tuple(row) for row in vectors.tolist()}) == 63


def test_Aditi138_project747() -> None:
    """The ids of one word, from the mapper as a class."""
    from elmokit.compat.allennlp import Elmo, ELMoCharacterMapper

    ids = ELMoCharacterMapper.convert_word_to_char_ids("hello")
    inputs = torch.autograd.Variable(torch.LongTensor(np.reshape(ids, [1, 1, 50])))
    found = Elmo(str(OPTIONS), str(WEIGHTS), 1)(inputs)
    assert found["elmo_representations"][0].shape == (1, 1, DIM)


def test_yeliudev_ConsNet() -> None:
    """One layer of the biLM, averaged over the words of a label."""
    from elmokit.compat.allennlp import _ElmoBiLm, batch_to_ids, remove_sentence_boundaries

    bilm = _ElmoBiLm(str(OPTIONS), str(WEIGHTS))
    output = bilm(batch_to_ids([["riding", "horse"]]))
    layers = [
        remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]
    ]
    assert torch.cat(layers)[2].mean(dim=0).shape == (DIM,)


def test_hsinyuan_huang_FlowQA() -> None:
    """Question answering: the weights of the mix in the loss, only those learn."""
    from elmokit.compat.allennlp import Elmo, batch_to_ids

    elmo = Elmo(str(OPTIONS), str(WEIGHTS), 1, dropout=0)
    optimizer = torch.optim.Adamax([p for p in elmo.parameters() if p.requires_grad])
    scalars = elmo.scalar_mix_0.scalar_parameters
    penalty = 0.1 * (scalars[0] ** 2 + scalars[1] ** 2 + scalars[2] ** 2)
    found = elmo(batch_to_ids(SENTENCES))["elmo_representations"][0]
    (penalty + found.pow(2).mean()).sum().backward()
    optimizer.step()
    assert any(scalar.item() != 0 for scalar in scalars)
    assert all(parameter.grad is None for parameter in elmo._elmo_lstm.parameters())


def test_nyu_mll_jiant() -> None:
    """`ElmoTokenEmbedder` in a subclass, or the character encoder instead of it."""
    from elmokit.compat.allennlp import ElmoTokenEmbedder, _ElmoCharacterEncoder, batch_to_ids

    class Wrapper(ElmoTokenEmbedder):
        def forward(self, inputs: torch.Tensor, *_: Any) -> torch.Tensor:
            output = self._elmo(inputs)["elmo_representations"]
            result: torch.Tensor = self._projection(output[0]) if self._projection else output[0]
            return result

        def get_output_dim(self) -> int:
            return 2 * int(self._elmo._elmo_lstm._token_embedder.get_output_dim())

    embedder = Wrapper(options_file=OPTIONS, weight_file=WEIGHTS, dropout=0.2)
    assert embedder(batch_to_ids(SENTENCES)).shape == (2, 3, embedder.get_output_dim())
    characters = _ElmoCharacterEncoder(OPTIONS, WEIGHTS, requires_grad=False)
    assert characters(batch_to_ids(SENTENCES))["token_embedding"].shape == (2, 5, DIM // 2)


def test_PKSHATechnology_Research_camphr(tmp_path: Path) -> None:
    """A component of spaCy that saves the files of its model, found through the encoder."""
    from elmokit.compat.allennlp import Elmo, batch_to_ids

    model = Elmo(str(OPTIONS), str(WEIGHTS), 3)
    shutil.copy(model._elmo_lstm._token_embedder._weight_file, tmp_path / "weights.hdf5")
    options = json.dumps(model._elmo_lstm._token_embedder._options)
    (tmp_path / "options.json").write_text(options)
    again = Elmo(tmp_path / "options.json", tmp_path / "weights.hdf5", 3).eval()
    for ours, theirs in zip(
        again(batch_to_ids(SENTENCES))["elmo_representations"],
        model.eval()(batch_to_ids(SENTENCES))["elmo_representations"],
        strict=True,
    ):
        assert torch.equal(ours, theirs)


def test_kdsuneraavinash_elmo(capsys: pytest.CaptureFixture[str]) -> None:
    """The example of the tutorial, which prints the module."""
    from elmokit.compat.allennlp import Elmo, batch_to_ids

    elmo = Elmo(str(OPTIONS), str(WEIGHTS), 2, dropout=0.1)
    print(elmo)
    assert "(state_projection): " in capsys.readouterr().out
    ids = batch_to_ids(["Yes it is".split()])
    assert [v.shape for v in elmo(ids)["elmo_representations"]] == 2 * [(1, 3, DIM)]


def test_ElmoLstmWithTransformation() -> None:
    """A learned matrix before the LSTMs, which replaces them in the module."""
    from elmokit.compat.allennlp import Elmo, ElmoLstm, batch_to_ids

    class Transformed(torch.nn.Module):
        def __init__(self, lstm: ElmoLstm) -> None:
            super().__init__()
            self.lstm, self.M = lstm, torch.nn.Parameter(torch.eye(lstm.input_size))

        def forward(self, inputs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.lstm(inputs @ self.M, mask)
            return result

    elmo = Elmo(str(OPTIONS), str(WEIGHTS), 1, dropout=0)
    elmo._elmo_lstm._elmo_lstm = Transformed(elmo._elmo_lstm._elmo_lstm)
    elmo(batch_to_ids(SENTENCES))["elmo_representations"][0].mean(dim=1).sum().backward()
    assert elmo._elmo_lstm._elmo_lstm.M.grad.any()


def test_sacdallago_bio_embeddings() -> None:
    """`SeqVecEmbedder`: batches of proteins by a generator, and a second model as the fallback."""
    from elmokit.compat.allennlp import ElmoEmbedder

    files: dict[str, Any] = {"weight_file": str(WEIGHTS), "options_file": str(OPTIONS)}
    model, fallback = (ElmoEmbedder(**files, cuda_device=device) for device in (0, -1))
    many = list(model.embed_batch([list("SEQWENCE"), list("MKV")]))
    assert [embedding.sum(0).mean(0).shape for embedding in many] == [(DIM,), (DIM,)]
    assert np.allclose(fallback.embed_sentence(list("SEQWENCE")), many[0], atol=1e-5)
    assert model.embed_batch([]) == []


def test_syuoni_eznlp() -> None:
    """Carrying is switched off from outside, and the biLM frozen and thawed."""
    from elmokit.compat.allennlp import Elmo, batch_to_ids

    elmo = Elmo(OPTIONS, WEIGHTS, num_output_representations=1, dropout=0)
    elmo._elmo_lstm._elmo_lstm.stateful = False
    ids = batch_to_ids(SENTENCES)
    vectors = []
    for freeze in (True, True, False):
        elmo._elmo_lstm.requires_grad_(not freeze)
        vectors.append(elmo(inputs=ids)["elmo_representations"][0])
    assert torch.equal(vectors[0], vectors[1])
    assert torch.allclose(vectors[0], vectors[2], atol=1e-5)
    vectors[2].sum().backward()
    assert elmo._elmo_lstm._token_embedder._char_embedding_weights.grad is not None


def test_LIAAD_tieval() -> None:
    """Temporal relations: the module is imported as a whole, and everything is frozen."""
    import elmokit.compat.allennlp as elmo_module

    elmo = elmo_module.Elmo(OPTIONS, WEIGHTS, num_output_representations=1, dropout=0)
    elmo.requires_grad_(requires_grad=False)
    ids = elmo_module.batch_to_ids([SENTENCES[0]])
    vectors = elmo(ids)["elmo_representations"][0][0].view(len(SENTENCES[0]), 1, -1)
    assert vectors.shape == (3, 1, DIM)
    assert not vectors.requires_grad
    elmo.load_state_dict(elmo.state_dict())


def test_Alibaba_NLP_ACE() -> None:
    """The carried states become a list, whose items are moved one by one."""
    from elmokit.compat.allennlp import ElmoEmbedder

    embedder = ElmoEmbedder(OPTIONS, WEIGHTS, cuda_device=-1)
    first = embedder.embed_batch(SENTENCES)
    lstm = embedder.elmo_bilm._elmo_lstm
    lstm._states = [state.to("cpu") for state in lstm._states]
    for i in range(len(lstm._states)):
        lstm._states[i] = lstm._states[i].to("cpu")
    assert not np.allclose(embedder.embed_batch(SENTENCES)[0], first[0], atol=1e-3)


def test_align_cfg() -> None:
    """Vectors of a vocabulary from the cache of words, with those of the sentence marks."""
    import elmokit.compat.allennlp as elmo

    model = elmo.Elmo(OPTIONS, WEIGHTS, num_output_representations=1)._elmo_lstm
    with torch.no_grad():
        model.create_cached_cnn_embeddings(["<pad>", "the", "bank"])
    table = model._word_embedding.weight.cpu().numpy()
    marks = [mark.cpu().numpy() for mark in (model._bos_embedding, model._eos_embedding)]
    assert np.vstack([*marks, table]).shape == (5, DIM // 2)
    words = model._token_embedder(elmo.batch_to_ids([["the", "bank"]]))["token_embedding"][0]
    expected = np.vstack([marks[0], table[1:], marks[1]])
    assert np.allclose(words.detach().numpy(), expected, atol=1e-6)


def test_getELMo() -> None:
    """One direction is switched off by zeros in the weights; words are given by their number."""
    from elmokit.compat.allennlp import Elmo

    words = ["<pad>", "the", "bank", "."]
    elmo = Elmo(OPTIONS, WEIGHTS, 1, vocab_to_cache=words, scalar_mix_parameters=[-9e10, 1, 1])
    elmo.eval()
    numbers = torch.arange(1, 4).unsqueeze(1)
    ids = torch.zeros((3, 1, 50)).type_as(numbers)
    both = elmo(ids, word_inputs=numbers)["elmo_representations"][0]
    for number in range(2):
        layer = getattr(elmo._elmo_lstm._elmo_lstm, f"backward_layer_{number}")
        for part in ("input_linearity", "state_linearity", "state_projection"):
            for name in ("weight", "bias"):
                if getattr(getattr(layer, part), name, None) is not None:
                    getattr(getattr(layer, part), name).data.fill_(0.0)
    elmo._elmo_lstm._elmo_lstm.reset_states()
    one = elmo(ids, word_inputs=numbers)["elmo_representations"][0]
    assert torch.allclose(one[..., : DIM // 2], both[..., : DIM // 2], atol=1e-5)
    assert torch.count_nonzero(one[..., DIM // 2 :]) == 0


def test_ElmoLM() -> None:
    """Cached words only, without the character encoder; a cell is copied for a decoder."""
    import copy

    from elmokit.compat.allennlp import Elmo, LstmCellWithProjection

    elmo = Elmo(OPTIONS, WEIGHTS, 1, dropout=0, vocab_to_cache=["<pad>", "the", "bank", "."])
    numbers = torch.tensor([[1, 2, 3], [2, 3, 0]])
    whole = elmo(torch.zeros((2, 3, 50)).long(), numbers)
    del elmo._elmo_lstm._token_embedder
    lstm = elmo._elmo_lstm._elmo_lstm
    lstm.reset_states()
    for parameter in lstm.parameters():
        parameter.requires_grad = True
    output = elmo.forward(numbers, numbers)
    vectors = output["elmo_representations"][0]
    assert torch.allclose(vectors, whole["elmo_representations"][0], atol=1e-5)
    table = elmo._elmo_lstm._word_embedding.weight
    assert (vectors @ torch.cat((table, table), dim=-1).t()).shape == (2, 3, 4)

    cells = [copy.deepcopy(cell) for cell in lstm.forward_layers]
    assert all(isinstance(cell, LstmCellWithProjection) for cell in cells)
    words = table[torch.tensor([1, 2])].unsqueeze(dim=-2)
    for cell in cells:
        assert torch.nn.Linear(cell.hidden_size, cell.cell_size)(words).shape[-1] == cell.cell_size
        _, state = cell(words, [1] * 2, None)
        _, (hidden, memory) = cell(words, [1] * 2, state)
        assert (hidden.shape, memory.shape) == ((1, 2, DIM // 2), (1, 2, cell.cell_size))


def test_CustomElmo() -> None:
    """A subclass of `Elmo` whose `forward` also returns the layers."""
    from elmokit.compat.allennlp import Elmo, batch_to_ids, remove_sentence_boundaries

    class CustomElmo(Elmo):
        def forward(self, inputs: Any, word_inputs: Any = None) -> dict[str, Any]:
            output = self._elmo_lstm(inputs, None if not self._has_cached_vocab else word_inputs)
            layers, mask = output["activations"], output["mask"]
            assert not self._keep_sentence_boundaries
            vectors = []
            for i in range(len(self._scalar_mixes)):
                mixed = getattr(self, f"scalar_mix_{i}")(layers, mask)
                vectors.append(self._dropout(remove_sentence_boundaries(mixed, mask)[0]))
            for i, layer in enumerate(layers):
                layers[i], _ = remove_sentence_boundaries(layer, mask)
            return {"embeddings": vectors[0], "activations": layers}

    ids = batch_to_ids(SENTENCES)
    custom = CustomElmo(OPTIONS, WEIGHTS, num_output_representations=1, dropout=0.0)(ids)
    plain = Elmo(OPTIONS, WEIGHTS, num_output_representations=1, dropout=0.0)(ids)
    assert torch.allclose(custom["embeddings"], plain["elmo_representations"][0])
    assert [layer.shape for layer in custom["activations"]] == 3 * [(2, 3, DIM)]


# -- simple_elmo -----------------------------------------------------------------------------------


@pytest.fixture
def simple(tmp_path: Path) -> Path:
    """A model as the NLPL repository packs it: model.hdf5, options.json and vocab.txt."""
    shutil.copy(WEIGHTS, tmp_path / "model.hdf5")
    shutil.copy(OPTIONS, tmp_path / "options.json")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nbank\n")
    return tmp_path


def test_ltgoslo_simple_elmo_wsd_eval(simple: Path) -> None:
    """Its own example of word senses: the vector of one word of each sentence."""
    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load(str(simple), top=True)
    vectors = model.get_elmo_vectors(SENTENCES)
    query = vectors[1, 0, :]
    assert np.isclose(np.linalg.norm(query / np.linalg.norm(query)), 1)


def test_ltgoslo_simple_elmo_text_classification(simple: Path) -> None:
    """Its own example of pairs of texts: the products of their averages."""
    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load(str(simple), top=False, max_batch_size=300)
    one, two = (model.get_elmo_vector_average(SENTENCES) for _ in range(2))
    assert np.allclose([np.dot(a, b) for a, b in zip(one, two, strict=True)], 1)


def test_kermitt2_delft(simple: Path) -> None:
    """Embeddings for Keras: the width of a batch from the batcher, then the vectors."""
    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load(simple, max_batch_size=1024)
    widest = model.batcher.batch_sentences(SENTENCES)[0].shape[0]  # type: ignore[union-attr]
    session = object()
    vectors = model.get_elmo_vectors(SENTENCES, layers="average", warmup=True, session=session)
    assert vectors.shape == (2, widest - 2, model.vector_size)


def test_RSG_MorphAnalyzer(simple: Path) -> None:
    """Pairs of texts in batches, padded to one length and put together."""
    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load(str(simple))
    parts = [model.get_elmo_vectors(part) for part in (SENTENCES, SENTENCES[::-1])]
    padded = [np.pad(part, ((0, 0), (0, 5 - part.shape[1]), (0, 0))) for part in parts]
    assert np.hstack(padded).shape == (2, 10, DIM)


# -- ELMoForManyLangs ------------------------------------------------------------------------------


def test_sunyilgdx_SIFRank_zh() -> None:
    """Key phrases of Chinese: all layers, padded to a tensor."""
    from elmokit.compat.many_langs import Embedder

    embedder = Embedder(str(MANY_LANGS))
    found = embedder.sents2elmo([["今", "天", "天氣"], ["好"]], output_layer=-2)
    padded = torch.zeros(2, 3, 3, DIM)
    for row, layers in zip(padded, found, strict=True):
        row[:, : layers.shape[1]] = torch.from_numpy(layers)
    assert padded[0].all() and not padded[1, :, 1:].any()


def test_HIT_SCIR_ELMoForManyLangs() -> None:
    """The sentence vectors that most scripts make of it, and the vector of a single word."""
    from elmokit.compat.many_langs import Embedder

    embedder = Embedder(str(MANY_LANGS), batch_size=140)
    titles = [["潮水", "退", "了"], ["褲子"]]
    means = [np.mean(vectors, axis=0) for vectors in embedder.sents2elmo(titles)]
    assert np.array(means).shape == (2, DIM)
    word = np.squeeze(np.array(embedder.sents2elmo([["褲子"]], output_layer=0)))
    assert word.shape == (DIM,)


# -- bilm-tf ---------------------------------------------------------------------------------------


def test_allenai_bilm_tf_usage_cached(tmp_path: Path) -> None:
    """Its example that writes the vectors of a data set to a file."""
    from elmokit.compat.bilm import dump_bilm_embeddings

    text, out = tmp_path / "dataset.txt", tmp_path / "elmo_embeddings.hdf5"
    text.write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    dump_bilm_embeddings("vocab.txt", str(text), str(OPTIONS), str(WEIGHTS), str(out))
    with h5py.File(out, "r") as file:
        assert file["1"][...].shape == (3, 2, DIM)


def test_chledowski_word_embeddings_for_nli(tmp_path: Path) -> None:
    """The context-free vectors of a vocabulary, to a file."""
    from elmokit.compat.bilm import dump_token_embeddings

    vocabulary, out = tmp_path / "vocab_elmo.txt", tmp_path / "elmo_token_embeddings.hdf5"
    vocabulary.write_text("<S>\n</S>\n<UNK>\nbank\n")
    dump_token_embeddings(str(vocabulary), str(OPTIONS), str(WEIGHTS), str(out))
    with h5py.File(out, "r") as file:
        assert file["embedding"][...].shape == (4, DIM // 2)


def test_raresraf_project_martial(simple: Path) -> None:
    """Comments of programs: a string in place of sentences, averaged over its letters."""
    from elmokit.compat.simple_elmo import ElmoModel

    model = ElmoModel()
    model.load(str(simple))
    with pytest.warns(UserWarning, match="whose characters are read as words"):
        vectors = model.get_elmo_vectors("to do")
    assert np.average(vectors, axis=0).shape[-1] == DIM


def test_kbqa() -> None:
    """Answers from a knowledge base: cosines between means of Chinese questions."""
    from elmokit.compat.many_langs import Embedder

    model = Embedder(str(MANY_LANGS))
    questions = [["卧佛寺", "乡", "的"], ["下辖"]]
    one, two = ([np.mean(words, axis=0)] for words in model.sents2elmo(questions))
    assert abs(np.matmul(one, np.array(two).T) / np.linalg.norm(one) / np.linalg.norm(two)) <= 1


# -- the list --------------------------------------------------------------------------------------


def test_the_guide_lists_them() -> None:
    """Every program in the guide's table has a test here, and every test a row there."""
    guide = (REPOSITORY / "docs" / "migration.md").read_text(encoding="utf-8")
    table = guide.partition("## Programs that were tried")[2].partition("\n## ")[0]
    listed = {re.sub(r"\W", "_", name) for name in re.findall(r"^\| `([^`]+)`", table, re.M)}
    tested = set(_tested())
    assert {name for name in tested if not any(name.startswith(row) for row in listed)} == set()
    assert {row for row in listed if not any(name.startswith(row) for name in tested)} == set()


def _tested() -> Iterator[str]:
    for name in globals():
        if name.startswith("test_") and name != "test_the_guide_lists_them":
            yield name.removeprefix("test_")
