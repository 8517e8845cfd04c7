"""The user's class."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import random_bilm, small_config

import elmokit.elmo
from elmokit.bilm.mix import Mix
from elmokit.bilm.model import BiLM
from elmokit.bilm.weights import FloatArray
from elmokit.elmo import Elmo
from elmokit.errors import ElmoError, InputError, InputTypeError, ModelNotFound, WeightsError

ELMO = Elmo(random_bilm(small_config()))

word = st.text(st.characters(codec=None), max_size=25)
sentence = st.lists(word, max_size=7)
sentences = st.lists(sentence, min_size=1, max_size=6)


def same(a: FloatArray, b: FloatArray) -> bool:
    return a.shape == b.shape and np.allclose(a, b, atol=2e-6)


def equal(a: FloatArray, b: FloatArray) -> bool:
    """To the last bit, with the kernel; BLAS sums in an order that depends on the batch."""
    kernel = ELMO.engine != "reference"
    return np.array_equal(a, b) if kernel else same(a, b)


# -- shapes and choices ----------------------------------------------------------------------------


def test_shapes(elmo: Elmo) -> None:
    vectors = elmo.embed(["She went to the bank .", ["or", "words", "as", "given"]])
    assert [v.shape for v in vectors] == [(6, 12), (4, 12)]
    assert all(v.dtype == np.float32 for v in vectors)
    assert elmo.embed("a single sentence").shape == (3, 12)
    assert elmo.embed("one two", layers="all").shape == (3, 2, 12)
    assert (elmo.dim, elmo.layers) == (12, 3)
    assert elmo.config.lstm.cells == 11
    assert elmo.embed([]) == []


def test_layers(elmo: Elmo) -> None:
    text = "one two three"
    every = elmo.embed(text, layers="all")
    assert same(elmo.embed(text), every.mean(axis=0))
    assert same(elmo.embed(text, layers="top"), every[2])
    assert same(elmo.embed(text, layers=1), every[1])
    assert same(elmo.embed(text, layers=-3), every[0])
    assert (every[0, :, :6] == every[0, :, 6:]).all(), "layer 0 is the word vector twice"


@pytest.mark.parametrize("layers", [3, -4, "bottom", None, True, 1.0])
def test_layers_that_are_none(elmo: Elmo, layers: object) -> None:
    with pytest.raises(InputError, match="layers is"):
        elmo.embed("one", layers=layers)  # type: ignore[call-overload]


def test_a_stored_mix_is_the_default(bilm: BiLM) -> None:
    mixed = Elmo(replace(bilm, mix=Mix((0.0, 9.0, 0.0), gamma=2.0)))
    every = mixed.embed("one two", layers="all")
    assert same(mixed.embed("one two"), mixed.mix.apply(every))
    assert not same(mixed.embed("one two"), every.mean(axis=0))


def test_empty_sentences(elmo: Elmo) -> None:
    vectors = elmo.embed(["", [], "word", "   "])
    assert [v.shape for v in vectors] == [(0, 12), (0, 12), (1, 12), (0, 12)]
    assert elmo.embed("", layers="all").shape == (3, 0, 12)
    assert elmo.encode(["", "word"]).shape == (2, 12)
    assert not elmo.encode("").any()


def test_encode(elmo: Elmo) -> None:
    texts = ["one two three", ["four"]]
    vectors = elmo.embed(texts)
    assert same(elmo.encode(texts), np.stack([v.mean(axis=0) for v in vectors]))
    assert same(elmo.encode(texts, pooling="max"), np.stack([v.max(axis=0) for v in vectors]))
    assert same(elmo.encode(texts[0]), vectors[0].mean(axis=0))
    assert same(elmo.encode(texts, layers="top")[1], elmo.embed(texts, layers="top")[1][0])
    assert elmo.encode([]).shape == (0, 12)
    with pytest.raises(InputError, match="pooling is 'sum'"):
        elmo.encode(texts, pooling="sum")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one vector per sentence"):
        elmo.encode(texts, layers="all")


def test_tokenize(elmo: Elmo) -> None:
    assert elmo.tokenize("She didn't go.") == ["She", "did", "n't", "go", "."]
    with pytest.raises(InputTypeError, match="tokenize takes a string; found list"):
        elmo.tokenize(["a"])  # type: ignore[arg-type]


# -- what vectors depend on ------------------------------------------------------------------------


@given(sentences, st.randoms())
def test_not_on_batch_place_or_neighbors(batch: list[list[str]], random) -> None:
    together = ELMO.embed(batch, layers="all")
    order = list(range(len(batch)))
    random.shuffle(order)
    shuffled = ELMO.embed([batch[i] for i in order], layers="all")
    for place, i in enumerate(order):
        assert equal(shuffled[place], together[i])
        assert equal(ELMO.embed([batch[i]], layers="all")[0], together[i])


@given(sentences)
def test_not_on_the_cache(batch: list[list[str]]) -> None:
    fresh = Elmo(ELMO.bilm)
    first = fresh.embed(batch, layers="all")
    warm = ELMO.embed(batch, layers="all")
    for a, b, c in zip(first, fresh.embed(batch, layers="all"), warm, strict=True):
        assert equal(a, b) and equal(a, c)


@given(st.lists(word, min_size=2, max_size=8), st.data())
def test_each_direction_sees_its_side_only(words: list[str], data) -> None:
    """Forward at t ignores what comes after t, backward what came before."""
    t = data.draw(st.integers(0, len(words) - 1))
    changed = list(words)
    changed[t] = data.draw(word)
    before, after = ELMO.embed([words, changed], layers="all")
    width = ELMO.config.lstm.width
    assert equal(before[:, :t, :width], after[:, :t, :width])
    assert equal(before[:, t + 1 :, width:], after[:, t + 1 :, width:])


def test_and_on_the_rest_of_the_sentence(elmo: Elmo) -> None:
    """The other half of the property above: context does count."""
    one, two = elmo.embed([["a", "bank", "b"], ["c", "bank", "d"]], layers="all")
    assert same(one[0, 1], two[0, 1])
    assert np.abs(one[1, 1, :6] - two[1, 1, :6]).max() > 1e-3
    assert np.abs(one[1, 1, 6:] - two[1, 1, 6:]).max() > 1e-3


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_string_goes_through(text: str) -> None:
    vectors = ELMO.embed(text)
    words = ELMO.tokenize(text)
    assert vectors.shape == (len(words), ELMO.dim)
    assert np.isfinite(vectors).all()
    assert equal(vectors, ELMO.embed([words])[0])


# -- state -----------------------------------------------------------------------------------------


def test_settled_is_the_state_after_the_warm_up(bilm: BiLM) -> None:
    from elmokit.engine.state import WARM_UP

    carried = Elmo(bilm, state="carry")
    for words in WARM_UP:
        carried.embed([words])
    assert same(Elmo(bilm).embed("one two"), carried.embed(["one two"])[0])
    assert not same(Elmo(bilm).embed("one two"), Elmo(bilm, state="zero").embed("one two"))


def test_settling_on_another_text(bilm: BiLM, tmp_path: Path) -> None:
    elmo = Elmo(bilm)
    default = elmo.embed("M K V")
    elmo.settle(["M A L W M", "K K"])
    own = elmo.embed("M K V")
    assert not same(default, own)
    elmo.save(tmp_path / "model")
    assert same(Elmo.load(tmp_path / "model").embed("M K V"), own)
    with pytest.raises(InputError, match="at least one word"):
        elmo.settle([""])


def test_carry_goes_row_by_row(bilm: BiLM) -> None:
    """Rows that a call has not wait for the next call that has them; new ones start at zero."""
    elmo = Elmo(bilm, state="carry")
    first = elmo.embed(["a b", "c d e"])
    elmo.embed(["f"])
    second = elmo.embed(["g h", "i", "j k"])

    def alone(*texts: str) -> FloatArray:
        one = Elmo(bilm, state="carry")
        return [one.embed([text])[0] for text in texts][-1]

    assert equal(first[1], alone("c d e"))
    assert equal(second[0], alone("a b", "f", "g h"))
    assert equal(second[1], alone("c d e", "i"))
    assert equal(second[2], alone("j k"))
    elmo.reset()
    assert equal(elmo.embed(["g h"])[0], alone("g h"))


def test_a_stream_carries_from_sentence_to_sentence(bilm: BiLM) -> None:
    one, two = Elmo(bilm, state="carry"), Elmo(bilm, state="carry")
    texts = ["a b", "c", "d e f"]
    expected = [one.embed([text])[0] for text in texts]
    for a, b in zip(two.stream(texts), expected, strict=True):
        assert equal(a, b)
    pooled = Elmo(bilm, state="carry")
    pooled.encode(["a b", "c"])
    assert pooled.carried.rows == 2, "encode is one call, and one batch"


# -- streams ---------------------------------------------------------------------------------------


def test_a_stream_is_in_order_and_reads_a_window_ahead(
    elmo: Elmo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elmokit.elmo, "WINDOW_WORDS", 50)
    texts = [" ".join(["word"] * (i % 7)) + f" w{i}" for i in range(100)]
    read = 0

    def source():
        nonlocal read
        for text in texts:
            read += 1
            yield text

    ahead = []
    for i, (words, vectors) in enumerate(elmo.items(source())):
        ahead.append(read - i)
        assert list(words) == texts[i].split()
        assert same(vectors, elmo.embed([texts[i]])[0])
    assert i == 99
    assert max(ahead) <= 50 // 3 + 1


def test_a_stream_checks_its_arguments_at_once(elmo: Elmo) -> None:
    with pytest.raises(InputError, match="layers is 9"):
        elmo.stream(["a"], layers=9)
    with pytest.raises(InputTypeError, match="a list of sentences"):
        elmo.stream("a b")


def test_a_sentence_far_longer_than_a_batch(elmo: Elmo) -> None:
    words = [f"w{i % 50}" for i in range(10_000)]
    vectors = elmo.embed([words, ["short"]])
    assert vectors[0].shape == (10_000, 12)
    assert equal(vectors[1], elmo.embed([["short"]])[0])


# -- wrong input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ([["a", "b"], ["c", 5]], r"sentence 1, word 1 is int 5; expected a string"),
        (["a", None], r"sentence 1 is NoneType None; expected a string or a list of words"),
        (["a", b"b"], r"sentence 1 is bytes b'b'"),
        ([3.5], r"sentence 0 is float 3.5"),
        ([{"a": 1}], r"sentence 0 is dict"),
        (7, r"a list of sentences .* found int 7"),
        (b"abc", r"a list of sentences .* found bytes"),
        ({"a": 1}, r"found dict"),
    ],
)
def test_wrong_types_are_named_with_their_position(elmo: Elmo, given_, message: str) -> None:
    for call in (elmo.embed, elmo.encode, lambda x: list(elmo.stream(x))):
        with pytest.raises(InputTypeError, match=message):
            call(given_)
    assert issubclass(InputTypeError, TypeError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"state": "warm"}, "state is 'warm'; expected 'settled', 'zero' or 'carry'"),
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": 10**30}, "threads is 1000.*; expected 1 to 4096"),
    ],
)
def test_wrong_arguments(bilm: BiLM, arguments: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Elmo(bilm, **arguments)


def test_one_thread_gives_the_same(bilm: BiLM) -> None:
    assert equal(Elmo(bilm, threads=1).embed("one two three"), Elmo(bilm).embed("one two three"))


def test_numpy_strings_are_strings(elmo: Elmo) -> None:
    array = np.array(["one", "two"])
    assert same(elmo.embed([array])[0], elmo.embed("one two"))


# -- files -----------------------------------------------------------------------------------------


def test_save_and_load(elmo: Elmo, tmp_path: Path) -> None:
    elmo.save_pretrained(tmp_path / "model")
    again = Elmo.from_pretrained(tmp_path / "model")
    assert (again.embed("one two") == elmo.embed("one two")).all()
    assert again.bilm.settled is not None
    assert "3 layers of 12" in repr(again)


def test_errors_are_a_family(tmp_path: Path) -> None:
    with pytest.raises(ElmoError, match="no model at"):
        Elmo.load(tmp_path / "nothing")


def test_a_name_is_looked_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ELMOKIT_CACHE", str(tmp_path))
    with pytest.raises(ModelNotFound, match=r"'small' is not on this disk.*network is not used"):
        Elmo.load("small", local_files_only=True)
    with pytest.raises(ModelNotFound, match="did you mean 'original'"):
        Elmo.load("orginal")


def test_a_token_cache_changes_nothing_but_the_work(
    elmo: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elmo.save(tmp_path / "model")
    files = elmo.save_token_cache(tmp_path / "tokens.hdf5", ["bank", "the"])
    assert [file.name for file in files] == ["tokens.hdf5", "tokens.vocab.txt"]
    cached = Elmo.load(tmp_path / "model", token_cache=tmp_path / "tokens.hdf5")
    computed: list[str] = []
    compute = cached._runner._compute

    def spy(words: list[str]) -> FloatArray:
        computed.extend(words)
        return compute(words)

    monkeypatch.setattr(cached._runner, "_compute", spy)
    text = "the river bank"
    assert equal(cached.embed(text, layers="all"), elmo.embed(text, layers="all"))
    assert computed == ["river"], "the marks and the other words are in the cache"


def test_a_token_cache_of_another_model_is_refused(elmo: Elmo, tmp_path: Path) -> None:
    elmo.save(tmp_path / "model")
    other = Elmo(random_bilm(small_config(), seed=5))
    other.save_token_cache(tmp_path / "tokens.hdf5", ["bank"])
    with pytest.raises(InputError, match="made with another model"):
        Elmo.load(tmp_path / "model", token_cache=tmp_path / "tokens.hdf5")


def test_pushing_saves_a_whole_model(elmo: Elmo, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed: dict[str, object] = {}

    def push(files: list[Path], repo_id: str, **options: object) -> str:
        pushed.update(names={file.name for file in files}, repo=repo_id, **options)
        return "address"

    monkeypatch.setattr("elmokit.fetch.push_to_hub", push)
    assert elmo.push_to_hub("me/model", private=True) == "address"
    assert pushed["repo"] == "me/model" and pushed["private"] is True
    assert {"manifest.json", "settled.safetensors"} <= pushed["names"]  # type: ignore[operator]


# -- running text ----------------------------------------------------------------------------------


@given(st.text(st.characters(codec=None), max_size=200))
def test_words_of_a_text_are_where_they_say(text: str) -> None:
    sentences = ELMO.embed_text(text)
    for sentence in sentences:
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.words
        for word in sentence.words:
            assert text[word.start : word.end] == word.text
            assert sentence.start <= word.start <= word.end <= sentence.end
        words = [word.text for word in sentence.words]
        assert words == ELMO.tokenize(sentence.text)
        assert equal(sentence.vectors, ELMO.embed([words])[0])
    starts = [word.start for sentence in sentences for word in sentence.words]
    assert starts == sorted(starts)


def test_a_text_has_sentences(elmo: Elmo) -> None:
    text = "Mr. Smith left.\n\n  (He didn't stay.)  "
    first, second = elmo.embed_text(text, layers="all")
    assert (first.text, first.start, first.end) == ("Mr. Smith left.", 0, 15)
    assert [word.text for word in second.words] == ["(", "He", "did", "n't", "stay", ".", ")"]
    assert second.vectors.shape == (3, 7, 12)
    assert elmo.embed_text("") == [] and elmo.embed_text(" \n\u200b ") == []
    with pytest.raises(InputTypeError, match="embed_text takes a string; found list"):
        elmo.embed_text(["a"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="layers is 9"):
        elmo.embed_text("", layers=9)


def test_a_text_is_carried_from_sentence_to_sentence(bilm: BiLM) -> None:
    text, stream = Elmo(bilm, state="carry"), Elmo(bilm, state="carry")
    sentences = text.embed_text("She left. He stayed.")
    for sentence, vectors in zip(
        sentences, stream.stream(["She left .", "He stayed ."]), strict=True
    ):
        assert equal(sentence.vectors, vectors)


# -- copies, pickles and other processes -----------------------------------------------------------


def embed(elmo: Elmo) -> FloatArray:
    return elmo.embed("one two three", layers="all")


def pickled(elmo: Elmo) -> Elmo:
    return pickle.loads(pickle.dumps(elmo))


def cloudpickled(elmo: Elmo) -> Elmo:
    return pickle.loads(pytest.importorskip("cloudpickle").dumps(elmo))


COPIES = [pickled, cloudpickled, copy.copy, copy.deepcopy]


@pytest.mark.parametrize("make", COPIES)
@pytest.mark.parametrize("options", [{}, {"state": "zero", "threads": 1}, {"state": "carry"}])
def test_a_copy_gives_the_same_bits(bilm: BiLM, options: dict, make) -> None:
    elmo = Elmo(replace(bilm, mix=Mix((0.0, 9.0, 0.0), gamma=2.0)), **options)
    elmo.embed(["a b", "c d e"])
    elmo.settle(["M A L", "K"])
    twin = make(elmo)
    assert (twin.state, twin.dtype, twin.threads, twin.mix) == (
        elmo.state,
        elmo.dtype,
        elmo.threads,
        elmo.mix,
    )
    for name in ("settled", "carried"):
        ours, theirs = getattr(elmo, name), getattr(twin, name)
        assert (ours.hidden == theirs.hidden).all() and (ours.cell == theirs.cell).all()
    expected = elmo.embed(["one two", "three"])
    for a, b in zip(twin.embed(["one two", "three"]), expected, strict=True):
        assert np.array_equal(a, b)
    twin.reset()
    twin.settle(["another text"])
    if elmo.state == "carry":
        assert elmo.carried.rows == 2, "the original is left alone"


def test_pickles_of_a_model_are_the_same_bytes(bilm: BiLM, tmp_path: Path) -> None:
    Elmo(bilm).save(tmp_path / "model")
    for elmo in (Elmo(bilm), Elmo(bilm, state="zero"), Elmo.load(tmp_path / "model")):
        first = pickle.dumps(elmo)
        embed(elmo)
        assert elmo.settled is not None and elmo.bilm.fingerprint
        assert pickle.dumps(elmo) == first


def test_a_loaded_model_is_pickled_by_its_path(bilm: BiLM, tmp_path: Path) -> None:
    path = tmp_path / "model"
    Elmo(bilm).save(path)
    elmo = Elmo.load(path)
    by_path = pickle.dumps(elmo)
    assert str(path).encode() in by_path
    assert np.array_equal(embed(pickle.loads(by_path)), embed(elmo))
    assert len(pickle.dumps(Elmo.load())) < 20_000, "the built-in model"

    Elmo(bilm).save(path)  # the same weights, written again
    assert pickle.dumps(elmo) == by_path
    Elmo(random_bilm(small_config(), seed=7)).save(path)
    by_weights = pickle.dumps(elmo)
    assert str(path).encode() not in by_weights
    assert np.array_equal(embed(pickle.loads(by_weights)), embed(elmo))
    with pytest.raises(WeightsError, match="has changed since this Elmo was pickled"):
        pickle.loads(by_path)
    shutil.rmtree(path)
    assert np.array_equal(embed(pickled(elmo)), embed(elmo))
    with pytest.raises(ModelNotFound):
        pickle.loads(by_path)


def test_a_pickle_keeps_the_token_cache(elmo: Elmo, tmp_path: Path) -> None:
    elmo.save(tmp_path / "model")
    elmo.save_token_cache(tmp_path / "tokens.hdf5", ["bank", "the"])
    cached = Elmo.load(tmp_path / "model", token_cache=tmp_path / "tokens.hdf5")
    twin = pickled(cached)
    assert twin._runner.stored_word_vectors is not None
    assert np.array_equal(twin.embed("the river bank"), cached.embed("the river bank"))
    assert pickle.dumps(cached) == pickle.dumps(cached)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_give_the_same_bits(bilm: BiLM, method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    elmo = Elmo(bilm, threads=2)
    expected = embed(elmo)  # the parent has started its threads before it forks
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert np.array_equal(pool.submit(embed, elmo).result(timeout=120), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_while_another_thread_embeds(bilm: BiLM) -> None:
    """The child must not wait for a lock of a thread that it does not have."""
    elmo = Elmo(bilm, threads=2)
    expected = embed(elmo)
    stop = threading.Event()

    def keep_busy() -> None:
        while not stop.is_set():
            elmo.clear_word_cache()
            embed(elmo)

    other = threading.Thread(target=keep_busy)
    other.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(5):
            receive, send = context.Pipe(duplex=False)
            child = context.Process(target=lambda out: out.send(embed(elmo)), args=(send,))
            child.start()
            assert receive.poll(60), "the child is stuck"
            assert np.array_equal(receive.recv(), expected)
            child.join(60)
    finally:
        stop.set()
        other.join()


# -- what users stumble over -----------------------------------------------------------------------


@pytest.mark.parametrize("model", ["builtin", Path("some/dir")])
def test_a_name_instead_of_a_model(model: object) -> None:
    with pytest.raises(InputTypeError, match=r"Elmo\.load\('(builtin|some/dir)'\)"):
        Elmo(model)  # type: ignore[arg-type]


def test_a_long_word_is_reported_once() -> None:
    elmo = Elmo(random_bilm(small_config()))
    most = elmo.config.char_cnn.max_characters - 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elmo.embed(["x" * most, "é" * (most // 2)])
    with pytest.warns(UserWarning, match=rf"first {most} bytes .* \({most + 1} bytes\) is cut off"):
        elmo.embed([["y" * (most + 1)]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        elmo.embed([["z" * 400]])
