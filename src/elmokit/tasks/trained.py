"""A trained task model: its parts, its predictions, and its directory on disk.

The directory holds task.json (settings, labels of the training set, checksum of the biLM, scores,
checksums of the other files; written last), model.safetensors (the learned parameters) and
x.keys.npy with x.vectors.npy (the static word vectors). It does not hold the biLM, unless that was
fine-tuned with the task; the built-in model needs no path.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.module import register_module_parameter_registration_hook

import elmokit
from elmokit._deprecations import warn_renamed
from elmokit.elmo import BUILTIN, Elmo
from elmokit.errors import ElmoError, FormatError, InputError, ModelNotFound
from elmokit.formats.stored_arrays import open_npy
from elmokit.json_text import SEAL, check_seal, is_list_of_text, parse_json, seal
from elmokit.nn.embedding import ElmoEmbedding
from elmokit.nn.threads import torch_threads
from elmokit.progress import ProgressCallback, ignore_progress
from elmokit.staging import replace_files, try_to_finish
from elmokit.storage import check_regular, checksum, explain_write_errors
from elmokit.tasks.layer_store import LayerStore
from elmokit.tasks.offsets import token_spans
from elmokit.tasks.settings import Settings
from elmokit.tasks.static import StaticVectors
from elmokit.tasks.task import Examples
from elmokit.tasks.word_embedding import WordEmbedding
from elmokit.text.sentences import split_sentences
from elmokit.text.tokenize import tokenize

FORMAT, VERSION = "elmokit task", 2
"""Name and version of the format; version 1 has no checksum of task.json."""
TASK_FILE, MODEL_FILE = "task.json", "model.safetensors"
KEYS_FILE, VECTORS_FILE = "x.keys.npy", "x.vectors.npy"
BATCH = 32
"""Maximum number of examples that are predicted at once."""
FREE_LABELS = 300
"""Number of labels that any model may have; more of them need room in its file."""
FREE_PARAMETERS = 1 << 20
"""Number of parameters that any model may have, whatever the size of its file."""
_KEYS = frozenset(
    "format version elmokit settings biLM scores weights facts vocabulary vectors files".split()
)
"""Keys of task.json that are not metadata."""


def load(directory: str | Path, elmo: str | Path | Elmo | None = None) -> Trained:
    """Load a trained task model.

    The commands `elmo task eval` and `elmo task predict` do this.

    Args:
        directory: Directory that `fit` or `elmo task train` wrote.
        elmo: The biLM that the model was trained with, loaded or as a name or path; needed only if
            it is neither the built-in model nor where it was during training.
    """
    return Trained.load(directory, elmo)


@dataclass
class Trained:
    """A trained task model."""

    settings: Settings
    """The settings that it was trained with."""
    label_set: dict[str, Any]
    """What the model remembers of its training set, mostly the labels; see `Task.label_set`."""
    vocabulary: list[str]
    """The words that vectors were learned for; empty if the word vectors came from a file."""
    model: Any
    """The network: the task's `Model`, a `torch.nn.Module`."""
    elmo: Elmo | None
    """The biLM; None for a baseline without ELMo."""
    scores: dict[str, float] = field(default_factory=dict)
    """Scores of the best epoch on the development set."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """How it was trained: epochs, time, and numbers of examples."""

    @classmethod
    def assemble(
        cls,
        settings: Settings,
        label_set: dict[str, Any],
        x: StaticVectors | list[str],
        elmo: Elmo | None,
    ) -> Trained:
        """Return a model with random parameters, drawn from torch's global generator.

        Args:
            settings: The settings of the model.
            label_set: What `Task.label_set` returned for the training set.
            x: Static word vectors, or the words to learn vectors for.
            elmo: The biLM; None for a baseline without ELMo.
        """
        source: LayerStore | ElmoEmbedding | None = None
        if elmo is not None and settings.tune:
            source = ElmoEmbedding(elmo, mixes=[], trainable=True)
        elif elmo is not None:
            source = LayerStore(elmo)
        preset = settings.effective_preset
        words = WordEmbedding(
            x,
            source,
            placement=settings.effective_placement,
            mixing=settings.layers,
            dropout=preset.dropout,
        )
        model: Any = settings.definition.Model(words, preset.sizes, label_set)
        return cls(settings, label_set, [] if isinstance(x, StaticVectors) else x, model, elmo)

    # -- predictions ---------------------------------------------------------------------------

    def predict(self, *texts: str) -> dict[str, Any]:
        """Return the prediction for raw text as a dictionary.

        The command `elmo task predict` does this.

        Args:
            texts: One text for each of the task's `arguments`, such as premise and hypothesis.
        """
        example = self.parse(texts)
        return self.settings.definition.to_record(example, self.predict_examples([example])[0])

    def ask(self, *texts: str) -> dict[str, Any]:
        """Old name of `predict`; deprecated."""
        warn_renamed("Trained.ask", "Trained.predict")
        return self.predict(*texts)

    def predict_text(
        self, text: str, progress: ProgressCallback = ignore_progress
    ) -> list[dict[str, Any]]:
        """Return one prediction per sentence of a running text; for coref, one for the whole text.

        The command `elmo task predict --text` does this. `text[start_char:end_char]` is what a
        record, or an answer in it, is about.

        Args:
            text: Raw text of any length, which is split into sentences and words.
            progress: Called with the number of sentences that are done and their total.
        """
        examples = self.parse_text(text)
        predictions = self.predict_examples(examples, progress)
        to_record = self.settings.definition.to_record
        return [to_record(*pair) for pair in zip(examples, predictions, strict=True)]

    def predict_examples(
        self, examples: Sequence[Any], progress: ProgressCallback = ignore_progress
    ) -> list[Any]:
        """Return one prediction per example, in the task's own type.

        Args:
            examples: Examples of the task, in any order.
            progress: Called with the number of examples that are done and their total.
        """
        order = sorted(range(len(examples)), key=lambda i: _word_count(examples[i]))
        predictions: dict[int, Any] = {}
        batch = min(BATCH, 4 * self.settings.effective_preset.training.batch)
        self.model.eval()
        with torch_threads(1), torch.no_grad():
            for start in range(0, len(order), batch):
                indices = order[start : start + batch]
                predicted = self.model.predict([examples[i] for i in indices])
                predictions.update(zip(indices, predicted, strict=True))
                progress(len(predictions), len(order))
        return [predictions[i] for i in range(len(examples))]

    def evaluate(
        self, examples: Examples[Any], progress: ProgressCallback = ignore_progress
    ) -> dict[str, float]:
        """Return the task's scores on examples that have answers.

        The command `elmo task eval` does this.

        Args:
            examples: Examples with answers, as `read` returns them.
            progress: Called with the number of examples that are done and their total.
        """
        prepared = self.prepare(examples)
        if problem := self.describe_unknown_labels(prepared):
            warnings.warn(problem, stacklevel=2)
        predictions = self.predict_examples(prepared.items, progress)
        return self.settings.definition.score(prepared.items, predictions)

    def parse(self, texts: Sequence[str]) -> Any:
        """Return an example without an answer from raw texts."""
        names = self.settings.definition.arguments
        if len(texts) != len(names):
            raise InputError(
                f"{len(texts)} texts given; {self.settings.task} takes {len(names)}: "
                f"{', '.join(names)}"
            )
        return self.settings.definition.parse(texts)

    def parse_text(self, text: str) -> list[Any]:
        """Return the sentences of a running text as examples without answers.

        For coref, the whole text is one example.
        """
        task = self.settings.definition
        if len(task.arguments) > 1:
            raise InputError(
                f"running text has one text, and {task.name} takes {len(task.arguments)}: "
                f"{', '.join(task.arguments)}"
            )
        if task.from_tokens is None:
            return [task.parse((text,))] if text.strip() else []
        examples = []
        for sentence in split_sentences(text):
            if tokens := tokenize(sentence.text):
                moved = [
                    token._replace(start=start, end=end)
                    for token, (start, end) in zip(
                        tokens, token_spans(tokens, sentence.start), strict=True
                    )
                ]
                examples.append(task.from_tokens(moved))
        return examples

    def prepare(self, examples: Examples[Any]) -> Examples[Any]:
        """Return examples as this model is evaluated on them; most tasks do not change them."""
        sizes = self.settings.effective_preset.sizes
        return self.settings.definition.prepare(examples, sizes, False)

    def describe_unknown_labels(self, examples: Examples[Any]) -> str | None:
        """Return a sentence about labels that this model can never predict; None if all are known.

        Args:
            examples: Examples with answers.
        """
        known = {label for labels in self.label_set.values() for label in labels}
        labels = self.settings.definition.labels
        counts = Counter(label for example in examples.items for label in labels(example))
        unknown = {label: count for label, count in counts.items() if label not in known}
        if not unknown or not known:
            return None
        listed = ", ".join(f"{label} ({count:,})" for label, count in sorted(unknown.items()))
        if len(unknown) < len(counts):
            return f"the model was not trained with these labels and never predicts them: {listed}"
        return (
            "the model and the file share no label, so every score is 0 or near it: the file has "
            f"{', '.join(sorted(counts))}; the model knows {', '.join(sorted(known))}. Rename the "
            "labels of the file, or train on data with its labels"
        )

    # -- files ---------------------------------------------------------------------------------

    def save(self, directory: str | Path) -> list[Path]:
        """Write the directory and return its files.

        An older model in it is replaced in one step: a process that is killed leaves the old one or
        the new one.
        """
        target = Path(directory).expanduser()
        members = (TASK_FILE, MODEL_FILE, KEYS_FILE, VECTORS_FILE)
        with explain_write_errors(directory), replace_files(target, TASK_FILE, members) as stage:
            names = self._write(stage)
        return [target / name for name in names]

    def _write(self, stage: Path) -> list[str]:
        from safetensors.torch import save

        state = {name: a.detach().cpu().contiguous() for name, a in self.state_dict().items()}
        (stage / MODEL_FILE).write_bytes(save(state))
        names = [MODEL_FILE]
        static = self.model.words.static
        if static is not None:
            np.save(stage / KEYS_FILE, static.keys_N)
            np.save(stage / VECTORS_FILE, np.ascontiguousarray(static.vectors_NE))
            names += [KEYS_FILE, VECTORS_FILE]
        content = {
            "format": FORMAT,
            "version": VERSION,
            "elmokit": elmokit.__version__,
            "settings": self.settings.to_dict(),
            "biLM": None if self.elmo is None else self.elmo.bilm.fingerprint,
            "scores": self.scores,
            "weights": self.model.words.layer_weights(),
            **self.metadata,
            "facts": self.label_set,
            "vocabulary": self.vocabulary,
            "vectors": None if static is None else static.name,
            "files": {
                name: {"bytes": (stage / name).stat().st_size, "sha256": checksum(stage / name)}
                for name in names
            },
        }
        text = json.dumps(seal(content), ensure_ascii=False, indent=1) + "\n"
        (stage / TASK_FILE).write_text(text, encoding="utf-8")
        return [*names, TASK_FILE]

    def state_dict(self) -> dict[str, Tensor]:
        """Return all learned parameters by name."""
        state: dict[str, Tensor] = self.model.state_dict()
        return state

    @classmethod
    def load(cls, directory: str | Path, elmo: str | Path | Elmo | None = None) -> Trained:
        """Load a trained task model; see `elmokit.tasks.load`."""
        from safetensors.torch import load_file

        path = Path(directory).expanduser()
        content = read_task_file(path)
        settings = Settings.from_dict(content["settings"], str(path / TASK_FILE))
        with _explain_errors(path):
            _check_files(path, content["files"])
            bilm = None if settings.baseline else find_bilm(content["biLM"], settings.elmo, elmo)
            if not is_list_of_text(content["vocabulary"]):
                raise FormatError(f"{path / TASK_FILE}: its vocabulary is not a list of words")
            x: StaticVectors | list[str] = content["vocabulary"]
            if KEYS_FILE in content["files"]:
                keys, vectors = (open_npy(path / name) for name in (KEYS_FILE, VECTORS_FILE))
                if (
                    keys.dtype != np.uint64
                    or vectors.dtype != np.float16
                    or len(vectors.shape) != 2
                    or keys.shape != vectors.shape[:1]
                ):
                    raise FormatError(
                        f"{path} is damaged: {KEYS_FILE} has {keys.dtype} of shape {keys.shape}, "
                        f"{VECTORS_FILE} {vectors.dtype} of shape {vectors.shape}"
                    )
                x = StaticVectors(keys.read(), vectors.read(), content["vectors"])
            _check_labels(path, content["facts"])
            with _limit_parameters(path):
                trained = cls.assemble(settings, content["facts"], x, bilm)
            trained.model.load_state_dict(load_file(path / MODEL_FILE))
            trained.model.eval()
            trained.scores = content["scores"]
            trained.metadata = {k: value for k, value in content.items() if k not in _KEYS}
        return trained


def read_task_file(directory: Path) -> dict[str, Any]:
    """Return the content of a directory's task.json."""
    path = directory / TASK_FILE
    try_to_finish(directory)
    check_regular(path)
    try:
        content: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise KeyError(FORMAT)
        version = content["version"]
        if type(version) is not int or version < 1:
            raise ValueError(f"its version is {version!r:.60}")
        if version != 1 and SEAL not in content and version <= VERSION:
            raise ValueError("it has no checksum")
        if 1 < version <= VERSION:
            check_seal(content)
        content.pop(SEAL, None)
        missing = _KEYS - {"weights"} - set(content)  # without weights, a model still predicts
        if version <= VERSION and missing:
            raise KeyError(", ".join(sorted(missing)))
    except (FileNotFoundError, NotADirectoryError):
        if not directory.exists():
            raise ModelNotFound(
                f"{directory} does not exist; expected the directory of a task model that "
                "`elmo task train` wrote"
            ) from None
        raise ModelNotFound(
            f"{directory} has no {TASK_FILE}: it is not a trained task model, or its training has "
            "not finished. Train one: elmo task train NAME --train FILE --dev FILE --out DIR"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise FormatError(
            f"{path} is damaged or something else ({error}); expected a file that "
            "`elmo task train` wrote"
        ) from None
    if version > VERSION:
        raise FormatError(
            f"{directory} was written by a newer version of elmokit ({content.get('elmokit')}); "
            "update elmokit"
        )
    return content


def find_bilm(fingerprint: str, name: str, elmo: str | Path | Elmo | None) -> Elmo:
    """Return the biLM that a task model was trained with.

    Args:
        fingerprint: Fingerprint of the biLM.
        name: Its name or path during training.
        elmo: The biLM, loaded or as a name or path, if it is not there any more. Without it, the
            built-in model is tried last.
    """
    if isinstance(elmo, Elmo):
        candidate, description = elmo, "the given model"
    else:
        description = str(elmo or name)
        try:
            candidate = Elmo.load(description)
        except (ModelNotFound, FileNotFoundError):
            if elmo is not None:
                raise
            candidate = Elmo.load(BUILTIN)
            description = f"{description} does not exist, and {BUILTIN}"
    if candidate.bilm.fingerprint != fingerprint:
        raise InputError(
            f"this task model was trained with the biLM {fingerprint[:12]}… ({name}); "
            f"{description} is {candidate.bilm.fingerprint[:12]}…. Give the right one with --elmo"
        )
    return candidate


def _word_count(example: Any) -> int:
    return sum(len(words) for words in example.texts)


def _check_labels(directory: Path, label_set: object) -> None:
    """Raise `FormatError` unless labels are texts, and not more of them than the file has room for.

    A network may compare each label with each other one.
    """
    if not isinstance(label_set, dict) or not all(map(is_list_of_text, label_set.values())):
        raise FormatError(f"{directory / TASK_FILE}: its labels are {label_set!r:.80}")
    size = (directory / MODEL_FILE).stat().st_size
    for labels in label_set.values():
        if len(labels) > FREE_LABELS and len(labels) ** 2 > size:
            raise FormatError(
                f"{directory / TASK_FILE} has {len(labels):,} labels; {MODEL_FILE} has {size:,} "
                "bytes, which is too small for so many"
            )


@contextmanager
def _limit_parameters(directory: Path) -> Iterator[None]:
    """Stop a network from being made as soon as it has more parameters than its file has room for.

    Networks that other threads make meanwhile are not counted.
    """
    thread, count = get_ident(), 0
    most = (directory / MODEL_FILE).stat().st_size + FREE_PARAMETERS

    def add(module: object, name: str, parameter: torch.nn.Parameter | None) -> None:
        nonlocal count
        count += 0 if parameter is None or get_ident() != thread else parameter.numel()
        if count > most:
            raise FormatError(
                f"{directory / TASK_FILE} describes a network of {count:,} parameters or more; "
                f"{MODEL_FILE} is too small for it"
            )

    hook = register_module_parameter_registration_hook(add)
    try:
        yield
    finally:
        hook.remove()


def _check_files(directory: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    if MODEL_FILE not in files:
        raise FormatError(f"{directory / TASK_FILE} does not list {MODEL_FILE}")
    for name, expected in files.items():
        if name not in (MODEL_FILE, KEYS_FILE, VECTORS_FILE):
            raise FormatError(f"{directory / TASK_FILE} lists {name!r:.80}, which is not its file")
        path = directory / name
        if not path.is_file():
            raise FormatError(f"{directory} lacks {name}; copy the whole directory again")
        if path.stat().st_size != expected["bytes"] or checksum(path) != expected["sha256"]:
            raise FormatError(f"{path} is not the file that was saved; copy the directory again")


@contextmanager
def _explain_errors(directory: Path) -> Iterator[None]:
    """Turn the errors that an intact but unexpected file causes into `FormatError`."""
    from safetensors import SafetensorError

    try:
        yield
    except ElmoError:
        raise
    except (
        *(KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError),
        *(OverflowError, EOFError, SafetensorError),
    ) as error:
        raise FormatError(
            f"{directory} cannot be loaded ({' '.join(str(error).split())[:200]}); "
            "it was written by another version of elmokit"
        ) from None
