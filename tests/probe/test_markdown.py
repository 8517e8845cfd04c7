"""Model cards as HTML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmokit.probe.markdown import markdown_to_html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A *b*", "<h3>A <em>b</em></h3>"),
        ("##### A", "<h6>A</h6>"),
        ("one\ntwo\n\nthree", "<p>one\ntwo</p>\n<p>three</p>"),
        ("a **b** `c < d` [e](https://f.g)", "<p>a <strong>b</strong> <code>c &lt; d</code> "
         '<a href="https://f.g">e</a></p>'),
        ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
        ("- a\n- b\n  goes on\n  - c", "<ul>\n<li>a</li>\n<li>b\ngoes on\n<ul>\n<li>c</li>\n</ul>\n"
         "</li>\n</ul>"),
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("```python\nx = '<a>'\n\n# y\n```\nz", "<pre><code>x = '&lt;a&gt;'\n\n# y\n"
         "</code></pre>\n<p>z</p>"),
        ("```\nnever closed", "<pre><code>never closed</code></pre>"),
        ("> said\n> so", "<blockquote>\n<p>said\nso</p>\n</blockquote>"),
        ("---\ntags: [x]\n---\nText", "<p>Text</p>"),
        ("a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("a\r\nb", "<p>a\nb</p>"),
    ],
)  # fmt: skip
def test_what_cards_use(text: str, expected: str) -> None:
    assert markdown_to_html(text, top=3) == expected


def test_tables() -> None:
    made = markdown_to_html("| a | b |\n|---|--:|\n| x \\| y | **1** |\n\nafter")
    flat = made.replace("\n", "")
    assert '<div class="table"><table><thead><tr><th>a</th><th class="number">b</th></tr>' in flat
    assert '<td>x | y</td><td class="number"><strong>1</strong></td>' in flat
    assert flat.endswith("</table></div><p>after</p>")
    assert "<thead>" not in markdown_to_html("| | |\n|---|---|\n| a | b |"), "an empty head is none"


def test_a_card_of_a_stranger() -> None:
    made = markdown_to_html(
        "<script>x</script> [a](javascript:alert(1)) ![b](https://c.d/e.png) [f](g.md)"
    )
    assert "<script" not in made and "javascript" not in made and "<img" not in made
    assert "&lt;script&gt;" in made and "href" not in made and "b" in made


@pytest.mark.parametrize(
    "text",
    [
        "[a][b]\n\n[b]: JavaScript:alert(1)",
        "<javascript:alert(1)>",
        "[a](data:text/html,x)",
        "[a](//c.d/e)",
        '<a href="https://c.d">e</a>',
        "&lt;img src=x onerror=y&gt;",
        '[a](https://c.d"onclick="e) ![x](y "z")',
    ],
)
def test_only_links_to_the_web_are_links(text: str) -> None:
    made = markdown_to_html(text)
    assert 'href="j' not in made.lower() and 'href="d' not in made and 'href="/' not in made
    assert "<img" not in made and '"onclick=' not in made and '<a href="https://c.d">' not in made


def test_a_picture_in_a_link_is_named() -> None:
    made = markdown_to_html("[![badge](x.png)](https://a.b)")
    assert made == '<p><a href="https://a.b">badge</a></p>'


@given(st.text(alphabet="#*_`[]()|>-1. \nab<&~+!", max_size=200))
def test_anything_ends_and_is_escaped(text: str) -> None:
    made = markdown_to_html(text)
    known = made.replace("<blockquote", "").replace("<br>", "")
    assert "<a<" not in made and "<b" not in known
