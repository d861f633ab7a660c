# SPDX-License-Identifier: BSD-3-Clause
"""Every adapter against the real program, where the conformance suite does not look: jumbo frames, faults at the start,
a harness that is killed, no root. No rates. All else is in tests/e2e/test_switch_check.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import bench
from planebench.host import procfs
from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.model.errors import DiedError, StartError
from planebench.switches.adapter import Adapter
from planebench.testbed.request import SwitchPort, SwitchRequest

pytestmark = pytest.mark.dataplane

JUMBO_BYTES = 9018

COUNT_CYCLES = ("planed", "ovs-dpdk", "testpmd")
"""Switches that count busy cycles, whatever their version; of others they may be unknown."""


def assert_complete(tester: bench.Tester, frame_bytes: int, epoch: int) -> None:
    ways = tester.send(frame_bytes, epoch)
    assert all(way.complete for way in ways), ways


def vnf_only(workdir: Path, **more: object) -> SwitchRequest:
    """Two VNF ports: needs no peer to start."""
    ports = tuple(SwitchPort(name, "vhost-user", path=workdir / f"{name}.sock") for name in ("v0", "v1"))
    return SwitchRequest(
        ports=ports,
        cross_connects=(("v0", "v1"),),
        cpu=bench.SWITCH_CPU,
        control_cpus=frozenset({bench.TESTER_CPU}),
        workdir=workdir,
        hugepages=False,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.usefixtures("needs_tester")
def test_jumbo_frames_cross_the_switch_whole_and_are_counted(adapter: Adapter, supervisor: Supervisor) -> None:
    switch, tester = bench.bring_up(adapter, supervisor, max_frame_bytes=JUMBO_BYTES)
    before = switch.counters()
    ways = tester.send(JUMBO_BYTES, epoch=1)
    assert all(way.complete for way in ways), ways
    after = switch.counters()
    # Each direction passes the switch twice: wire to VNF, VNF to wire.
    assert (after.packets or 0) - (before.packets or 0) == 2 * sum(way.offered for way in ways)
    assert not any(after.drops.values()), after.drops
    if after.busy_cycles is not None:
        assert after.busy_cycles > (before.busy_cycles or 0)
    if adapter.name in COUNT_CYCLES:
        assert after.busy_cycles is not None
    switch.check()


@pytest.mark.usefixtures("needs_tester")
def test_veth_wire(adapter: Adapter, supervisor: Supervisor) -> None:
    try:
        wire = VethWire.create(supervisor, ["n0", "n1"], cpus=frozenset({bench.TESTER_CPU}))
    except StartError as error:
        if "unshare" not in str(error):
            raise
        pytest.skip(f"no network namespaces here: {error}")
    _switch, tester = bench.bring_up(adapter, supervisor, wire=wire)
    assert_complete(tester, 64, epoch=1)
    assert_complete(tester, 1518, epoch=2)


def test_it_counts_nothing_before_any_packet_and_stops_though_paused(adapter: Adapter, supervisor: Supervisor) -> None:
    """Every process ends, and it may be stopped again."""
    switch = adapter.start(vnf_only(supervisor.workdir("s")), supervisor)
    counters = switch.counters()
    assert counters.packets == 0
    assert counters.cycles_per_packet is None
    assert not any(counters.drops.values())
    pids = switch.pids()
    for pid in pids:
        os.killpg(pid, signal.SIGSTOP)
    switch.stop()
    assert not any(procfs.is_running(pid) for pid in pids)
    switch.stop()
    with pytest.raises(DiedError):
        switch.check()


def test_a_wire_that_nobody_listens_on_is_a_start_error_and_leaves_no_process(
    adapter: Adapter, supervisor: Supervisor
) -> None:
    with pytest.raises(StartError, match=r"(?s)log lines:\n.*n0\.sock") as refusal:
        adapter.start(bench.request(supervisor.workdir("s")), supervisor)
    assert "did not come up within" not in str(refusal.value), "it is refused, not timed out"
    assert not any(process.alive() for process in supervisor.processes)


def test_nothing_is_left_of_a_switch_when_the_harness_is_killed(adapter: Adapter) -> None:
    source = (
        "import sys, time; sys.path.append(sys.argv[2])\n"
        "from pathlib import Path\n"
        "from test_running import vnf_only\n"
        "from planebench.host.process import Supervisor\n"
        "from planebench.switches.registry import get_adapter\n"
        "with Supervisor(Path('/tmp')) as s:\n"
        "    switch = get_adapter(sys.argv[1]).start(vnf_only(s.workdir('s')), s)\n"
        "    print(s.root, *switch.pids(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-B", "-c", source, adapter.name, str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert holder.stdout is not None
    root, *pids = holder.stdout.readline().split()
    interfaces = Path("/proc/net/dev").read_text().count(":")
    holder.kill()
    holder.wait()
    holder.stdout.close()
    for _ in range(800):
        if not Path(root).exists() and not any(procfs.is_running(int(pid)) for pid in pids):
            break
        time.sleep(0.01)
    assert not Path(root).exists()
    assert not any(procfs.is_running(int(pid)) for pid in pids)
    assert Path("/proc/net/dev").read_text().count(":") == interfaces
    assert not list(Path("/var/run/dpdk").glob(f"{Path(root).name}*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_it_runs_without_root(adapter: Adapter, tmp_path: Path) -> None:
    source = (
        "import os, sys; os.setgid(65534); os.setuid(65534); sys.path.append(sys.argv[2])\n"
        "os.environ.pop('XDG_RUNTIME_DIR', None)\n"
        "from pathlib import Path\n"
        "from test_running import vnf_only\n"
        "from planebench.host.process import Supervisor\n"
        "from planebench.switches.registry import get_adapter\n"
        "with Supervisor(Path('/tmp')) as s:\n"
        "    switch = get_adapter(sys.argv[1]).start(vnf_only(s.workdir('s')), s)\n"
        "    print(switch.counters().packets, len(switch.polling_threads()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", source, adapter.name, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=60,
    )
    if "unshare" in done.stderr:
        pytest.skip("unprivileged user namespaces are off")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "1"]
