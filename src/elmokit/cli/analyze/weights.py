"""`elmo analyze weights`: what trained task models have learned about the layers."""

from __future__ import annotations

import click

from elmokit.cli.results import result_options


@click.command("weights", short_help="What trained task models make of the layers.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--epochs", "by_epoch", is_flag=True, help="Show how they moved, too.")
@result_options
def command(directories: tuple[str, ...], by_epoch: bool, out: str | None, as_json: bool) -> None:
    """Show how the task models in each DIR weigh the layers of ELMo.

    DIR is a model of `elmo task train`, or any directory with such models in it: --out of `elmo
    task compare`, --runs of the analyses. Models that differ in their seeds alone are one row: the
    mean of softmax(s) and γ at each place. Nothing is trained.

    \b
    elmo analyze weights my-ner my-nli
    elmo analyze weights runs/ner runs/srl --epochs
    """
    from elmokit.cli.results import finish
    from elmokit.probe.tasks.weights import learned_weights

    finish(learned_weights(directories).measured(by_epoch=by_epoch), out, as_json, "weights")
