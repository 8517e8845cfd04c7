"""Probabilities as bars."""

from elmokit.tasks.probability_bars import WIDTH, render_probabilities


def test_bars_line_up_and_the_likeliest_is_bold() -> None:
    text = render_probabilities(["no", "maybe"], [0.0, 1.0], ["red", "green"])
    assert text.plain.splitlines() == [
        f"  no     {'·' * WIDTH}   0.0 %",
        f"  maybe  {'█' * WIDTH} 100.0 %",
    ]
    bold = {text.plain[span.start : span.end] for span in text.spans if "bold" in str(span.style)}
    assert bold == {"  maybe  ", " 100.0 %"}
