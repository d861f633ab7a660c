# SPDX-License-Identifier: BSD-3-Clause
"""capacity, as a user types it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_run, store_run

from planebench.host.facts import HostFacts
from planebench.host.pci import Nic

SERVER = ("--ports", 4, "--vfs", 63, "--lcores", 32, "--sockets", 2)


@pytest.fixture
def chains(own_run_folder: Path) -> Any:
    return store_run(
        own_run_folder, make_run(("planed", "vpp"), sizes=(64,), chains=(1, 2, 3), loads=(), problems=False)
    )


def test_capacity_of_the_server_of_ic16(planebench: Any) -> None:
    done = planebench("capacity", *SERVER)
    assert (done.code, done.err) == (0, "")
    assert "in all      32 VNFs, each with a core of its own; limit: logical cores" in done.out
    assert "assumed" not in done.out
    found = json.loads(planebench("capacity", *SERVER, "--json").out)
    assert found["capacity"] == {"per_port": 8, "per_socket": 16, "vnfs": 32, "limit": "logical cores"}


def test_capacity_of_this_host_and_by_a_run(planebench: Any, chains: Any) -> None:
    assert planebench("capacity").code == 0
    done = planebench("capacity", "latest", *SERVER, "--rate", "100k")
    assert (done.code, done.err) == (0, "")
    assert "VNFs (or chains of them) that receive 100kpps each, by the cores of the switch, measured on " in done.out
    assert "p2p → 64 B" in done.out
    paths = json.loads(planebench("capacity", "latest", *SERVER, "--json").out)["paths"]
    assert len(paths) == len({(it["switch"], it["point"]) for it in paths})
    assert "p2p/bidirectional/64" in {it["point"].rpartition("/virtio")[0] for it in paths}, "as in a comparison"
    of_vnfs = [it for it in paths if it["vnfs_of_one_core"] is not None]
    assert {it["path"].split()[0] for it in paths if it not in of_vnfs} == {"p2p"}
    assert all(it["vnfs_of_all_cores"][0] >= 32 * it["vnfs_of_one_core"][0] for it in of_vnfs)


def test_capacity_reads_what_is_not_given_from_the_host(planebench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ports with virtual functions, one of which exists already; 4 CPUs on two nodes."""
    port = Nic("0000:3b:00.0", "ixgbe", 0, "1", vfs_possible=63)
    nics = (port, replace(port, address="0000:3b:00.1"), replace(port, address="0000:3b:10.0", physical=port.address))
    cpus = (0, 1, 2, 3)
    facts = HostFacts(cpus_online=cpus, cpus_allowed=cpus, numa_node={0: 0, 1: 0, 2: 1, 3: 1}, nics=nics)
    monkeypatch.setattr("planebench.cli.capacity.collect", lambda: facts)
    found = json.loads(planebench("capacity", "--json").out)
    assert found["assumed"] == []
    assert found["server"] == {"ports": 2, "vfs_per_port": 63, "lcores": 4, "sockets": 2, "reserved": 0}
    assert found["capacity"] == {"per_port": 2, "per_socket": 2, "vnfs": 4, "limit": "logical cores"}


def test_what_no_nic_tells_is_said_to_be_assumed(planebench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.cli.capacity.collect", lambda: HostFacts(cpus_online=(0, 1), cpus_allowed=(0, 1)))
    said = planebench("capacity").out
    assert "assumed, because no NIC tells: 1 port and 63 virtual functions a port (ic16)" in said
    assert "because no NIC tells: 1 port\n" in planebench("capacity", "--vfs", 8).out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ports", 0), "'--ports': Input should be greater than or equal to 1"),
        (("--vfs", 0), "'--vfs'"),
        (("--lcores", 4, "--reserved", 4), "--reserved: 4 of 4 logical cores leave none for VNFs"),
        (("--rate", "fast"), 'rate "fast" is not valid'),
    ],
)
def test_bad_numbers_of_capacity_are_one_sentence(planebench: Any, options: tuple[Any, ...], words: str) -> None:
    done = planebench("capacity", *options)
    assert (done.code, done.out) == (2, "")
    assert words in done.err and done.err.count("\n") == 1
