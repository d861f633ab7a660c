# SPDX-License-Identifier: BSD-3-Clause
"""planed looks at a chain before anything starts, and its sentence is what the user reads."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import pytest

from planebench.host.planed_program import REMEDY, find_planed
from planebench.measure.survey import check_chains
from planebench.model.errors import UsageError
from planebench.testbed.chain import resolve_chain
from planebench.testbed.vnfs import VNFS


def planed() -> Path:
    found = find_planed()
    if found is None:
        pytest.skip(f"planed is not here: {REMEDY}")
    return found


@pytest.mark.dataplane
@pytest.mark.parametrize("name", VNFS)
def test_every_function_of_the_registry_is_known_and_has_defaults(name: str) -> None:
    check_chains([f"{name},l2fwd"], planed())


@pytest.mark.dataplane
def test_every_option_of_the_registry_is_known_to_planed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for vnf in VNFS.values():
        for option in vnf.options:
            value = {"whole": "1", "flag": "true", "list": "x", "file": "file"}.get(option.kind, "x")
            text = f"{vnf.name}:{option.name}={option.choices[0] if option.choices else value}"
            try:
                check_chains([resolve_chain(text, tmp_path)], planed())
            except UsageError as error:  # of the value, or of all together: but not of the key
                assert "unknown key" not in str(error), error


@pytest.mark.dataplane
def test_what_planed_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    chain = resolve_chain("nat44:port_min=9000:port_max=5000", tmp_path)
    with pytest.raises(UsageError) as caught:
        check_chains(["l2fwd", chain], planed())
    assert str(caught.value).startswith(f'chain "{chain}": task vnf0: ')
    assert "task vnf0" in str(caught.value)


@pytest.mark.parametrize(
    ("script", "words"),
    [("exit 7", "it ended with 7"), ("echo one; echo 'two  lines' >&2; exit 2", "two lines")],
)
def test_a_planed_that_says_little(tmp_path: Path, script: str, words: str) -> None:
    fake = tmp_path / "planed"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o700)
    with pytest.raises(UsageError, match=f'chain "l2fwd": {words}'):
        check_chains(["l2fwd"], fake)


def test_a_planed_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'chain "l2fwd": .*No such file or directory'):
        check_chains(["l2fwd"], tmp_path / "gone")


CHAINS_PAGE = Path(__file__).parents[2] / "docs" / "chains.md"


@pytest.mark.dataplane
def test_the_three_rules_of_the_page_match_what_the_page_says(tmp_path: Path) -> None:
    rules = re.findall(r"^    ((?:drop|permit) .*\n)", CHAINS_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rules) == 3
    file = tmp_path / "my.rules"
    file.write_text("".join(rules))
    check_chains([f"firewall:rules={file}"], planed())
    found = re.search(r"from (198\.18\.0\.0/\d+) to any name=blocked", rules[0])
    assert found is not None
    blocked, first = ipaddress.ip_network(found[1]), ipaddress.ip_address("198.18.0.1")
    sources = [first + host for host in range(1024)]  # as PROFILE_FLOW_HOSTS in dataplane/tester/profile.h
    assert sum(source in blocked for source in sources) == 127
