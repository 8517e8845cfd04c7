"""`elmo probe wsd`: how well each layer disambiguates word senses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elmokit.cli.engine_options import state_option
from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import context_option

if TYPE_CHECKING:
    from elmokit.probe.context import ContextChoice


@click.command("wsd", short_help="Word sense disambiguation by the nearest sense vector.")
@click.option(
    "--semcor",
    required=True,
    metavar="PATH",
    help="SemCor: the directory of its tag files, or its XML file.",
)
@click.option(
    "--wordnet",
    metavar="DIR",
    help="Directory of WordNet's database files.  [default: the installed WordNet]",
)
@click.option(
    "--test",
    "tests",
    required=True,
    multiple=True,
    metavar="PATH",
    help="Test set X.data.xml, or a directory of test sets; repeat it for several.",
)
@click.option(
    "--gold",
    multiple=True,
    metavar="FILE",
    help="Gold keys of each test set, in the same order.  [default: X.gold.key.txt beside it]",
)
@context_option
@state_option
@model_options
@result_options
def command(
    semcor: str,
    wordnet: str | None,
    tests: tuple[str, ...],
    gold: tuple[str, ...],
    context: ContextChoice,
    state: str,
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Disambiguate word senses by the nearest sense vector, with every layer of a frozen model.

    The vector of a sense is the mean over its uses in SemCor; a lemma that is not in SemCor gets
    WordNet's first sense. Every instance is answered, so that F1 is the accuracy. The layers are
    compared with the same network before training, with WordNet's first sense, and with the most
    frequent sense in SemCor. The top layer is compared with the others instance by instance.

    SemCor is a directory of tag files (SemCor 3.0), or a corpus in the format of the test sets.
    Test sets are the XML files of the unified evaluation framework with keys of WordNet 3.0; a set
    named ALL stands for all of them. WordNet is looked for in $WNSEARCHDIR, $WNHOME/dict and
    /usr/share/wordnet.

    \b
    elmo probe wsd --semcor semcor3.0 --test Evaluation_Datasets
    elmo probe wsd --semcor semcor3.0 --test senseval2.data.xml --test senseval3.data.xml
    elmo probe wsd --semcor semcor3.0 --wordnet WordNet-3.0/dict --test ALL.data.xml -m small
    elmo probe wsd --semcor semcor3.0 --test Evaluation_Datasets --state carry

    In Python: `elmokit.probe.probe_senses`.
    """
    from elmokit.cli.results import load_model, save_and_print
    from elmokit.probe.senses.measure import probe_senses
    from elmokit.progress import ProgressDisplay

    with ProgressDisplay() as display:
        display.update("reading WordNet and SemCor", 0)
        measurement = probe_senses(
            semcor,
            tests,
            load_model(model, threads, state),
            wordnet=wordnet,
            gold=gold,
            context=context,
            progress=display.counter("embedding sentences"),
        )
    save_and_print(measurement, out, as_json)
