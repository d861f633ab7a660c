# SPDX-License-Identifier: BSD-3-Clause
"""The pages as a site (`make docs`): strict, nothing from elsewhere, and a search that works from a file."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
_LOADED = re.compile(
    r"<(?:script|img|iframe)[^>]* src=[\"']?(https?:[^\"' >]+)|<link[^>]* href=[\"']?(https?:[^\"' >]+)"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("material") is None, reason="mkdocs-material: make docs installs it"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does: a broken link, anchor or page without a place is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return folder


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert len(pages) > 40
    assert {page.name: found for page, text in pages.items() if (found := _LOADED.findall(text))} == {}


@pytest.mark.all
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium")
def test_the_search_works_from_a_file(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.fill("input.md-search__input", "bisection")
        found = page.locator(".md-search-result__item a").first
        found.wait_for(timeout=20_000)
        assert "ci.html" in (found.get_attribute("href") or "")
        assert [url for url in requests if not url.startswith(("file:", "data:", "about:", "blob:"))] == []
        browser.close()
