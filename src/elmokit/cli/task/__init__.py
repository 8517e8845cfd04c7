"""`elmo task`: train, score, use and compare models of the six tasks; one file a command."""

from __future__ import annotations

import click

from elmokit.cli.lazy import Lazy

COMMANDS = {"train": "train", "eval": "evaluate", "predict": "predict", "compare": "compare"}
"""Each is the function `command` of the module beside this file."""


@click.group(
    "task",
    cls=Lazy,
    modules={name: f"elmokit.cli.task.{module}" for name, module in COMMANDS.items()},
    short_help="Train, score and use models of the six tasks.",
)
def command() -> None:
    """The six tasks of the paper, with and without ELMo, on your own files.

    \b
    ner         named entities            CoNLL columns (IOB1, IOB2 or BIOES)
    srl         semantic roles            jsonl, CoNLL-2012
    coref       coreference               CoNLL-2012, a file or a directory
    sentiment   sentiment of a sentence   Stanford Sentiment Treebank
    nli         entailment                SNLI or MultiNLI jsonl
    qa          question answering        SQuAD 1.1 JSON

    \b
    elmo task train ner --train train.conll --dev dev.conll --out my-ner
    elmo task eval my-ner test.conll
    elmo task predict my-ner "Ada Lovelace lived in London."
    elmo task compare ner --train train.conll --dev dev.conll --test test.conll --out runs
    """
