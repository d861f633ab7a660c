# SPDX-License-Identifier: BSD-3-Clause
"""FastClick and Click without the programs: configurations, answers of a control socket, which ``click`` is which."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from planebench.host.programs import Found, Installation, NotFound
from planebench.model.errors import PlanebenchError, UsageError
from planebench.switches import click, common, fastclick
from planebench.switches import click as click_common
from planebench.switches.adapter import Situation
from planebench.testbed.request import SwitchPort, SwitchRequest

WORKDIR = Path("/tmp/w")
PAIRS = (("n0", "v0"), ("v1", "n1"))
LOOPBACK = SwitchRequest(
    ports=(
        *(SwitchPort(name, "virtio-user", path=WORKDIR / f"{name}.sock") for name in ("n0", "n1")),
        *(SwitchPort(name, "vhost-user", path=WORKDIR / f"{name}.sock") for name in ("v0", "v1")),
    ),
    cross_connects=PAIRS,
    cpu=3,
    control_cpus=frozenset({0, 2}),
    workdir=WORKDIR,
    hugepages=False,
)


def answer(name: str, text: str) -> bytes:
    return f"200 Read handler '{name}' OK\r\nDATA {len(text)}\r\n{text}".encode()


RECORDED = {
    "n0_in.count": 1319359,
    "n0_in.hw_dropped": 0,
    "n0_in.hw_errors": 0,
    "n0_in.nombufs": 0,
    "n0_out.count": 191,
    "n0_out.dropped": 0,
    "v0_in.count": 191,
    "v0_in.hw_dropped": 0,
    "v0_in.hw_errors": 0,
    "v0_in.nombufs": 0,
    "v0_out.count": 447,
    "v0_out.dropped": 1317888,
}
"""FastClick 2.1, two ports under overload: nobody empties the ring of v0, 1024 frames wait in its software queue."""
TRANSCRIPT = (
    b"Click::ControlSocket/1.3\r\n"
    + b"".join(answer(name, str(number)) for name, number in RECORDED.items())
    + b"511 No handler named 'useful_kcycles'\r\n"
    + answer("n0_out.config", "0, N_QUEUES 1")
    + b"200 Goodbye!\r\n"
)
"""As recorded: a number ends where the next answer begins."""
ASKED = [*RECORDED, "useful_kcycles", "n0_out.config"]


def test_answers_of_the_control_socket() -> None:
    texts = click_common.parse_answers(TRANSCRIPT, ASKED)
    assert texts == {**{name: str(number) for name, number in RECORDED.items()}, "n0_out.config": "0, N_QUEUES 1"}
    assert fastclick.handlers(["n0", "v0"]) == list(RECORDED)


def test_an_error_of_several_lines_is_passed_over() -> None:
    text = b"Click::ControlSocket/1.3\r\n520-First\r\n520 Second\r\n" + answer("b.count", "7")
    assert click_common.parse_answers(text, ["a.count", "b.count"]) == {"b.count": "7"}


def test_answers_that_are_not_whole_give_no_number_but_never_a_wrong_one() -> None:
    whole = click_common.parse_answers(TRANSCRIPT, ASKED)
    for end in range(len(TRANSCRIPT)):
        assert click_common.parse_answers(TRANSCRIPT[:end], ASKED).items() <= whole.items()
    for start in range(1, len(TRANSCRIPT)):
        assert click_common.parse_answers(TRANSCRIPT[start:], ASKED) == {}
    for start in range(26, len(TRANSCRIPT)):
        text = TRANSCRIPT[:26] + TRANSCRIPT[start:]
        assert click_common.parse_answers(text, ASKED).items() <= whole.items()
    assert click_common.parse_answers(TRANSCRIPT, ASKED[1:]) == {}, "not the answers to these questions"
    assert click_common.parse_answers(TRANSCRIPT.replace(b"DATA 7", b"DATA ?"), ASKED) == {}
    assert click_common.parse_answers(b"SSH-2.0\r\n" + TRANSCRIPT, ASKED) == {}


PAIR = [("n0", "v0")]


def drops_of(numbers: dict[str, int]) -> dict[str, int]:
    return fastclick.drops(numbers, ["n0", "v0"], fastclick.software_queues(numbers, PAIR, 1024))


def test_drops_by_port() -> None:
    found = drops_of(RECORDED)
    assert {key: count for key, count in found.items() if count} == {"v0:tx_full": 1317888}
    reasons = ("rx_missed", "rx_errors", "rx_nombuf", "tx_full")
    assert set(found) == {f"{port}:{reason}" for port in ("n0", "v0") for reason in reasons}
    faulty = drops_of({**RECORDED, "v0_in.hw_dropped": 1, "n0_in.hw_errors": 2, "n0_in.nombufs": 3})
    assert (faulty["v0:rx_missed"], faulty["n0:rx_errors"], faulty["n0:rx_nombuf"]) == (1, 2, 3)


@pytest.mark.parametrize("change", [{"v0_out.dropped": 0}, {"v0_out.count": 446}, {"n0_in.count": 1318334}])
def test_drops_that_do_not_add_up_are_unknown(change: dict[str, int]) -> None:
    """A build with --enable-dpdk-packet does not count what it drops at a full ring."""
    found = drops_of({**RECORDED, **change})
    assert "v0:tx_full" not in found and found["n0:tx_full"] == 0


@pytest.mark.parametrize("name", RECORDED)
def test_a_counter_that_is_not_there_makes_its_sum_unknown(name: str) -> None:
    numbers = {key: number for key, number in RECORDED.items() if key != name}
    ins, outs = ["n0_in.count", "v0_in.count"], ["n0_out.count", "v0_out.count"]
    assert common.total(map(numbers.get, ins)) == (None if name in ins else 1319550)
    assert common.total(map(numbers.get, outs)) == (None if name in outs else 638)
    assert drops_of(numbers).items() <= drops_of(RECORDED).items()


@pytest.mark.parametrize(
    ("text", "threads", "busy"), [("5", 1, 5), ("5 7\n", 2, 12), ("5", 2, None), ("5 7", 1, None), ("5 x", 2, None)]
)
def test_busy_cycles_are_of_all_threads(text: str, threads: int, busy: int | None) -> None:
    assert click_common.sum_of(text, threads) == busy


def test_frames_that_stay_behind_are_counted_once_each() -> None:
    kept, queue = fastclick.Kept(), fastclick.SoftwareQueue
    looks = [
        (queue(100, 100), 0),
        (queue(200, 168), 32),
        (queue(200, 168), 32),  # the same ones
        (queue(300, 300), 32),  # sent with those of the next trial
        (queue(400, 390), 42),
        (queue(500, 395), 142),  # 5 of the ten before, and a hundred more
    ]
    assert [kept.look({"v0": it})["v0:kept"] for it, _ in looks] == [count for _, count in looks]
    assert kept.look({}) == {}, "what does not add up is unknown"
    assert fastclick.software_queues(RECORDED, PAIR, 1024)["v0"] == queue(1471, 447)


def serve(path: Path, reply: bytes) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def run() -> None:
        connection, _ = server.accept()
        with server, connection:
            connection.recv(65536)
            connection.sendall(reply)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_asking_a_control_socket(tmp_path: Path) -> None:
    thread = serve(tmp_path / "c", TRANSCRIPT)
    assert click_common.ask(tmp_path / "c", ASKED)["v0_out.dropped"] == "1317888"
    thread.join()
    with pytest.raises(PlanebenchError, match=r"control socket /.*/none does not answer"):
        click_common.ask(tmp_path / "none", ASKED)


def test_a_program_that_is_paused_is_said_not_to_answer(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "c"))
        server.listen()
        with pytest.raises(PlanebenchError, match="does not answer: timed out"):
            click_common.ask(tmp_path / "c", ASKED, timeout_s=0.01)


def test_fastclick_configuration() -> None:
    ports = common.paired_ports(LOOPBACK)
    lines = fastclick.ADAPTER.graph(LOOPBACK, ports, WORKDIR / "f.ctl").splitlines()
    assert lines == [
        "DPDKInfo(NB_MBUF 65535);",
        *(
            line
            for number, name in enumerate(("n0", "v0", "v1", "n1"))
            for line in (
                f"{name}_in :: FromDPDKDevice({number}, N_QUEUES 1, MODE none, BURST 32, NDESC 256);",
                f"{name}_out :: ToDPDKDevice({number}, N_QUEUES 1, BLOCKING false, IQUEUE 1024, NDESC 256);",
            )
        ),
        "n0_in -> v0_out;",
        "v0_in -> n0_out;",
        "v1_in -> n1_out;",
        "n1_in -> v1_out;",
        "ControlSocket(UNIX, /tmp/w/f.ctl);",
    ]


def test_fastclick_arguments() -> None:
    arguments = fastclick.ADAPTER.eal_arguments(LOOPBACK, common.paired_ports(LOOPBACK), "pb-x")
    assert arguments[0] == "--dpdk" and arguments[-1] == "--"
    assert "--lcores=0@3" in arguments and "--no-huge" in arguments and "--single-file-segments" in arguments
    assert [it for it in arguments if it.startswith("--vdev=")] == [
        "--vdev=net_virtio_user0,path=/tmp/w/n0.sock,queue_size=256",
        "--vdev=net_vhost1,iface=/tmp/w/v0.sock,queues=1",
        "--vdev=net_vhost2,iface=/tmp/w/v1.sock,queues=1",
        "--vdev=net_virtio_user3,path=/tmp/w/n1.sock,queue_size=256",
    ]
    huge = fastclick.ADAPTER.eal_arguments(replace(LOOPBACK, hugepages=True), LOOPBACK.ports, "pb-x")
    assert "--in-memory" in huge and "--no-huge" not in huge


def test_fastclick_with_options_and_large_frames() -> None:
    texts = {"ndesc": "4096", "burst": "64", "blocking": "true", "iqueue": "2048", "buffers": "32767"}
    adapter = fastclick.ADAPTER.with_options(texts)
    text = adapter.graph(replace(LOOPBACK, max_frame_bytes=9018), LOOPBACK.ports, WORKDIR / "f.ctl")
    assert "DPDKInfo(NB_MBUF 32767, MBUF_SIZE 9856);" in text
    assert text.count("BURST 64, NDESC 4096") == text.count("BLOCKING true, IQUEUE 2048, NDESC 4096") == 4
    settings = adapter.settings(LOOPBACK)
    assert (settings["ndesc"], settings["burst"], settings["ring_size"]) == ("4096", "64", "256")
    assert settings["buffers"].startswith("32767") and settings["tx_queue"].startswith("2048")
    assert fastclick.ADAPTER.buffers(replace(LOOPBACK, max_frame_bytes=9018)) == 16383
    for bad in ({"iqueue": "1000"}, {"burst": "0"}):
        with pytest.raises(UsageError, match="is not valid"):
            fastclick.ADAPTER.with_options(bad)


def fake_click(folder: Path, says: str, classes: str = "FromDPDKDevice") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "click"
    program.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{says}" || printf "{classes}\\n"\nkill -ABRT $$\n')
    program.chmod(0o755)
    return program


def test_a_click_is_known_by_what_it_says(tmp_path: Path) -> None:
    click = fake_click(tmp_path / "a", "click (Click) 2.1")
    fast = fake_click(tmp_path / "b" / "bin", "click (FastClick) 2.1")
    fake_click(tmp_path / "c", "click (FastClick) 9.9", "FromDevice")
    fake_click(tmp_path / "d", "usage: click")
    where = {name: Installation(tmp_path / name, "option") for name in "abcd"}
    assert click_common.find_click(where["a"], "Click", ()) == (click, "2.1")
    assert click_common.find_click(where["b"], "FastClick", ()) == (fast, "2.1")
    with pytest.raises(UsageError, match=r'option ".*/a/click" is not FastClick: --version says click \(Click\) 2\.1'):
        click_common.find_click(where["a"], "FastClick", ())
    with pytest.raises(UsageError, match="says no version of Click"):
        click_common.find_click(where["d"], "Click", ())


def test_the_right_click_is_found_behind_another_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_click(tmp_path / "bin", "Debian's click 0.5")
    fast = fake_click(tmp_path / "usual", "click (FastClick) 2.1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert click_common.find_click(Installation(), "FastClick", [str(fast)]) == (fast, "2.1")
    assert click_common.find_click(Installation(), "Click", [str(fast)]) is None


def test_fastclick_without_dpdk_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = fake_click(tmp_path / "plain", "click (FastClick) 2.1", "FromDevice")
    monkeypatch.setenv("PLANEBENCH_FASTCLICK", str(plain))
    found = fastclick.ADAPTER.find()
    assert isinstance(found, NotFound) and "is FastClick without DPDK" in found.remedy
    good = fake_click(tmp_path / "good", "click (FastClick) 2.1", "Idle\\nFromDPDKDevice")
    monkeypatch.setenv("PLANEBENCH_FASTCLICK", str(tmp_path / "good"))
    assert fastclick.ADAPTER.find() == Found("2.1", good)


KERNEL = replace(
    LOOPBACK,
    ports=tuple(SwitchPort(name, "af_packet", interface=f"{name}-switch") for name in ("n0", "n1")),
    cross_connects=(("n0", "n1"),),
    netns_pid=1,
)


def test_click_configuration() -> None:
    ports = common.paired_ports(KERNEL)
    assert click.ADAPTER.graph(KERNEL, ports, WORKDIR / "c.ctl").splitlines() == [
        "n0_in :: FromDevice(n0-switch, PROMISC true, SNAPLEN 2046, METHOD PCAP, BURST 32);",
        "n0_out :: ToDevice(n0-switch, BURST 32);",
        "n1_in :: FromDevice(n1-switch, PROMISC true, SNAPLEN 2046, METHOD PCAP, BURST 32);",
        "n1_out :: ToDevice(n1-switch, BURST 32);",
        "n0_in -> n1_queue :: Queue(1000) -> n1_out;",
        "n1_in -> n0_queue :: Queue(1000) -> n0_out;",
        "ControlSocket(UNIX, /tmp/w/c.ctl);",
    ]
    chosen = click.ADAPTER.with_options({"method": "linux", "queue": "64", "burst": "1"})
    text = chosen.graph(replace(KERNEL, max_frame_bytes=9018), ports, WORKDIR / "c.ctl")
    assert "SNAPLEN 9216, METHOD LINUX, BURST 1" in text and text.count("Queue(64)") == 2
    with pytest.raises(UsageError, match="no interface"):
        click.ADAPTER.graph(LOOPBACK, LOOPBACK.ports, WORKDIR / "c.ctl")


def test_click_is_on_the_veth_wire_only() -> None:
    assert click.ADAPTER.refusal(Situation("p2p", "virtio")) == "click has no virtio wire; use --wire veth"
    assert click.ADAPTER.refusal(Situation("loopback", "veth", 1)) == ""
    settings = click.ADAPTER.settings(KERNEL)
    assert settings["queue"].startswith("1000") and "libpcap" in settings["nic_driver"]


CLICK_COUNTS = {"n0_in.count": "100", "n0_in.kernel_drops": "3", "n0_queue.drops": "0"} | {
    "n1_in.count": "90",
    "n1_in.kernel_drops": "0",
    "n1_queue.drops": "7",
}


@pytest.mark.parametrize(("method", "missed"), [("pcap", 3), ("linux", 6)])
def test_click_counters(monkeypatch: pytest.MonkeyPatch, method: str, missed: int) -> None:
    running = click.RunningUserClick(None, WORKDIR / "c.ctl", ["n0", "n1"], method)  # type: ignore[arg-type]
    monkeypatch.setattr(running, "check", lambda: None)
    monkeypatch.setattr(click_common, "ask", lambda path, names: {name: CLICK_COUNTS[name] for name in names})
    running.counters()
    after = running.counters()
    assert (after.packets, after.forwarded_packets, after.busy_cycles, after.bursts) == (190, None, None, None)
    assert after.drops == {
        "n0:rx_missed": missed,
        "n1:rx_missed": 0,
        "n0:queue_full": 0,
        "n1:queue_full": 7,
    }, "PACKET_STATISTICS begins anew with each look, libpcap adds up"


def test_click_counters_that_are_no_numbers_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    running = click.RunningUserClick(None, WORKDIR / "c.ctl", ["n0", "n1"], "linux")  # type: ignore[arg-type]
    monkeypatch.setattr(running, "check", lambda: None)
    monkeypatch.setattr(click_common, "ask", lambda path, names: {"n0_in.count": "7", "n0_in.kernel_drops": "??"})
    counters = running.counters()
    assert counters.packets is None and counters.drops == {}
