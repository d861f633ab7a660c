# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the switches say what the adapters do: their wires and their options."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from planebench.measure.runner import SelfMeasured
from planebench.model.wire import WIRES
from planebench.switches.registry import ADAPTERS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import docs_pages  # noqa: E402

DOCS = ROOT / "docs"
OVERVIEW = (DOCS / "switches.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `([\w-]+)` \| [^|]* \| ([^|]*) \| [^|]* \| \[[^]]+\]\(([^)]+)\) \|$", OVERVIEW, re.MULTILINE)
NAMES = sorted(name for name, adapter in ADAPTERS.items() if not isinstance(adapter, SelfMeasured))


def wires_in(text: str) -> set[str]:
    """The wires that a text names, without what is in parentheses."""
    words = re.split(r"[^\w]+", re.sub(r"\([^)]*\)", "", text))
    return {word for word in words if word in WIRES}


def page_of(name: str) -> str:
    """What the docs say of a switch: the page to which the overview leads, or the section of it that its link names."""
    (target,) = (target for row, _, target in ROWS if row == name)
    path, _, anchor = target.partition("#")
    text = (DOCS / path).read_text(encoding="utf-8")
    if not anchor:
        return text
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    (section,) = (it for it in sections if docs_pages.anchor(it.partition("\n")[0]) == anchor)
    return section


def wires_of(page: str) -> set[str]:
    """The wires in the first clause of a page's line about them."""
    match = re.search(r"^(?:\| Wires \||\*\*Wires\*\*:) *(.*?)(?:\.(?:\s|$)|;| \|$)", page, re.MULTILINE)
    assert match is not None, f"a page has no line about wires: {page[:80]}"
    return wires_in(match[1])


def options_of(page: str) -> set[str]:
    """The options that the tables of a page explain."""
    tables = re.findall(r"^\| option \|.*\n\|[-| ]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    firsts = (line.split("|")[1] for table in tables for line in table.splitlines())
    return {name for cell in firsts for name in re.findall(r"`([\w-]+)`", cell)}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_the_wires_of_its_adapter_and_no_option_that_it_has_not(name: str) -> None:
    adapter, page = ADAPTERS[name], page_of(name)
    assert wires_of(page) == set(adapter.wires)
    assert options_of(page) <= {option.name for option in adapter.options}


def test_the_overview_has_every_switch_and_its_wires() -> None:
    found = {name: wires_in(wires) for name, wires, _ in ROWS if name in NAMES}
    assert found == {name: set(ADAPTERS[name].wires) for name in NAMES}


def test_the_overview_names_the_switches_that_have_workers() -> None:
    (names,) = re.findall(r"(`bess`[^.]*?)\s+have\s+the\s+option\s+`workers`", OVERVIEW)
    assert set(re.findall(r"`([\w-]+)`", names)) == {name for name, it in ADAPTERS.items() if it.has_workers}
