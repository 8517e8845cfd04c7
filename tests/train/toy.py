"""A small language, a network of a few numbers, and processes that die: for tests of training."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elmokit.bilm.config import BiLMConfig, CharCNNConfig, LSTMConfig
from elmokit.engine.batching import IntArray
from elmokit.train.build import CorpusOptions, build_corpus
from elmokit.train.corpus import Corpus
from elmokit.train.recipe import RECIPES

WORDS = "ant bee cat dog elk fox gnu hen ibex jay kite lynx".split()
TINY = BiLMConfig(
    char_cnn=CharCNNConfig(
        filters=((1, 4), (2, 5)), highways=1, embedding_dim=4, max_characters=12
    ),
    lstm=LSTMConfig(cells=16, width=8),
)
SENTENCES = RECIPES["recommended"].replace(batch=150, warm_up=5, negatives=10)
PASSAGES = SENTENCES.replace(text="passages", passage=3)
STREAM = RECIPES["bilm-tf"].replace(lanes=8, window=6, negatives=10)


def toy_text(sentences: int, seed: int = 0) -> str:
    """Animals in the order of the alphabet, round and round, from anywhere to anywhere."""
    source = random.Random(seed)
    lines = []
    for _ in range(sentences):
        first, length = source.randrange(len(WORDS)), source.randint(2, 8)
        lines.append(" ".join(WORDS[(first + i) % len(WORDS)] for i in range(length)))
    return "\n".join(lines) + "\n"


def toy_corpus(directory: Path, sentences: int = 200, **options: Any) -> Corpus:
    """Of so many sentences, and some held out."""
    directory.mkdir(parents=True, exist_ok=True)
    train, valid = directory / "train.txt", directory / "valid.txt"
    train.write_text(toy_text(sentences))
    valid.write_text(toy_text(30, seed=1))
    options = {"form": "tokenized"} | options
    return build_corpus(
        [str(train)],
        directory / "corpus",
        CorpusOptions(**options),
        valid=[str(valid)],
        processes=1,
    )


class FakeSplit:
    """Sentences in memory, as `Split` gives them."""

    def __init__(self, sentences: Sequence[Sequence[int]]) -> None:
        self._all = [np.array(sentence, np.int32) for sentence in sentences]
        self.sentences = len(sentences)
        self.lengths = np.array([len(s) for s in sentences], np.int32)
        self.tokens = int(self.lengths.sum())

    def gather(self, indices: IntArray) -> tuple[Any, Any]:
        chosen = [self._all[i] for i in indices]
        return np.concatenate([np.empty(0, np.int32), *chosen]), self.lengths[indices]


# -- other processes -------------------------------------------------------------------------------

_SERVER = multiprocessing.get_context("forkserver")
# Imported once, then forked; PyTorch's optimizers import its compiler when they are first used.
_SERVER.set_forkserver_preload(["elmokit.train.pretraining", "torch._dynamo"])


def in_process(work: Callable[..., None], *arguments: Any) -> int | None:
    """Do something in another process; how it ended."""
    return in_processes(work, [arguments])[0]


def in_processes(
    work: Callable[..., None], arguments: Sequence[Sequence[Any]], seconds: float = 120
) -> list[int | None]:
    """The same in several at the same time."""
    started = [_SERVER.Process(target=work, args=tuple(own)) for own in arguments]
    for process in started:
        process.start()
    for process in started:
        process.join(seconds)
        if any(each.exitcode for each in started):
            seconds = 5  # somebody has failed, so the others will not end
        if process.is_alive():
            process.kill()
            process.join()
    return [process.exitcode for process in started]


def die() -> None:
    """At once, without any chance to tidy up."""
    os.kill(os.getpid(), signal.SIGKILL)


def learn_and_die(
    corpus: Path, out: Path, plan: dict[str, Any], keep_at: int, die_at: int, how: str
) -> None:
    """Train, keep a checkpoint of one step only, and die after another."""
    from elmokit.train import checkpoint
    from elmokit.train.pretraining import pretrain, resume
    from elmokit.train.run import TrainingReport

    save = checkpoint.save

    def save_some(directory: Path, step: int, *rest: Any) -> None:
        if step == keep_at:
            save(directory, step, *rest)
        elif step == die_at and how == "while writing":
            checkpoint.os.rename = lambda *_: die()  # type: ignore[attr-defined]
            save(directory, step, *rest)

    def on_step(report: TrainingReport) -> None:
        if report.progress.step == die_at and how == "between steps":
            die()

    checkpoint.save = save_some
    begin = resume if (out / "training" / "run.json").exists() else pretrain
    if begin is resume:
        plan = {"evaluations": plan["evaluations"]}
    begin(corpus, out, checkpoint_minutes=0, on_step=on_step, **plan)
