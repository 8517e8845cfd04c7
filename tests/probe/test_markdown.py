"""Cards as HTML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.probe.markdown import to_html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A *b*", "<h3>A <em>b</em></h3>"),
        ("one\ntwo\n\nthree", "<p>one two</p>\n<p>three</p>"),
        ("a **b** `c < d` [e](https://f.g)", "<p>a <strong>b</strong> <code>c &lt; d</code> "
         '<a href="https://f.g">e</a></p>'),
        ("snake_case_name and 2*3*4", "<p>snake_case_name and 2*3*4</p>"),
        ("- a\n- b\n  goes on\n  - c", "<ul><li>a</li><li>b goes on<ul><li>c</li></ul></li></ul>"),
        ("1. a\n2. b", "<ol><li>a</li><li>b</li></ol>"),
        ("```python\nx = '<a>'\n\n# y\n```\nz", "<pre><code>x = &#x27;&lt;a&gt;&#x27;\n\n# y"
         "</code></pre>\n<p>z</p>"),
        ("```\nnever closed", "<pre><code>never closed</code></pre>"),
        ("> said\n> so", "<blockquote><p>said so</p></blockquote>"),
        ("---\ntags: [x]\n---\nText", "<p>Text</p>"),
        ("a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("a\r\nb", "<p>a b</p>"),
    ],
)  # fmt: skip
def test_what_cards_use(text: str, expected: str) -> None:
    assert to_html(text, top=3) == expected


def test_tables() -> None:
    made = to_html("| a | b |\n|---|--:|\n| x \\| y | **1** |\n\nafter")
    assert '<thead><tr><th>a</th><th class="number">b</th></tr></thead>' in made
    assert '<td>x | y</td><td class="number"><strong>1</strong></td>' in made
    assert made.endswith("<p>after</p>")
    assert "<thead>" not in to_html("| | |\n|---|---|\n| a | b |"), "an empty head is none"


def test_a_card_of_a_stranger() -> None:
    made = to_html("<script>x</script> [a](javascript:alert(1)) ![b](https://c.d/e.png) [f](g.md)")
    assert "<script" not in made and "javascript" not in made and "<img" not in made
    assert "&lt;script&gt;" in made and "href" not in made and "b" in made


@given(st.text(alphabet="#*_`[]()|>-1. \nab<&~+!", max_size=200))
def test_anything_ends_and_is_escaped(text: str) -> None:
    made = to_html(text)
    assert "<a<" not in made and "<b" not in made.replace("<blockquote", "")
