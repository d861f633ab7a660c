# SPDX-License-Identifier: BSD-3-Clause
"""How points of chains are called: short for people, safe for files, and never two of them the same."""

from __future__ import annotations

import re

import pytest
from builders import make_point

FIREWALL = "firewall:rules=/a/my.rules:default=drop,l3fwd"


def chain(text: str, **changes: object):  # type: ignore[no-untyped-def]
    return make_point("planed", "loopback", chain=text, chain_length=text.count(",") + 1, **changes)


def test_labels() -> None:
    plain = make_point("planed", "loopback", chain_length=2)
    assert (plain.scenario_label, plain.chain_label, plain.scenario_slug) == ("loopback-2", "l2fwd,l2fwd", "loopback-2")
    assert make_point().chain_label == ""
    point = chain(FIREWALL)
    assert point.scenario_label == "loopback firewall:rules=my.rules:default=drop,l3fwd"
    assert point.chain_text == FIREWALL


def test_ids_differ_where_chains_do_and_end_alike() -> None:
    points = [
        chain(FIREWALL),
        chain(FIREWALL.replace("/a/", "/b/")),
        chain("firewall,l3fwd"),
        make_point("planed", "loopback", chain_length=2),
    ]
    assert len({point.point_id for point in points}) == len(points)
    assert len({point.scenario_slug for point in points}) == len(points)
    assert all(point.point_id.endswith("/64/virtio/process") for point in points)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,90}", point.scenario_slug) for point in points)


@pytest.mark.parametrize(("length", "scenario"), [(1, "loopback"), (3, "loopback")])
def test_a_chain_must_fit_its_length(length: int, scenario: str) -> None:
    with pytest.raises(ValueError, match="does not fit chain_length"):
        make_point("planed", scenario, chain_length=length, chain="firewall,l3fwd")
