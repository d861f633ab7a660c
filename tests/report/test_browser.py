# SPDX-License-Identifier: BSD-3-Clause
"""The page of a stored real run in headless Chromium: Debian's browser, driven by playwright.

axe-core, which looks for what keeps readers out, comes from npm, once, to ``.stamps``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from planebench.analysis.compare import Derived
from planebench.report.html import to_html
from planebench.store import read_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RUN = Path(__file__).parents[1] / "golden/run"
READ = Derived(read_run(RUN))
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = "there is no chromium: apt-get install chromium fonts-liberation"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NEEDED)

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BOXES = """() => [...document.querySelectorAll("figure")].filter(it => !it.closest(".narrow")).map(figure => {
    const svg = figure.querySelector("svg"), box = svg ? svg.getBBox() : {width: 0, height: 0};
    const room = figure.getBoundingClientRect();
    return [figure.id, box.width, box.height, room.width, room.height];
})"""
COLORS = """() => ["body", "section", ".panel svg text"].map(name => {
    const style = getComputedStyle(document.querySelector(name));
    return [style.backgroundColor, style.color, style.fill];
})"""
NAMELESS = """() => [...document.querySelectorAll("svg, [role=img], [role=group], nav, dialog")]
    .filter(element => !element.matches("[aria-label], [aria-labelledby]")).length"""
HEADLESS = """() => [...document.querySelectorAll("table:not(.answers) tbody tr")]
    .filter(row => !row.querySelector("th[scope=row]")).map(row => row.innerText)"""
AXE = "4.14.1"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_bytes(to_html(READ))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The text of axe-core. Tests are skipped where it is not here and cannot be fetched."""
    folder = Path(__file__).parents[2] / ".stamps" / f"axe-core-{AXE}"
    script = folder / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("there is no npm to fetch axe-core with: apt-get install npm")
        quick = (
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--fetch-retry-mintimeout=1000",
            "--fetch-timeout=20000",
        )
        folder.mkdir(parents=True, exist_ok=True)
        try:
            command = [npm, "install", "--prefix", folder, *quick, f"axe-core@{AXE}"]
            subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"axe-core cannot be fetched: {error} {str(error.stderr)[-300:]}")
    return script.read_text(encoding="utf-8")


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


@pytest.mark.all
def test_every_chart_is_drawn(opened: tuple[Page, list[str], list[str]], page_file: Path) -> None:
    drawn = opened[0].evaluate(BOXES)
    assert len(drawn) == page_file.read_text().count("<figure ") - page_file.read_text().count('-narrow">') > 5
    for key, *sizes in drawn:
        assert min(sizes) > 20, (key, sizes)


@pytest.mark.all
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


@pytest.mark.all
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


@pytest.mark.all
def test_it_can_be_read_with_a_keyboard_and_by_ear(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    assert page.evaluate(NAMELESS) == 0
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(below - above <= 1 for above, below in pairwise(levels))
    assert page.evaluate("document.querySelectorAll('th:not([scope])').length") == 0
    assert page.evaluate(HEADLESS) == [], "every row has a head"
    assert page.evaluate("[...document.querySelectorAll('table')].filter(t => !t.caption && !t.ariaLabel).length") == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#answers"


@pytest.mark.all
def test_it_prints(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    page.emulate_media(media="print")
    hidden = "[...document.querySelectorAll('details table')].filter(e => !e.checkVisibility()).length"
    assert page.evaluate(hidden) == 0, "closed details are printed open"
    pdf = page.pdf(prefer_css_page_size=True)
    page.emulate_media(media="screen")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 1
    assert max(map(float, re.findall(rb"/MediaBox\s*\[\s*0 0 ([\d.]+)", pdf))) == pytest.approx(842, abs=2)


@pytest.mark.all
@pytest.mark.parametrize(("scheme", "width"), [("light", 1240), ("dark", 390)])
def test_axe_finds_nothing(
    browser: Browser, page_file: Path, axe: str, scheme: Literal["light", "dark"], width: int
) -> None:
    """With everything open: first the page, then a test point in front of it."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    page.evaluate(axe)
    assert _violations(page) == []
    page.locator(".opener").first.click()
    assert page.evaluate(OVERFLOW) <= 0
    assert _violations(page) == []
    context.close()


def _violations(page: Page) -> list[tuple[str, list[str]]]:
    found = page.evaluate("rules => axe.run({resultTypes: ['violations'], runOnly: rules})", RULES)
    return [(it["id"], [str(node["target"]) for node in it["nodes"]]) for it in found["violations"]]


@pytest.mark.all
def test_without_script_the_page_is_a_record(browser: Browser, page_file: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(page_file.as_uri())
    assert page.locator(".explore, .bubble, dialog, button").count() == 0
    assert page.locator("table.answers").is_visible()
    assert page.locator(".panel svg title").count() > 20
    page.close()


@pytest.mark.all
def test_no_other_script_runs(browser: Browser, page_file: Path, tmp_path: Path) -> None:
    changed = tmp_path / "report.html"
    foreign = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    changed.write_text(page_file.read_text().replace("<main>", f"<main>{foreign}"))
    page = browser.new_page()
    page.goto(changed.as_uri())
    assert page.title() != "run" and page.locator(".explore").count() == 1
    page.close()


def _visible(page: Page, selector: str) -> int:
    return int(page.locator(selector).evaluate_all("all => all.filter(e => e.checkVisibility()).length"))


@pytest.mark.all
def test_results_are_filtered_by_switch_scenario_and_size(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    rows, words = "#throughput tbody tr", page.locator(".explore output")
    before, lost = _visible(page, rows), _visible(page, "#losses tr[data-cells]")
    assert words.inner_text() == "all 8 results are shown"
    page.locator(".explore input[value=testpmd]").uncheck()
    assert words.inner_text() == "4 of 8 results are shown"
    assert 0 < _visible(page, rows) < before
    assert 0 < _visible(page, "#losses tr[data-cells]") < lost
    assert page.locator("#overview svg .off").count() > 0
    page.locator(".explore input[value=p2p]").uncheck()
    assert 0 < _visible(page, "table.answers tr[data-some]") < page.locator("table.answers tr[data-some]").count()
    page.get_by_role("button", name="Show all").click()
    assert _visible(page, rows) == before and page.locator(".off").count() == 0
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = false; })")


@pytest.mark.all
def test_a_test_point_opens_its_figures_and_its_losses(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    page.locator("table.answers .opener").first.click()
    dialog = page.locator("dialog")
    assert dialog.locator("h2").inner_text() == "planed p2p ⇄ 64 B"
    captions = dialog.locator("caption").all_inner_texts()
    assert captions[:3] == [
        "Throughput at maximum offered load (R+)",
        "Loss accounting of the saturating trials, in frames",
        "Ranking metrics: of 6 pairs 6 differ and 0 are the same",
    ]
    for table in dialog.locator("table").all():
        assert table.locator("tbody tr").count() > 0, "tables without a row of the test point are left out"
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    assert page.evaluate("document.activeElement.className") == "opener"


@pytest.mark.all
def test_marks_say_interval_verdict_and_evidence(opened: tuple[Page, list[str], list[str]]) -> None:
    page = opened[0]
    bubble = page.locator(".bubble")
    bar = page.locator("#overview .mark[data-cells]").last
    bar.hover(position={"x": 3, "y": 3})  # beside the whisker
    hovered = bubble.inner_text()
    assert re.match(r"testpmd, loopback-2 bidirectional 64 B: .* Mpps.*; \d+ starts?, the host took [\d.]+ %", hovered)
    page.keyboard.press("Escape")
    assert not bubble.is_visible()
    page.mouse.move(1, 1)
    stops = page.locator("#overview .mark[tabindex='0']")
    assert stops.count() == 1, "one stop of the tab key"
    stops.focus()
    bubble.wait_for(state="visible")
    first = bubble.inner_text()
    assert first != hovered
    page.keyboard.press("ArrowDown")
    assert bubble.is_visible() and bubble.inner_text() != first and stops.count() == 1
    page.keyboard.press("Enter")
    assert page.locator("dialog").is_visible()
    page.keyboard.press("Escape")


@pytest.mark.all
def test_only_tables_that_scroll_are_stops_of_the_tab_key(opened: tuple[Page, list[str], list[str]]) -> None:
    # The page looks at their widths a moment after it is drawn.
    opened[0].wait_for_function("""[...document.querySelectorAll('.scroll')].every(
        e => e.hasAttribute('tabindex') === e.scrollWidth > e.clientWidth)""")
