"""The score of roles as CoNLL-2005 has it (srl-eval.pl): an argument counts if all of it is right.

The facts of that script, kept here:

- C-X continues the last X before it: they are one argument of several pieces, right only if all
  pieces are. A C-X without an X before it is an X.
- The predicate itself is not counted: neither V nor its C-V.
- R-X is an argument of its own, of type R-X.
- Precision, recall and F1 are over all arguments of a set; what has nothing to divide by is 0.
- A predicate that was not answered has missed all its arguments; one that nobody asked for does
  not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.tasks.chunks import spans
from elmokit.tasks.srl.data import VERB, Example, Prediction

SCORE = "f1"

Argument = tuple[str, tuple[tuple[int, int], ...]]
"""A role, and its pieces from and to (exclusive) a word."""


def arguments(tags: Sequence[str]) -> set[Argument]:
    """The arguments that BIO tags mean, without the predicate."""
    pieces: list[tuple[str, list[tuple[int, int]]]] = []
    last: dict[str, list[tuple[int, int]]] = {}
    for span in spans(tags):
        role = span.type.removeprefix("C-")
        piece = (span.start, span.end)
        if role != span.type and role in last:
            last[role].append(piece)
        else:
            last[role] = [piece]
            pieces.append((role, last[role]))
    return {(role, tuple(places)) for role, places in pieces if role != VERB}


def score(examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """`f1`, `precision`, `recall` in percent; how many predicates, and the share without a fault.

    Examples without gold tags do not count.
    """
    right = found = gold = predicates = perfect = 0
    for example, prediction in zip(examples, predictions, strict=True):
        if example.tags is None:
            continue
        answer = {frame.predicate: frame.tags for frame in prediction}
        theirs = arguments(example.tags)
        ours = arguments(answer.get(example.predicate, ()) if example.predicate is not None else ())
        right += len(theirs & ours)
        found += len(ours)
        gold += len(theirs)
        predicates += 1
        perfect += theirs == ours
    return {
        "f1": 200 * right / (found + gold) if found + gold else 0.0,
        "precision": 100 * right / found if found else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
        "perfect": 100 * perfect / predicates if predicates else 0.0,
        "predicates": float(predicates),
        "arguments": float(gold),
    }
