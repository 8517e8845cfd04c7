"""The loop: it learns, it ends when the budget does, and it goes on from where it was."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'elmokit[train]'")

from tests.train.toy import PASSAGES, SENTENCES, STREAM, TINY, toy_corpus  # noqa: E402

from elmokit.bilm.config import BiLMConfig, LSTMConfig  # noqa: E402
from elmokit.bilm.state import State  # noqa: E402
from elmokit.errors import FormatError  # noqa: E402
from elmokit.nn.state import TensorState  # noqa: E402
from elmokit.text.characters import ByteEncoder  # noqa: E402
from elmokit.train.batches import BatchPosition, make_batch_reader  # noqa: E402
from elmokit.train.budget import Budget  # noqa: E402
from elmokit.train.corpus import Corpus  # noqa: E402
from elmokit.train.distributed import SingleProcess  # noqa: E402
from elmokit.train.initialization import initial_weights  # noqa: E402
from elmokit.train.loop import StepMetrics, TrainingLoop, TrainingProgress  # noqa: E402
from elmokit.train.pretraining import make_sampler, pretrain, target_counts  # noqa: E402
from elmokit.train.recipe import Recipe  # noqa: E402
from elmokit.train.trainer import Trainer  # noqa: E402


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return toy_corpus(tmp_path_factory.mktemp("toy"))


def make(corpus: Corpus, recipe: Recipe, budget: Budget, **more: Any) -> TrainingLoop:
    counts = target_counts(corpus)
    learner = Trainer(
        TINY, initial_weights(TINY, counts, 0), recipe, SingleProcess(), torch.device("cpu")
    )
    reader, sampler = make_batch_reader(corpus, recipe), make_sampler(recipe, counts)
    return TrainingLoop(
        learner, corpus, reader, sampler, ByteEncoder(12), budget, SingleProcess(), **more
    )


def run(loop: TrainingLoop, most: int = 10_000) -> list[StepMetrics]:
    """All steps, or so many."""
    told: list[StepMetrics] = []

    class Enough(Exception):
        pass

    def tell(step: StepMetrics) -> None:
        assert loop.intact
        told.append(step)
        if len(told) == most:
            raise Enough

    try:
        loop.run(tell)
    except Enough:
        pass
    finally:
        loop.close()
    return told


def test_it_learns_a_language(tmp_path: Path) -> None:
    """Animals in alphabetical order: after the first, only the end is uncertain."""
    corpus = toy_corpus(tmp_path, sentences=1000)
    config = BiLMConfig(char_cnn=TINY.char_cnn, lstm=LSTMConfig(cells=32, width=16))
    recipe = SENTENCES.replace(batch=250, rate=0.03)
    heard: list[Any] = []
    pretrain(
        corpus.path,
        tmp_path / "model",
        config=config,
        recipe=recipe,
        budget=Budget(epochs=6),
        on_step=heard.append,
        evaluations=2,
    )
    counts = target_counts(corpus).astype(float)
    p = counts[counts > 0] / counts.sum()
    unigram = math.exp(-(p * np.log(p)).sum())
    found = heard[-1].held_out
    assert unigram > 10
    assert found.forward < 3.0
    assert found.backward < 3.0
    assert heard[10].loss > 2 * heard[-1].loss


@pytest.mark.parametrize("recipe", [SENTENCES, STREAM], ids=lambda r: r.text)
def test_the_budget_is_spent(recipe: Recipe, corpus: Corpus) -> None:
    loop = make(corpus, recipe, Budget(epochs=1))
    told = run(loop)
    assert loop.progress.position == BatchPosition(1, 0)
    assert loop.progress.step == len(told)
    assert loop.progress.tokens == sum(step.tokens for step in told)
    assert loop.spent == loop.epochs == 1
    assert loop.progress.seconds > 0
    half = make(corpus, recipe, Budget(tokens=loop.progress.tokens // 2))
    steps = len(run(half))
    assert steps == pytest.approx(len(told) / 2, abs=1.5)
    assert half.progress.tokens >= loop.progress.tokens // 2
    assert half.progress.tokens - told[-1].tokens < loop.progress.tokens


def test_minutes(corpus: Corpus) -> None:
    loop = make(corpus, SENTENCES, Budget(minutes=0.003))
    run(loop)
    assert loop.progress.seconds >= 0.18
    assert loop.spent == 1


def test_the_rate_follows_the_budget(corpus: Corpus) -> None:
    told = run(make(corpus, SENTENCES.replace(warm_up=0), Budget(epochs=1)))
    spent = np.cumsum([0] + [step.tokens for step in told])[:-1] / sum(s.tokens for s in told)
    assert [step.rate for step in told] == pytest.approx(0.005 * (1 - spent))


@pytest.mark.parametrize(
    "recipe",
    [SENTENCES, PASSAGES, STREAM, SENTENCES.replace(optimizer="muon")],
    ids=lambda r: f"{r.text}-{r.optimizer}",
)
def test_it_goes_on_from_a_checkpoint(recipe: Recipe, corpus: Corpus) -> None:
    """The same losses, to the bit, and not those of the beginning."""
    budget = Budget(epochs=1)
    whole = run(make(corpus, recipe, budget))
    half = make(corpus, recipe, budget)
    first = run(half, most=3)
    arrays = {name: array.clone() for name, array in half.arrays().items()}
    progress = TrainingProgress.from_dict(half.progress.to_dict())
    assert progress == half.progress
    other = make(corpus, recipe, budget)
    other.load(arrays, progress)
    assert first + run(other) == whole
    assert any(name.startswith("carried") for name in arrays) == (recipe.text == "stream")


def test_every_step_draws_anew(corpus: Corpus) -> None:
    recipe = SENTENCES.replace(negatives=6)
    whole = make(corpus, recipe, Budget(epochs=1))
    drawn: list[list[int]] = []
    seeds: list[tuple[int, ...]] = []
    plain_learn = whole.trainer.train_step

    def learn(lessons: Any, candidates: Any, *rest: Any) -> Any:
        drawn.append(candidates.words_S.tolist())
        seeds.extend(lesson.seed for lesson in lessons)
        return plain_learn(lessons, candidates, *rest)

    whole.trainer.train_step = learn  # type: ignore[method-assign]
    steps = len(run(whole))
    assert len({tuple(words) for words in drawn}) > steps / 2, "candidates"
    assert len(set(seeds)) == 2 * steps, "what is dropped, in each shard"


def test_a_state_that_was_carried_matters(corpus: Corpus) -> None:
    loop = make(corpus, STREAM, Budget(epochs=1))
    run(loop, most=2)
    arrays = {name: array.clone() for name, array in loop.arrays().items()}
    losses = []
    for factor in (1, 0):
        arrays["carried.cell"] *= factor
        other = make(corpus, STREAM, Budget(epochs=1))
        other.load(arrays, loop.progress)
        losses.append(run(other, most=1)[0].loss)
    assert losses[0] != losses[1]


def test_sentences_may_start_from_a_state(corpus: Corpus) -> None:
    """As those of a published model do that is adapted."""
    state = State.zeros(TINY)
    state.cell[:] = 0.5
    plain = run(make(corpus, SENTENCES, Budget(tokens=1)))
    zero = run(make(corpus, SENTENCES, Budget(tokens=1), start=TensorState.zeros(TINY, 1)))
    other = run(make(corpus, SENTENCES, Budget(tokens=1), start=TensorState.from_state(state)))
    assert plain[0].loss == zero[0].loss != other[0].loss


def test_arrays_that_do_not_fit(corpus: Corpus) -> None:
    loop = make(corpus, STREAM, Budget(tokens=1))
    arrays = loop.arrays()
    for name in arrays:
        lacking = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(FormatError, match=f"{name} is missing"):
            loop.load(lacking, TrainingProgress())
    short = arrays | {"parameters": torch.zeros(3)}
    with pytest.raises(FormatError, match=r"parameters is \(3,\)"):
        loop.load(short, TrainingProgress())
    loop.close()


def test_an_error_while_reading_is_told(corpus: Corpus) -> None:
    loop = make(corpus, SENTENCES, Budget(epochs=1))

    class Broken(Exception):
        pass

    def broken(*_: object) -> None:
        raise Broken

    loop._reader.read = broken  # type: ignore[assignment]
    with pytest.raises(Broken):
        run(loop)


@pytest.mark.parametrize("thread", ["reader", "shard"])
def test_a_thread_that_dies_without_memory_ends_the_training(
    thread: str, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory ends where the thread stores its result, outside the call that it does."""
    store = Future.set_result
    stored = 0

    def store_or_fail(self: Future[Any], result: Any) -> None:
        nonlocal stored
        if threading.current_thread().name.startswith(thread):
            stored += 1
            if stored > 2:
                raise MemoryError
        store(self, result)

    loop = make(corpus, SENTENCES, Budget(epochs=1))
    ended: list[BaseException] = []

    def train() -> None:
        try:
            loop.run(lambda step: None)
        except BaseException as error:
            ended.append(error)

    monkeypatch.setattr(Future, "set_result", store_or_fail)
    training = threading.Thread(target=train, daemon=True)
    training.start()
    training.join(60)
    assert not training.is_alive(), "it waits for a thread that has died"
    assert [type(error) for error in ended] == [MemoryError]
    loop.close()
