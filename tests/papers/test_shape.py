# SPDX-License-Identifier: BSD-3-Clause
"""The papers' tables beside ours: same reference for both, marks kept, what does not count left out."""

from __future__ import annotations

import dataclasses
from typing import Any

from making import delay, measured, rate, run

from planebench.papers.shape import Shape, shapes

THROUGHPUT = "Throughput (Fig. 4)"


def tables(*figures: Any) -> dict[str, Shape]:
    return {table.title: table for table in shapes(measured(run(*figures)))}


def ratios(table: Shape, cell: str) -> dict[str, tuple[str, str]]:
    """Switch -> (the paper's, ours)."""
    found = [entry for entry in table.entries if entry.cell == cell]
    words = [[ratio.words if ratio else "" for ratio in (entry.paper, entry.ours)] for entry in found]
    return {entry.switch: (paper, ours) for entry, (paper, ours) in zip(found, words, strict=True)}


def test_both_sides_are_multiples_of_the_same_switch() -> None:
    table = tables(rate("planed", "p2p", 9.0), rate("ovs-dpdk", "p2p", 3.0), rate("snabb", "p2p", 6.0))[THROUGHPUT]
    found = ratios(table, "p2p → 64 B (snabb)")  # of the two that both have, the paper's best
    assert found["planed"] == ("", "1.50")
    assert found["ovs-dpdk"] == ("0.90", "0.50")
    assert found["snabb"] == ("1.00", "1.00")
    assert found["bess"] == ("1.12", "")


def test_without_a_switch_in_common_there_is_no_table() -> None:
    assert tables(rate("planed", "p2p", 9.0)) == {}


def test_bounds_keep_their_marks_and_a_valid_reference_comes_first() -> None:
    limited = {"verdict": "tester-limited"}
    sides = (rate("snabb", "p2p", 6.0, **limited), rate("ovs-dpdk", "p2p", 3.0), rate("planed", "p2p", 9.0, **limited))
    found = ratios(tables(*sides)[THROUGHPUT], "p2p → 64 B (ovs-dpdk)")
    assert found["snabb"] == ("1.11", "≥2.00")
    assert found["planed"] == ("", "≥3.00")
    only = ratios(tables(*sides[:1], rate("planed", "p2p", 9.0))[THROUGHPUT], "p2p → 64 B (snabb)")
    assert only["planed"] == ("", "≤1.50")
    two = ratios(tables(sides[0], sides[2])[THROUGHPUT], "p2p → 64 B (snabb)")
    assert "planed" not in two  # at least over at least is anything


def test_what_does_not_count_has_no_ratio() -> None:
    sides = (rate("ovs-dpdk", "p2p", 3.0), rate("planed", "p2p", 9.0, verdict="invalid"), rate("vpp", "p2p", 4.0))
    found = ratios(tables(*sides)[THROUGHPUT], "p2p → 64 B (vpp)")
    assert "planed" not in found
    assert found["ovs-dpdk"] == ("0.81", "0.75")


def test_latency_over_chains_is_a_multiple_of_the_switchs_own() -> None:
    table = tables(
        delay("ovs-dpdk", "p2p", "0.50", 4.0),
        delay("ovs-dpdk", "loopback", "0.99", 40.0, chain_length=2),
        delay("ovs-dpdk", "loopback", "0.10", 8.0, chain_length=2, verdict="tester-limited"),
        delay("planed", "p2p", "0.50", 2.0),
        delay("planed", "loopback", "0.99", 5.0, chain_length=2),
    )["Latency by chain length and load (Table 3)"]
    assert ratios(table, "p2p, 50 % of R+")["ovs-dpdk"] == ("1.00", "1.00")
    found = ratios(table, "loopback-2, 99 % of R+")
    assert found["ovs-dpdk"] == ("174.81", "10.00")  # 909 / 5.2
    assert found["planed"] == ("", "2.50")
    assert ratios(table, "loopback-2, 10 % of R+")["ovs-dpdk"] == ("23.85", "")


def test_a_simulated_switch_is_in_no_table() -> None:
    made = run(rate("ovs-dpdk", "p2p", 3.0), rate("snabb", "p2p", 6.0))
    simulated = tuple(dataclasses.replace(switch, adapter="sim") for switch in made.header.switches)
    header = dataclasses.replace(made.header, switches=simulated)
    assert shapes(measured(dataclasses.replace(made, header=header))) == ()
