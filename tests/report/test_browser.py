# SPDX-License-Identifier: BSD-3-Clause
"""The page of a stored real run in headless Chromium: Debian's browser, driven by playwright."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planebench.report.html import to_html
from planebench.stats.derived import Derived
from planebench.store import read_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUN = Path(__file__).parents[1] / "golden/run"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = "there is no chromium: apt-get install chromium fonts-liberation"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BOXES = """() => [...document.querySelectorAll("figure")].map(figure => {
    const svg = figure.querySelector("svg"), box = svg ? svg.getBBox() : {width: 0, height: 0};
    const room = figure.getBoundingClientRect();
    return [figure.id, box.width, box.height, room.width, room.height];
})"""
COLORS = """() => ["body", "section", ".panel svg text"].map(name => {
    const style = getComputedStyle(document.querySelector(name));
    return [style.backgroundColor, style.color, style.fill];
})"""
NAMELESS = """() => [...document.querySelectorAll("[role=img], [role=region], nav")]
    .filter(element => !element.getAttribute("aria-label")).length"""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(to_html(Derived(read_run(RUN))))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture(scope="module")
def opened(browser: Browser, page_file: Path) -> Iterator[tuple[Page, list[str], list[str]]]:
    """The page, with what the console said and what was requested while it was opened, and after."""
    said: list[str] = []
    requested: list[str] = []
    page = browser.new_page(viewport={"width": 1240, "height": 900})
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: requested.append(request.url))
    page.goto(page_file.as_uri())
    yield page, said, requested
    page.close()


def test_nothing_is_fetched_and_nothing_goes_wrong(opened: tuple[Page, list[str], list[str]], page_file: Path) -> None:
    page, said, requested = opened
    page.wait_for_load_state("networkidle")
    assert said == []
    assert requested == [page_file.as_uri()]


def test_every_chart_is_drawn(opened: tuple[Page, list[str], list[str]], page_file: Path) -> None:
    drawn = opened[0].evaluate(BOXES)
    assert len(drawn) == page_file.read_text().count("<figure ") > 5
    for key, *sizes in drawn:
        assert min(sizes) > 20, (key, sizes)


def test_a_phone_needs_no_scrolling_to_the_side(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    wide = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(wide) > 0, "wide tables scroll inside"
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = false; })")
    page.set_viewport_size({"width": 1240, "height": 900})
    assert page.evaluate(OVERFLOW) <= 0


def test_dark_mode_has_colors_of_its_own(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    page.emulate_media(color_scheme="light")
    light = page.evaluate(COLORS)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(COLORS)
    page.emulate_media(color_scheme="light")
    body, section, words = zip(light, dark, strict=True)
    assert body[0][0] != body[1][0] and section[0][0] != section[1][0]
    assert section[0][1] != section[1][1] and words[0][2] != words[1][2]


def test_it_can_be_read_with_a_keyboard_and_by_ear(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    assert page.evaluate(NAMELESS) == 0
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert page.evaluate("document.querySelectorAll('th:not([scope])').length") == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#answers"


def test_it_prints(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    page.emulate_media(media="print")
    shown = "e.closest('.screen') || e.checkVisibility()"
    hidden = f"[...document.querySelectorAll('details table')].filter(e => !({shown})).length"
    assert page.evaluate(hidden) == 0, "closed details are printed open"
    assert page.evaluate("document.querySelector('details.screen').checkVisibility()") is False
    pdf = page.pdf(prefer_css_page_size=True)
    page.emulate_media(media="screen")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 1
    assert max(map(float, re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+)", pdf))) == pytest.approx(842, abs=2)
