"""`elmo task`: train, score, use and compare models of the six tasks; one file a command."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {"train": "train", "eval": "evaluate", "predict": "predict", "compare": "compare"}
"""Each is the function `command` of the module beside this file."""


class _Commands(click.Group):
    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"elmokit.cli.task.{COMMANDS[name]}").command
        return command


@click.group("task", cls=_Commands, short_help="Train, score and use models of the six tasks.")
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
