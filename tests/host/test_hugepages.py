# SPDX-License-Identifier: BSD-3-Clause
"""Hugepages of a run: enough for all of its switches at once, or none, and then it says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planebench.host import facts as host_facts
from planebench.host.memory import (
    MB_PER_SWITCH,
    enough_hugepages,
    free_bytes,
    hugetlbfs_mounted,
    pages_for,
    too_few_words,
)
from planebench.measure.sim.adapter import SimAdapter
from planebench.measure.survey import survey
from planebench.switches.registry import all_adapters

FACTS = replace(host_facts.collect(), hugepages_2m_free=1024)
TWO = {"switch": "sim,sim:name=other", "scenario": "p2p"}
THREE = {"switch": "sim,sim:name=other,sim:name=third", "scenario": "p2p"}


def test_enough_are_free_or_it_is_as_wanted() -> None:
    assert enough_hugepages(None, FACTS, 2048) and not enough_hugepages(None, FACTS, 2049)
    assert enough_hugepages(True, FACTS, 4096) and not enough_hugepages(False, FACTS, 1)
    assert pages_for(MB_PER_SWITCH) == 512 and pages_for(3) == 2


def test_a_run_takes_them_for_all_switches_or_for_none() -> None:
    two, three = survey("quick", TWO, facts=FACTS), survey("quick", THREE, facts=FACTS)
    assert (two.hugepages, two.small_pages) == (True, "")
    assert not three.hugepages
    assert "1024 of the 1536 hugepages that this plan takes are free; `echo 1536 | sudo tee" in three.small_pages
    assert not survey("quick", THREE, facts=FACTS, hugepages=False).small_pages


def test_large_frames_and_several_queues_take_more() -> None:
    assert not survey("quick", TWO | {"frame_size": "9000", "wire": "vhost"}, facts=FACTS).hugepages
    assert not survey("quick", {"switch": "planed:workers=2,sim", "scenario": "p2p"}, facts=FACTS).hugepages
    assert survey("quick", {"switch": "planed,sim", "scenario": "p2p"}, facts=FACTS).hugepages


def test_hosted_vnfs_take_their_memory() -> None:
    one = {"switch": "planed", "scenario": "loopback", "chain_length": "2"}
    assert survey("quick", one | {"hosting": "separate", "chain_length": "3"}, facts=FACTS).hugepages  # 4 of 512 MiB
    assert not survey("quick", one | {"hosting": "separate", "chain_length": "4"}, facts=FACTS).hugepages
    large = {"chain_length": None, "chain": ["container:l2fwd:memory_mb=1537"]}
    assert not survey("quick", {**one, **large}, facts=FACTS).hugepages
    assert survey("quick", one | {"chain_length": "3"}, facts=FACTS).hugepages


def test_a_switch_that_takes_more_is_counted_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimAdapter, "hugepages_mb", 1025)
    assert not survey("quick", TWO, facts=FACTS).hugepages
    assert {it.name for it in all_adapters().values() if it.hugepages_mb != MB_PER_SWITCH} == {"grout", "sim"}


def test_a_mounted_hugetlbfs_is_found(tmp_path: Path) -> None:
    assert not hugetlbfs_mounted(tmp_path)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "mounts").write_text("hugetlbfs /mnt tmpfs rw 0 0\n")
    assert not hugetlbfs_mounted(tmp_path)
    (tmp_path / "proc" / "mounts").write_text("none / overlay rw 0 0\nnone /dev/hugepages hugetlbfs rw 0 0\n")
    assert hugetlbfs_mounted(tmp_path)


def test_nothing_is_said_where_enough_are_free() -> None:
    assert not too_few_words(replace(FACTS, hugepages_2m_free=1536), 3 * MB_PER_SWITCH)
    assert too_few_words(replace(FACTS, hugepages_2m_free=0), 3 * MB_PER_SWITCH).startswith("pages of 4 KiB: 0 of the")


def test_the_memory_of_free_pages(tmp_path: Path) -> None:
    assert free_bytes(tmp_path) == 0
    folder = tmp_path / "sys/kernel/mm/hugepages/hugepages-2048kB"
    folder.mkdir(parents=True)
    (folder / "free_hugepages").write_text("5120\n")
    assert free_bytes(tmp_path) == 10 * 2**30
