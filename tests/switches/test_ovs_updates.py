# SPDX-License-Identifier: BSD-3-Clause
"""The controller that changes Open vSwitch's flows: its messages, and its account of what a bridge has applied."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host.process import stretched
from planebench.host.programs import find_program, run_tool
from planebench.model.errors import DiedError
from planebench.switches import ovs_updates
from planebench.switches.ovs_updates import BATCH, HEADER, FlowMods, VnfFlow, flow_mod

FLOWS = [VnfFlow(1, "02:00:00:00:02:01", 3), VnfFlow(1, "02:00:00:00:02:02", 4)]


class Bridge:
    """A bridge that answers barriers, refuses one in ``refuse_one_in`` flow-mods, and asks for an echo first."""

    def __init__(self, path: Path, refuse_one_in: int = 0, closes_after: int = 0) -> None:
        self.mods: list[bytes] = []
        self.echoes = 0
        self._refuse_one_in = refuse_one_in
        self._closes_after = closes_after
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection, connection.makefile("rb") as received:
            connection.sendall(HEADER.pack(1, 0, 8, 0) + HEADER.pack(1, 2, 10, 7) + b"hi")
            while head := received.read(8):
                _, kind, length, number = HEADER.unpack(head)
                body = received.read(length - 8)
                if kind == 14:
                    self.mods.append(head + body)
                    if self._closes_after and len(self.mods) >= self._closes_after:
                        return
                    if self._refuse_one_in and len(self.mods) % self._refuse_one_in == 0:
                        connection.sendall(HEADER.pack(1, 1, 12, number) + struct.pack("!HH", 3, 0))
                elif kind == 18:
                    connection.sendall(HEADER.pack(1, 19, 8, number))
                elif kind == 3:
                    assert (number, body) == (7, b"hi")
                    self.echoes += 1

    def close(self) -> None:
        self._thread.join(stretched(5))
        self._server.close()


@pytest.fixture
def bridges(tmp_path: Path) -> Iterator[list[Bridge]]:
    made: list[Bridge] = []
    yield made
    for it in made:
        it.close()


def sent_for(bridge: Path, updates: float | str, seconds: float) -> ovs_updates.FibUpdates:
    running = FlowMods(bridge, FLOWS, updates)  # type: ignore[arg-type]
    time.sleep(seconds)
    return running.end()


@pytest.mark.parametrize(("strip", "actions"), [(False, "actions=output:3"), (True, "actions=strip_vlan,output:3")])
def test_open_vswitch_reads_an_update_as_it_is_meant(*, strip: bool, actions: str) -> None:
    ofctl = find_program("ovs-ofctl")
    if ofctl is None:
        pytest.skip("ovs-ofctl is not here")
    said = run_tool([ofctl, "ofp-print", flow_mod(FLOWS[0], strip_vlan=strip).hex()])
    assert "OFPT_FLOW_MOD (xid=0x0): MOD_STRICT in_port=1,dl_dst=02:00:00:00:02:01" in said.stdout, said
    assert said.stdout.strip().endswith(actions)


def test_every_update_differs_from_the_last_one_of_its_flow(tmp_path: Path, bridges: list[Bridge]) -> None:
    bridges.append(Bridge(tmp_path / "mgmt"))
    done = sent_for(tmp_path / "mgmt", "flat_out", 0.05)
    (bridge,) = bridges
    bridge.close()
    assert done.sent == done.acknowledged == len(bridge.mods) > 2 * BATCH
    assert (done.refused, done.intended_per_s, bridge.echoes) == (0, None, 1)
    assert bridge.mods[:4] == [flow_mod(flow, strip_vlan=strip) for strip in (True, False) for flow in FLOWS]
    assert all(a != b for a, b in zip(bridge.mods, bridge.mods[2:], strict=False))


def test_a_rate_is_kept_and_refusals_are_no_updates(tmp_path: Path, bridges: list[Bridge]) -> None:
    bridges.append(Bridge(tmp_path / "mgmt", refuse_one_in=10))
    done = sent_for(tmp_path / "mgmt", 1000.0, 0.2)
    assert done.intended_per_s == 1000 and done.sent <= 1000 * done.duration_ns / 1e9 + 1
    assert done.sent > 0 and done.refused == done.sent // 10
    assert done.acknowledged == done.sent - done.refused


def test_a_bridge_that_goes_away_is_told(tmp_path: Path, bridges: list[Bridge]) -> None:
    bridges.append(Bridge(tmp_path / "mgmt", closes_after=5))
    with pytest.raises(DiedError, match="ended the session of its controller"):
        sent_for(tmp_path / "mgmt", "flat_out", 0.05)
    with pytest.raises(DiedError, match="takes no flow-mods"):
        FlowMods(tmp_path / "nobody", FLOWS, 1.0)
