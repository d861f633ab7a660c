# SPDX-License-Identifier: BSD-3-Clause
"""Our tester against testpmd's flowgen over the same wire: v2v, both ways, one switch, trials interleaved.

    .venv/bin/python bench/flowgen.py [--switch planed] [--frame-size 64,1024] [--trials 7] [--seconds 0.5]

The switch of both is planed: with a slower one (``--switch testpmd``) it is the switch that is measured.

flowgen sends and frees what it receives; planed also checks sequence and checksum of every frame. Printed: medians of
what arrived (Mpps, both directions), their ratio within one core-distance band, and the cycles of the switch for each
packet between two of DPDK's drivers, where it counts them; apart for trials in which another hyperthread used a core.
Nothing is asserted: read it.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rig import RING, Cores, best_of, cores_of, rig

from planebench.host.process import Process, Supervisor, high_priority, wait_ready
from planebench.measure.counts import Sending
from planebench.measure.distance import measure_distance
from planebench.measure.live import LiveTopology
from planebench.model.records import CoreDistance, SwitchCycles
from planebench.model.scenarios import build, flows
from planebench.switches import common
from planebench.switches.adapter import Adapter, RunningSwitch
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import Placement
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import switch_request

RX_PACKETS = re.compile(r"RX-packets:\s*(\d+)")


def cycles_between(before: SwitchCycles, after: SwitchCycles) -> float | None:
    """Return the busy cycles of the switch for each packet that it received between two readings; None if unknown."""
    if before.busy_cycles is None or after.busy_cycles is None or not after.packets or after.packets == before.packets:
        return None
    return (after.busy_cycles - before.busy_cycles) / (after.packets - (before.packets or 0))


@dataclass
class Flowgen:
    """testpmd as tester: flowgen between two virtio-user ports, on the tester's core."""

    switch: RunningSwitch
    tester: Process
    processes: tuple[Process, ...]
    cycles: list[float | None] = field(default_factory=list)
    """Busy cycles of the switch for each packet, of each trial."""

    def rate_pps(self, seconds: float) -> float:
        """Frames that arrived per second, both directions."""
        for process in self.processes:
            process.resume()
        time.sleep(0.1)
        counted = self.switch.counters()
        first, begin = self._received(), time.monotonic()
        time.sleep(seconds)
        last, end = self._received(), time.monotonic()
        self.cycles.append(cycles_between(counted, self.switch.counters()))
        self.pause()
        return (last - first) / (end - begin)

    def pause(self) -> None:
        """Off the cores."""
        for process in self.processes:
            process.pause()

    def _received(self) -> int:
        """The ports' counters, read at once."""
        assert self.tester.stdin is not None
        size = self.tester.log_path.stat().st_size
        self.tester.stdin.write(b"show port stats all\n")
        self.tester.stdin.flush()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            found = RX_PACKETS.findall(self.tester.log_path.read_text(errors="replace")[size:])
            if len(found) == 2:
                return sum(map(int, found))
            time.sleep(0.0005)
        raise SystemExit(f"flowgen does not answer: {self.tester.log_tail()}")


def _command(cpu: int, ports: list[str], frame_size: int) -> list[str]:
    eal = ["--lcores", f"0@{cpu},1@{cpu}", "--no-pci", "--no-telemetry", "--file-prefix=flowgen"]
    memory = common.eal_memory_arguments(hugepages=False, size_mb=256)
    rings = [f"--rxd={RING}", f"--txd={RING}", "--total-num-mbufs=8192"]
    mode = ["-i", "--nb-cores=1", "--forward-mode=flowgen", f"--txpkts={frame_size}", "--auto-start"]
    return ["stdbuf", "-oL", "dpdk-testpmd", *eal, *memory, *ports, "--", *mode, *rings]


@contextmanager
def flowgen(supervisor: Supervisor, placement: Placement, adapter: Adapter, frame_size: int) -> Iterator[Flowgen]:
    """The switch with a flowgen tester; paused."""
    topology = build("v2v")
    links = LinkSettings(workdir=supervisor.workdir(f"flowgen{frame_size}"), ring_size=RING)
    links.make_folders(port.name for port in topology.ports)
    known = len(supervisor.processes)
    switch = adapter.start(switch_request(topology, placement, links), supervisor)
    cpu = placement.tester_cpus[0]
    ports = [f"--vdev=net_virtio_user{i},path={links.socket(f'v{i}')},queue_size={RING}" for i in range(2)]
    tester = supervisor.spawn(
        "flowgen",
        _command(cpu, ports, frame_size),
        cpus=frozenset({cpu}),
        workdir=links.workdir,
        pipe_stdin=True,
    )
    wait_ready("flowgen", lambda: "testpmd>" in tester.log_path.read_text(errors="replace"), [tester])
    run = Flowgen(switch, tester, tuple(supervisor.processes[known:]))
    run.pause()
    try:
        yield run
    finally:
        switch.stop()
        tester.terminate()


def planed_rate_pps(live: LiveTopology, frame_size: int, seconds: float) -> float:
    """Frames that arrived intact per second, both directions."""
    wanted = flows(live.topology, "bidirectional")
    live.resume()
    live.send(Sending(wanted, frame_size, 0.1, None))
    stats = live.send(Sending(wanted, frame_size, seconds, None))
    live.pause()
    monitors = [task.monitor for task in stats.tasks if task.monitor is not None]
    return sum(stream.forwarded_packets for monitor in monitors for stream in monitor.streams) / seconds


def compare(adapter: Adapter, frame_size: int, trials: int, seconds: float) -> None:
    """Interleave trials of both testers, print a line a trial and the medians of each band."""
    placement, settings = rig()
    taken: list[tuple[Cores, str, float, float | None]] = []

    def distance() -> CoreDistance | None:
        return measure_distance(settings.planed, placement.switch_cpu, placement.tester_cpus[0])

    with high_priority(), Supervisor() as supervisor, flowgen(supervisor, placement, adapter, frame_size) as theirs:
        live = LiveTopology.start("ours", adapter, build("v2v"), placement, settings, supervisor)
        for trial in range(trials):
            for name in ("flowgen", "planed") if trial % 2 else ("planed", "flowgen"):
                before = distance()
                rate = theirs.rate_pps(seconds) if name == "flowgen" else planed_rate_pps(live, frame_size, seconds)
                cores = cores_of((before, distance()))
                taken.append((cores, name, rate / 1e6, theirs.cycles[-1] if name == "flowgen" else None))
                print(f"{frame_size} B {name:8} {cores.group:8} {rate / 1e6:6.2f} Mpps", flush=True)
        live.stop()
    show(frame_size, taken)


def show(frame_size: int, taken: list[tuple[Cores, str, float, float | None]]) -> None:
    """Print the medians of each state of the cores: of rates in Mpps by tester, and of the switch's cycles."""
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    cycles: dict[str, list[float]] = defaultdict(list)
    best = best_of(cores for cores, *_ in taken)
    for cores, name, rate, needed in taken:
        rates[cores.state(best), name].append(rate)
        if needed is not None:
            cycles[cores.state(best)].append(needed)
    for state in sorted({state for state, _ in rates}):
        ours, flow = rates[state, "planed"], rates[state, "flowgen"]
        if ours and flow:
            a, b = statistics.median(ours), statistics.median(flow)
            print(f"{frame_size} B, {state}: planed {a:.2f} ({len(ours)}), flowgen {b:.2f} ({len(flow)}): {a / b:.2f}x")
        if found := cycles[state]:
            cycles_text = f"{statistics.median(found):.1f} switch cycles a packet beside flowgen ({len(found)})"
            print(f"{frame_size} B, {state}: {cycles_text}")


def main() -> None:
    """Parse and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switch", default="planed")
    parser.add_argument("--frame-size", default="64,1024")
    parser.add_argument("--trials", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    adapter = get_adapter(options.switch)
    for size in options.frame_size.split(","):
        compare(adapter, int(size), options.trials, options.seconds)


if __name__ == "__main__":
    main()
