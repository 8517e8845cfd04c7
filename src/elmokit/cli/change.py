"""`elmo change`: how the uses of words have changed between two texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import files_of, form_of, layer_option, text_options

if TYPE_CHECKING:
    from elmokit.elmo import Layers
    from elmokit.probe.change.targets import Target
    from elmokit.train.chunks import Form


@click.command("change", short_help="Measure how the uses of words have changed between two texts.")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--then", "then", multiple=True, required=True, metavar="FILE", help="The one text.")
@click.option("--now", "now", multiple=True, required=True, metavar="FILE", help="The other.")
@click.option(
    "--forms",
    multiple=True,
    metavar="A,B,C",
    help="Forms that count as one word, e.g. play,plays,played; may be repeated.",
)
@click.option(
    "--targets", metavar="FILE", help="A word a line; with TAB and a gold score, if there is one."
)
@click.option(
    "--all",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    help="The N most frequent words that both have, without the 150 that are rather grammar.",
)
@model_options
@layer_option
@click.option(
    "--by",
    type=click.Choice(["prt", "apd", "excess"]),
    default="prt",
    show_default=True,
    help="What the words are ranked by; excess is APD less the distance within the texts.",
)
@click.option(
    "--uses",
    type=click.IntRange(min=2),
    default=200,
    show_default=True,
    help="At most so many of a word in each text.",
)
@click.option(
    "--least",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Leave out words with fewer uses.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="How often the uses are dealt out at random, for p.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is random.")
@click.option("--limit", type=click.IntRange(min=1), help="Read so many words of each text.  [all]")
@text_options
@result_options
def command(
    words: tuple[str, ...],
    then: tuple[str, ...],
    now: tuple[str, ...],
    forms: tuple[str, ...],
    targets: str | None,
    number: int | None,
    model: str,
    threads: int | None,
    layer: Layers,
    by: str,
    uses: int,
    least: int,
    permutations: int,
    seed: int,
    limit: int | None,
    lines: bool,
    tokenized: bool,
    column: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure how the uses of each WORD have changed between two texts.

    APD is the mean cosine distance of a use then and a use now, PRT that of the mean vectors.
    Beside them: the distance of two uses within a text, what chance gives if the uses are dealt out
    at random (p), all layers, and the same network before it was trained. Examples show the uses of
    each text that the other has least of.

    A WORD is found whatever its case; `play=plays,played` counts other forms as the same word. FILE
    is read as `elmo corpus` reads text; --then and --now may be repeated. For the data of SemEval's
    task give --targets and --lines or --tokenized: with gold scores, Spearman's ρ is printed.

    \b
    elmo change mouse cell water --then 1990.txt --now 2020.txt
    elmo change --all 100 --then 1990.txt.xz --now 2020.txt.xz --out changed
    elmo change --targets truth/graded.txt --tokenized --then c1.txt.gz --now c2.txt.gz
    """
    form = form_of(lines, tokenized)

    from elmokit.cli.results import finish, load, spinner
    from elmokit.probe.change.measure import changes, changes_measured
    from elmokit.probe.neighbors.indexing import layer_number
    from elmokit.probe.results import signature

    data = {**files_of(then, "then"), **files_of(now, "now")}
    elmo = load(model, threads)
    texts = tuple(_Words(files, form, column, limit) for files in (then, now))
    with spinner("reading the texts") as say:
        wanted = _targets(words, forms, targets, number, texts, least)
        determined = signature(
            elmo,
            data,
            targets=[[target.name, *target.forms, target.gold] for target in wanted],
            layer=layer_number(elmo, layer),
            by=by,
            uses=uses,
            least=least,
            permutations=permutations,
            seed=seed,
            limit=limit,
            form=form,
            column=column,
        )
        found = changes(
            elmo,
            texts[0],
            texts[1],
            wanted,
            layer=layer,
            by=by,
            uses=uses,
            least=least,
            permutations=permutations,
            seed=seed,
            tell=lambda what, done, of: say(f"{what} ({done} of {of} words)" if done else what),
        )
    finish(changes_measured(found, determined), out, as_json)


def _targets(
    words: tuple[str, ...],
    forms: tuple[str, ...],
    file: str | None,
    number: int | None,
    texts: Sequence[_Words],
    least: int,
) -> list[Target]:
    """What to look for, from all the places where it may be said."""
    from elmokit.probe.change.targets import (
        frequent_targets,
        make_target,
        parse_target,
        read_targets,
    )

    found = [*map(parse_target, words), *(make_target(each.split(",")) for each in forms)]
    if file:
        if found:
            raise click.UsageError("give words or --targets, not both")
        found = read_targets(file)
    if number:
        if found:
            raise click.UsageError("give words or --all, not both")
        found = frequent_targets(texts[0], texts[1], number, least)
        if not found:
            raise click.UsageError(f"the texts share no word with {least} uses in both")
    if not found:
        raise click.UsageError("give words, --targets FILE or --all N")
    return found


class _Words:
    """The sentences of a text, up to so many words; can be read again."""

    def __init__(
        self, files: Sequence[str], form: Form, column: str | None, limit: int | None
    ) -> None:
        self._files, self._form, self._column, self._limit = files, form, column, limit

    def __iter__(self) -> Iterator[list[str]]:
        from elmokit.train.reading import Text

        count = 0
        for words in Text(self._files, self._form, self._column):
            yield words
            count += len(words)
            if self._limit is not None and count >= self._limit:
                return
