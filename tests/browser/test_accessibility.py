"""axe-core finds nothing serious in any view, light or dark, wide or narrow."""

from __future__ import annotations

from typing import Any

import pytest
from tests.browser.conftest import VIEWS, OpenPage, package_file

pytest.importorskip(
    "playwright.sync_api", reason="the page is tested with playwright; see .ci/parts/browser"
)


@pytest.mark.parametrize("view", VIEWS)
def test_views_have_no_serious_findings(open_page: OpenPage, view: str) -> None:
    axe = package_file("axe-core/axe.min.js").read_text(encoding="utf-8")
    page = open_page(view)
    page.wait_for_timeout(800)
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 844})
        page.wait_for_timeout(300)
        for details in page.locator("details").all():
            details.evaluate("(element) => (element.open = true)")
        page.evaluate(axe)
        found: list[dict[str, Any]] = page.evaluate("axe.run().then((r) => r.violations)")
        serious = [
            (each["id"], each["impact"], [node["html"][:200] for node in each["nodes"]][:3])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert not serious, (scheme, width)
