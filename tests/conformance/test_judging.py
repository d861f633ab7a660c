# SPDX-License-Identifier: BSD-3-Clause
"""What the suite makes of what it saw, without any program."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from planebench.conformance.checks import DropAccount
from planebench.conformance.frames import bad_frames, good_frames, read_pcap, write_pcap
from planebench.conformance.leftovers import Leftovers
from planebench.conformance.model import CheckResult, Report
from planebench.conformance.rig import PcapExchange, most
from planebench.conformance.suite import ALL_CHECKS, parse_cases, parse_checks, parse_wires, print_report, to_document
from planebench.host.procfs import processes_with
from planebench.model.errors import UsageError
from planebench.model.records import SwitchCycles
from planebench.switches import testpmd as testpmd_adapter

PORTS = ("n0", "v0", "v1", "n1")
PEERS = {"n0": "v0", "v0": "n0", "v1": "n1", "n1": "v1"}
Came = dict[str, list[bytes]]


def fresh() -> tuple[PcapExchange, Came]:
    """An exchange, and what a good switch makes of it."""
    sent = {name: good_frames(PORTS.index(name), PORTS.index(PEERS[name])) for name in PORTS}
    return PcapExchange(sent, PEERS), {name: [frame.data for frame in sent[PEERS[name]]] for name in PORTS}


def found(change: Callable[[Came], object]) -> dict[str, str]:
    exchange, came = fresh()
    change(came)
    exchange.add(came)
    words = {kind: most(getattr(exchange, kind)) for kind in ("astray", "changed", "disorder", "doubled")}
    words["lost"] = ", ".join(exchange.lost_kinds(plain=True) + exchange.lost_kinds(plain=False))
    return {kind: text for kind, text in words.items() if text}


def test_a_good_switch_is_found_good() -> None:
    assert found(lambda came: None) == {}


def test_a_frame_at_another_port_is_astray_not_lost() -> None:
    assert found(lambda came: came["n1"].append(came["v0"].pop(0))) == {"astray": "1 x n0 -> n1"}


def test_a_frame_that_comes_back_is_astray() -> None:
    assert found(lambda came: came["n0"].append(came["v0"][0])) == {"astray": "1 x n0 -> n0"}


def test_a_frame_that_comes_twice() -> None:
    assert found(lambda came: came["v0"].append(came["v0"][-1])) == {"doubled": "1 x n0 -> v0"}


def test_frames_of_one_flow_that_change_places() -> None:
    assert found(lambda came: came["v0"].insert(0, came["v0"].pop(1))) == {"disorder": "1 x n0 -> v0"}


def test_frames_of_two_flows_may_change_places() -> None:
    assert found(lambda came: came["v0"].insert(0, came["v0"].pop())) == {}


@pytest.mark.parametrize(
    ("byte", "where"),
    [(0, "destination MAC"), (11, "source MAC"), (13, "EtherType"), (22, "behind Ethernet"), (-1, "behind Ethernet")],
)
def test_one_changed_byte_is_found_and_placed(byte: int, where: str) -> None:
    def change(came: Came) -> None:
        data = bytearray(came["v0"][2])
        data[byte] ^= 0x40
        came["v0"][2] = bytes(data)

    words = found(change)
    assert set(words) == {"changed", "lost"}
    assert where in words["changed"] and "IPv4 66 B" in words["changed"] and "IPv4 66 B" in words["lost"]


def test_a_frame_that_grew_or_shrank() -> None:
    assert "a size that was not sent" in found(lambda came: came.update(v0=[*came["v0"], bytes(59)]))["changed"]


def test_only_what_never_comes_in_any_try_is_lost() -> None:
    exchange, came = fresh()
    for number in (3, 4):
        exchange.add({**came, "v0": [data for n, data in enumerate(came["v0"]) if n not in (number, 5)]})
    assert exchange.lost == {("n0", 5)}


def test_every_frame_differs_from_every_other() -> None:
    exchange, _ = fresh()
    frames = [frame.data for part in exchange.sent.values() for frame in part]
    assert len(set(frames)) == len(frames)
    assert {60, 61, 1514} <= {len(data) for data in frames}
    assert min(len(frame.data) for frame in bad_frames(0, 1)) == 14


def test_a_capture_comes_back_as_it_was_written_and_may_be_cut(tmp_path: Path) -> None:
    frames = [frame.data for frame in good_frames(0, 1)]
    path = tmp_path / "x.pcap"
    write_pcap(path, frames)
    assert read_pcap(path) == frames
    path.write_bytes(path.read_bytes()[:-1])
    assert read_pcap(path) == frames[:-1]
    assert read_pcap(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("switch", "tester", "exact", "wrong"),
    [
        (SwitchCycles(packets=190, forwarded_packets=185, drops={"v0:tx_full": 10}), {}, True, ""),
        (SwitchCycles(packets=190, drops={"v0:tx_full": 7, "n0:rx_nombuf": 99}), {"v1:tx_full": 3}, True, ""),
        (SwitchCycles(), {}, True, ""),
        (SwitchCycles(drops={"v0:tx_full": 4}), {}, True, "6 unexplained"),
        (SwitchCycles(drops={"v0:tx_full": 4}), {}, False, ""),
        (SwitchCycles(drops={"v0:tx_full": 14}), {}, False, "4 too many"),
        (SwitchCycles(packets=179), {}, True, "received 179, which is not within 180 to 200"),
        (SwitchCycles(packets=190, forwarded_packets=201), {}, True, "sent 201"),
    ],
)
def test_the_account_of_a_flood(switch: SwitchCycles, tester: dict[str, int], exact: bool, wrong: str) -> None:
    found = DropAccount(100, 90, 2, switch, tester).wrong(exact=exact)
    assert bool(found) == bool(wrong) and wrong in "; ".join(found)


def test_names_of_scenarios_wires_and_checks() -> None:
    assert [case.name for case in parse_cases("p2p,loopback,loopback-2")] == ["p2p", "loopback-1", "loopback-2"]
    assert parse_cases("loopback") == parse_cases("loopback-1")
    assert parse_wires(None, testpmd_adapter.ADAPTER) == ("virtio",)
    assert parse_wires("all", testpmd_adapter.ADAPTER) == ("virtio", "memif", "vhost", "veth", "af_xdp")
    assert parse_checks("order, intact") == {"order", "intact"}
    for wrong in (lambda: parse_cases("loopback-9"), lambda: parse_checks("ordre")):
        with pytest.raises(UsageError, match=r"Valid: "):
            wrong()


def report(*results: CheckResult) -> Report:
    return Report("x:y=1", "X", "1", "/x", False, ("virtio",), ("p2p", "v2v"), results, 1.0)


def shown(it: Report) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_report(it, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_a_failure_is_shown_with_what_was_expected_what_came_and_the_log() -> None:
    bad = CheckResult("order", "v2v", "virtio", "fail", (), "one", "two [x]", "its.log:\nlast words")
    it = report(CheckResult("order", "p2p", "virtio", "pass"), bad)
    text = shown(it)
    for part in ("FAIL order v2v virtio", "expected: one", "came: two [x]", "last words", "does not conform"):
        assert part in text
    assert not it.passed
    document = json.loads(json.dumps(to_document(it)))
    assert document["schema_version"] == 1 and document["passed"] is False
    assert document["counts"] == {"pass": 1, "fail": 1}
    assert document["results"][1]["came"] == "two [x]"
    assert {check["name"] for check in document["checks"]} == {check.name for check in ALL_CHECKS}


def test_reasons_are_told_and_are_no_pass() -> None:
    refused = [CheckResult(name, "p2p", "virtio", "not supported", ("no such port",)) for name in ("order", "intact")]
    it = report(CheckResult("found", "itself", None, "pass"), *refused)
    assert "not supported: 2 checks (p2p): no such port" in shown(it)
    assert not it.passed and "nothing was checked" in shown(it)


def test_every_check_says_what_it_proves() -> None:
    names = [check.name for check in ALL_CHECKS]
    assert len(set(names)) == len(names)
    page = (Path(__file__).parents[2] / "docs" / "adding-a-switch.md").read_text()
    for check in ALL_CHECKS:
        assert check.proves.endswith(".") and f"| `{check.name}` |" in page


def test_a_file_that_a_living_stranger_uses_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ours = tmp_path / "shared", tmp_path / "pb-ours"
    folder.mkdir()
    monkeypatch.setattr("planebench.conformance.leftovers.FOLDERS", ((str(folder), 2),))
    monkeypatch.setattr("planebench.conformance.leftovers.GRACE_S", 0.0)
    before = Leftovers.take()
    (folder / "new").touch()
    assert before.left(ours) == (str(folder / "new"),)
    assert before.touched([str(folder / "new"), str(folder / "gone")]) == (str(folder / "new"),)
    reader = os.popen(f"exec tail -f {folder / 'new'}")
    try:
        while not processes_with(f"tail\0-f\0{folder / 'new'}"):
            pass
        assert before.left(ours) == ()
    finally:
        for pid in processes_with(f"tail\0-f\0{folder / 'new'}"):
            os.kill(pid, 15)
        reader.close()
