"""A bounded random sample of the uses of some words, with their sentences and vectors.

Every use has a priority: a hash of the seed, the word and the location of the use in the input. The
uses with the smallest priorities are the sample, so that the sample of a text is the same however
the text was divided, and all uses are equally likely. Only sampled sentences are embedded. Arrays,
with N sampled uses, ordered by word and location:

    target           (N,) int32, number of the word
    priority         (N,) uint64
    location         (N, 3) int64, of the sentence: file number, offset, number
    position         (N,) int32, of the word in its sentence
    sentences        the words of each sentence as a JSON list, one per line
    vectors          (N, D) or (N, L+1, D) float32
    document         (N,) int64, number of the document
    document_start   (N,) int64, number of the document's first sentence
    sentence         (N,) int64, number of the sentence; only sentences with words count

In a shard, the last three count from the beginning of the shard, and `continued` says which uses
are in a document that began before it. The header has the number of uses of each word.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from elmokit.elmo import Elmo
from elmokit.errors import InputError
from elmokit.vectors.reducers import ReduceContext, ReducedText, row_shape, words_first
from elmokit.vectors.shard_files import ArraySpool, ShardFile
from elmokit.vectors.shard_input import LocatedSentence

_KNOWN_WORDS = 1 << 20


def parse_forms(target: str) -> tuple[str, tuple[str, ...]]:
    """Return the name and the forms, without case, that `play` or `play=plays,played` means."""
    name, _, others = target.partition("=")
    forms = [form.strip() for form in (name, *others.split(",")) if form.strip()]
    if not forms:
        raise InputError(f"the word {target!r} is empty; expected play, or play=plays,played")
    return forms[0], tuple(dict.fromkeys(form.casefold() for form in forms))


class _SampledUse(NamedTuple):
    """A use in the sample; smaller ones are dropped first, and no two compare equal."""

    drop_first: int
    location: tuple[int, int, int]
    position: int
    target: int
    words: tuple[str, ...]
    continued: bool
    document: int
    document_start: int
    sentence: int


def reduce(elmo: Elmo, sentences: Iterable[LocatedSentence], context: ReduceContext) -> ReducedText:
    """Return a sample of the uses of a shard."""
    settings = context.reduction
    targets = [parse_forms(target) for target in settings.targets]
    number_of: dict[str, int] = {}
    for k, (_, forms) in enumerate(targets):
        for form in forms:
            if number_of.setdefault(form, k) != k:
                raise InputError(f"{form!r} belongs to two words; give it once")
    samples: list[list[_SampledUse]] = [[] for _ in targets]
    counts = [0] * len(targets)
    known: dict[str, int] = {}
    result = ReducedText()
    first_boundary, documents, document_start, number = -1, 0, 0, 0
    for item, words in _tokenize(elmo, sentences):
        if words is None:
            if first_boundary < 0:
                first_boundary = number
            else:
                documents += number > document_start
            document_start = number
            continue
        result.sentences += 1
        result.words += len(words)
        for position, word in enumerate(words):
            if (k := known.get(word, -2)) == -2:
                if len(known) >= _KNOWN_WORDS:
                    known.clear()
                k = known[word] = number_of.get(word.casefold(), -1)
            if k < 0:
                continue
            counts[k] += 1
            priority = _priority(settings.seed, targets[k][0], item.location, position)
            sample = samples[k]
            if len(sample) == settings.max_uses and -priority < sample[0].drop_first:
                continue
            location = document_start, number
            use = _SampledUse(
                *(-priority, item.location, position, k, tuple(words)),
                *(first_boundary < 0, documents, *location),
            )
            if len(sample) < settings.max_uses:
                heapq.heappush(sample, use)
            else:
                heapq.heappushpop(sample, use)
        number += bool(words)
    uses = [
        use for sample in samples for use in sorted(sample, key=lambda u: (u.location, u.position))
    ]
    vectors = ArraySpool(context.directory, "<f4", row_shape(elmo, context.layers))
    arrays = elmo.stream((use.words for use in uses), context.layers)
    for use, array in zip(uses, arrays, strict=True):
        vectors.append(words_first(array)[use.position][None])
    result.arrays = _columns(context, uses)
    result.arrays["continued"] = np.array([use.continued for use in uses], np.bool_)
    result.arrays["vectors"] = vectors
    result.extra = {
        "counts": counts,
        "boundaries": [first_boundary, documents, document_start, number],
    }
    return result


def merge(files: Sequence[ShardFile], context: ReduceContext) -> ReducedText:
    """Return the sample of all shards."""
    settings = context.reduction
    result = ReducedText()
    carried_documents = carried_start = before = 0
    counts = np.zeros(len(settings.targets), np.int64)
    candidates: list[list[tuple[_SampledUse, int, int]]] = [[] for _ in settings.targets]
    for number, file in enumerate(files):
        first_boundary, documents, document_start, sentences = file.header["boundaries"]
        closed = carried_documents + (before + max(first_boundary, 0) > carried_start)
        for row, use in enumerate(_read_uses(file)):
            if use.continued:
                place = carried_documents, carried_start
            else:
                place = closed + use.document, before + use.document_start
            moved = use._replace(
                continued=False,
                document=place[0],
                document_start=place[1],
                sentence=before + use.sentence,
            )
            sample = candidates[use.target]
            entry = moved, number, row
            if len(sample) < settings.max_uses:
                heapq.heappush(sample, entry)
            else:
                heapq.heappushpop(sample, entry)
        if first_boundary >= 0:
            carried_documents, carried_start = closed + documents, before + document_start
        before += sentences
        counts += np.array(file.header["counts"], np.int64)
        result.sentences += file.header["sentences"]
        result.words += file.header["words"]
    kept = [
        entry
        for sample in candidates
        for entry in sorted(sample, key=lambda e: (e[0].location, e[0].position))
    ]
    vectors_of = [file.rows("vectors") for file in files]
    vectors = ArraySpool(context.directory, "<f4", vectors_of[0].shape[1:])
    for _, number, row in kept:
        vectors.append(vectors_of[number][row][None])
    result.arrays = _columns(context, [use for use, _, _ in kept])
    result.arrays["vectors"] = vectors
    result.extra = {
        "counts": counts.tolist(),
        "documents": carried_documents + (before > carried_start),
        "sentences_with_words": before,
    }
    return result


def _tokenize(
    elmo: Elmo, sentences: Iterable[LocatedSentence]
) -> Iterator[tuple[LocatedSentence, Sequence[str] | None]]:
    """Yield sentences with their words, and ends of documents with None."""
    for item in sentences:
        if item.sentence is None:
            yield item, None
        else:
            yield item, next(iter(elmo.words([item.sentence])))


def _priority(seed: int, target: str, location: tuple[int, int, int], position: int) -> int:
    text = f"{seed} {location} {position} {target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _columns(context: ReduceContext, uses: Sequence[_SampledUse]) -> dict[str, Any]:
    sentences = ArraySpool(context.directory, "u1")
    for use in uses:
        sentences.extend(json.dumps(use.words).encode("ascii") + b"\n")
    return {
        "target": np.array([use.target for use in uses], np.int32),
        "priority": np.array([-use.drop_first for use in uses], np.uint64),
        "location": np.array([use.location for use in uses], np.int64).reshape(-1, 3),
        "position": np.array([use.position for use in uses], np.int32),
        "document": np.array([use.document for use in uses], np.int64),
        "document_start": np.array([use.document_start for use in uses], np.int64),
        "sentence": np.array([use.sentence for use in uses], np.int64),
        "sentences": sentences,
    }


def _read_uses(file: ShardFile) -> Iterator[_SampledUse]:
    names = ("priority", "location", "position", "target", "continued")
    columns = [file.array(name).tolist() for name in names]
    places = [file.array(name).tolist() for name in ("document", "document_start", "sentence")]
    for row, line in enumerate(file.lines("sentences")):
        priority, location, position, target, continued = (column[row] for column in columns)
        yield _SampledUse(
            *(-priority, tuple(location), position, target, tuple(json.loads(line)), continued),
            *(place[row] for place in places),
        )
