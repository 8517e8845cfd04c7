"""`elmo analyze place`: where in a task's model ELMo helps."""

from __future__ import annotations

import click

from elmokit.cli.analyze.options import AnalysisOptions, analysis_options, run_analysis


@click.command("place", short_help="Compare ELMo at the input, the output and both.")
@analysis_options("placement")
def command(options: AnalysisOptions) -> None:
    """Train TASK without ELMo, and with it at the input, at the output and at both.

    At the input ELMo is beside the word vectors, at the output beside the output of the task
    model's encoder. The table has the scores over the same seeds, the gain over the baseline, and
    the paper's scores where it has some; below it are the layer weights of each placement.

    Runs are stored in DIR, where the same command continues an interrupted analysis, and where
    `elmo task compare` and the other analyses of the task find them too.

    \b
    elmo analyze place nli --train train.jsonl --dev dev.jsonl --test test.jsonl --runs runs
    elmo analyze place srl --train train.jsonl --dev dev.jsonl --runs runs --seeds 1

    In Python: `elmokit.probe.compare_placements`.
    """
    from elmokit.probe.tasks.variants import compare_placements

    run_analysis("place", compare_placements, options)
