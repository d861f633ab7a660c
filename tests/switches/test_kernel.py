# SPDX-License-Identifier: BSD-3-Clause
"""Linux bridge and XDP redirect, on veth pairs: every frame arrives, on the switch's core, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kernel_rig import PLACES_THREADS, crossed, live
from planed_rig import until

import bench
from planebench.host import interfaces, procfs
from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.measure.live import LiveTopology
from planebench.model.conditions import MANIFEST_KEYS
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.scenario import Direction, ScenarioName
from planebench.switches import kernel, xdp
from planebench.switches.adapter import Situation
from planebench.switches.registry import get_adapter
from planebench.testbed.request import SwitchPort, SwitchRequest

NAMES = ("linux-bridge", "xdp")


@pytest.fixture
def wire(supervisor: Supervisor) -> Iterator[VethWire]:
    try:
        yield VethWire.create(supervisor, ["n0", "n1"], cpus=frozenset({bench.TESTER_CPU}))
    except StartError as error:
        pytest.skip(f"no network namespaces here: {error}")


def request(supervisor: Supervisor, wire: VethWire | None = None) -> SwitchRequest:
    pairs = wire.pairs if wire else {name: ("", f"{name}-switch") for name in ("n0", "n1")}
    return SwitchRequest(
        ports=tuple(SwitchPort(name, "af_packet", interface=pair[1]) for name, pair in pairs.items()),
        cross_connects=(("n0", "n1"),),
        cpu=bench.SWITCH_CPU,
        control_cpus=frozenset({bench.TESTER_CPU}),
        workdir=supervisor.workdir("s"),
        hugepages=False,
        netns_pid=wire.netns_pid if wire else None,
        tsc_hz=2_000_000_000,
    )


def links(supervisor: Supervisor, wire: VethWire) -> str:
    shown = supervisor.spawn("ip", ["ip", "-o", "link"], cpus=frozenset({0}), netns_pid=wire.netns_pid)
    assert shown.wait(60) == 0
    return shown.log_tail(100)


@PLACES_THREADS
@pytest.mark.dataplane
@pytest.mark.usefixtures("needs_tester")
@pytest.mark.parametrize(
    ("name", "scenario", "length", "directions", "echo"),
    [
        ("linux-bridge", "v2v", 0, ("unidirectional", "bidirectional"), True),
        ("linux-bridge", "loopback", 2, ("bidirectional",), False),
        ("xdp", "p2v", 0, ("bidirectional", "reversed"), False),
    ],
)
def test_every_frame_arrives_in_order(
    supervisor: Supervisor,
    name: str,
    scenario: ScenarioName,
    length: int,
    directions: tuple[Direction, ...],
    echo: bool,
) -> None:
    it = live(get_adapter(name), supervisor, scenario, length, echo=echo)
    for direction in directions:
        crossed(it, direction)
    it.stop()


@PLACES_THREADS
@pytest.mark.dataplane
@pytest.mark.usefixtures("needs_tester")
@pytest.mark.parametrize("name", NAMES)
def test_tcp_is_not_merged_and_the_work_is_seen_on_the_switchs_core(supervisor: Supervisor, name: str) -> None:
    it = live(get_adapter(name), supervisor, "p2p", traffic="tcp:flows=4")
    cycles = crossed(it, "bidirectional", traffic="tcp:flows=4")
    assert cycles["busy"][0] > cycles["busy"][1]
    threads = it.switch.polling_threads()
    assert [thread.name for thread in threads] == ["napi/n0-switch", "napi/n1-switch", f"ksoftirqd/{bench.SWITCH_CPU}"]
    assert all(os.sched_getaffinity(thread.tid) == {bench.SWITCH_CPU} for thread in threads)
    pause_and_go_on(it)
    it.stop()
    # The kernel takes a namespace apart at its leisure, and its threads with it.
    until(lambda: not any(procfs.is_running(thread.tid) for thread in threads[:2]), "the NAPI threads end")
    assert not any(process.alive() for process in supervisor.processes)


@PLACES_THREADS
@pytest.mark.dataplane
def test_ports_have_the_cores_of_the_switch_in_turn(supervisor: Supervisor, wire: VethWire) -> None:
    two = replace(request(supervisor, wire), more_cpus=(bench.TESTER_CPU,))
    switch = get_adapter("linux-bridge").start(two, supervisor)
    found = {thread.name: os.sched_getaffinity(thread.tid) for thread in switch.polling_threads()}
    cores = sorted({bench.SWITCH_CPU, bench.TESTER_CPU})
    assert [found[f"napi/n{number}-switch"] for number in (0, 1)] == [{cores[0]}, {cores[-1]}]
    assert {f"ksoftirqd/{cpu}" for cpu in cores} <= found.keys()
    switch.stop()


def pause_and_go_on(it: LiveTopology) -> None:
    it.pause()
    it.resume()
    crossed(it, "bidirectional")


@PLACES_THREADS
@pytest.mark.dataplane
def test_stop_leaves_plain_interfaces_and_it_can_start_again(supervisor: Supervisor, wire: VethWire) -> None:
    wanted, bridge = request(supervisor, wire), get_adapter("linux-bridge")
    switch = bridge.start(wanted, supervisor)
    counters = switch.counters()
    assert (switch.pids(), counters.packets, counters.forwarded_packets) == ((), 0, 0)
    assert counters.drops == {f"{port}:{reason}": 0 for port in ("n0", "n1") for reason in ("rx_dropped", "tx_dropped")}
    text = links(supervisor, wire)
    assert "xdp" in text and "br0" in text
    switch.stop()
    switch.stop()
    assert "xdp" not in links(supervisor, wire) and "br0" not in links(supervisor, wire)
    with pytest.raises(DiedError, match="stopped"):
        switch.check()
    get_adapter("xdp").start(wanted, supervisor).check()


@PLACES_THREADS
@pytest.mark.dataplane
def test_without_its_namespace_it_is_dead(supervisor: Supervisor, wire: VethWire) -> None:
    switch = get_adapter("xdp").start(request(supervisor, wire), supervisor)
    wire.close()
    with pytest.raises(DiedError, match=r"XDP redirect: .*namespace, is gone"):
        switch.counters()
    switch.stop()


@PLACES_THREADS
@pytest.mark.dataplane
def test_what_the_kernel_refuses_is_told_in_its_words(supervisor: Supervisor, wire: VethWire) -> None:
    wanted = request(supervisor, wire)
    ports = (wanted.ports[0], replace(wanted.ports[1], interface="none"))
    with pytest.raises(StartError, match=r"(?s)could not be set up.*kernel-input.*there is no interface none"):
        get_adapter("xdp").start(replace(wanted, ports=ports), supervisor)
    assert "xdp" not in links(supervisor, wire)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.dataplane
def test_without_root_the_bridge_forwards_for_its_senders_and_says_so() -> None:
    """In a user namespace: no XDP program may be loaded, no kernel thread placed."""
    source = (
        "import os, sys; os.setgid(65534); os.setuid(65534); sys.path.append(sys.argv[1])\n"
        "os.environ.pop('XDG_RUNTIME_DIR', None)\n"
        "from pathlib import Path\n"
        "from planebench.host.process import Supervisor\n"
        "from planebench.switches.registry import get_adapter\n"
        "from kernel_rig import crossed, live\n"
        "bridge = get_adapter('linux-bridge')\n"
        "with Supervisor(Path('/tmp')) as s:\n"
        "    it = live(bridge, s, 'p2p')\n"
        "    print(crossed(it, 'bidirectional')['busy'], it.switch.polling_threads())\n"
        "    it.stop()\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", source, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
    )
    if "unshare" in done.stderr:
        pytest.skip("unprivileged user namespaces are off")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(None, None) ()"


@pytest.mark.parametrize("name", NAMES)
def test_what_it_cannot_do_is_said_in_a_sentence(
    supervisor: Supervisor, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = get_adapter(name)
    for module in (kernel, xdp):  # whatever this machine, or a namespace of processes, lets the tests see
        monkeypatch.setattr(module, "has_core", lambda: True)
    assert adapter.refusal(Situation("p2p", "veth")) == adapter.refusal(Situation("v2v", "virtio")) == ""
    assert "use --wire veth" in adapter.refusal(Situation("p2p", "virtio"))
    assert "1518" in adapter.refusal(Situation("v2v", "veth", max_frame_bytes=9018))
    with pytest.raises(UsageError, match="network namespace; use the veth wire"):
        adapter.start(request(supervisor), supervisor)
    monkeypatch.setattr(xdp, "has_core", lambda: False)
    assert ("requires root" in adapter.refusal(Situation("p2p", "veth"))) == (name == "xdp")


@pytest.mark.parametrize("name", NAMES)
def test_the_manifest_has_no_unknown(supervisor: Supervisor, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = get_adapter(name).settings(request(supervisor))
    assert set(settings) >= set(MANIFEST_KEYS) and "unknown" not in settings.values()
    monkeypatch.setattr(kernel, "is_machine_root", lambda: False)
    assert "tester" in get_adapter(name).settings(request(supervisor))["cores"]


NET_DEV = """\
Inter-|   Receive                            |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0    0   0        0       0    0    0    0     0       0          0
n0-switch:    6400     100    0    1    0     0 0   0    12800     200    0    2    0     0       0          0
"""


def test_counters_of_proc_net_dev() -> None:
    assert interfaces.parse_interfaces(NET_DEV)["n0-switch"] == interfaces.Interface(100, 1, 200, 2)


@pytest.mark.parametrize(
    "text", ["", "x", NET_DEV.replace("errs drop", "drop errs"), NET_DEV.replace("packets", "frames"), "\n\n\n"]
)
def test_counters_of_another_text_are_unknown(text: str) -> None:
    assert interfaces.parse_interfaces(text) == {}


def test_a_cut_text_gives_no_wrong_number() -> None:
    for end in range(len(NET_DEV) - 1):
        found = interfaces.parse_interfaces(NET_DEV[:end]).get("n0-switch")
        assert found in (None, interfaces.Interface(100, 1, 200, 2))
    assert "n0-switch" not in interfaces.parse_interfaces(NET_DEV.replace("200", "2x0"))
