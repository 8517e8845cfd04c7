"""`elmo analyze weights`: the layer weights of trained task models."""

from __future__ import annotations

import click

from elmokit.cli.results import result_options


@click.command("weights", short_help="Show the layer weights of trained task models.")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True)
@click.option("--epochs", "by_epoch", is_flag=True, help="Show the weights by epoch, too.")
@result_options
def command(directories: tuple[str, ...], by_epoch: bool, out: str | None, as_json: bool) -> None:
    """Show how the task models in each DIR weigh the layers of ELMo.

    DIR is a model of `elmo task train`, or any directory with such models in it: --out of `elmo
    task compare`, --runs of the analyses. Models that differ only in their seeds are one row: the
    mean of softmax(s) and γ at each place where ELMo enters. Nothing is trained.

    \b
    elmo analyze weights my-ner my-nli
    elmo analyze weights runs/ner runs/srl --epochs

    In Python: `elmokit.probe.learned_weights`.
    """
    from elmokit.cli.results import save_and_print
    from elmokit.probe.tasks.weights import learned_weights

    measurement = learned_weights(directories).measured(by_epoch=by_epoch)
    save_and_print(measurement, out, as_json, "weights")
