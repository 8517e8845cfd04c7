"""Figures as SVG text, drawn from numbers that other packages have computed.

`draw_bar_chart` (`bar_chart.py`) draws grouped horizontal bars, `draw_line_chart`
(`line_chart.py`) line panels that share an x-axis, `draw_stacked_bars` (`stacked_bars.py`) how
wholes are divided into parts, `draw_scatter_plot` (`scatter_plot.py`) groups of points, and
`draw_scatter_panels` (`scatter_panels.py`) the same items in several planes.

Each function returns the text of an SVG document that follows the reader's choice of light or dark
mode, prints on white, and can be pasted into an HTML page as it is. Nothing is computed here.
"""

from elmokit.figures.bar_chart import Bar, BarGroup, ReferenceLine, draw_bar_chart
from elmokit.figures.line_chart import Line, Panel, draw_line_chart
from elmokit.figures.scatter_panels import PanelItem, ScatterPanel, draw_scatter_panels
from elmokit.figures.scatter_plot import Point, PointGroup, draw_scatter_plot
from elmokit.figures.stacked_bars import StackedBar, draw_stacked_bars

__all__ = [
    "Bar",
    "BarGroup",
    "Line",
    "Panel",
    "PanelItem",
    "Point",
    "PointGroup",
    "ReferenceLine",
    "ScatterPanel",
    "StackedBar",
    "draw_bar_chart",
    "draw_line_chart",
    "draw_scatter_panels",
    "draw_scatter_plot",
    "draw_stacked_bars",
]
