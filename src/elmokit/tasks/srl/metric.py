"""Scores of roles as CoNLL-2005 computes them (srl-eval.pl): all of an argument must be right.

The rules of that script, which are followed here:

- C-X continues the last X before it: they are one argument of several pieces, right only if all
  pieces are. A C-X without an X before it is an X.
- The predicate itself is not counted: neither V nor its C-V.
- R-X is an argument of its own, of type R-X.
- Precision, recall and F1 are over all arguments of a set; a score that would divide by zero is 0.
- A predicate without a prediction has missed all its arguments; a prediction for a predicate that
  is not in the data does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from elmokit.tasks.srl.data import VERB, Example, Prediction
from elmokit.tasks.tag_schemes import tags_to_spans

MAIN_SCORE = "f1"

Argument = tuple[str, tuple[tuple[int, int], ...]]
"""A role and its pieces, each as first word and last word (exclusive)."""


def arguments(tags: Sequence[str]) -> set[Argument]:
    """Return the arguments that BIO tags mean, without the predicate."""
    pieces: list[tuple[str, list[tuple[int, int]]]] = []
    last: dict[str, list[tuple[int, int]]] = {}
    for span in tags_to_spans(tags):
        role = span.type.removeprefix("C-")
        piece = (span.start, span.end)
        if role != span.type and role in last:
            last[role].append(piece)
        else:
            last[role] = [piece]
            pieces.append((role, last[role]))
    return {(role, tuple(spans)) for role, spans in pieces if role != VERB}


def score(examples: Sequence[Example], predictions: Sequence[Prediction]) -> dict[str, float]:
    """Return `f1`, `precision`, `recall`, and `perfect`, the share of faultless predicates.

    All are in percent; `predicates` and `arguments` are counts. Examples without gold tags do not
    count.
    """
    right = predicted = gold = predicates = perfect = 0
    for example, prediction in zip(examples, predictions, strict=True):
        if example.tags is None:
            continue
        tags = next((f.tags for f in reversed(prediction) if f.predicate == example.predicate), ())
        expected, found = arguments(example.tags), arguments(tags)
        right += len(expected & found)
        predicted += len(found)
        gold += len(expected)
        predicates += 1
        perfect += expected == found
    return {
        "f1": 200 * right / (predicted + gold) if predicted + gold else 0.0,
        "precision": 100 * right / predicted if predicted else 0.0,
        "recall": 100 * right / gold if gold else 0.0,
        "perfect": 100 * perfect / predicates if predicates else 0.0,
        "predicates": float(predicates),
        "arguments": float(gold),
    }
