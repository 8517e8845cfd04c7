"""The component `elmo` and the layer `elmokit.Tok2Vec.v1` with the real spaCy."""

from __future__ import annotations

import pickle
import random
import shutil
import subprocess
import sys
import warnings
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import GOLDEN, REPOSITORY

from elmokit import Elmo, InputError, WeightsError

pytest.importorskip("spacy", reason="needs spaCy: pip install 'elmokit[spacy]'")

import spacy
from spacy.tokens import Doc, DocBin

from elmokit.integrations.spacy import embed_docs, make_tok2vec, use_tensor

PLAIN = str(GOLDEN / "models" / "plain")
RIVER, MONEY = "I sat by the river bank .", "The bank lent me money ."
TEXTS = [RIVER, MONEY, "", "  ", "two  spaces\n\nhere", "A. B. C"]


def pipeline(vectors: bool = False, **options: object) -> spacy.Language:
    nlp = spacy.blank("en")
    if vectors:
        nlp.vocab.set_vector("bank", np.ones(50, "f"))
    nlp.add_pipe("elmo", config={"model": PLAIN, **options})
    return nlp


def fresh(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_entry_points() -> None:
    """spaCy finds both by name, in a process that imports nothing of ours."""
    if not entry_points(group="spacy_factories", name="elmo"):
        pytest.skip("elmokit is not installed; run with: pip install -e .")
    code = (
        "import spacy; spacy.blank('en').add_pipe('elmo'); "
        "print(spacy.registry.architectures.get('elmokit.Tok2Vec.v1').__name__)"
    )
    assert fresh(code) == "make_tok2vec\n"


@pytest.mark.parametrize("vectors", [False, True], ids=["blank", "vocabulary vectors"])
@pytest.mark.parametrize("layers", ["mix", "top", 0])
def test_vectors_are_those_of_embed(vectors: bool, layers: str | int) -> None:
    elmo = Elmo.load(PLAIN)
    nlp = pipeline(vectors, layers=layers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        docs = list(nlp.pipe(TEXTS))
        for doc in docs:
            words = [token.text for token in doc if not token.is_space]
            expected = elmo.embed([words], layers)[0]
            kept = np.array([not token.is_space for token in doc], bool)
            assert doc.tensor.dtype == np.float32 and doc.tensor.shape == (len(doc), elmo.dim)
            assert (doc.tensor[kept] == expected).all() and not doc.tensor[~kept].any()
            assert all((token.vector == doc.tensor[token.i]).all() for token in doc)
            assert (doc.vector == elmo.encode([words], layers=layers)[0]).all()
            assert doc.has_vector == bool(words)
            assert doc.vector_norm == pytest.approx(np.linalg.norm(doc.vector), rel=1e-5)
            if len(words) > 2:
                assert (doc[1:3].vector == doc.tensor[1:3].mean(axis=0)).all() or not kept.all()
                assert doc[1:3].vector_norm == pytest.approx(np.linalg.norm(doc[1:3].vector))
        river, money = docs[0], docs[1]
        assert river[5].similarity(river[5]) == pytest.approx(1)
        if layers != 0:
            assert river[5].similarity(money[1]) < 0.999
        cosine = river.vector @ money.vector / (river.vector_norm * money.vector_norm)
        assert river.similarity(money) == pytest.approx(cosine, abs=1e-5)
        assert river[0:2].similarity(money[0]) == pytest.approx(money[0].similarity(river[0:2]))
        assert river.similarity(docs[2]) == 0
        part = river[1:4].as_doc()
        assert (part[0].vector == river[1].vector).all()
        assert part.similarity(river[1:4]) == pytest.approx(1)


def test_the_banks_of_the_built_in_model_differ() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    river, money = nlp.pipe([RIVER, MONEY])
    assert river[5].text == money[1].text == "bank"
    assert river[5].similarity(money[1]) < 0.9


@pytest.mark.parametrize("vectors", [False, True], ids=["blank", "vocabulary vectors"])
def test_worker_processes_and_batch_sizes(vectors: bool) -> None:
    nlp = pipeline(vectors)
    expected = list(nlp.pipe(TEXTS))
    runs = [nlp.pipe(TEXTS, batch_size=size) for size in (1, 3)]
    runs.append(nlp.pipe(TEXTS, n_process=2, batch_size=2))
    runs.append(doc for doc, _ in nlp.pipe([(t, 1) for t in TEXTS], as_tuples=True, n_process=2))
    for run in runs:
        docs = list(run)
        assert len(docs) == len(TEXTS)
        for doc, other in zip(docs, expected, strict=True):
            assert (doc.tensor == other.tensor).all() and (doc.vector == other.vector).all()
        assert docs[0][5].similarity(docs[1][1]) == expected[0][5].similarity(expected[1][1])


def test_sentences_are_embedded_one_by_one() -> None:
    nlp = pipeline()
    nlp.add_pipe("sentencizer", first=True)
    doc = nlp("One is here. Two is there.")
    words = [["One", "is", "here", "."], ["Two", "is", "there", "."]]
    assert (doc.tensor == np.concatenate(Elmo.load(PLAIN).embed(words))).all()


def test_saved_pipelines_in_a_fresh_process(tmp_path: Path) -> None:
    """A model that has a path only goes along; its own directory may disappear."""
    Elmo.load(PLAIN).save(tmp_path / "model")
    nlp = pipeline(model=str(tmp_path / "model"), layers=1)
    expected = nlp(RIVER).tensor
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "nlp.bytes").write_bytes(nlp.to_bytes())
    copies = [spacy.load(tmp_path / "nlp"), pickle.loads(pickle.dumps(nlp))]
    shutil.rmtree(tmp_path / "model")
    copies[0].to_disk(tmp_path / "again")
    code = (
        "import spacy, sys, elmokit.integrations.spacy\n"
        "for path in sys.argv[1:3]: print(spacy.load(path)(sys.argv[3]).tensor.tolist())"
    )
    printed = fresh(code, str(tmp_path / "nlp"), str(tmp_path / "again"), RIVER).splitlines()
    assert len(printed) == 2
    for line in printed:
        assert (np.array(eval(line), np.float32) == expected).all()
    copies.append(pipeline(layers=1).from_bytes((tmp_path / "nlp.bytes").read_bytes()))
    for copy in copies:
        assert (copy(RIVER).tensor == expected).all()


def test_another_model_of_the_same_name_is_noticed(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    component = nlp.add_pipe("elmo")
    nlp(RIVER)
    nlp.to_disk(tmp_path / "nlp")
    assert (tmp_path / "nlp" / "elmo").stat().st_size < 1000  # the name of the model
    component.source._fingerprint, component.source._elmo = "0123456789abcdef", None
    with pytest.raises(WeightsError, match="expected 0123456789ab"):
        nlp(RIVER)


def test_stored_documents() -> None:
    nlp = pipeline(vectors=True)
    river, money = nlp.pipe([RIVER, MONEY])
    with pytest.warns(UserWarning, match="W109"):
        data = river.to_bytes()
    loaded = use_tensor(Doc(nlp.vocab).from_bytes(data))
    copy = pickle.loads(pickle.dumps(river))
    component = nlp.get_pipe("elmo")
    binary = DocBin(docs=[river]).to_bytes()  # stores no tensors: embed the documents again
    again = component(next(DocBin().from_bytes(binary).get_docs(nlp.vocab)))
    for doc in (loaded, copy, again):
        assert (doc[5].vector == river[5].vector).all()
        assert doc[5].similarity(money[1]) == river[5].similarity(money[1])


def test_wrong_settings_are_refused_when_the_component_is_added() -> None:
    for options, message in [
        ({"layers": "bad"}, "layers"),
        ({"layers": 9}, "layers is 9"),
        ({"dtype": "x"}, "dtype is 'x'"),
        ({"unknown": 1}, "unknown"),
    ]:
        with pytest.raises(ValueError, match=message):
            pipeline(**options)
    river = pipeline()(RIVER)
    nlp = pipeline(vectors=True)
    with pytest.raises(InputError, match="50 dimensions"):
        river[5].similarity(nlp.vocab["bank"])


# -- training --------------------------------------------------------------------------------------


def test_the_gradient_of_the_mix_is_that_of_finite_differences() -> None:
    docs = [Doc(spacy.blank("en").vocab, words=text.split()) for text in (RIVER, MONEY, "x")]
    docs.append(Doc(docs[0].vocab))
    mix = make_tok2vec(PLAIN, width=None)
    mix.initialize(X=docs)
    assert mix.get_dim("nO") == Elmo.load(PLAIN).dim
    mix.set_param("scalars", np.array([0.3, -0.5, 0.1], "f"))
    mix.set_param("gamma", np.array([1.3], "f"))
    outputs, backprop = mix.begin_update(docs)
    expected = embed_docs(Elmo.load(PLAIN), docs, "all")
    weights = np.exp([0.3, -0.5, 0.1]) / np.exp([0.3, -0.5, 0.1]).sum()
    for output, layers in zip(outputs, expected, strict=True):
        assert output.shape == layers.shape[1:]
        assert np.allclose(output, 1.3 * np.tensordot(weights, layers, 1), atol=1e-5)
    rng = np.random.default_rng(0)
    upstream = [rng.normal(size=output.shape).astype("f") for output in outputs]
    backprop(upstream)

    def loss() -> float:
        pairs = zip(mix.predict(docs), upstream, strict=True)
        return sum(float((value.astype(float) * above).sum()) for value, above in pairs)

    for name in ("scalars", "gamma"):
        values, gradient = mix.get_param(name).copy(), mix.get_grad(name)
        for i in range(len(values)):
            both = []
            for step in (1e-2, -1e-2):
                changed = values.copy()
                changed[i] += step
                mix.set_param(name, changed)
                both.append(loss())
            mix.set_param(name, values)
            assert gradient[i] == pytest.approx((both[0] - both[1]) / 2e-2, rel=1e-2, abs=1e-2)


def test_the_layer_is_saved_with_its_mix_and_model(tmp_path: Path) -> None:
    Elmo.load(PLAIN).save(tmp_path / "model")
    docs = [Doc(spacy.blank("en").vocab, words=RIVER.split())]
    tok2vec = make_tok2vec(str(tmp_path / "model"), width=5)
    assert tok2vec.get_dim("nO") == 5
    tok2vec.initialize(X=docs)
    tok2vec.layers[0].set_param("scalars", np.array([1, 2, 3], "f"))
    data = tok2vec.to_bytes()
    shutil.rmtree(tmp_path / "model")
    loaded = make_tok2vec(str(tmp_path / "model"), width=5).from_bytes(data)
    assert (loaded.predict(docs)[0] == tok2vec.predict(docs)[0]).all()
    assert loaded.predict(docs)[0].shape == (len(docs[0]), 5)


def toy_entities(path: Path, count: int, seed: int) -> None:
    """People and towns; the names of the test are not in the training data."""
    rng = random.Random(seed)
    nlp = spacy.blank("en")
    people, towns = ["Ada", "Alan", "Grace", "Edsger"], ["London", "Paris", "Oslo", "Rome"]
    if seed:
        people, towns = ["Barbara", "Donald"], ["Berlin", "Madrid"]
    binary = DocBin()
    for _ in range(count):
        words = f"{rng.choice(people)} went to {rng.choice(towns)} yesterday .".split()
        entities = ["B-PER", "O", "O", "B-LOC", "O", "O"]
        binary.add(Doc(nlp.vocab, words=words, ents=entities))
    binary.to_disk(path)


def test_spacy_train_from_the_configs_of_the_example(tmp_path: Path) -> None:
    """`spacy train` without --code, and the model loaded in a fresh process."""
    if not entry_points(group="spacy_factories", name="elmo"):
        pytest.skip("elmokit is not installed; run with: pip install -e .")
    toy_entities(tmp_path / "train.spacy", 60, 0)
    toy_entities(tmp_path / "dev.spacy", 20, 1)
    config = REPOSITORY / "examples" / "spacy_ner" / "configs" / "elmo.cfg"
    options = {
        "output": tmp_path / "out",
        "paths.train": tmp_path / "train.spacy",
        "paths.dev": tmp_path / "dev.spacy",
        "training.max_epochs": 8,
        "training.eval_frequency": 10,
        "training.batcher.size": 50,
    }
    done = subprocess.run(
        [sys.executable, "-m", "spacy", "train", str(config)]
        + [word for name, value in options.items() for word in (f"--{name}", str(value))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    code = (
        "import spacy, sys; nlp = spacy.load(sys.argv[1]); doc = nlp(sys.argv[2]); "
        "print([(e.text, e.label_) for e in doc.ents])"
    )
    found = fresh(code, str(tmp_path / "out" / "model-best"), "Barbara went to Berlin yesterday .")
    assert found.strip() == "[('Barbara', 'PER'), ('Berlin', 'LOC')]"
