"""A trained task model: what it is made of, as a directory, and what it answers.

The directory holds task.json (settings, facts of the training set, which biLM by checksum, scores,
checksums of the other files; written last), model.safetensors (what was learned) and x.keys.npy
with x.vectors.npy (the static vectors). The biLM is not in it, unless it learned with the task; the
built-in one is found by itself.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import elmokit
from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import FormatError, InputError, ModelNotFound
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.tasks.layers import Layers
from elmokit.tasks.settings import Settings
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.task import Examples
from elmokit.tasks.word_embedding import Words
from elmokit.text.files import checksum

FORMAT, VERSION = "elmokit task", 1
TASK, MODEL, KEYS, VECTORS = "task.json", "model.safetensors", "x.keys.npy", "x.vectors.npy"
BATCH = 32
"""Examples that are answered at once."""

Tell = Callable[[int, int], None]
"""Hears how much of how much is done."""


def silent(done: int, of: int) -> None:
    """Nobody listens."""


@dataclass
class Trained:
    """A task model that answers."""

    settings: Settings
    facts: dict[str, Any]
    """What it remembers of its training set."""
    vocabulary: list[str]
    """The words that x was learned for; empty if x came from a file."""
    model: Any
    elmo: Elmo | None
    scores: dict[str, float] = field(default_factory=dict)
    """On the development set, of the epoch that was kept."""
    about: dict[str, Any] = field(default_factory=dict)
    """What else is worth knowing: data, epochs, time."""

    @classmethod
    def assemble(
        cls,
        settings: Settings,
        facts: dict[str, Any],
        x: StaticVectors | list[str],
        elmo: Elmo | None,
    ) -> Trained:
        """All parts put together, before any learning; random numbers from torch's generator."""
        source: Layers | ElmoEmbedding | None = None
        if elmo is not None and settings.tune:
            source = ElmoEmbedding(elmo, mixes=[], trainable=True)
        elif elmo is not None:
            source = Layers(elmo)
        chosen = settings.chosen
        words = Words(
            x, source, place=settings.where, mixing=settings.layers, dropout=chosen.dropout
        )
        model: Any = settings.sister.Model(words, chosen.sizes, facts)
        return cls(settings, facts, [] if isinstance(x, StaticVectors) else x, model, elmo)

    # -- answers -------------------------------------------------------------------------------

    def predict(self, examples: Sequence[Any], tell: Tell = silent) -> list[Any]:
        """An answer for each example, in the task's own type."""
        order = sorted(range(len(examples)), key=lambda i: _size(examples[i]))
        found: dict[int, Any] = {}
        batch = min(BATCH, 4 * self.settings.chosen.schooling.batch)
        self.model.eval()
        with torch.no_grad():
            for start in range(0, len(order), batch):
                which = order[start : start + batch]
                answers = self.model.predict([examples[i] for i in which])
                found.update(zip(which, answers, strict=True))
                tell(len(found), len(order))
        return [found[i] for i in range(len(examples))]

    def evaluate(self, examples: Examples[Any], tell: Tell = silent) -> dict[str, float]:
        """The task's scores on examples that have answers."""
        chosen = self.prepare(examples, training=False)
        return self.settings.sister.score(chosen.items, self.predict(chosen.items, tell))

    def ask(self, *texts: str) -> dict[str, Any]:
        """An answer to raw text, as a dictionary; how many texts it takes depends on the task."""
        example = self.parse(texts)
        return self.settings.sister.record(example, self.predict([example])[0])

    def parse(self, texts: Sequence[str]) -> Any:
        """Raw texts to an example."""
        sister = self.settings.sister
        if len(texts) != len(sister.ARGUMENTS):
            raise InputError(
                f"{len(texts)} texts given; {self.settings.task} takes {len(sister.ARGUMENTS)}: "
                f"{', '.join(sister.ARGUMENTS)}"
            )
        return sister.parse(texts)

    def prepare(self, examples: Examples[Any], *, training: bool) -> Examples[Any]:
        """Examples as this model's sizes ask for them; most tasks take them as they are."""
        return prepare(self.settings, examples, training=training)

    # -- files ---------------------------------------------------------------------------------

    def save(self, directory: str | Path) -> list[Path]:
        """Write the directory; an older model in it is replaced when all of the new is on disk."""
        place = Path(directory).expanduser()
        place.mkdir(parents=True, exist_ok=True)
        stage = place / f".{secrets.token_hex(4)}"
        stage.mkdir()
        try:
            names = self._write(stage)
            (place / TASK).unlink(missing_ok=True)  # until the new one is there, there is none
            for name in names:
                os.replace(stage / name, place / name)
            for name in {MODEL, KEYS, VECTORS} - set(names):
                (place / name).unlink(missing_ok=True)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        return [place / name for name in names]

    def _write(self, stage: Path) -> list[str]:
        from safetensors.torch import save

        state = {name: a.detach().cpu().contiguous() for name, a in self.state().items()}
        (stage / MODEL).write_bytes(save(state))
        names = [MODEL]
        static = self.model.words.static
        if static is not None:
            np.save(stage / KEYS, static.keys_N)
            np.save(stage / VECTORS, static.vectors_NE)
            names += [KEYS, VECTORS]
        whole = {
            "format": FORMAT,
            "version": VERSION,
            "elmokit": elmokit.__version__,
            "settings": self.settings.to_dict(),
            "biLM": None if self.elmo is None else self.elmo.bilm.fingerprint,
            "scores": self.scores,
            "weights": self.model.words.weights(),
            **self.about,
            "facts": self.facts,
            "vocabulary": self.vocabulary,
            "vectors": None if static is None else static.name,
            "files": {
                name: {"bytes": (stage / name).stat().st_size, "sha256": checksum(stage / name)}
                for name in names
            },
        }
        text = json.dumps(whole, ensure_ascii=False, indent=1) + "\n"
        (stage / TASK).write_text(text, encoding="utf-8")
        for name in (*names, TASK):
            with (stage / name).open("rb+") as file:
                os.fsync(file.fileno())
        return [*names, TASK]

    def state(self) -> dict[str, Tensor]:
        """Everything that was learned."""
        found: dict[str, Tensor] = self.model.state_dict()
        return found

    @classmethod
    def load(cls, directory: str | Path, elmo: str | Path | Elmo | None = None) -> Trained:
        """Read a directory; `elmo` only if its biLM is neither built in nor where it was."""
        place = Path(directory).expanduser()
        about = read_about(place)
        settings = Settings.from_dict(about["settings"], str(place / TASK))
        with _understood(place):
            _check_files(place, about["files"])
            bilm = None if settings.baseline else find_bilm(about["biLM"], settings.elmo, elmo)
            x: StaticVectors | list[str] = about["vocabulary"]
            if KEYS in about["files"]:
                keys, vectors = (
                    np.load(place / name, mmap_mode="r", allow_pickle=False)
                    for name in (KEYS, VECTORS)
                )
                x = StaticVectors(keys, vectors, about["vectors"])
            trained = cls.assemble(settings, about["facts"], x, bilm)
            from safetensors.torch import load_file

            trained.model.load_state_dict(load_file(place / MODEL))
            trained.model.eval()
            trained.scores = about["scores"]
        return trained


def prepare(settings: Settings, examples: Examples[Any], *, training: bool) -> Examples[Any]:
    """Examples as the sizes ask for them, if the task has such a thing."""
    change = getattr(settings.sister, "prepare", None)
    if change is None:
        return examples
    chosen: Examples[Any] = change(examples, settings.chosen.sizes, training)
    return chosen


def read_about(place: Path) -> dict[str, Any]:
    """A directory's task.json."""
    try:
        about = json.loads((place / TASK).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise KeyError(FORMAT)
    except (FileNotFoundError, NotADirectoryError):
        raise ModelNotFound(
            f"{place} has no {TASK}: it is no trained task model, or its training has not ended. "
            "Make one: elmo task train NAME --train FILE --dev FILE --out DIR"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"{place / TASK} is damaged or something else ({error}); expected what "
            "`elmo task train` writes"
        ) from None
    if about["version"] > VERSION:
        raise FormatError(f"{place} was written by a newer elmokit ({about['elmokit']}): update it")
    found: dict[str, Any] = about
    return found


def find_bilm(fingerprint: str, name: str, given: str | Path | Elmo | None) -> Elmo:
    """The biLM that a task model was trained with: as given, as it was named, or the built-in."""
    if isinstance(given, Elmo):
        elmo, found = given, "the one given"
    else:
        found = str(given or name)
        try:
            elmo = Elmo.load(found)
        except (ModelNotFound, FileNotFoundError):
            elmo, found = Elmo.load(BUILTIN), f"{found} is not there, and {BUILTIN}"
    if elmo.bilm.fingerprint != fingerprint:
        raise InputError(
            f"this task model was trained with the biLM {fingerprint[:12]}… ({name}); "
            f"{found} is {elmo.bilm.fingerprint[:12]}…. Name the right one with --elmo"
        )
    return elmo


def _size(example: Any) -> int:
    return sum(len(words) for words in example.texts)


def _check_files(place: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    for name, expected in files.items():
        path = place / name
        if not path.is_file():
            raise FormatError(f"{place} lacks {name}; copy the whole directory again")
        if path.stat().st_size != expected["bytes"] or checksum(path) != expected["sha256"]:
            raise FormatError(f"{path} is not the file that was saved; copy the directory again")


@contextmanager
def _understood(place: Path) -> Iterator[None]:
    """Turn what a strange but unharmed file raises into a word about it."""
    from safetensors import SafetensorError

    try:
        yield
    except (KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise FormatError(
            f"{place} cannot be understood ({' '.join(str(error).split())[:200]}); "
            "it was written by another elmokit"
        ) from None
