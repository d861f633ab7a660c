# SPDX-License-Identifier: BSD-3-Clause
"""Snabb's adapter without Snabb: what it refuses, and its counters in shared memory."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.switches import snabb
from planebench.switches.adapter import Situation
from planebench.testbed.request import SwitchPort, SwitchRequest

LINK = "v0.tx -> v1.rx"


def write_link(state: Path, **counts: int) -> Path:
    folder = state / "7" / "links" / LINK
    folder.mkdir(parents=True)
    for name, count in counts.items():
        (folder / f"{name}.counter").write_bytes(struct.pack("<Q", count))
    return folder


def test_counters_of_a_link(tmp_path: Path) -> None:
    write_link(tmp_path, txpackets=692711, rxpackets=691688, txdrop=24153)
    assert snabb.read_link(tmp_path, 7, LINK) == {"txpackets": 692711, "rxpackets": 691688, "txdrop": 24153}


@pytest.mark.parametrize("name", ["txpackets", "rxpackets", "txdrop"])
def test_a_counter_that_is_not_whole_is_no_number(tmp_path: Path, name: str) -> None:
    folder = write_link(tmp_path, txpackets=1, rxpackets=1, txdrop=0)
    for size in range(8):
        (folder / f"{name}.counter").write_bytes(bytes(size))
        assert snabb.read_link(tmp_path, 7, LINK) is None
    (folder / f"{name}.counter").unlink()
    assert snabb.read_link(tmp_path, 7, LINK) is None


def test_it_has_no_driver_for_an_emulated_nic() -> None:
    assert snabb.ADAPTER.refusal(Situation("v2v", "virtio")) == ""
    assert {snabb.ADAPTER.refusal(Situation("p2p", wire)) for wire in ("vhost", "veth")} == {""}
    assert "--wire vhost" in snabb.ADAPTER.refusal(Situation("p2v", "virtio"))
    assert "up to 1518" in snabb.ADAPTER.refusal(Situation("v2v", "virtio", max_frame_bytes=9018))


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("snabb 2022.07 (396-gf32729274-dirty)", "2022.07 (396-gf32729274-dirty)"),
        ("snabb 2024.08", "2024.08"),
        ("vpp v26.06", None),
        ("", None),
    ],
)
def test_version(said: str, version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "snabb"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PLANEBENCH_SNABB", str(program))
    found = snabb.ADAPTER.find()
    assert found == Found(version, program) if version else isinstance(found, NotFound)


STAND_IN = """\
    #!{python}
    # Snabb as far as its adapter can see: it listens at its vhost ports, has counters, and says that it forwards.
    import os, re, socket, struct, sys, time
    if "--version" in sys.argv:
        sys.exit(print("snabb 2024.08"))
    words = sys.argv[3:]
    kept = [socket.socket(socket.AF_UNIX) for word in words if "=vhost:" in word]
    for listener, path in zip(kept, (word.partition("=vhost:")[2] for word in words if "=vhost:" in word)):
        listener.bind(path)
    for a, b in (word.split("-") for word in words if "=" not in word):
        for link in (f"{{a}}.tx -> {{b}}.rx", f"{{b}}.tx -> {{a}}.rx"):
            folder = os.path.join(os.environ["SNABB_SHM_ROOT"], str(os.getpid()), "links", link)
            os.makedirs(folder)
            for name, count in (("txpackets", 5), ("rxpackets", 4), ("txdrop", 1)):
                open(os.path.join(folder, name + ".counter"), "wb").write(struct.pack("<Q", count))
    print("forwarding, pid", os.getpid(), flush=True)
    time.sleep(600)
    """


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(Path("/tmp")) as it:
        yield it


def test_on_two_cores_each_process_has_its_hops(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "snabb"
    program.write_text(dedent(STAND_IN).format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PLANEBENCH_SNABB", str(program))
    folder, (first, *_, last) = supervisor.workdir("t"), sorted(os.sched_getaffinity(0)) * 2
    hops = (("n0", "v0"), ("v1", "v2"), ("v3", "n1"))
    ports = [SwitchPort(name, "vhost-user", path=folder / name) for hop in hops for name in hop]
    wanted = SwitchRequest(tuple(ports), hops, first, frozenset({first}), folder, hugepages=False, more_cpus=(last,))
    switch = snabb.ADAPTER.start(wanted, supervisor)
    assert [os.sched_getaffinity(thread.tid) for thread in switch.polling_threads()] == [{first}, {last}]
    counters = switch.counters()
    assert (counters.packets, counters.forwarded_packets) == (6 * 6, 6 * 4)
    assert counters.drops == {f"{port.name}:tx_full": 1 for port in ports}
    switch.stop()
    assert not any(process.alive() for process in supervisor.processes)
