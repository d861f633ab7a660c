# SPDX-License-Identifier: BSD-3-Clause
"""Cables are found, and two that are swapped are told: memifs stand in for them, so it needs no NIC and no root."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from planebench.cli.wires import drawn, option_words, wires
from planebench.host.planed_program import REMEDY, find_planed
from planebench.measure import cabling as cabling_module
from planebench.measure.cabling import Cabling, FoundPort
from planebench.model.errors import UsageError
from planebench.testbed.request import Ends

A0, A1, B0, B1 = "0000:3b:00.0", "0000:3b:00.1", "0000:af:00.0", "0000:af:00.1"


def port(device: str, *, link: bool = True) -> FoundPort:
    return FoundPort(device, "net_ixgbe", link, 10_000)


def cabling(receivers: dict[str, tuple[str, ...]], down: tuple[str, ...] = ()) -> Cabling:
    return Cabling(tuple(port(device, link=device not in down) for device in receivers), receivers)


CROSSED = cabling({A0: (B1,), A1: (B0,), B0: (A1,), B1: (A0,)})


def test_two_ports_that_hear_each_other_only_are_the_ends_of_a_cable() -> None:
    assert CROSSED.cables == (Ends(A0, B1), Ends(A1, B0))
    assert not CROSSED.problems
    assert option_words(CROSSED) == f"pci:{A0}={B1},{A1}={B0}"
    assert next(iter(drawn(CROSSED))) == f"{A0} (net_ixgbe, 10 Gb/s)  ------  {B1} (net_ixgbe, 10 Gb/s)"


def test_swapped_cables_are_told() -> None:
    assert CROSSED.differences([Ends(A0, B0), Ends(A1, B1)]) == (
        f"{A0} is cabled to {B1}, not to {B0}",
        f"{A1} is cabled to {B0}, not to {B1}",
    )
    assert not CROSSED.differences([Ends(B1, A0), Ends(A1, B0)])


def test_the_tester_has_one_card_and_the_switch_the_other() -> None:
    found = cabling({A0: (B0,), B1: (A1,), B0: (A0,), A1: (B1,)})
    assert option_words(found) == f"pci:{A0}={B0},{A1}={B1}"


@pytest.mark.parametrize(
    ("receivers", "down", "words"),
    [
        ({A0: (), A1: ()}, (A0,), f"{A0} has no link"),
        ({A0: (), A1: ()}, (), f"{A0} has a link, but none"),
        ({A0: (A0,), A1: ()}, (), f"{A0} receives its own frames"),
        ({A0: (A1, B0), A1: (A0, B0), B0: (A0, A1)}, (), f"{A0} is heard by {A1} and {B0}"),
    ],
)
def test_whatever_is_no_cable_is_told(receivers: dict[str, tuple[str, ...]], down: tuple[str, ...], words: str) -> None:
    found = cabling(receivers, down)
    assert not found.cables and not option_words(found)
    assert found.problems[0].startswith(words)


def test_a_port_that_is_silent_in_one_try_is_heard_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """In no try does the tester come to send at both ports."""
    tries = iter([("b",), (), (), ("a",)])
    monkeypatch.setattr(cabling_module, "_receivers", lambda *args: next(tries, ()))
    monkeypatch.setattr(cabling_module, "_ports", lambda planed, devices: tuple(map(port, devices)))
    found = cabling_module._found(SimpleNamespace(call=None, check=None), ("a", "b"), 0.1)  # type: ignore[arg-type]
    assert found.cables == (Ends("a", "b"),)


def test_a_cable_has_two_ends() -> None:
    with pytest.raises(UsageError, match="a cabling has 2 to 32 ports, not 1"):
        wires(["net_null0"], None, hugepages=False)


@pytest.mark.dataplane
@pytest.mark.skipif(find_planed() is None, reason=REMEDY)
def test_the_command_finds_cables_of_any_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four ports in the order in which they would be if the two cables were not crossed."""
    sockets = {name: f"socket={tmp_path}/{name},socket-abstract=no,id=0" for name in "xy"}
    devices = [
        f"net_memif0,role=server,{sockets['x']}",
        f"net_memif1,role=server,{sockets['y']}",
        f"net_memif2,role=client,{sockets['y']}",
        f"net_memif3,role=client,{sockets['x']}",
    ]
    assert wires(devices, None, hugepages=False, json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cables"] == [[devices[0], devices[3]], [devices[1], devices[2]]]
    assert (found["problems"], found["wire"]) == ([], None)
    assert {entry["driver"] for entry in found["ports"]} == {"net_memif"}
