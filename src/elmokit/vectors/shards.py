"""Sharded jobs: plan, run one shard, verify, merge. Any scheduler can drive them.

    from elmokit.vectors import Reduction, plan_shards, run_shards

    plan_shards(elmo, "corpus.txt", "job", shards=50, reduction=Reduction("sentence"))
    run_shards("job", workers=2)

The directory of a job has `plan.json`, the files of finished shards in `shards/`, and
`merged.npz` in the end. A shard's file is named by its number and its id, a hash of its text, its
range and all settings. It is complete or absent: a worker that dies leaves nothing that counts, and
its shard is done again. Two workers with the same shard write the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import ElmoError, FormatError, InputError
from elmokit.json_text import SEAL, check_seal, parse_json, seal
from elmokit.progress import ProgressCallback, ignore_progress
from elmokit.storage import (
    atomic_write,
    check_regular,
    explain_write_errors,
    remove_leftovers,
    sync_directory,
    temporary_path,
    wait_for_lock,
)
from elmokit.text.files import LONGEST_LINE
from elmokit.vectors.embed import embedding_signature
from elmokit.vectors.quantization import Codebook, learn_codebook
from elmokit.vectors.reducers import ReduceContext, Reduction, embed_located, get_reducer
from elmokit.vectors.shard_files import ShardFile, write_shard_file
from elmokit.vectors.shard_input import (
    InputFile,
    LineForm,
    LocatedSentence,
    TextPiece,
    divide_input,
    find_inputs,
    read_sentences,
)

PLAN_FILE, SHARD_FOLDER, MERGED_FILE = "plan.json", "shards", "merged.npz"
CODEBOOK_FILE, LOCK_FILE = "codebook.npz", ".plan.lock"
PLAN_FORMAT, PLAN_VERSION = "elmokit sharded job", 1
CODEBOOK_PLACES, CODEBOOK_WORDS = 64, 512
"""Places of the input, and words from each, that clusters are learned from."""
_OWN_NAME = re.compile(r"\d+-[0-9a-f]{16}\.npz|\.\d+-[0-9a-f]{16}\..*\.tmp|\.work\..*\.tmp")


_NEEDED_SETTINGS = {"model", "layers", "state", "dtype", "device", "form", "column", "reduce"}


class Shard(NamedTuple):
    """A part of a job."""

    number: int
    """Number, counting from 0."""
    id: str
    """Hash of its text, its range and all settings."""
    pieces: list[TextPiece]
    """Its text."""

    @property
    def file_name(self) -> str:
        """Name of its file."""
        return f"{self.number:06d}-{self.id}.npz"


@dataclass(frozen=True)
class ShardPlan:
    """A job, divided into shards."""

    directory: Path
    """Directory of the job."""
    settings: dict[str, Any]
    """Model, layers, form of the text, and what is kept."""
    signature: dict[str, Any]
    """Everything that determines the results, apart from the text."""
    files: list[InputFile]
    """The input."""
    shards: list[Shard]
    """The shards, in the order of the text."""

    @property
    def reduction(self) -> Reduction:
        """What is kept of the vectors."""
        return Reduction.from_dict(self.settings["reduce"])

    @property
    def layers(self) -> LayerChoice:
        """Layers of the vectors."""
        layers: LayerChoice = self.settings["layers"]
        return layers

    def path_of(self, shard: Shard) -> Path:
        """Return the path of a shard's file."""
        return self.directory / SHARD_FOLDER / shard.file_name

    def load_model(self, threads: int | None = None) -> Elmo:
        """Load the model of the job, and check that it is still the same."""
        settings = self.settings
        elmo = Elmo.load(
            settings["model"],
            state=settings["state"],
            dtype=settings["dtype"],
            device=settings["device"],
            threads=threads,
        )
        self.check_model(elmo)
        return elmo

    def check_model(self, elmo: Elmo) -> None:
        """Raise `InputError` if a model gives other vectors than that of the job."""
        found = _as_json(_job_signature(elmo, self.layers))
        wanted = {key: self.signature[key] for key in found if key in self.signature}
        for key, value in found.items():
            if wanted.get(key) != value:
                raise InputError(
                    f"the job {self.directory} was planned with another {key} "
                    f"({wanted.get(key)!s:.40}, found {value!s:.40}); use the same model, "
                    "version and engine, or begin a new job in another directory"
                )


class ShardSummary(NamedTuple):
    """What `run_shard` did."""

    number: int
    """Number of the shard."""
    sentences: int
    """Number of its sentences."""
    words: int
    """Number of its words."""
    was_finished: bool
    """Whether an earlier run had finished it, so that nothing was done."""
    seconds: float = 0.0
    """Time that it took."""
    peak_bytes: int = 0
    """Largest memory of the process so far; 0 if it is not known."""


class ShardReport(NamedTuple):
    """What `verify_shards` found."""

    shards: int
    """Number of shards of the job."""
    finished: int
    """Number of shards that are finished and undamaged."""
    missing: list[int]
    """Numbers of the shards that are not."""
    damaged: list[str]
    """What is wrong with files that are damaged; they are removed, and their shards missing."""
    strays: list[str]
    """Names of files that belong to no shard of the job: removed if all shards are finished."""
    sentences: int
    """Number of sentences of the finished shards."""
    words: int
    """Number of words of the finished shards."""

    @property
    def is_complete(self) -> bool:
        """Whether every shard is there."""
        return not self.missing


# -- planning --------------------------------------------------------------------------------------


def plan_shards(
    elmo: Elmo,
    paths: str | Path | Sequence[str | Path],
    directory: str | Path,
    *,
    shards: int,
    reduction: Reduction | None = None,
    layers: LayerChoice = "mix",
    form: LineForm = "lines",
    column: str | None = None,
    progress: ProgressCallback = ignore_progress,
) -> ShardPlan:
    """Divide text files into shards, and write the plan of the job to its directory.

    If the directory has a plan with the same settings and files already, it is returned. The
    command `elmo embed --shards` does this.

    Args:
        elmo: The model, loaded from a file or by its name.
        paths: Text files, one sentence per line, or Parquet files; directories; patterns.
        directory: Directory of the job; created if it does not exist.
        shards: Number of shards, at most.
        reduction: What to keep of the vectors; by default all of them, in float32.
        layers: Layers of the vectors: `"mix"`, `"sum"`, `"all"`, `"top"` or a layer number.
        form: What a line is: a sentence (`"lines"`), a sentence with spaces between its words
            (`"tokenized"`), or running text (`"split"`).
        column: Column of the text in Parquet files.
        progress: Called with the number of bytes that were read, and their total.
    """
    reduction = reduction or Reduction()
    if elmo.state == "carry":
        raise InputError("state is 'carry', but shards need vectors that depend on nothing before")
    if form not in get_args(LineForm):
        raise InputError(f"form is {form!r}; expected 'lines', 'tokenized' or 'split'")
    elmo.layer_selector(layers)  # raises if there are no such layers
    root = Path(directory).expanduser()
    names = [paths] if isinstance(paths, (str, Path)) else list(paths)
    files = find_inputs([str(name) for name in names])
    settings: dict[str, Any] = {
        "model": elmo.source,
        "state": elmo.state,
        "dtype": elmo.dtype,
        "device": elmo.device,
        "layers": layers,
        "form": form,
        "column": column,
        "reduce": reduction.as_dict(),
        "shards": shards,
    }
    if (
        not (root / PLAN_FILE).exists()
        and root.exists()
        and (not root.is_dir() or any(_visible(root)))
    ):
        raise InputError(f"{root} exists and is not a sharded job; give a new directory")
    with explain_write_errors(root):
        root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        # The tasks of an array may all begin at once. Without locks they make the same plan.
        with suppress(ElmoError):
            stack.enter_context(wait_for_lock(root / LOCK_FILE))
        if (root / PLAN_FILE).exists():
            plan = load_plan(root)
            _check_same(plan, settings, files)
            plan.check_model(elmo)
            return plan
        return _make_plan(elmo, root, files, settings, reduction, progress)


def _make_plan(
    elmo: Elmo,
    root: Path,
    files: list[InputFile],
    settings: dict[str, Any],
    reduction: Reduction,
    progress: ProgressCallback,
) -> ShardPlan:
    """Divide the input, and write the plan."""
    shards, layers = settings["shards"], settings["layers"]
    form, column = settings["form"], settings["column"]
    total, done = sum(file.size for file in files), 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    divided = divide_input(files, shards, form, column, count)
    if not divided:
        raise InputError("the files are empty; expected text to embed")
    signature = _as_json(_job_signature(elmo, layers))
    signature |= {"form": form, "reduce": reduction.as_dict()}
    with explain_write_errors(root):
        (root / SHARD_FOLDER).mkdir(parents=True, exist_ok=True)
        if reduction.store == "kmeans" and reduction.kind in ("vectors", "sentence"):
            codebook = _learn(elmo, files, form, column, layers, reduction)
            signature["codebook"] = codebook.fingerprint
            arrays = {"centers": codebook.centers_PKW, "scale": np.array([codebook.scale])}
            write_shard_file(root / CODEBOOK_FILE, {"kind": "codebook"}, arrays)
        planned = [
            Shard(number, _shard_id(signature, files, pieces), pieces)
            for number, pieces in enumerate(divided)
        ]
        plan = ShardPlan(root, _as_json(settings), signature, files, planned)
        _write_plan(plan)
    return plan


def _job_signature(elmo: Elmo, layers: LayerChoice) -> dict[str, Any]:
    """Return everything that determines the bits of vectors: also what runs the network."""
    return embedding_signature(elmo, layers, None, False) | {"engine": _engine_kind(elmo)}


def _engine_kind(elmo: Elmo) -> str:
    """Return what runs the network, without its instruction set: kernel, reference or torch."""
    return elmo.engine.partition(" ")[0]


def _visible(root: Path) -> Iterator[Path]:
    """Yield what is in a directory, apart from what an interrupted planning may have left."""
    for path in root.iterdir():
        empty = path.name == SHARD_FOLDER and path.is_dir() and not any(path.iterdir())
        if not path.name.startswith(".") and path.name != CODEBOOK_FILE and not empty:
            yield path


def _learn(
    elmo: Elmo,
    files: Sequence[InputFile],
    form: LineForm,
    column: str | None,
    layers: LayerChoice,
    reduction: Reduction,
) -> Codebook:
    """Learn clusters from the beginnings of evenly spaced parts of the input."""
    rows = []
    for pieces in divide_input(files, CODEBOOK_PLACES, form, column):
        words = 0
        few = islice(read_sentences(files, pieces, form, column), CODEBOOK_WORDS)
        for _, tokens, vectors in embed_located(elmo, few, layers):
            rows.append(vectors.reshape(len(vectors), int(np.prod(vectors.shape[1:]))))
            words += len(tokens)
            if words >= CODEBOOK_WORDS:
                break
    if reduction.kind == "sentence":
        rows = [row.mean(axis=0, keepdims=True) for row in rows if len(row)]
    sample = np.concatenate(rows) if rows else np.zeros((0, elmo.dim), np.float32)
    if reduction.normalize:
        sample = sample / np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), 1e-30)
    return learn_codebook(sample.astype(np.float32), reduction.clusters, reduction.parts)


def _shard_id(
    signature: Mapping[str, Any], files: Sequence[InputFile], pieces: Iterable[TextPiece]
) -> str:
    text = [[files[piece.file].kind, *asdict(piece).values()] for piece in pieces]
    data = json.dumps([signature, text], sort_keys=True).encode()
    return hashlib.sha256(data).hexdigest()[:16]


def _write_plan(plan: ShardPlan) -> None:
    data = {
        "format": PLAN_FORMAT,
        "version": PLAN_VERSION,
        "settings": plan.settings,
        "signature": plan.signature,
        "files": [asdict(file) for file in plan.files],
        "shards": [
            {"id": shard.id, "pieces": [asdict(piece) for piece in shard.pieces]}
            for shard in plan.shards
        ],
    }
    with atomic_write(plan.directory / PLAN_FILE, sync=True) as temporary:
        temporary.write_text(json.dumps(seal(data), indent=1) + "\n", encoding="utf-8")


def load_plan(directory: str | Path) -> ShardPlan:
    """Read the plan of a job from its directory."""
    root = Path(directory).expanduser()
    check_regular(root / PLAN_FILE)
    try:
        data = parse_json((root / PLAN_FILE).read_bytes(), unique=True)
        known = data["format"] == PLAN_FORMAT and data["version"] <= PLAN_VERSION
        if known:
            if SEAL in data:  # unless an earlier version wrote it
                check_seal(data)
            return _parse_plan(root, data)
    except FileNotFoundError:
        raise InputError(
            f"there is no sharded job in {directory}; begin one with: elmo embed --file FILE "
            f"--out {directory} --shards N"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f" ({error!s:.200})"
    else:
        reason = ""
    raise FormatError(
        f"{root / PLAN_FILE} is damaged, or not the plan of a job that this version of elmokit "
        f"reads{reason}; begin a new job in another directory"
    )


def _parse_plan(root: Path, data: Mapping[str, Any]) -> ShardPlan:
    """Return the plan in the content of its file; raise `TypeError` or `ValueError` if it lies."""
    settings, signature = data["settings"], data["signature"]
    if not isinstance(settings, dict) or not isinstance(signature, dict):
        raise TypeError("its settings are none")
    if missing := _NEEDED_SETTINGS - set(settings):
        raise ValueError(f"it does not say: {', '.join(sorted(missing))}")
    files = [_parse_fields(InputFile, each) for each in data["files"]]
    shards = []
    for number, each in enumerate(data["shards"]):
        pieces = [_parse_fields(TextPiece, piece) for piece in each["pieces"]]
        if not re.fullmatch("[0-9a-f]{1,64}", each["id"]):  # it becomes the name of a file
            raise ValueError(f"shard {number} has the id {each['id']!r:.80}")
        if not all(0 <= piece.file < len(files) for piece in pieces):
            raise ValueError(f"shard {number} is of a file that is not in the plan")
        shards.append(Shard(number, each["id"], pieces))
    return ShardPlan(root, settings, signature, files, shards)


_Part = TypeVar("_Part", InputFile, TextPiece)


def _parse_fields(kind: type[_Part], values: dict[str, Any]) -> _Part:
    """Return a part of a plan, whose fields have the right types."""
    for name, value in values.items():
        expected: Any = str if name in ("path", "kind", "sha256") else int
        if name == "lines" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, expected):
            raise TypeError(f"{name} is {value!r:.80}")
        if expected is int and value < 0:
            raise ValueError(f"{name} is {value}")
    return kind(**values)


def is_sharded_job(directory: str | Path) -> bool:
    """Return whether a path is the directory of a sharded job."""
    return (Path(directory).expanduser() / PLAN_FILE).is_file()


def _check_same(plan: ShardPlan, settings: dict[str, Any], files: Sequence[InputFile]) -> None:
    advice = "give the same, or begin a new job in another directory"
    for key, value in _as_json(settings).items():
        if plan.settings.get(key) != value:
            raise InputError(
                f"the job {plan.directory} was planned with {key} {plan.settings.get(key)!r}, not "
                f"{value!r}; {advice}"
            )
    if list(files) != plan.files:
        raise InputError(f"the job {plan.directory} was planned with other files; {advice}")


# -- running ---------------------------------------------------------------------------------------


def run_shard(
    plan: ShardPlan | str | Path,
    number: int,
    elmo: Elmo | None = None,
    *,
    threads: int | None = None,
    on_sentence: Callable[[], None] | None = None,
) -> ShardSummary:
    """Embed one shard into its file, unless it is finished already.

    The command `elmo embed --shard` does this. It may be called any number of times, by any number
    of processes.

    Args:
        plan: The job, or its directory.
        number: Number of the shard, counting from 0.
        elmo: The model of the job; loaded by default.
        threads: Number of threads of a model that is loaded here.
        on_sentence: Called for each sentence that is read, to show progress.
    """
    if not isinstance(plan, ShardPlan):
        plan = load_plan(plan)
    if not 0 <= number < len(plan.shards):
        raise InputError(
            f"shard {number} does not exist; the job has shards 0 to {len(plan.shards) - 1}"
        )
    shard = plan.shards[number]
    path = plan.path_of(shard)
    if (header := _finished(path, shard)) is not None:
        return ShardSummary(number, header["sentences"], header["words"], True)
    started = time.monotonic()
    if elmo is None:
        elmo = plan.load_model(threads)
    else:
        plan.check_model(elmo)
    if _engine_kind(elmo) != "kernel":
        # BLAS rounds a word differently with the number of words that are computed with it, and so
        # vectors would depend on the shards that this process has done before.
        elmo.clear_word_cache()
    sentences = read_sentences(
        plan.files, shard.pieces, plan.settings["form"], plan.settings["column"]
    )
    with ExitStack() as stack:
        stack.enter_context(explain_write_errors(path, kept="finished shards are kept"))
        context = stack.enter_context(_Workspace(plan))
        counted = sentences if on_sentence is None else _report(sentences, on_sentence)
        reduced = get_reducer(plan.reduction.kind).reduce(elmo, counted, context)
        header = {
            "kind": plan.reduction.kind,
            "shard": {"id": shard.id, "number": number, "of": len(plan.shards)},
            "sentences": reduced.sentences,
            "words": reduced.words,
            "signature": plan.signature,
            **reduced.extra,
        }
        write_shard_file(path, header, reduced.arrays)
    seconds = time.monotonic() - started
    return ShardSummary(number, reduced.sentences, reduced.words, False, seconds, peak_memory())


def _report(
    sentences: Iterable[LocatedSentence], on_sentence: Callable[[], None]
) -> Iterator[LocatedSentence]:
    for item in sentences:
        if item.sentence is not None:
            on_sentence()
        yield item


class _Workspace:
    """A hidden directory for temporary files, which is removed at the end."""

    def __init__(self, plan: ShardPlan) -> None:
        self._plan = plan
        self._folder = plan.directory / SHARD_FOLDER
        self._path: Path | None = None

    def __enter__(self) -> ReduceContext:
        plan = self._plan
        self._folder.mkdir(exist_ok=True)
        remove_leftovers(self._folder / "work")
        self._path = temporary_path(self._folder / "work")
        self._path.mkdir()
        codebook = load_codebook(plan) if "codebook" in plan.signature else None
        return ReduceContext(plan.reduction, plan.layers, self._path, codebook)

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)


def load_codebook(plan: ShardPlan) -> Codebook:
    """Read the clusters of a job that stores k-means codes."""
    with ShardFile(plan.directory / CODEBOOK_FILE) as file:
        centers, scale = np.array(file.array("centers")), float(file.array("scale")[0])
    codebook = Codebook(centers, scale)
    if codebook.fingerprint != plan.signature["codebook"]:
        raise FormatError(
            f"{plan.directory / CODEBOOK_FILE} is not that of the job; begin a new job in another "
            "directory"
        )
    return codebook


def _finished(path: Path, shard: Shard) -> dict[str, Any] | None:
    """Return the header of a shard's file; None if there is none that can be read."""
    if not path.is_file():
        return None
    try:
        with ShardFile(path) as file:
            return file.header if file.header.get("shard", {}).get("id") == shard.id else None
    except FormatError:
        return None


def peak_memory() -> int:
    """Return the largest memory of this process so far, in bytes; 0 where it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


# -- verifying and merging -------------------------------------------------------------------------


def verify_shards(
    plan: ShardPlan | str | Path,
    *,
    read_all: bool = True,
    progress: ProgressCallback = ignore_progress,
) -> ShardReport:
    """Check that every shard of a job is there exactly once and undamaged.

    Damaged files are removed, so that the next run makes them again. Files of the job that belong
    to no shard, such as those of killed workers, are removed if all shards are finished: until
    then, somebody may be writing them.

    Args:
        plan: The job, or its directory.
        read_all: Compare the checksums of all files, which reads them; otherwise only headers.
        progress: Called with the number of shards that were checked, and their total.
    """
    if not isinstance(plan, ShardPlan):
        plan = load_plan(plan)
    missing, damaged = [], []
    sentences = words = 0
    for shard in plan.shards:
        path = plan.path_of(shard)
        header = None
        if path.exists():
            try:
                header = _verify_file(plan, shard, read_all)
            except FormatError as error:
                damaged.append(str(error))
                if not path.is_dir():
                    path.unlink(missing_ok=True)
        if header is None:
            missing.append(shard.number)
        else:
            sentences += header["sentences"]
            words += header["words"]
        progress(shard.number + 1, len(plan.shards))
    strays = _find_strays(plan)
    if not missing:
        for name in strays:
            stray = plan.directory / SHARD_FOLDER / name
            shutil.rmtree(stray) if stray.is_dir() else stray.unlink(missing_ok=True)
        sync_directory(plan.directory / SHARD_FOLDER)
    finished = len(plan.shards) - len(missing)
    return ShardReport(len(plan.shards), finished, missing, damaged, strays, sentences, words)


def _verify_file(plan: ShardPlan, shard: Shard, read_all: bool) -> dict[str, Any]:
    path = plan.path_of(shard)
    with ShardFile(path) as file:
        header = file.header
        if header.get("shard", {}).get("id") != shard.id or header["signature"] != plan.signature:
            raise FormatError(f"{path} is of another job")
        if read_all:
            file.check()
    lines = sum(piece.lines or 0 for piece in shard.pieces)
    counted = all(
        piece.lines is not None
        and (plan.files[piece.file].kind == "parquet" or piece.end - piece.start < LONGEST_LINE)
        for piece in shard.pieces
    )
    if plan.settings["form"] != "split" and counted and header["sentences"] != lines:
        raise FormatError(f"{path} has {header['sentences']} sentences; expected {lines}")
    return header


def _find_strays(plan: ShardPlan) -> list[str]:
    wanted = {shard.file_name for shard in plan.shards}
    names = os.listdir(plan.directory / SHARD_FOLDER)
    return sorted(name for name in names if name not in wanted and _OWN_NAME.fullmatch(name))


def merge_shards(plan: ShardPlan | str | Path, path: str | Path | None = None) -> Path:
    """Merge the files of all shards into one, and return its path.

    The result has the same bytes however the text was divided into shards.

    Args:
        plan: The job, or its directory.
        path: The file to write; by default `merged.npz` in the directory of the job.
    """
    if not isinstance(plan, ShardPlan):
        plan = load_plan(plan)
    target = plan.directory / MERGED_FILE if path is None else Path(path)
    with ExitStack() as stack:
        stack.enter_context(explain_write_errors(target, kept="all shards are kept"))
        files = []
        for shard in plan.shards:
            if _finished(plan.path_of(shard), shard) is None:
                raise InputError(
                    f"shard {shard.number} of {plan.directory} is not finished; run it first: elmo "
                    f"embed --out {plan.directory} --workers 1"
                )
            files.append(stack.enter_context(ShardFile(plan.path_of(shard))))
        context = stack.enter_context(_Workspace(plan))
        merged = get_reducer(plan.reduction.kind).merge(files, context)
        header = {
            "kind": plan.reduction.kind,
            "merged": True,
            "sentences": merged.sentences,
            "words": merged.words,
            "signature": plan.signature,
            **merged.extra,
        }
        write_shard_file(target, header, merged.arrays)
    return target


def _as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(dict(value)))
    return copy
