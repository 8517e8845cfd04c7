"""The picture of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.figures.canvas import WIDTH
from elmokit.train.curve import MAX_POINTS, draw_curve

NAME = "{http://www.w3.org/2000/svg}"


def drawn(lines: list[dict[str, Any]], path: Path, **more: str) -> ElementTree.Element:
    draw_curve(iter(lines), path, **more)
    return ElementTree.parse(path).getroot()


def texts(svg: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{NAME}text")]


def places(svg: ElementTree.Element, style: str) -> list[tuple[float, float]]:
    """The points of a line."""
    (line,) = (
        p for p in svg.iter(f"{NAME}path") if p.get("class", "").split()[:2] == ["line", style]
    )
    numbers = [float(n) for n in re.findall(r"[-\d.]+", line.get("d", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


RUN = [
    {"step": 25, "tokens": 1_000_000, "loss": 6.0},
    {"step": 25, "tokens": 1_000_000, "forward": 400.0, "backward": 300.0},
    {"step": 50, "tokens": 2_000_000, "loss": 5.0},
    {"step": 75, "tokens": 4_000_000, "loss": 4.5},
    {"step": 75, "tokens": 4_000_000, "forward": 100.0, "backward": 100.0},
]


def test_a_run(tmp_path: Path) -> None:
    svg = drawn(RUN, tmp_path / "curve.svg", title="a <b> & c")
    found = texts(svg)
    assert found[0] == "a <b> & c"
    for text in ("1 M", "2 M", "4 M", "words read", "100", "200", "400", "forward 100", "loss 4.5"):
        assert text in found
    forward, backward, loss = (places(svg, style) for style in ("line0", "line1", "line2"))
    assert forward[1] == backward[1]
    assert forward[0][1] < backward[0][1] < forward[1][1], "higher is further up"
    assert loss[0][0] == forward[0][0], "one axis for both panels"
    assert loss[1][0] - loss[0][0] == pytest.approx((loss[2][0] - loss[1][0]) / 2, abs=0.2)
    assert len(list(svg.iter(f"{NAME}circle"))) == 4
    ends = [
        float(t.get("y", ""))
        for t in svg.iter(f"{NAME}text")
        if t.get("class") in ("fill0", "fill1")
    ]
    assert abs(ends[0] - ends[1]) >= 14.9, "names do not lie on each other"
    assert not list(tmp_path.glob(".*"))


def test_perplexity_has_a_logarithmic_axis(tmp_path: Path) -> None:
    lines = [{"tokens": i, "forward": f} for i, f in enumerate((1000.0, 100.0, 10.0), 1)]
    (_, a), (_, b), (_, c) = places(drawn(lines, tmp_path / "x.svg"), "line0")
    assert b - a == pytest.approx(c - b, abs=0.2)


def test_light_and_dark(tmp_path: Path) -> None:
    drawn(RUN, tmp_path / "curve.svg")
    style = re.search(r"<style>(.*)</style>", (tmp_path / "curve.svg").read_text())
    assert style is not None
    light, dark = style[1].split("@media screen and (prefers-color-scheme:dark)")
    assert ".sheet{fill:#fff}" in light
    assert re.search(r"\.sheet\{fill:#1", dark)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "nothing noted yet"),
        ([{"step": 1}], "nothing noted yet"),
        ([{"tokens": 5, "loss": float("nan")}], "nothing noted yet"),
        ([{"tokens": 1000, "forward": 80.0, "backward": 80.0}], "forward 80"),
        ([{"tokens": 1000, "loss": 3.0}], "loss 3"),
        ([{"tokens": 1000, "loss": 3.0}], "none was measured"),
        ([{"tokens": 1, "loss": 0.0}], "loss 0"),
    ],
)
def test_little_to_draw(lines: list[dict[str, Any]], expected: str, tmp_path: Path) -> None:
    assert expected in texts(drawn(lines, tmp_path / "curve.svg"))


def test_many_points_are_averaged(tmp_path: Path) -> None:
    lines = [{"tokens": i, "loss": float(i % 2)} for i in range(1, 5001)]
    found = places(drawn(lines, tmp_path / "curve.svg"), "line2")
    assert 100 < len(found) <= MAX_POINTS
    assert len({y for _, y in found[:-1]}) <= 2, "nearly the mean everywhere"


@given(
    st.lists(st.floats(1.0, 1e9), min_size=1, max_size=30), st.lists(st.floats(0, 50), max_size=30)
)
def test_all_points_are_on_the_paper(perplexities: list[float], losses: list[float]) -> None:
    import tempfile

    lines: list[dict[str, Any]] = [
        {"tokens": 100 * i, "forward": p} for i, p in enumerate(perplexities, 1)
    ]
    lines += [{"tokens": 70 * i, "loss": loss} for i, loss in enumerate(losses, 1)]
    with tempfile.TemporaryDirectory() as directory:
        svg = drawn(lines, Path(directory) / "curve.svg")
    for x, y in places(svg, "line0"):
        assert 0 < x < WIDTH
        assert 0 < y < 340
    numbers = [t for t in svg.iter(f"{NAME}text") if t.get("class") == "end"]
    assert 2 <= len(numbers) <= 30
