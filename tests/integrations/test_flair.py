"""`ElmoTokenEmbeddings` with the real flair, in an environment of its own."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN

from elmokit import Elmo
from elmokit.errors import InputError

pytest.importorskip("flair", reason="needs flair: pip install 'elmokit[flair]'")

from flair.data import Corpus, Dictionary, Sentence
from flair.embeddings import OneHotEmbeddings, StackedEmbeddings
from flair.embeddings.base import load_embeddings
from flair.models import SequenceTagger
from flair.trainers import ModelTrainer

from elmokit.integrations.flair import ElmoTokenEmbeddings

PLAIN = GOLDEN / "models" / "plain"
WORDS = ["She", "went", "to", "the", "bank", "."]


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.load(PLAIN)


def vectors(sentence: Sentence) -> np.ndarray:
    return np.stack([token.get_embedding().detach().cpu().numpy() for token in sentence])


@pytest.mark.parametrize("layers", ["mix", "top", 0])
def test_embeddings_are_those_of_embed(elmo: Elmo, layers: str | int) -> None:
    embeddings = ElmoTokenEmbeddings(PLAIN, layers=layers)
    sentences = [Sentence(WORDS), Sentence(["Yes"])]
    embeddings.embed(sentences)
    assert embeddings.embedding_length == elmo.dim
    for sentence in sentences:
        words = [token.text for token in sentence]
        assert (vectors(sentence) == elmo.embed([words], layers)[0]).all()


def test_all_layers_side_by_side(elmo: Elmo) -> None:
    embeddings = ElmoTokenEmbeddings(PLAIN, layers="all")
    sentence = Sentence(WORDS)
    embeddings.embed(sentence)
    expected = np.concatenate(list(elmo.embed([WORDS], "all")[0]), axis=1)
    assert embeddings.embedding_length == expected.shape[1] == elmo.dim * elmo.layers
    assert (vectors(sentence) == expected).all()


def test_stacked_with_others(elmo: Elmo) -> None:
    dictionary = Dictionary()
    for word in WORDS:
        dictionary.add_item(word)
    one_hot = OneHotEmbeddings(dictionary, embedding_length=7)
    mix, words = ElmoTokenEmbeddings(PLAIN), ElmoTokenEmbeddings(PLAIN, layers=0)
    stack = StackedEmbeddings([one_hot, mix, words])
    sentence = Sentence(WORDS)
    stack.embed(sentence)
    assert stack.embedding_length == 7 + 2 * elmo.dim
    assert vectors(sentence).shape == (len(WORDS), stack.embedding_length)


def test_saved_parameters_bring_the_model_along(elmo: Elmo, tmp_path: Path) -> None:
    elmo.save(tmp_path / "model")
    embeddings = ElmoTokenEmbeddings(tmp_path / "model", layers=1)
    saved = pickle.dumps(embeddings.save_embeddings())
    shutil.rmtree(tmp_path / "model")
    loaded = load_embeddings(pickle.loads(saved))
    sentence, same = Sentence(WORDS), Sentence(WORDS)
    embeddings.embed(sentence)
    loaded.embed(same)
    assert (vectors(sentence) == vectors(same)).all() and loaded.name == embeddings.name


def test_wrong_layers_are_refused() -> None:
    with pytest.raises(InputError, match="layers is 9"):
        ElmoTokenEmbeddings(PLAIN, layers=9)


def test_a_tagger_trained_saved_and_loaded_in_a_fresh_process(tmp_path: Path) -> None:
    sentences = []
    for person, town in [("Ada", "London"), ("Alan", "Paris"), ("Grace", "Rome")] * 8:
        sentence = Sentence([person, "went", "to", town, "."])
        sentence[0:1].add_label("ner", "PER")
        sentence[3:4].add_label("ner", "LOC")
        sentences.append(sentence)
    corpus = Corpus(train=sentences, dev=sentences[:3], test=sentences[:3])
    tagger = SequenceTagger(
        embeddings=StackedEmbeddings([ElmoTokenEmbeddings(layers="all")]),
        tag_dictionary=corpus.make_label_dictionary("ner", add_unk=False),
        tag_type="ner",
        hidden_size=16,
        use_crf=True,
    )
    result = ModelTrainer(tagger, corpus).train(
        tmp_path / "run", learning_rate=0.1, mini_batch_size=4, max_epochs=8, save_final_model=True
    )
    assert result["test_score"] > 0.8
    code = (
        "import sys\n"
        "from flair.data import Sentence\n"
        "from flair.models import SequenceTagger\n"
        "sentence = Sentence(['Barbara', 'went', 'to', 'Berlin', '.'])\n"
        "SequenceTagger.load(sys.argv[1]).predict(sentence)\n"
        "print(sorted(label.value for label in sentence.get_labels('ner')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "run" / "final-model.pt")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "['LOC', 'PER']"
