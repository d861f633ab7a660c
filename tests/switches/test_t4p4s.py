# SPDX-License-Identifier: BSD-3-Clause
"""t4p4s' adapter with a stand-in for what t4p4s compiles: it checks its arguments and speaks DPDK's telemetry."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from bench import request
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.errors import DiedError, PlanebenchError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.switches import t4p4s
from planebench.switches.adapter import Situation
from planebench.testbed.request import SwitchPort

GREETING = json.dumps({"version": "DPDK 22.11.11", "pid": 7, "max_output_len": 16384}).encode()
STATS = {"ipackets": 100, "opackets": 90, "ibytes": 1, "imissed": 0, "ierrors": 0, "oerrors": 0, "rx_nombuf": 0}

STAND_IN = """\
    #!{python}
    # A program of t4p4s, as far as its adapter can see: EAL's arguments, its own, vhost sockets, telemetry.
    import json, os, re, socket, sys, threading
    eal, own = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    if "-v" in eal:
        print("EAL: RTE Version: 'DPDK 22.11.11'")
        print("EAL: Error - exiting with code: 1")
        sys.exit("  Cause: Invalid T4P4S arguments")
    vdevs = [it.removeprefix("--vdev=") for it in eal if it.startswith("--vdev=")]
    assert [it for it in eal if it.startswith("--lcores=")] == ["--lcores=0@{cpu}"], eal
    pairs = ",".join(f"({{n}},0,0)" for n in range(len(vdevs)))
    assert own == ["-p", hex((1 << len(vdevs)) - 1), "--config", pairs, "--no-numa"], own
    kept = []
    def listen(path, kind):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        kept.append(socket.socket(socket.AF_UNIX, kind))
        if kind == socket.SOCK_SEQPACKET and os.path.exists(path):
            os.unlink(path)  # DPDK's telemetry does; its vhost does not
        kept[-1].bind(path)
        kept[-1].listen()
        return kept[-1]
    for vdev in vdevs:
        if match := re.match(r"net_vhost\\d+,iface=([^,]+),queues=1$", vdev):
            listen(match[1], socket.SOCK_STREAM)
    prefix = next(it for it in eal if it.startswith("--file-prefix=")).partition("=")[2]
    path = os.path.join(os.environ["RUNTIME_DIRECTORY"], "dpdk", prefix, "dpdk_telemetry.v2")
    server = listen(path, socket.SOCK_SEQPACKET)
    def serve(connection):
        connection.send({greeting})
        while command := connection.recv(1024).decode():
            name, _, port = command.partition(",")
            value = {{"dev_started": 1}} if name == "/ethdev/info" else {stats}
            connection.send(json.dumps({{name: value if int(port) < len(vdevs) else None}}).encode())
    while True:
        threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
    """


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write(tmp_path, monkeypatch, STAND_IN)


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = folder / "xconn"
    path.write_text(dedent(text).format(python=sys.executable, cpu=request(folder).cpu, stats=STATS, greeting=GREETING))
    path.chmod(0o755)
    monkeypatch.setenv("PLANEBENCH_T4P4S", str(path))
    return path


class Telemetry:
    """DPDK's end of a telemetry socket: ``answers`` go out as they are, one for each command."""

    def __init__(self, path: Path, answers: list[bytes], greeting: bytes = GREETING) -> None:
        self.asked: list[str] = []
        self._greeting, self._answers = greeting, answers
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._server.bind(str(path))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            connection.send(self._greeting)
            for answer in self._answers:
                self.asked.append(connection.recv(1024).decode())
                if self.asked[-1]:
                    connection.send(answer)

    def close(self) -> None:
        self._thread.join(5)
        self._server.close()


@pytest.fixture
def telemetry(tmp_path: Path) -> Iterator[Any]:
    made: list[Telemetry] = []

    def make(*answers: bytes) -> tuple[Path, Telemetry]:
        made.append(Telemetry(tmp_path / "telemetry", list(answers), GREETING))
        return tmp_path / "telemetry", made[-1]

    yield make
    for it in made:
        it.close()


def test_telemetry_is_asked_in_turn(telemetry: Any) -> None:
    path, server = telemetry(b'{"/ethdev/list": [0, 1]}', b'{"/ethdev/stats": {"ipackets": 7, "name": "x"}}')
    assert t4p4s.ask(path, "/ethdev/list", "/ethdev/stats,1") == [[0, 1], {"ipackets": 7, "name": "x"}]
    assert server.asked == ["/ethdev/list", "/ethdev/stats,1"]


@pytest.mark.parametrize(
    "answer", [b'{"/ethdev/stats": {"ipack', b'{"/ethdev/xstats": {"ipackets": 7}}', b"[7]", b"hello"]
)
def test_telemetry_of_another_kind_is_refused(telemetry: Any, answer: bytes) -> None:
    path, _ = telemetry(answer)
    with pytest.raises(PlanebenchError, match=r"DPDK telemetry on .* does not answer /ethdev/stats,0: "):
        t4p4s.ask(path, "/ethdev/stats,0")


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(PlanebenchError, match="does not answer /: "):
        t4p4s.ask(tmp_path / "none", "/")


def test_only_whole_numbers_are_counters() -> None:
    said = {"ipackets": 7, "name": "x", "q": [1], "up": True, "rate": 1.5, "below": -1, "none": None}
    assert t4p4s.port_counters(said) == {"ipackets": 7}
    assert t4p4s.port_counters(None) == {}
    assert t4p4s.port_counters([7]) == {}


PORTS = (SwitchPort("n0", "virtio-user"), SwitchPort("v0", "vhost-user"))


def test_drops_are_what_did_not_leave() -> None:
    n0, v0 = dict(STATS), {**STATS, "ipackets": 95, "opackets": 80, "oerrors": 15, "rx_nombuf": 3}
    assert t4p4s.drops(PORTS, [n0, v0]) == {
        "n0:rx_missed": 0,
        "n0:rx_errors": 0,
        "n0:rx_nombuf": 0,
        "n0:tx_errors": 0,
        "n0:not_sent": 5,
        "v0:rx_missed": 0,
        "v0:rx_errors": 0,
        "v0:rx_nombuf": 3,
        "v0:tx_full": 15,
        "v0:not_sent": 5,
    }


@pytest.mark.parametrize("missing", ["ipackets", "opackets", "oerrors"])
def test_a_counter_that_is_missing_is_no_zero(missing: str) -> None:
    cut = {name: value for name, value in STATS.items() if name != missing}
    sender = "v0" if missing == "ipackets" else "n0"
    assert not [key for key in t4p4s.drops(PORTS, [cut, STATS]) if key.startswith(f"{sender}:") and "rx_" not in key]
    assert t4p4s.drops(PORTS, [{}, {}]) == {}


def test_more_sent_than_received_is_no_number() -> None:
    assert not [key for key in t4p4s.drops(PORTS, [{**STATS, "opackets": 101}, STATS]) if key == "n0:not_sent"]


def test_it_is_where_the_user_says(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert t4p4s.ADAPTER.find() == Found("xconn on DPDK 22.11.11", program)
    monkeypatch.delenv("PLANEBENCH_T4P4S")
    assert isinstance(t4p4s.ADAPTER.find(), NotFound)
    assert t4p4s.ADAPTER.with_options({"path": str(program)}).find() == Found("xconn on DPDK 22.11.11", program)


@pytest.mark.parametrize("said", ["RTE Version: 'DPDK 22.11.11'", "Invalid T4P4S arguments", ""])
def test_another_program_is_refused(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, monkeypatch, f'#!/bin/sh\necho "{said}"\n')
    with pytest.raises(UsageError, match=r"PLANEBENCH_T4P4S .* is not a t4p4s binary"):
        t4p4s.ADAPTER.find()
    monkeypatch.setenv("PLANEBENCH_T4P4S", str(tmp_path))
    with pytest.raises(UsageError, match="is not a program; give the one that t4p4s made"):
        t4p4s.ADAPTER.find()


def test_what_is_compiled_in_is_refused() -> None:
    assert t4p4s.ADAPTER.refusal(Situation("loopback", "virtio", 5)) == ""
    assert "1518 bytes" in t4p4s.ADAPTER.refusal(Situation("p2p", "virtio", max_frame_bytes=9018))


@pytest.mark.parametrize(("more", "words"), [("", "no table of MACs"), ("# ingress.dmac", "up in a table")])
def test_what_it_does_with_a_frame_is_told(
    more: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, monkeypatch, STAND_IN + f"    {more}\n")
    assert words in t4p4s.ADAPTER.settings(request(tmp_path))["function"]


def test_start_count_stop(program: Path, supervisor: Supervisor) -> None:
    wanted = request(supervisor.workdir("t"))
    (wanted.workdir / "v0.sock").touch()  # of an earlier start that was killed
    switch = t4p4s.ADAPTER.start(wanted, supervisor)
    assert [(it.pid, it.tid) for it in switch.polling_threads()] == [(switch.pids()[0], switch.pids()[0])]
    assert switch.counters() == SwitchCycles(
        packets=400, forwarded_packets=360, drops=t4p4s.drops(switch._ports, [STATS] * 4)
    )
    switch.stop()
    switch.stop()
    assert switch.polling_threads() == ()
    with pytest.raises(DiedError, match=r"t4p4s \(pid \d+\) was killed by SIGTERM"):
        switch.counters()
    again = t4p4s.ADAPTER.start(wanted, supervisor)  # its sockets are left behind
    again.stop()


def test_a_port_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supervisor: Supervisor) -> None:
    write(
        tmp_path, monkeypatch, STAND_IN.replace("    vdevs =", "    sys.exit('rte_eth_dev_start: err=-1')\n    vdevs =")
    )
    with pytest.raises(StartError, match="rte_eth_dev_start: err=-1"):
        t4p4s.ADAPTER.start(request(supervisor.workdir("t")), supervisor)
