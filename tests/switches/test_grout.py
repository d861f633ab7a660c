# SPDX-License-Identifier: BSD-3-Clause
"""grout's adapter with a stand-in for grout and grcli, which serves metrics in grout's format."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.model.cpus import Cpus
from planebench.model.errors import DiedError, PlanebenchError, StartError
from planebench.model.scenarios import build
from planebench.switches import grout
from planebench.switches import grout as grout_metrics
from planebench.switches.adapter import Situation
from planebench.testbed.placement import place
from planebench.testbed.request import LinkSettings, SwitchRequest
from planebench.testbed.tester_config import switch_request

PORTS = ("n0", "v0", "v1", "n1")


def port_metrics(name: str, rx: int, errors: int) -> str:
    labels = f'id="4",name="{name}",type="port",mode="XC",description="",domain="v9",mac="02:00:00:00:00:01"'
    port = f'{labels},driver="net_vhost"'
    return dedent(
        f"""\
        # HELP grout_iface_rx_packets Number of received packets.
        # TYPE grout_iface_rx_packets counter
        grout_iface_rx_packets{{{labels}}} {2 * rx}
        grout_iface_port_rx_missed{{{port}}} 0
        grout_iface_port_rx_errors{{{port}}} 0
        grout_iface_port_rx_nobufs{{{port}}} 0
        grout_iface_port_tx_errors{{{port}}} {errors}
        """
    )


def burst_metrics(name: str, empty: int, every: int) -> str:
    return dedent(
        f"""\
        grout_rx_burst_size_bucket{{iface="{name}",le="0"}} {empty}
        grout_rx_burst_size_bucket{{iface="{name}",le="1"}} {every}
        grout_rx_burst_size_bucket{{iface="{name}",le="+Inf"}} {every}
        grout_rx_burst_size_sum{{iface="{name}"}} 100
        grout_rx_burst_size_count{{iface="{name}"}} {every}
        """
    )


NODES = """\
grout_node_packets{name="port_rx-p0q0"} 100
grout_node_packets{name="port_rx-p1q0"} 100
grout_node_packets{name="port_rx-p2q0"} 100
grout_node_packets{name="port_rx-p3q0"} 100
grout_node_packets{name="port_tx-p0q0"} 97
grout_node_packets{name="port_tx-p1q0"} 100
grout_node_packets{name="port_tx-p2q0"} 100
grout_node_packets{name="port_tx-p3q0"} 100
grout_node_packets{name="port_tx_error"} 5
grout_node_packets{name="port_tx_down"} 3
grout_node_cycles{name="port_rx-p0q0"} 1000
grout_node_cycles{name="port_rx-p1q0"} 500
grout_node_cycles{name="xconnect"} 700
grout_node_cycles{name="port_tx_down"} 0
grout_busy_cycles{cpu="1",numa="0"} 123456
"""
TEXT = (
    "".join(port_metrics(name, 100, 5 if name == "v0" else 0) for name in PORTS)
    + "".join(burst_metrics(name, 7000, 7010) for name in PORTS)
    + NODES
)
COUNTED = grout_metrics.switch_cycles(grout_metrics.parse(TEXT), PORTS)

GROUT = """\
    #!{python}
    # A grout, as far as its adapter can see: a worker, a socket for grcli, metrics by HTTP on another.
    import ctypes, socket, sys, threading, time
    if "--version" in sys.argv:
        print("grout v0.17.1 (DPDK 25.11.2)")
        sys.exit()
    assert {{"--poll-mode", "--test-mode"}} <= set(sys.argv), sys.argv
    def listen(path):
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        server.bind(path)
        server.listen()
        return server
    def work():
        ctypes.CDLL(None).prctl(15, b"grout:w1")
        time.sleep(3600)
    threading.Thread(target=work, daemon=True).start()
    api = listen(sys.argv[sys.argv.index("--socket") + 1])
    server = listen(sys.argv[sys.argv.index("--metrics") + 1].removeprefix("unix:"))
    while True:
        connection, _ = server.accept()
        connection.recv(4096)
        text = {text!r}.encode()
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(text) + text)
        connection.close()
    """

GRCLI = """\
    #!{python}
    # A grcli: it notes the commands, and makes the sockets that they ask for.
    import re, socket, sys
    for line in sys.stdin:
        open({noted!r}, "a").write(line)
        if "{refused}" in line:
            print("error: command failed: Device or resource busy (EBUSY)", file=sys.stderr)
            sys.exit(1)
        if path := re.search("iface=([^,]+),", line):
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind(path[1])
    """


@pytest.fixture
def build_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "grout", GROUT)
    write(tmp_path, "grcli", GRCLI)
    monkeypatch.setenv("PLANEBENCH_GROUT", str(tmp_path))
    return tmp_path


def write(folder: Path, name: str, text: str, refused: str = "nothing") -> None:
    path = folder / name
    noted = str(folder / "commands")
    path.write_text(dedent(text).format(python=sys.executable, text=TEXT, noted=noted, refused=refused))
    path.chmod(0o755)


def on_vhost(supervisor: Supervisor) -> SwitchRequest:
    """n0-v0 and v1-n1, all of them vhost-user."""
    topology, placement = build("loopback", 1), place(Cpus((0, 1)))
    links = LinkSettings(supervisor.workdir("t"), wire="vhost")
    links.make_folders(port.name for port in topology.ports)
    return switch_request(topology, placement, links)


def test_a_pair_is_connected_once_both_ports_are_there() -> None:
    topology, placement = build("p2p"), place(Cpus((0, 1)))
    assert grout.commands(switch_request(topology, placement, LinkSettings(Path("/w"), wire="vhost"))) == [
        "affinity cpus set control 0 datapath 1",
        "interface add port n0 devargs net_vhost0,iface=/w/n0/sock,queues=1 qsize 256",
        "interface add port n1 devargs net_vhost1,iface=/w/n1/sock,queues=1 qsize 256 domain n0",
        "interface set port n0 domain n1",
    ]


def test_counters_are_those_of_the_drivers_and_of_the_nodes_that_drop() -> None:
    assert (COUNTED.packets, COUNTED.forwarded_packets, COUNTED.bursts) == (400, 392, 40)
    assert {key: count for key, count in COUNTED.drops.items() if count} == {"v0:tx_full": 5, "port_tx_down": 3}
    assert COUNTED.drops["n0:rx_missed"] == 0
    assert COUNTED.counters == {"cycles.port_rx": 1500, "cycles.xconnect": 700}
    assert (COUNTED.busy_cycles, COUNTED.idle_cycles) == (None, None)


@pytest.mark.parametrize("line", [line for line in TEXT.splitlines() if not line.startswith("#")])
def test_a_counter_that_is_missing_or_of_another_form_is_no_number(line: str) -> None:
    for changed in ("", line.replace("grout_", "grout "), line + ".5"):
        found = grout_metrics.switch_cycles(grout_metrics.parse(TEXT.replace(line, changed)), PORTS)
        for ours, known in (
            (found.packets, COUNTED.packets),
            (found.forwarded_packets, COUNTED.forwarded_packets),
            (found.bursts, COUNTED.bursts),
        ):
            assert ours in (None, known)
        assert found.drops.items() <= COUNTED.drops.items()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\ngrout_x",
        b"HTTP/1.0 200 OK\r\n\r\ngrout_x",
        b"HTTP/1.0 500 Internal\r\nContent-Length: 1\r\n\r\nx",
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(answer: bytes) -> None:
    with pytest.raises(PlanebenchError, match="unexpected answer of grout's metrics"):
        grout_metrics.body_of(answer)


def test_it_is_found_with_its_command_line(build_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert grout.ADAPTER.find() == Found("0.17.1 (DPDK 25.11.2)", build_folder / "grout")
    (build_folder / "grcli").unlink()
    found = grout.ADAPTER.find()
    assert isinstance(found, NotFound) and "no grcli beside it" in found.remedy


def test_it_has_one_wire() -> None:
    assert grout.ADAPTER.refusal(Situation("p2p", "vhost")) == ""
    assert grout.ADAPTER.refusal(Situation("v2v", "virtio")) == ""
    assert "use --wire vhost" in grout.ADAPTER.refusal(Situation("p2p", "memif"))
    assert "1518 bytes" in grout.ADAPTER.refusal(Situation("p2p", "vhost", max_frame_bytes=9018))


def test_the_ports_of_a_worker_share_its_vector(supervisor: Supervisor) -> None:
    wanted = on_vhost(supervisor)
    assert grout.ADAPTER.settings(wanted)["burst"] == "16 (64 for all ports of the worker)"


def test_start_count_stop(build_folder: Path, supervisor: Supervisor) -> None:
    wanted = on_vhost(supervisor)
    for name in ("v0/sock", "grout.sock"):
        (wanted.workdir / name).touch()  # of an earlier start that was killed
    switch = grout.ADAPTER.start(wanted, supervisor)
    assert [thread.name for thread in switch.polling_threads()] == ["grout:w1"]
    assert switch.counters() == COUNTED
    noted = (build_folder / "commands").read_text().splitlines()
    assert noted == grout.commands(wanted)
    switch.stop()
    switch.stop()
    with pytest.raises(DiedError, match="grout"):
        switch.counters()


def test_a_command_that_is_refused(build_folder: Path, supervisor: Supervisor) -> None:
    write(build_folder, "grcli", GRCLI, refused="add port v1")
    with pytest.raises(StartError, match=r"grout refused a command: .*EBUSY"):
        grout.ADAPTER.start(on_vhost(supervisor), supervisor)
