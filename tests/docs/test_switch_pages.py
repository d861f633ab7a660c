# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the switches say what the adapters do: their wires and their options."""

from __future__ import annotations

import re
from pathlib import Path

from planebench.measure.runner import SelfMeasured
from planebench.model.wire import WIRES
from planebench.switches.registry import ADAPTERS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {name: DOCS / "switches" / f"{name}.md" for name, it in ADAPTERS.items() if not isinstance(it, SelfMeasured)}


def wires_in(text: str) -> set[str]:
    """The wires that a text names, without what is in parentheses."""
    words = re.split(r"[^\w]+", re.sub(r"\([^)]*\)", "", text))
    return {word for word in words if word in WIRES}


def wires_of(page: str) -> set[str]:
    """The wires in the first clause of a page's line about them."""
    match = re.search(r"^(?:\| Wires \||\*\*Wires\*\*:) *(.*?)(?:\.(?:\s|$)|;| \|$)", page, re.MULTILINE)
    assert match is not None, f"a page has no line about wires: {page[:80]}"
    return wires_in(match[1])


def options_of(page: str) -> set[str]:
    """The options that a page lists: the first column of their table, or each ``name`` outside of parentheses."""
    table = re.search(r"^\| (?:option|key) \|.*\n\|[-| ]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    if table is not None:
        firsts = (line.split("|")[1] for line in table[1].splitlines())
        return {name for cell in firsts for name in re.findall(r"`([\w-]+)`", cell)}
    line = re.search(r"^(?:\| Options \||\*\*Options\*\*)((?:.|\n(?!\n))*)", page, re.MULTILINE)
    if line is None:
        return {"path"}
    text = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", line[1].partition("\n|")[0].partition(". ")[0])
    return set(re.findall(r"`(\w+)`", text))


def test_a_page_has_the_wires_of_its_adapter() -> None:
    found = {name: wires_of(page.read_text()) for name, page in PAGES.items()}
    assert found == {name: set(ADAPTERS[name].wires) for name in PAGES}


def test_a_page_has_the_options_of_its_adapter() -> None:
    found = {name: options_of(page.read_text()) for name, page in PAGES.items()}
    assert found == {name: {option.name for option in ADAPTERS[name].options} for name in PAGES}


def test_the_overview_has_every_switch_and_its_wires() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| [^|]* \| ([^|]*) \| [^|]* \| \[", (DOCS / "switches.md").read_text(), re.M)
    found = {name: wires_in(cell) for name, cell in rows if name in PAGES}
    assert found == {name: set(ADAPTERS[name].wires) for name in PAGES}


def test_the_overview_names_the_switches_that_have_workers() -> None:
    (names,) = re.findall(r"^(`bess`.*?) have the option `workers`", (DOCS / "switches.md").read_text(), re.M)
    assert set(re.findall(r"`([\w-]+)`", names)) == {name for name, it in ADAPTERS.items() if it.has_workers}
