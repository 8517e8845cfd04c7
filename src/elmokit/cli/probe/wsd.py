"""`elmo probe wsd`: which senses of words each layer keeps apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from elmokit.cli.results import model_options, result_options

if TYPE_CHECKING:
    from elmokit.probe.senses.uses import SenseText


@click.command("wsd", short_help="Which senses of words each layer keeps apart.")
@click.option("--semcor", required=True, metavar="PATH", help="SemCor's tag files, or its XML.")
@click.option("--wordnet", metavar="DIR", help="WordNet's dict files; where it is installed.")
@click.option(
    "--test",
    "tests",
    required=True,
    multiple=True,
    metavar="PATH",
    help="A set X.data.xml, or a directory of some; may be repeated.",
)
@click.option(
    "--gold",
    multiple=True,
    metavar="FILE",
    help="The right senses of each --test; X.gold.key.txt beside it by default.",
)
@model_options
@result_options
def command(
    semcor: str,
    wordnet: str | None,
    tests: tuple[str, ...],
    gold: tuple[str, ...],
    model: str,
    threads: int | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Tell the senses of words by the nearest sense vector, with every layer of a frozen model.

    The vector of a sense is the mean over its uses in SemCor; a lemma that SemCor has not got takes
    WordNet's first sense. Every instance is answered, so that F1 is the share of right answers.
    Beside the layers: the same network untrained, WordNet's first sense alone, and the sense that
    is most frequent in SemCor. The top layer is compared with the others instance by instance.

    SemCor is a directory of tag files (SemCor 3.0), or a set in the form of the evaluation
    framework. Sets are XML with keys of WordNet 3.0 beside it; of several, ALL is all of them.
    WordNet is looked for in $WNSEARCHDIR, $WNHOME/dict and /usr/share/wordnet.

    \b
    elmo probe wsd --semcor semcor3.0 --test Evaluation_Datasets
    elmo probe wsd --semcor semcor3.0 --test senseval2.data.xml --test senseval3.data.xml
    elmo probe wsd --semcor semcor3.0 --wordnet WordNet-3.0/dict --test ALL.data.xml -m small
    """
    from elmokit.cli.bars import progress_bar
    from elmokit.cli.results import finish, load, spinner
    from elmokit.elmo import Elmo
    from elmokit.probe.results import signature
    from elmokit.probe.senses.measure import measure, sense_probe
    from elmokit.probe.senses.render import TRAINED, UNTRAINED
    from elmokit.probe.senses.sets import find_sets, gold_beside, read_set
    from elmokit.probe.senses.wordnet import find_wordnet, read_wordnet, wordnet_files
    from elmokit.probe.untrained import untrained

    paths = list(dict.fromkeys(path for test in tests for path in find_sets(test)))
    if gold and len(gold) != len(paths):
        raise click.UsageError(
            f"--gold is given {len(gold)} times for {len(paths)} sets; expected one for each, or "
            "none"
        )
    golds = [Path(path) for path in gold] or [gold_beside(path) for path in paths]
    place = Path(wordnet) if wordnet else find_wordnet()
    elmo = load(model, threads)
    with spinner("reading WordNet") as now:
        senses = read_wordnet(place)
        sets = [read_set(path, beside) for path, beside in zip(paths, golds, strict=True)]
        now("reading SemCor")
        corpus = _read_corpus(semcor)
    networks = {TRAINED: elmo, UNTRAINED: Elmo(untrained(elmo.bilm), threads=elmo.threads)}
    with progress_bar("reading sentences") as tell:
        probe = sense_probe(networks, corpus, sets, senses, tell=tell)
    data: dict[str, str | Path] = {"semcor": semcor}
    data |= {f"wordnet {path.name}": path for path in wordnet_files(place)}
    for test, path, beside in zip(sets, paths, golds, strict=True):
        data |= {f"test {test.name}": path, f"gold {test.name}": beside}
    found = measure(probe, corpus, signature(elmo, data))
    finish(found, out, as_json, "wsd")


def _read_corpus(path: str) -> SenseText:
    """SemCor as it was published, or as the evaluation framework has it."""
    from elmokit.probe.senses.semcor import read_semcor
    from elmokit.probe.senses.sets import DATA, read_set

    place = Path(path).expanduser()
    found = sorted(place.glob(f"*{DATA}")) if place.is_dir() else [place]
    if len(found) == 1 and found[0].name.endswith(DATA):
        return read_set(found[0])
    return read_semcor(place)
