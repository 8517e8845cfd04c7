"""`elmo analyze place`: where in a task's model ELMo helps."""

from __future__ import annotations

from typing import Any

import click

from elmokit.cli.analyze.options import analysis, run


@click.command("place", short_help="ELMo at the input, the output or both: which is best.")
@analysis("place")
def command(**options: Any) -> None:
    """Train TASK without ELMo, and with it at the input, at the output and at both.

    At the input ELMo stands beside the word vectors, at the output beside the top of the task's own
    network. The table has the score over the same seeds, the gain over the baseline, and the
    paper's scores where it has some; below it, what the layers weigh at each place.

    Runs are kept in DIR, where the same command goes on with what was interrupted, and where `elmo
    task compare` and the other analyses of the task find them too.

    \b
    elmo analyze place nli --train train.jsonl --dev dev.jsonl --test test.jsonl --runs runs
    elmo analyze place srl --train train.jsonl --dev dev.jsonl --runs runs --seeds 1
    """
    from elmokit.probe.tasks.choices import compare_places

    run("place", compare_places, **options)
