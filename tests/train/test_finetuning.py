"""Adapting a model: better on its domain, never worse than it was, and as if never stopped."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.conftest import GOLDEN, random_bilm, small_config  # noqa: E402

from elmokit import formats  # noqa: E402
from elmokit.bilm.mix import Mix  # noqa: E402
from elmokit.bilm.model import BiLM  # noqa: E402
from elmokit.bilm.state import State  # noqa: E402
from elmokit.cli import main  # noqa: E402
from elmokit.elmo import Elmo  # noqa: E402
from elmokit.errors import FormatError, InputError, TrainingError, WeightsError  # noqa: E402
from elmokit.lm import perplexity  # noqa: E402
from elmokit.lm.softmax import Softmax  # noqa: E402
from elmokit.storage import machine_id  # noqa: E402
from elmokit.text.vocabulary import Vocabulary  # noqa: E402
from elmokit.train.budget import Budget  # noqa: E402
from elmokit.train.build import CorpusOptions, build_corpus  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.finetuning import (  # noqa: E402
    FINETUNE_RECIPE,
    FinetuneResult,
    finetune,
    resume_finetune,
)
from elmokit.train.metrics import read_metrics  # noqa: E402
from elmokit.train.run import TrainingReport  # noqa: E402
from elmokit.train.text_source import TextSource, build_source_corpus  # noqa: E402
from elmokit.train.vocabulary_extension import extend_softmax, extend_vocabulary  # noqa: E402

WORDS = "the a cell binds protein gene and . of".split()
VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", *WORDS, "never", "seen"])
NEW = ["kinase", "p53"]
"""Frequent words of the domain that the model's vocabulary lacks."""
RECIPE = FINETUNE_RECIPE.replace(batch=90, rate=0.03, dropout=0.0, shards=2)


def domain_text(lines: int, seed: int = 0) -> str:
    random = np.random.default_rng(seed)
    nouns = np.array(["cell", "protein", "gene", *NEW])
    made = []
    for i in range(lines):
        a, b = random.choice(nouns, 2)
        made.append(f"the {a} binds {b} of the gene . " + ("and more" if i % 9 == 0 else ""))
    return "\n".join(made) + "\n"


def softmax(rows: int, width: int, seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    return {
        "softmax.weight": random.normal(size=(rows, width)).astype(np.float32),
        "softmax.bias": random.normal(size=rows).astype(np.float32),
    }


def speaking(**changes: object) -> BiLM:
    """A small model of random numbers that can speak, trained on sentences as it were."""
    silent = random_bilm(small_config(cells=16, width=8, **changes))
    return replace(
        silent,
        weights={**silent.weights, **softmax(len(VOCABULARY), 8)},
        vocabulary=VOCABULARY,
        settled=State.zeros(silent.config),
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "domain.txt"
    path.write_text(domain_text(250), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def corpus(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the model's vocabulary, made by hand."""
    place = tmp_path_factory.mktemp("corpus") / "corpus"
    options = CorpusOptions(form="tokenized", held_out=10)
    return build_corpus([str(text)], place, options, vocabulary=VOCABULARY, processes=1).path


def adapt(model: BiLM | Path | str, corpus: Path, out: Path, /, **changes: Any) -> FinetuneResult:
    how: dict[str, Any] = {"budget": Budget(tokens=2500), "recipe": RECIPE, "evaluations": 3}
    how |= changes
    return finetune(model, TextSource([str(corpus)]), out, **how)


def weights_file(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


# -- what it is for --------------------------------------------------------------------------------


def test_the_domain_becomes_more_likely(text: Path, tmp_path: Path) -> None:
    """From text files, with other text beside it: everything that is promised, once."""
    general = tmp_path / "general.txt"
    general.write_text("a gene and a cell of the never seen .\n" * 20)
    model = replace(
        speaking(),
        mix=Mix((0.1, 0.2, 0.3), 1.5),
        config=replace(speaking().config, extra={"n_train_tokens": 7}),
    )
    out = tmp_path / "out"
    domain = TextSource([str(text)], "tokenized")
    found = finetune(
        model, domain, out, budget=Budget(tokens=2500), recipe=RECIPE, general=[str(general)]
    )
    assert found.after.mean < 0.5 * found.before.mean
    assert found.before.words == found.after.words > 100
    assert found.before.signature["data"] == found.after.signature["data"]

    # What was returned, what was measured and what lies in the directory are the same model.
    saved = Elmo.load(out)
    assert saved.bilm.fingerprint == found.elmo.bilm.fingerprint
    assert found.after.signature["model"] == saved.bilm.fingerprint != model.fingerprint
    assert saved.bilm.vocabulary == VOCABULARY
    assert saved.bilm.mix == model.mix
    assert saved.bilm.config == model.config and saved.bilm.config.extra == {"n_train_tokens": 7}
    assert not saved.settled.hidden.any() and not saved.settled.cell.any()

    assert found.general is not None
    other = [line.split() for line in general.read_text().splitlines()]
    for measured, elmo in zip(found.general, (Elmo(model), saved), strict=True):
        assert measured.to_dict() == perplexity(elmo, other).to_dict()

    facts = found.to_dict()
    assert facts["domain"]["after"]["mean"] == found.after.mean
    assert facts["general"]["before"]["mean"] == found.general[0].mean
    assert facts["best_step"] > 0 and facts["steps"] >= facts["best_step"]
    assert not (out / "training" / "corpus").exists(), "the corpus is gone when it is done"
    assert (out / "training" / "metrics.jsonl").exists()
    with pytest.raises(InputError, match="has ended"):
        resume_finetune(model, domain, out)


def test_without_general_text(corpus: Path, tmp_path: Path) -> None:
    found = adapt(speaking(), corpus, tmp_path / "out")
    assert found.general is None and "general" not in found.to_dict()
    assert corpus.exists(), "a corpus that was given stays"


@pytest.mark.parametrize("changes", [{"projection": False, "cells": 8}, {"layers": 1}])
def test_other_architectures(changes: dict[str, Any], corpus: Path, tmp_path: Path) -> None:
    silent = random_bilm(small_config(**{"cells": 16, "width": 8, **changes}))
    weights = {**silent.weights, **softmax(len(VOCABULARY), 8)}
    found = adapt(replace(silent, weights=weights, vocabulary=VOCABULARY), corpus, tmp_path / "o")
    assert found.after.mean < found.before.mean


def test_sentences_start_from_the_settled_state(corpus: Path, tmp_path: Path) -> None:
    """A model of streams learns from the state that its sentences start from, and keeps it."""
    model = replace(speaking(), settled=None)
    settled = Elmo(model).settled
    assert np.abs(settled.cell).max() > 0.1
    found = adapt(model, corpus, tmp_path / "out")
    np.testing.assert_array_equal(Elmo.load(tmp_path / "out").settled.cell, settled.cell)
    np.testing.assert_array_equal(found.elmo.settled.hidden, settled.hidden)
    # Another start, other weights: the state is not ignored while it learns.
    zero = adapt(replace(model, settled=State.zeros(model.config)), corpus, tmp_path / "zero")
    name = "forward.0.recurrent.weight"
    assert not np.array_equal(zero.elmo.bilm.weights[name], found.elmo.bilm.weights[name])


def test_half_precision_learns_in_single(corpus: Path, tmp_path: Path) -> None:
    model = speaking()
    half = {name: array.astype(np.float16) for name, array in model.weights.items()}
    found = adapt(replace(model, weights=half), corpus, tmp_path / "out")
    assert found.after.mean < found.before.mean
    assert {a.dtype for a in found.elmo.bilm.weights.values()} == {np.dtype(np.float32)}


# -- more words ------------------------------------------------------------------------------------


def test_new_words_are_parts_of_unknown(corpus: Path) -> None:
    model = speaking()
    wider = extend_vocabulary(Corpus.open(corpus), 2)
    assert [*wider.vocabulary] == [*VOCABULARY, *wider.words[len(VOCABULARY) :][:2]]
    assert set(wider.vocabulary) - set(VOCABULARY) == set(NEW)
    more = replace(
        model,
        weights={**model.weights, **extend_softmax(model.weights, wider)},
        vocabulary=wider.vocabulary,
    )
    old, x_NP = len(VOCABULARY), np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    before_NV, after_NV = (Softmax(m).log_probabilities(x_NP) for m in (model, more))
    known = [i for i, word in enumerate(VOCABULARY) if word != "<UNK>"]
    np.testing.assert_allclose(after_NV[:, known], before_NV[:, known], atol=1e-5)
    together = np.exp(after_NV[:, [2, *range(old, old + 2)]]).sum(1)
    np.testing.assert_allclose(together, np.exp(before_NV[:, 2]), rtol=1e-5)
    # By frequency: the first of them is the more frequent one, and both are more than the rest.
    counts = wider.counts[old : old + 2]
    gap = after_NV[0, old] - after_NV[0, old + 1]
    assert gap == pytest.approx(np.log(counts[0] / counts[1]), abs=1e-5)
    assert (model.weights["softmax.bias"] == speaking().weights["softmax.bias"]).all(), "a copy"


def test_extended(corpus: Path, tmp_path: Path) -> None:
    model = speaking()
    found = adapt(model, corpus, tmp_path / "out", extend=2)
    saved = formats.read(tmp_path / "out")
    assert saved.vocabulary is not None and [*saved.vocabulary][: len(VOCABULARY)] == [*VOCABULARY]
    assert set([*saved.vocabulary][len(VOCABULARY) :]) == set(NEW)
    assert saved.weights["softmax.weight"].shape == (len(VOCABULARY) + 2, 8)
    plain = adapt(model, corpus, tmp_path / "plain")
    assert found.after.oov < plain.after.oov, "fewer words are unknown"
    assert found.before.oov == found.after.oov, "before and after compare"
    assert found.after.mean < found.before.mean
    old = model.weights["softmax.weight"]
    # A row that nothing was predicted with moved a little; it is still that word's row.
    never = VOCABULARY.index_of("never")
    moved = np.linalg.norm(saved.weights["softmax.weight"][: len(old)] - old, axis=1)
    between = np.linalg.norm(old - old[never], axis=1)
    assert moved[never] < np.sort(between)[1]


def test_more_words_than_there_are(corpus: Path, tmp_path: Path) -> None:
    found = adapt(speaking(), corpus, tmp_path / "out", extend=1000)
    opened = Corpus.open(corpus)
    assert found.elmo.bilm.vocabulary is not None
    learned = set(found.elmo.bilm.vocabulary) - set(VOCABULARY)
    train = {opened.words[i] for i in np.flatnonzero(opened.counts).tolist()}
    assert learned == train - set(VOCABULARY) and found.before.oov < 0.05


# -- a model without softmax -----------------------------------------------------------------------


def test_without_softmax(text: Path, tmp_path: Path) -> None:
    """Its softmax is learned while the network stays; then everything is."""
    silent = formats.read(GOLDEN / "models" / "plain")
    out = tmp_path / "out"
    found = finetune(
        GOLDEN / "models" / "plain",
        TextSource([str(text)], "tokenized"),
        out,
        budget=Budget(tokens=4000),
        recipe=RECIPE,
        vocabulary=9,
        evaluations=2,
    )
    first = formats.read(out / "training" / "softmax")
    for name, array in silent.weights.items():
        np.testing.assert_array_equal(first.weights[name], array)
        assert not np.array_equal(found.elmo.bilm.weights[name], array)
    assert first.vocabulary is not None and len(first.vocabulary) == 9
    assert found.elmo.bilm.vocabulary == first.vocabulary
    lines = read_metrics(out / "training" / "softmax" / "training" / "metrics.jsonl")
    looks = [line["perplexity"] for line in lines if "perplexity" in line]
    assert min(looks) < 0.9 * looks[0], "the softmax alone learned something"
    assert found.before.mean == pytest.approx(min(looks)), "and that is what it was before"
    assert found.after.mean < found.before.mean

    tokens = [
        json.loads((place / "training" / "run.json").read_text())["budget"]["tokens"]
        for place in (out / "training" / "softmax", out)
    ]
    assert tokens == [1200, 4000]


def test_vocabulary_of_a_model_without_softmax(corpus: Path, text: Path, tmp_path: Path) -> None:
    silent = random_bilm(small_config(cells=16, width=8))
    # Its own list of words, if it has one; else that of the corpus; or one that is given.
    own = Vocabulary([*VOCABULARY, "mine"])
    domain = TextSource([str(text)], "tokenized")
    how: dict[str, Any] = {"budget": Budget(tokens=300), "recipe": RECIPE}
    for i, (found, expected) in enumerate(
        (
            (lambda out: finetune(replace(silent, vocabulary=own), domain, out, **how), own),
            (lambda out: adapt(silent, corpus, out, **how), VOCABULARY),
            (lambda out: finetune(silent, domain, out, vocabulary=own, **how), own),
        )
    ):
        assert found(tmp_path / str(i)).elmo.bilm.vocabulary == expected


# -- the best is kept ------------------------------------------------------------------------------


def test_what_only_gets_worse_is_not_kept(corpus: Path, tmp_path: Path) -> None:
    """At an absurd rate everything is worse than the model as it was, which is then the result."""
    good = adapt(speaking(), corpus, tmp_path / "good").elmo.bilm
    wild = RECIPE.replace(rate=5.0, warm_up=0, schedule="constant")
    found = adapt(good, corpus, tmp_path / "out", recipe=wild, patience=2, evaluations=10)
    assert found.stopped_early and found.best_step == 0
    assert found.after == found.before
    saved = formats.read(tmp_path / "out")
    for name, array in good.weights.items():
        np.testing.assert_array_equal(saved.weights[name], array)
    looks = [
        line
        for line in read_metrics(tmp_path / "out" / "training" / "metrics.jsonl")
        if "perplexity" in line
    ]
    assert len(looks) == 3, "before, and two in vain"
    assert all(line["perplexity"] > looks[0]["perplexity"] for line in looks[1:])


def test_the_best_on_the_way(corpus: Path, tmp_path: Path) -> None:
    """It gets better, then worse: what is saved is what was measured best."""
    wild = RECIPE.replace(rate=0.3, warm_up=40, schedule="constant", clip=1e6)
    found = adapt(speaking(), corpus, tmp_path / "out", recipe=wild, patience=100, evaluations=15)
    looks = {
        line["step"]: line["perplexity"]
        for line in read_metrics(tmp_path / "out" / "training" / "metrics.jsonl")
        if "perplexity" in line
    }
    assert 0 < found.best_step < max(looks), "neither the first nor the last"
    assert found.after.mean == min(looks.values()) == looks[found.best_step]
    opened = Corpus.open(corpus)
    assert opened.valid is not None
    ids = [opened.valid.gather([i])[0] for i in range(opened.valid.sentences)]
    sentences = [[opened.words[j] for j in sentence.tolist()] for sentence in ids]
    again = perplexity(Elmo.load(tmp_path / "out"), sentences)
    assert again.mean == pytest.approx(found.after.mean)


# -- stopped and resumed ---------------------------------------------------------------------------


def stop_after(step: int) -> Any:
    def on_step(report: TrainingReport) -> None:
        if report.progress.step == step:
            raise KeyboardInterrupt

    return on_step


@pytest.mark.parametrize("silent", [False, True], ids=["with softmax", "without"])
@pytest.mark.parametrize("step", [3, 10])  # while the softmax learns, if it has to, and later
def test_resume(silent: bool, step: int, text: Path, tmp_path: Path) -> None:
    """Interrupted, it keeps the best so far; resumed, it ends like one that never stopped."""
    model = random_bilm(small_config(cells=16, width=8)) if silent else speaking()
    domain = TextSource([str(text)], "tokenized")
    how: dict[str, Any] = {"budget": Budget(tokens=1800), "recipe": RECIPE.replace(dropout=0.2)}
    if not silent:
        how["extend"] = 2
    whole = finetune(model, domain, tmp_path / "whole", **how)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        finetune(model, domain, out, **how, on_step=stop_after(step))
    partial = out / "training" / "softmax" if silent and step == 3 else out
    kept = Elmo.load(partial)
    assert kept.bilm.fingerprint != whole.elmo.bilm.fingerprint
    assert (out / "training" / "corpus").exists()
    with pytest.raises(InputError, match="--resume"):
        finetune(model, domain, out, **how)
    text_is_not_read_again = TextSource(["no such file"], "tokenized")
    resumed = resume_finetune(model, text_is_not_read_again, out)
    assert weights_file(out) == weights_file(tmp_path / "whole")
    assert resumed.to_dict() == whole.to_dict()
    assert not (out / "training" / "corpus").exists()


@pytest.mark.parametrize("again", ["auto_resume", "resume", "command"])
def test_a_run_that_was_killed_while_it_cleaned_up(again: str, text: Path, tmp_path: Path) -> None:
    """The corpus of the run, or a part of it, is still there: the next one removes it."""
    speaking_model, out = tmp_path / "model", tmp_path / "out"
    Elmo(speaking()).save(speaking_model)
    domain = TextSource([str(text)], "tokenized")
    how: dict[str, Any] = {"budget": Budget(tokens=900), "recipe": RECIPE}
    finetune(speaking_model, domain, out, **how)
    kept = sorted(path.name for path in (out / "training").iterdir())
    corpus = out / "training" / "corpus"
    partial = Path(f"{corpus.parent}/.corpus.{machine_id()}-{2**22 + 1}-0123abcd.tmp")
    partial.mkdir()
    (partial / "words.txt").write_text("a\n")
    if again != "resume":
        corpus.mkdir()
        lock = {"machine": machine_id(), "process": 2**22 + 1, "started": "long ago"}
        (out / "training" / "lock.json").write_text(json.dumps(lock))
    if again == "auto_resume":
        finetune(speaking_model, domain, out, **how, auto_resume=True)
    elif again == "resume":
        with pytest.raises(InputError, match="has ended"):
            resume_finetune(speaking_model, domain, out)
    else:
        with pytest.raises(SystemExit) as end:
            main(["finetune", str(speaking_model), str(text), "--out", str(out), "--resume"])
        assert end.value.code == 0
    assert sorted(path.name for path in (out / "training").iterdir()) == kept


def test_resume_refuses_another_beginning(corpus: Path, text: Path, tmp_path: Path) -> None:
    out, domain = tmp_path / "out", TextSource([str(corpus)])
    with pytest.raises(InputError, match="no fine-tuning to resume"):
        resume_finetune(speaking(), domain, out)
    with pytest.raises(KeyboardInterrupt):
        adapt(speaking(), corpus, out, on_step=stop_after(2))
    other = speaking()
    other = replace(other, weights={**other.weights, **softmax(len(VOCABULARY), 8, seed=9)})
    with pytest.raises(TrainingError, match="another model"):
        resume_finetune(other, domain, out)
    with pytest.raises(TrainingError, match="give that corpus"):
        resume_finetune(speaking(), TextSource([str(text)]), out)
    again = build_corpus(
        [str(text)], tmp_path / "c", CorpusOptions("tokenized", held_out=30), vocabulary=VOCABULARY
    )
    with pytest.raises(TrainingError, match="another corpus"):
        resume_finetune(speaking(), TextSource([str(again.path)]), out)
    (out / "training" / "finetune.json").write_text("{}")
    with pytest.raises(FormatError, match="damaged"):
        resume_finetune(speaking(), domain, out)


# -- refused before any work -----------------------------------------------------------------------


def test_refused(corpus: Path, text: Path, tmp_path: Path) -> None:
    model, out = speaking(), tmp_path / "out"
    silent = random_bilm(small_config(cells=16, width=8))
    wordless = replace(model, vocabulary=None)
    blank = tmp_path / "blank.txt"
    blank.write_text(" \n")
    cases: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (InputError, "ELMoForManyLangs", GOLDEN / "many_langs" / "models" / "plain", {}),
        (InputError, "--extend", model, {"vocabulary": 20}),
        (InputError, "no vocabulary to extend", silent, {"extend": 5}),
        (WeightsError, "but no vocabulary", wordless, {}),
        (InputError, "does not exist", model, {"general": ["nowhere.txt"]}),
        (InputError, "no words", model, {"general": [str(blank)]}),
        (InputError, "patience", model, {"patience": 0}),
        (InputError, "extend", model, {"extend": -1}),
    ]
    for error, message, which, changes in cases:
        with pytest.raises(error, match=message):
            adapt(which, corpus, out, **changes)
        assert not out.exists(), message


def test_refused_corpora(corpus: Path, text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = replace(speaking(), vocabulary=Vocabulary([*[*VOCABULARY][:-1], "other"]))
    with pytest.raises(InputError, match="not the model's"):
        adapt(other, corpus, out)
    bare = build_corpus(
        [str(text)],
        tmp_path / "bare",
        CorpusOptions("tokenized", held_out=0),
        vocabulary=VOCABULARY,
    )
    with pytest.raises(InputError, match="no held-out text"):
        adapt(speaking(), bare.path, out)
    for domain in (
        TextSource([str(corpus), str(text)]),
        TextSource([str(corpus)], valid=[str(text)]),
    ):
        with pytest.raises(InputError, match="give it alone"):
            finetune(speaking(), domain, out, budget=Budget(tokens=100), recipe=RECIPE)
    assert not out.exists()


def test_refused_places(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Elmo(speaking()).save(tmp_path / "model")
    before = weights_file(tmp_path / "model")
    with pytest.raises(InputError, match="already"):
        adapt(tmp_path / "model", corpus, tmp_path / "model")
    assert weights_file(tmp_path / "model") == before
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainingError, match="without torchrun"):
        adapt(speaking(), corpus, tmp_path / "out")


def test_a_corpus_that_was_not_finished_is_made_again(text: Path, tmp_path: Path) -> None:
    """Killed after the corpus and before the run: the same command simply begins anew."""
    out = tmp_path / "out"
    domain = TextSource([str(text)], "tokenized")
    build_source_corpus(domain, out / "training" / "corpus", VOCABULARY)
    found = finetune(speaking(), domain, out, budget=Budget(tokens=200), recipe=RECIPE)
    assert found.steps > 0
    shutil.rmtree(out)
