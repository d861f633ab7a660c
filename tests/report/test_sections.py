# SPDX-License-Identifier: BSD-3-Clause
"""Contents and page follow from the registry of sections; the example of the document on sections works."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from builders import make_header, make_point, make_trial, table_text

from planebench.analysis.compare import Derived
from planebench.model.header import Run
from planebench.report.figures import FIGURES
from planebench.report.html import to_html
from planebench.report.sections import SECTIONS, Section, SectionEntry, Sentences, Source, build

DOC = Path(__file__).parents[2] / "docs" / "design" / "adding.md"


class Anchors(HTMLParser):
    """Collects the titles in the contents and the ids of the sections of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sections: list[str] = []
        self._in_contents = False
        self.feed(page.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self._in_contents = self._in_contents or tag == "nav"
        if self._in_contents and tag == "a":
            self.links.append((values["href"] or "").removeprefix("#"))
        if tag == "section":
            self.sections.append(values["id"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_contents = self._in_contents and tag != "nav"


def example() -> SectionEntry:
    """Return the section that the document registers."""
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    (code,) = (block for block in blocks if "def measuring_time(" in block)
    names: dict[str, Any] = {}
    exec(compile(code, str(DOC), "exec"), names)
    entry: SectionEntry = names["measuring_time"]
    return entry


def small() -> Run:
    return Run(make_header(), trials=(make_trial(), make_trial(index=1)))


def test_a_registered_section_is_in_page_and_contents() -> None:
    before = Anchors(to_html(Derived(small())))
    page = to_html(Derived(small()), (*SECTIONS[:2], example(), *SECTIONS[2:]))
    after = Anchors(page)
    assert before.links == before.sections[1:]
    assert after.links == after.sections[1:]
    assert set(after.links) - set(before.links) == {"measuring-time"}
    assert b"<h2>Measuring time</h2>" in page
    assert b"Warm-up trials included." in page


def test_page_and_terminal_have_the_same_sections() -> None:
    derived = Derived(small())
    text, page = table_text(derived), to_html(derived).decode()
    titles = [section.title for section in build(Source(derived))]
    assert len(titles) > 3
    assert all(f"\n{title}\n" in text and f"<h2>{title}</h2>" in page for title in titles)


def test_a_section_without_content_is_left_out() -> None:
    def empty(_: Source) -> Section:
        return Section("empty", "Empty", [Sentences([""])])

    assert "empty" not in Anchors(to_html(Derived(small()), (*SECTIONS, empty))).links


def test_a_run_says_how_its_vnfs_collect_frames() -> None:
    header = make_header(("planed",))
    batching = replace(header, plan=replace(header.plan, send_burst=32))
    for scenario, made, said in (("loopback", batching, True), ("p2p", batching, False), ("loopback", header, False)):
        run = Run(made, (make_trial(0, make_point("planed", scenario), 1.0),))
        assert ("send 32 packets at once, or what has come in 100 µs" in to_html(Derived(run)).decode()) == said


def test_ids_are_unique_and_figures_name_sections_that_exist() -> None:
    ids = [entry(Source(Derived(small()))).id for entry in SECTIONS]
    assert len(set(ids)) == len(ids)
    assert {kind.section for kind in FIGURES} - {"answers"} <= set(ids)
