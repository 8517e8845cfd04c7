"""Samples of uses from sharded jobs, which have drawn and embedded them already."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.probe.change.targets import TargetWord, TextSize, UseLocation, UseSample
from elmokit.vectors.reduce_uses import parse_forms
from elmokit.vectors.shard_files import ShardFile
from elmokit.vectors.shards import MERGED_FILE, is_sharded_job, load_plan


def find_job(text: object) -> Path | None:
    """Return the directory of a sharded job, if a text is one; None otherwise."""
    items = [text] if isinstance(text, (str, Path)) else text
    if not isinstance(items, Sequence) or not items or not isinstance(items[0], (str, Path)):
        return None
    if not is_sharded_job(items[0]):
        return None
    if len(items) > 1:
        raise InputError(f"{items[0]} is a sharded job; give it alone, without other files")
    return Path(items[0]).expanduser()


def load_samples(
    elmo: Elmo, directory: Path, targets: Sequence[TargetWord], max_uses: int
) -> list[UseSample]:
    """Return the samples of words that a job with the reducer `"uses"` has drawn.

    Args:
        elmo: The model of the job.
        directory: Directory of the job, which is finished.
        targets: Words, with the same forms as in the job.
        max_uses: Uses of each word, at most; no more than in the job.
    """
    plan = load_plan(directory)
    command = "elmo embed --file FILE --out DIR --shards N --reduce uses --layers all --target WORD"
    if plan.reduction.kind != "uses" or plan.layers != "all":
        raise InputError(
            f"the job {directory} keeps {plan.reduction.kind} of layers {plan.layers!r}; expected "
            f"a job with uses in all layers: {command}"
        )
    if not (directory / MERGED_FILE).is_file():
        raise InputError(f"{directory} is not finished; run: elmo embed --out {directory} --finish")
    plan.check_model(elmo)
    if max_uses > plan.reduction.max_uses:
        raise InputError(
            f"max_uses (--uses) is {max_uses}, but the job {directory} has at most "
            f"{plan.reduction.max_uses} uses of each word; give that or less"
        )
    known = [set(parse_forms(target)[1]) for target in plan.reduction.targets]
    with ShardFile(directory / MERGED_FILE) as file:
        header = file.header
        text = TextSize(header["documents"], header["sentences_with_words"])
        lines = list(file.lines("sentences"))
        vectors_NLD = file.rows("vectors")
        target_N, priority_N = file.array("target"), file.array("priority")
        position_N = file.array("position")
        places = [file.array(name) for name in ("document", "document_start", "sentence")]
        samples = []
        for target in targets:
            if set(target.forms) not in known:
                raise InputError(
                    f"the job {directory} has no sample of {target.name!r} with the forms "
                    f"{', '.join(target.forms)}; it has {', '.join(plan.reduction.targets)}"
                )
            k = known.index(set(target.forms))
            rows = np.flatnonzero(target_N == k)
            if len(rows) > max_uses:
                rows = np.sort(rows[np.argsort(priority_N[rows], kind="stable")[:max_uses]])
            sample = UseSample(header["counts"][k], text)
            seen, kept = set(), []
            for row in rows.tolist():
                words, position = json.loads(lines[row]), int(position_N[row])
                if (key := (tuple(words), position)) in seen:
                    sample.repeated += 1
                    continue
                seen.add(key)
                kept.append(row)
                sample.uses.append((words, position))
                sample.locations.append(UseLocation(*(int(place[row]) for place in places)))
            sample.layers_NLD = vectors_NLD[np.array(kept, np.int64)].astype(np.float32)
            samples.append(sample)
    return samples
