"""`elmo change`: how the uses of words have changed between two texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from elmokit.cli.results import model_options, result_options
from elmokit.cli.text_options import layer_option, text_form, text_options

if TYPE_CHECKING:
    from elmokit.elmo import LayerChoice
    from elmokit.probe.change.targets import TargetWord
    from elmokit.probe.change.units import PermutationUnit


@click.command("change", short_help="Measure how the uses of words have changed between two texts.")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option(
    "--then",
    multiple=True,
    required=True,
    metavar="FILE",
    help="File of the first text; may be repeated.",
)
@click.option(
    "--now",
    multiple=True,
    required=True,
    metavar="FILE",
    help="File of the second text; may be repeated.",
)
@click.option(
    "--forms",
    multiple=True,
    metavar="A,B,C",
    help="Forms that count as one word, such as play,plays,played; may be repeated.",
)
@click.option(
    "--targets",
    metavar="FILE",
    help="File with one word per line, each optionally followed by a tab and a gold score.",
)
@click.option(
    "--all",
    "most_frequent",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compare the N most frequent words of both texts, without the 150 most frequent "
    "(function words).",
)
@model_options
@layer_option
@click.option(
    "--by",
    type=click.Choice(["prt", "apd", "excess"]),
    default="prt",
    show_default=True,
    help="Measure to rank the words by; excess is APD minus the distance within the texts.",
)
@click.option(
    "--uses",
    type=click.IntRange(min=2),
    default=200,
    show_default=True,
    help="Maximum number of uses of a word to compare per text.",
)
@click.option(
    "--least",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Minimum number of uses per text; words with fewer are left out.",
)
@click.option(
    "--permutations",
    type=click.IntRange(min=1),
    default=5000,
    show_default=True,
    help="Number of permutations per word in the permutation test (p).",
)
@click.option(
    "--unit",
    type=click.Choice(["auto", "document", "block"]),
    default="auto",
    show_default=True,
    help="What the permutation test assigns to the texts at random: every document, or blocks of "
    "each text; auto: documents if a text has 8 to 50, 50 blocks of whole documents if it has "
    "more, 12 blocks of sentences if it has fewer.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    show_default="all",
    help="Number of words to read of each text.",
)
@text_options
@result_options
def command(
    words: tuple[str, ...],
    then: tuple[str, ...],
    now: tuple[str, ...],
    forms: tuple[str, ...],
    targets: str | None,
    most_frequent: int | None,
    model: str,
    threads: int | None,
    layer: LayerChoice,
    by: str,
    uses: int,
    least: int,
    permutations: int,
    unit: PermutationUnit,
    seed: int,
    limit: int | None,
    lines: bool,
    tokenized: bool,
    column: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Measure how the uses of each WORD have changed between two texts.

    PRT is the cosine distance between the mean vectors of the uses in the two texts. APD is the
    mean cosine distance between a use in one text and a use in the other. For comparison there are
    the distance between two uses within a text, the distance between halves of the same text, all
    layers, and the same network before training. Examples show the uses of each text that differ
    most from the other text.

    p is from a permutation test: how often the texts would be as far apart if their documents were
    assigned to them at random. q corrects it for the number of words (Benjamini-Hochberg). A blank
    line ends a document, and so do a file and a row of a Parquet file.

    A WORD is found in upper and lower case; `play=plays,played` counts other forms as the same
    word. FILE is read as by `elmo corpus`. For the data of SemEval-2020 Task 1 give --targets, and
    --lines or --tokenized: with gold scores, Spearman's correlation is printed.

    \b
    elmo change mouse cell water --then 1990.txt --now 2020.txt
    elmo change --all 100 --then 1990.txt.xz --now 2020.txt.xz --out changed
    elmo change --targets truth/graded.txt --tokenized --then c1.txt.gz --now c2.txt.gz

    In Python: `elmokit.probe.semantic_change`.
    """
    form = text_form(lines, tokenized)

    from elmokit.cli.results import load_model, save_and_print
    from elmokit.probe.change.measure import semantic_change
    from elmokit.progress import ProgressDisplay

    target_words = _choose_targets(words, forms, targets, most_frequent)
    elmo = load_model(model, threads)
    with ProgressDisplay() as display:
        measured = semantic_change(
            elmo,
            then,
            now,
            target_words,
            most_frequent=most_frequent,
            layer=layer,
            by=by,
            max_uses=uses,
            min_uses=least,
            permutations=permutations,
            unit=unit,
            seed=seed,
            max_words=limit,
            form=form,
            column=column,
            callback=display.update,
        )
    save_and_print(measured, out, as_json)


def _choose_targets(
    words: tuple[str, ...], forms: tuple[str, ...], file: str | None, most_frequent: int | None
) -> list[TargetWord]:
    """Return the words that the arguments, `--forms` or `--targets` name; none for `--all`."""
    from elmokit.probe.change.targets import make_target, parse_target, read_targets

    targets = [*map(parse_target, words), *(make_target(each.split(",")) for each in forms)]
    if file:
        if targets:
            raise click.UsageError("give words or --targets, not both")
        targets = read_targets(file)
    if most_frequent and targets:
        raise click.UsageError("give words or --all, not both")
    if not most_frequent and not targets:
        raise click.UsageError("give words, --targets FILE or --all N")
    return targets
