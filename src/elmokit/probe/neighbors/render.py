"""The neighbors of a word, for readers: tables and a picture, made of the measurement alone."""

from __future__ import annotations

from elmokit.figures import Cloud, Point, points
from elmokit.probe.excerpt import excerpt, line
from elmokit.probe.results import Json, Picture, layer_name
from elmokit.probe.tables import Table


def tables(found: Json) -> list[Table]:
    """The nearest words without context, then the nearest uses for each sentence."""
    word, corpus = found["word"], found["corpus"]
    rows = []
    if found["static"] is not None:
        listed = ", ".join(each for each, _ in found["static"]["words"])
        rows.append((found["static"]["name"], listed or f"has no vector for “{word}”"))
    rows.append(("characters", ", ".join(each for each, _ in found["characters"])))
    made = [Table(f"Nearest words to “{word}” in any sentence", ("by", "words"), rows, left=(0, 1))]
    for question in found["questions"]:
        cells = []
        for each in question["neighbors"]:
            parts = excerpt(each["words"], each["place"])
            cells.append((f"{each['similarity']:.3f}", *parts))
        made.append(
            Table(
                f"Nearest uses to: {line(question['words'], question['place'], side=60)}",
                ("cosine", "", "word", ""),
                cells,
                left=(2, 3),
                bold=[(r, 2) for r in range(len(cells))],
                note="" if cells else _nothing(found),
            )
        )
    recall = found["recall_at_10"]
    how = (
        "every use was looked at"
        if recall is None
        else f"the graph finds {recall:.1%} of the ten nearest"
    )
    which = "the mix of all layers" if found["layer"] == "mix" else layer_name(found["layer"])
    note = (
        f"By {which}, among {corpus['words']:,} uses of {corpus['forms']:,} words in "
        f"{corpus['sentences']:,} sentences; {found['uses_of_the_word']:,} of them are of "
        f"“{word}”. One use a sentence; {how}."
    )
    last = made[-1]
    made[-1] = Table(
        last.title,
        last.columns,
        last.rows,
        " ".join(filter(None, (last.note, note))),
        last.left,
        last.bold,
    )
    return made


def _nothing(found: Json) -> str:
    return f"The corpus has no other use of “{found['word']}”."


def pictures(found: Json) -> list[Picture]:
    """The uses on a plane: those asked for, their neighbors, and other uses of the word."""
    word = found["word"]
    several = len(found["questions"]) > 1
    clouds = []
    labeled = {word.casefold()}
    for number, question in enumerate(found["questions"]):
        text = line(question["words"], question["place"], side=60)
        label = f"{number + 1}: {word}" if several else word
        asked = _point(question, text, label, large=True)
        near = []
        for each in question["neighbors"]:
            other: str = each["words"][each["place"]]
            # A name for each word but the one asked for, and only once.
            new = other.casefold() not in labeled
            labeled.add(other.casefold())
            near.append(_point(each, _told(each), other if new else ""))
        clouds.append(
            Cloud(_near(found, number), [*near, asked], color=(0, 1, 3, 4, 5)[number % 5])
        )
    if found["other_uses"]:
        others = [_point(each, each["text"]) for each in found["other_uses"]]
        clouds.insert(0, Cloud(f"other uses of “{word}”", others, color=2))
    note = "Vectors on the plane in which they differ most (PCA). Large: the uses asked for."
    return [Picture("", points(f"“{word}” in context", clouds, note=note))]


def _near(found: Json, number: int) -> str:
    """What a cloud is called: as much of the sentence as there is room for."""
    questions = found["questions"]
    use = questions[number]
    if len(questions) > 3:
        return f"near {number + 1}"
    short = line(use["words"], use["place"], side=14 if len(questions) < 3 else 5)
    return f"near {number + 1}: {short}" if len(questions) > 1 else f"near {short}"


def _point(use: Json, name: str, label: str = "", large: bool = False) -> Point:
    x, y = use["at"]
    return Point(x, y, name, label, large)


def _told(each: Json) -> str:
    return f"{each['similarity']:.3f}: {line(each['words'], each['place'], side=60)}"
