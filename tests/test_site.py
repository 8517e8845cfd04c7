"""The scripts that make the documentation site, as far as they need no Zensical and no browser."""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from elmokit.cli import elmo

SITE = Path(__file__).parents[1] / "docs" / "site"


@pytest.fixture
def command_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SITE))
    import command_pages as module

    yield module
    sys.modules.pop("command_pages", None)


@pytest.fixture
def page_links(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SITE))
    import page_links as module

    yield module
    sys.modules.pop("page_links", None)


def test_every_option_of_every_command_is_on_its_page_once(
    command_pages: ModuleType, tmp_path: Path
) -> None:
    command_pages.write_command_pages(tmp_path / "commands")
    context = click.Context(elmo, info_name="elmo")
    for name in elmo.list_commands(context):
        command = elmo.get_command(context, name)
        assert command is not None
        page = (tmp_path / "commands" / f"{name}.md").read_text(encoding="utf-8")
        listed = [html.unescape(each) for each in re.findall(r"<dt><code>(.*?)</code></dt>", page)]
        if isinstance(command, click.Group):
            assert len(listed) > 0
            continue
        wanted = [
            record[0]
            for option in command.params
            if isinstance(option, click.Option)
            and (record := option.get_help_record(click.Context(command, parent=context)))
        ]
        assert listed == wanted


def test_help_texts_become_html(command_pages: ModuleType) -> None:
    text = command_pages._html("Like --word, but <b> and `a --b`.\n  Or -w.")
    assert text == (
        "Like <code>--word</code>, but &lt;b&gt; and <code>a --b</code>. Or <code>-w</code>."
    )


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ('<a href="other.html">x</a>', "leads to nothing"),
        ('<a href="#there">x</a>', "has no such anchor"),
        ('<img src="https://example.org/a.png">', "loads https://example.org/a.png"),
        ('<a data-md-component="source" href="https://example.org/r">x</a>', "loads"),
    ],
)
def test_dead_links_and_foreign_files_are_found(
    page_links: ModuleType, tmp_path: Path, body: str, finding: str
) -> None:
    (tmp_path / "index.html").write_text(f'<p id="here">{body}</p>', encoding="utf-8")
    with pytest.raises(page_links.PageError, match=finding):
        page_links.check_html(tmp_path)


def test_a_site_without_dead_links_passes(page_links: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<p id="here"><a href="#here">x</a></p>', "utf-8")
    page_links.check_html(tmp_path)
