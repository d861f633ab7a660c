# SPDX-License-Identifier: BSD-3-Clause
"""Chains as users write them: what is understood, what is refused and with which words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planebench.model.chain_name import chain_label, quote
from planebench.model.errors import UsageError
from planebench.testbed.chain import build_chain, parse_chain, resolve_chain
from planebench.testbed.vnfs import VNFS


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "my.rules"
    path.write_text("permit ip from any to any\n")
    return path


def test_functions_and_options_in_path_order() -> None:
    firewall, l2fwd = parse_chain("firewall:default=permit:not_ip=drop, l2fwd")
    assert (firewall.kind.name, l2fwd.kind.name) == ("firewall", "l2fwd")
    assert firewall.settings() == {"default": "permit", "not_ip": "drop"}
    assert l2fwd.settings() == {}


def test_a_chain_has_one_text_whatever_the_order_of_options(rules: Path) -> None:
    texts = ("firewall:not_ip=drop:rules=my.rules , l3fwd", "firewall:rules=./my.rules:not_ip=drop,l3fwd")
    assert {resolve_chain(text, rules.parent) for text in texts} == {f"firewall:rules={rules}:not_ip=drop,l3fwd"}


def test_resolving_twice_changes_nothing(rules: Path) -> None:
    once = resolve_chain("firewall:rules=my.rules,l2fwd", rules.parent)
    assert resolve_chain(once, Path("/")) == once


def test_files_are_looked_for_when_a_chain_is_resolved_not_when_it_is_read() -> None:
    (gone,) = parse_chain("firewall:rules=/nowhere/at/all")
    assert gone.settings() == {"rules_file": "/nowhere/at/all"}
    with pytest.raises(UsageError, match=r'rules "/nowhere/at/all" cannot be read: No such file'):
        resolve_chain("firewall:rules=/nowhere/at/all", Path("/"))


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("l3fwd:mtu=1500:own_mac_only=true", {"mtu": 1500, "own_mac_only": True}),
        ("l3fwd:fib=cuckoo:synthetic=1000", {"fib": "cuckoo", "synthetic": 1000}),
        ("nat44:outside=192.0.2.1+192.0.2.2:hairpin=no", {"outside": ["192.0.2.1", "192.0.2.2"], "hairpin": False}),
        ("nat44:sessions_max=64k", {"sessions_max": 64_000}),
        ("load_balancer:connections=0", {"connections": 0}),
    ],
)
def test_values(text: str, settings: dict[str, object]) -> None:
    assert parse_chain(text)[0].settings() == settings


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty entry"]),
        ("l2fwd,,l3fwd", ["empty entry"]),
        (",".join(["l2fwd"] * 6), ["6 functions", "1..5"]),
        ("frewall", ["unknown network function", "did you mean firewall?", "Valid: l2fwd, l3fwd"]),
        ("firewall:ruls=x", ["unknown option of firewall", "did you mean rules?", "default"]),
        ("firewall:rules", ['firewall: option "rules" is not key=value', "e.g. firewall:rules=..."]),
        ("firewall:rules=a:rules=b", ["firewall: option rules is given twice"]),
        ("firewall:default=allow", ['default "allow" is not valid', "drop, permit"]),
        ("l2fwd:burst=3", ["unknown option of l2fwd", "did you mean send_burst?"]),
        ("l2fwd:send_burst=65", ['send_burst "65" is not valid', "0..64"]),
        ("l2fwd:send_burst=0:drain_us=10", ["l2fwd: drain_us without send_burst"]),
        ("firewall:drain_us=10", ["firewall: drain_us without send_burst", "give both"]),
        ("l3fwd:mtu=1500.5", ['mtu "1500.5" is not valid', "whole number"]),
        ("l3fwd:mtu=-1", ['mtu "-1"']),
        ("l3fwd:own_mac_only=maybe", ["true, false"]),
    ],
)
def test_errors_name_the_chain_the_value_and_the_way_out(text: str, words: list[str]) -> None:
    for parse in (parse_chain, lambda it: resolve_chain(it, Path("/"))):
        with pytest.raises(UsageError) as caught:
            parse(text)
        said = str(caught.value)
        assert said.startswith(f'chain "{text}"') and said.count('chain "') == 1
        assert all(word in said for word in words), said


@pytest.mark.parametrize("name", ["with space", "10:30", "a,b=c:d"])
def test_a_path_may_have_what_separates_the_parts_of_a_chain(tmp_path: Path, name: str) -> None:
    """Without quotes too, but for commas, and colons before an equals sign: those look like the next option."""
    path = tmp_path / name / f"{name}.rules"
    path.parent.mkdir()
    path.write_text("permit ip from any to any\n")
    quoted = resolve_chain(f'firewall:rules="{name}.rules",l2fwd', path.parent)
    assert resolve_chain(quoted, tmp_path) == quoted
    firewall, _ = parse_chain(quoted)
    assert firewall.files() == (path,) and firewall.settings() == {"rules_file": str(path)}
    assert "=" in name or resolve_chain(f"firewall:rules={path},l2fwd", tmp_path) == quoted
    assert chain_label(quoted, 2) == f"firewall:rules={quote(f'{name}.rules')},l2fwd"
    assert build_chain("loopback", 2, chain=quoted).vnfs[0].files == (path,)


def test_the_registry_is_sound() -> None:
    for name, vnf in VNFS.items():
        assert (vnf.name, vnf.summary[0].islower(), "," in name or ":" in name) == (name, True, False)
        names = [option.name for option in vnf.all_options]
        assert len(set(names)) == len(names)
        assert vnf.memory_bytes({}) >= 0
    assert len({vnf.kind for vnf in VNFS.values()}) == len(VNFS)


def test_memory_of_a_firewall_follows_its_rules(tmp_path: Path) -> None:
    few, many, objects = tmp_path / "few", tmp_path / "many", tmp_path / "objects.json"
    few.write_text("permit ip from any to any\n" * 10)
    many.write_text("permit ip from any to any\n" * 10_000)
    objects.write_text(json.dumps([{"action": "drop"}] * 5_000))
    needs = VNFS["firewall"].memory_bytes
    sizes = [
        needs({}),
        needs({"rules_file": str(few)}),
        needs({"rules_file": str(objects)}),
        needs({"rules_file": str(many)}),
    ]
    assert sizes == sorted(sizes) and sizes[-1] > 2 * sizes[0]
    assert needs({"rules_file": "/gone"}) == needs({})
