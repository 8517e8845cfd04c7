"""`elmo task`: train, score, use and compare models of the six tasks; one file per command."""

from __future__ import annotations

import click

from elmokit.cli.lazy import LazyGroup

COMMANDS = {"train": "train", "eval": "evaluate", "predict": "predict", "compare": "compare"}
"""The module of each command; it has the function `command`."""


@click.group(
    "task",
    cls=LazyGroup,
    modules={name: f"elmokit.cli.task.{module}" for name, module in COMMANDS.items()},
    short_help="Train, score and use models of the six tasks.",
)
def command() -> None:
    """Train, score and use models of the six tasks of the paper, with ELMo and without.

    \b
    ner         named entities            CoNLL columns (IOB1, IOB2 or BIOES)
    srl         semantic roles            JSON lines, CoNLL-2012
    coref       coreference               CoNLL-2012, a file or a directory
    sentiment   sentiment of a sentence   Stanford Sentiment Treebank
    nli         entailment                SNLI or MultiNLI JSON lines
    qa          question answering        SQuAD 1.1 JSON

    \b
    elmo task train ner --train train.conll --dev dev.conll --out my-ner
    elmo task eval my-ner test.conll
    elmo task predict my-ner "Ada Lovelace lived in London."
    elmo task compare ner --train train.conll --dev dev.conll --test test.conll --out runs

    In Python: `elmokit.tasks`.
    """
