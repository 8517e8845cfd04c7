"""Pictures as SVG, drawn from numbers that others have computed: nothing is computed here.

`lines.py`: what changes with something. `bars.py`: amounts side by side. `shares.py`: how a whole
is divided. `points.py`: places in a plane. Each gives the text of an SVG document that follows the
reader's choice of light or dark, prints on white, and can stand in a page of HTML as it is.
"""

from elmokit.figures.bars import Bar, Group, Mark, bars
from elmokit.figures.lines import Line, Panel, lines
from elmokit.figures.points import Cloud, Point, points
from elmokit.figures.shares import Division, shares

__all__ = [
    "Bar",
    "Cloud",
    "Division",
    "Group",
    "Line",
    "Mark",
    "Panel",
    "Point",
    "bars",
    "lines",
    "points",
    "shares",
]
