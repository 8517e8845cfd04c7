"""Semantic change: how the uses of words differ between two texts, by their vectors.

APD, the average pairwise distance, is the mean cosine distance between a use then and a use now.
PRT, the prototype distance, is the cosine distance between the mean vectors then and now. They are
compared with the distance between two uses within a text, with what the texts would show if their
documents were assigned to them at random (a permutation test), with halves of the same text, with
the character layer, which knows no context, and with the network before it was trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from elmokit.elmo import Elmo, LayerChoice
from elmokit.errors import InputError
from elmokit.probe.change.compare import (
    MAX_USES,
    MIN_USES,
    PERMUTATIONS,
    ChangeResults,
    WordChange,
    compare_uses,
)
from elmokit.probe.change.contrast import ContrastedUse
from elmokit.probe.change.reduced import find_job, load_samples
from elmokit.probe.change.targets import TargetWord, frequent_targets, parse_target
from elmokit.probe.change.units import PermutationUnit
from elmokit.probe.corpus_files import TextInput, open_text
from elmokit.probe.excerpt import excerpt_line
from elmokit.probe.neighbors.indexing import resolve_layer
from elmokit.probe.results import Measurement, make_measurement, make_signature
from elmokit.progress import StageCallback, ignore_stages
from elmokit.storage import checksum
from elmokit.train.chunks import TextForm
from elmokit.vectors.shards import MERGED_FILE

EXAMPLES = 5
"""Uses of each text that are kept as examples of a word."""
PLOTTED_WORDS, PLOTTED_USES = 4, 120
"""Words that are plotted, and their uses per text, at most."""


def semantic_change(
    elmo: Elmo,
    then: TextInput,
    now: TextInput,
    targets: Sequence[str | TargetWord] = (),
    *,
    most_frequent: int | None = None,
    layer: LayerChoice = "top",
    by: str = "prt",
    max_uses: int = MAX_USES,
    min_uses: int = MIN_USES,
    permutations: int = PERMUTATIONS,
    unit: PermutationUnit = "auto",
    seed: int = 0,
    max_words: int | None = None,
    form: TextForm = "running",
    column: str | None = None,
    callback: StageCallback = ignore_stages,
) -> Measurement:
    """Measure how the uses of words have changed between two texts.

    The command `elmo change` does this. The result is a measurement, as JSON holds it.

    Args:
        elmo: A model that does not carry its state from sentence to sentence.
        then: First text: files or directories, or sentences as lists of words. A blank line, a
            row of a Parquet file and the end of a file end a document, as an empty list does. Or
            the directory of a sharded job that has sampled the uses of the words in all layers.
        now: Second text, likewise.
        targets: Words to compare, such as `"play"`, or `"play=plays,played"` to count other forms
            as the same word.
        most_frequent: Instead of `targets`, compare this many of the most frequent words that the
            texts share, without function words.
        layer: Layer that the words are ranked by, and that examples are chosen by: `"top"`,
            `"mix"` or a number. All layers are measured.
        by: Measure that the words are ranked by: `"prt"`, `"apd"` or `"excess"`.
        max_uses: Uses of a word that are compared per text, at most; drawn at random.
        min_uses: Leave out words with fewer uses in one of the texts.
        permutations: Random assignments per word in the permutation test.
        unit: What the test assigns to the texts at random: every `"document"`, or parts of each
            text (`"block"`). By default (`"auto"`), documents if a text has 8 to 50 of them, 50
            blocks of whole documents if it has more, and 12 blocks of sentences if it has fewer.
        seed: Random seed.
        max_words: Words to read of each text; all by default.
        form: What a line of the files is: `"running"` text, one sentence (`"lines"`), or one
            sentence with spaces between its words (`"tokenized"`).
        column: Column of the text in Parquet files.
        callback: Called with the stage of the work, how much is done and how much there is.
    """
    if bool(targets) == (most_frequent is not None):
        raise InputError("expected either words to compare (targets) or most_frequent")
    jobs = find_job(then), find_job(now)
    if (jobs[0] is None) != (jobs[1] is None):
        raise InputError("one text is a sharded job, the other is not; give two jobs or two texts")
    (sentences_then, hashes_then), (sentences_now, hashes_now) = (
        ([], {name: checksum(job / MERGED_FILE)})
        if job is not None
        else open_text(
            text, name, form=form, column=column, max_words=max_words, mark_documents=True
        )
        for name, text, job in (("then", then, jobs[0]), ("now", now, jobs[1]))
    )
    words = [parse_target(each) if isinstance(each, str) else each for each in targets]
    if most_frequent is not None:
        callback("counting words", 0, None)
        words = frequent_targets(sentences_then, sentences_now, most_frequent, min_uses)
        if not words:
            raise InputError(
                f"the texts share no word with {min_uses} uses in both; give more text, or a "
                "smaller min_uses (--least)"
            )
    samples = None
    if jobs[0] is not None and jobs[1] is not None:
        if most_frequent is not None:
            raise InputError("a sharded job has the words that it was made for; name them")
        samples = tuple(load_samples(elmo, job, words, max_uses) for job in jobs if job)
    results = compare_uses(
        elmo,
        sentences_then,
        sentences_now,
        words,
        layer=layer,
        by=by,
        max_uses=max_uses,
        min_uses=min_uses,
        permutations=permutations,
        unit=unit,
        seed=seed,
        samples=None if samples is None else (samples[0], samples[1]),
        callback=callback,
    )
    signed = make_signature(
        elmo,
        {},
        targets=[[target.name, *target.forms, target.gold] for target in words],
        layer=resolve_layer(elmo, layer),
        by=by,
        uses=max_uses,
        least=min_uses,
        permutations=permutations,
        unit=unit,
        seed=seed,
        limit=max_words,
        form=form,
        column=column,
    )
    return change_measurement(results, {**signed, "data": {**hashes_then, **hashes_now}})


def change_measurement(results: ChangeResults, signed: Measurement) -> Measurement:
    """Return the results as a measurement; only the first words keep the uses for a figure."""
    return make_measurement(
        "change",
        signed,
        layer=results.layer,
        by=results.by,
        texts={
            name: {**size._asdict(), "unit": results.units[name]}
            for name, size in results.texts.items()
        },
        words=[_word_result(word, rank) for rank, word in enumerate(results.words)],
        skipped=results.skipped,
        reference={name: asdict(each) for name, each in results.reference.items()},
        spearman=results.correlations(),
    )


def _word_result(word: WordChange, rank: int) -> Measurement:
    return {
        "word": word.target.name,
        "forms": word.target.forms,
        "gold": word.target.gold,
        "uses": {"then": word.then.count, "now": word.now.count},
        "sampled": {"then": len(word.then.uses), "now": len(word.now.uses)},
        "repeated": {"then": word.then.repeated, "now": word.now.repeated},
        "units": {"then": word.units[0], "now": word.units[1]},
        "layers": {name: asdict(each) for name, each in word.layers.items()},
        "untrained": {name: asdict(each) for name, each in word.untrained.items()},
        "halves": {
            name: None if each is None else asdict(each) for name, each in word.halves.items()
        },
        "examples": {
            "then": [_example(use) for use in word.uses_then[:EXAMPLES]],
            "now": [_example(use) for use in word.uses_now[:EXAMPLES]],
        },
        "picture": None
        if rank >= PLOTTED_WORDS
        else {"then": _plotted(word.uses_then), "now": _plotted(word.uses_now)},
    }


def _example(use: ContrastedUse) -> Measurement:
    return {
        "words": use.words,
        "place": use.position,
        "distance": use.distance,
        "contrast": use.contrast,
    }


def _plotted(uses: Sequence[ContrastedUse]) -> list[Measurement]:
    """Return evenly spaced uses, from the most to the least different one."""
    count = min(len(uses), PLOTTED_USES)
    some = [uses[k * len(uses) // count] for k in range(count)]
    return [
        {"text": excerpt_line(use.words, use.position, side=70), "at": use.point} for use in some
    ]
