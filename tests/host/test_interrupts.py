# SPDX-License-Identifier: BSD-3-Clause
"""Interrupts of the pollers' CPUs are counted, and those of NICs are moved away and back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planebench.host.device_settings import device_journal, keep_away
from planebench.host.evidence import count_difference, interrupt_counts
from tests.sysfs_tree import Tree

BEFORE = """\
            CPU0       CPU1       CPU3
  0:         40          0          0   IO-APIC    2-edge      timer
 27:          3          7          9   PCI-MSI 512001-edge      eth0-TxRx-0
 28:          3          1          2   PCI-MSI 512002-edge      eth0-TxRx-0
NMI:          0          0          0   Non-maskable interrupts
LOC:      50000        100        300   Local timer interrupts
ERR:          5
"""


def test_interrupts_of_some_cpus_by_name(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.set("proc/interrupts", BEFORE)
    before = interrupt_counts((1, 3), tree.root)
    assert before == {"timer": 0, "eth0-TxRx-0": 19, "NMI": 0, "LOC": 400, "ERR": 0}
    tree.set("proc/interrupts", BEFORE.replace("300   Local", "550   Local").replace("50000", "90000"))
    assert count_difference(before, interrupt_counts((1, 3), tree.root)) == {"LOC": 250}
    assert interrupt_counts((2,), tree.root) is None
    assert interrupt_counts((0,), tmp_path / "absent") is None
    assert count_difference(None, before) is None


def test_interrupts_of_nics_are_moved_and_moved_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(tmp_path / "root")
    tree.device("0000:3b:00.0", "ice", "40")
    tree.device("0000:02:00.0", "nvme", "3", **{"class": "0x010802"})
    for number, (address, cpus) in enumerate(
        (("0000:3b:00.0", "0-15"), ("0000:3b:00.0", "2"), ("0000:3b:00.0", "1"), ("0000:02:00.0", "0-15")), 30
    ):
        tree.set(f"sys/bus/pci/devices/{address}/msi_irqs/{number}", "msix")
        tree.set(f"proc/irq/{number}/smp_affinity_list", cpus)
    tree.run(monkeypatch)
    log = device_journal(tmp_path / "undo.json", tree.root)

    def places() -> list[str]:
        return [tree.get(f"proc/irq/{number}/smp_affinity_list") for number in range(30, 34)]

    before = places()
    assert keep_away((2, 3), (0, 2), log) == ()
    assert [outcome.kind for outcome in keep_away((2, 3), (0, 1, 4), log)] == ["changed", "changed"]
    assert places() == ["0-1,4", "0-1,4", "1", "0-15"]
    assert log.owned() == {"/proc/irq/30/smp_affinity_list", "/proc/irq/31/smp_affinity_list"}
    log.undo_own()
    assert places() == before
    assert not log.state.exists()


@pytest.mark.skipif(not Path("/proc/interrupts").exists(), reason="needs /proc/interrupts")
def test_interrupts_of_this_machine() -> None:
    counts = interrupt_counts(os.sched_getaffinity(0))
    assert counts and sum(counts.values()) > 0
