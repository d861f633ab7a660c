# SPDX-License-Identifier: BSD-3-Clause
"""Calibration: the tester measured against itself over a wire, both ends of which are its own.

Port ``a`` is the tester's end of a wire, port ``b`` the end of the switch, or the interface of a VNF; on the veth wire
they are the ends of one pair. Generators and monitors of ``a`` run on the first tester CPU, those of
``b`` on the last, as in a run; those of a tester with several cores, each on the CPU of its queue.

A disturbance can only lower a rate, so a ceiling is the best of three tries. It can move a latency either way, so a
floor is the median of three by its p50.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from planebench.analysis.histogram import decode, percentile_ns
from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts
from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.measure.counts import Sender, Sending, ends_of, tester_counts
from planebench.measure.distance import machine_distances_ns
from planebench.measure.latency import Readings, by_clock, clock_readings, common_clock
from planebench.measure.live import CONNECT_DEADLINE_S, LiveSettings
from planebench.model.cpus import Cpus
from planebench.model.dimensions import port_clock
from planebench.model.errors import DiedError, PlanebenchError, StartError, UsageError
from planebench.model.header import Calibration, Ceiling, LatencyFloor
from planebench.model.records import LatencyRecord
from planebench.model.scenarios import Flow, pair
from planebench.model.text import utc_now
from planebench.model.wire import wire_arguments
from planebench.planed.client import get_ports
from planebench.planed.document import NAME_MAX, Document, Port
from planebench.planed.process import PlanedProcess
from planebench.planed.statistics import Statistics
from planebench.store.calibration import CalibrationCondition, version_of
from planebench.switches.adapter import Adapter
from planebench.testbed.placement import Placement, place
from planebench.testbed.request import Ends, LinkSettings, memory
from planebench.testbed.tester_config import assign_tasks, tester_tasks, with_gaps
from planebench.testbed.wires.base import named_ends, wire_kind

TRIES = 3
"""For a ceiling and for a floor."""
TRIES_MOST = 12
"""For a floor of which no probe has returned: under other load a NIC that stamps one frame at a time may stamp none."""
BACKGROUND_PPS = 1e6
BACKGROUND_SHARE = 0.5
"""The load behind the probes is 1 Mpps, or half the ceiling: above that the floor would be queueing."""
PROBE_RATE_PPS = 2000
LOOP = "loop"
"""The name of the wire that connects the tester with itself."""
THERE, BACK = Flow("a", "b", 0), Flow("b", "a", 1)

ReadClock = Callable[[LatencyRecord, Statistics], LatencyRecord | None]
Send = Callable[[Flow, int, float | None, int], Statistics]
"""Sends flow, frame size in bytes, rate in pps (None: maximum), probes per second; returns ``stats.get``."""


@dataclass(frozen=True, slots=True)
class FlatOut:
    """One trial at maximum offered load: its rate, and the busy TSC cycles per packet of sender and receiver."""

    pps: float
    send_cycles: float
    receive_cycles: float
    tsc_hz: int


def condition_for(settings: LiveSettings, cpus: Cpus, facts: HostFacts) -> CalibrationCondition:
    """Return the condition under which a calibration holds that is made now."""
    tester_cpus = place(cpus).tester_cpus
    return CalibrationCondition(
        planed_version=version_of(settings.planed),
        cpu_model=facts.cpu_model,
        kernel=facts.kernel,
        wire=settings.wire,
        ring_size=settings.wire_ring(),
        hugepages=settings.hugepages,
        tester_cpus=len(tester_cpus),
        core_kinds=cpus.kind_names(tester_cpus),
        tester_cores=settings.tester_cores,
        clock=port_clock(settings.clock),
        check=settings.check,
    )


def calibrate(
    frame_sizes: Sequence[int],
    settings: LiveSettings,
    *,
    cpus: Cpus,
    supervisor: Supervisor,
    duration_s: float = 0.2,
    listener: Callable[[str, float], None] | None = None,
) -> Calibration:
    """Measure ceilings and latency baseline at each frame size: 6 or 9 sends of ``duration_s`` per size.

    ``listener`` is called between sends with what comes next and the share that is done, 0..1. Ends what it starts.
    Raises UsageError for a value that makes no sense, StartError or DiedError if planed does not come up or stay.
    """
    sizes = tuple(dict.fromkeys(frame_sizes))
    wire = wire_kind(settings.wire).name
    if settings.tester_cores > 1 and not (wire_kind(wire).queues_differ or wire in Adapter.queued_wires):
        known = ", ".join(sorted((*Adapter.queued_wires, "pci")))
        raise UsageError(f'wire "{wire}" has one queue pair; a tester of several cores needs --wire {known}')
    placement, condition = place(cpus), condition_for(settings, cpus, host_facts.collect())
    distances = list(machine_distances_ns(settings.planed, cpus.allowed))
    with _self_loop(replace(settings, max_frame_bytes=max(sizes)), placement, supervisor) as sender:
        clock = common_clock(port.clock for port in get_ports(sender.call))
        readings: list[Readings] = []
        directions = 1 if wire_kind(wire).ceilings == "measured" else 2
        done, sends = 0, len(sizes) * TRIES * (directions + 1)

        def send(flow: Flow, size: int, pps: float | None, probes: int) -> Statistics:
            nonlocal done
            if listener is not None:
                what = "latency baseline" if probes else f"maximum offered load {flow.name}"
                listener(f"{size} B, {what}", min(1.0, done / sends))
            done += 1
            clocked = probes > 0 and clock != "software"
            readings[:] = [clock_readings(get_ports(sender.call))] if clocked else []
            sampled = settings.check == "sampled" and not probes
            return sender.send(Sending((flow,), size, duration_s, pps, probes, clocks=clocked, sampled=sampled))

        def read_clock(latency: LatencyRecord, stats: Statistics) -> LatencyRecord | None:
            readings.append(clock_readings(get_ports(sender.call)))
            timed = by_clock(latency, clock, sender.call, (THERE,), stats, readings)
            return timed if timed.clock == clock else None  # it stamped no probe

        reader = None if clock == "software" else read_clock
        found = [measure_frame_size(size, wire, placement, send, reader) for size in sizes]
    return Calibration(
        **asdict(condition),
        measured_at=utc_now("seconds"),
        duration_s=duration_s,
        ceilings=tuple(ceiling for ceilings, _ in found for ceiling in ceilings),
        floors=tuple(floor for _, floors in found for floor in floors),
        distances_ns=(*distances, *machine_distances_ns(settings.planed, cpus.allowed)),
    )


def measure_frame_size(
    size: int, wire: str, placement: Placement, send: Send, read_clock: ReadClock | None = None
) -> tuple[tuple[Ceiling, ...], tuple[LatencyFloor, ...]]:
    """Return ceilings and latency baselines of one frame size. Raises DiedError if no frame arrives.

    ``read_clock`` returns the latency just measured by the clock of the ports, which has a baseline of its own, or None
    where that stamped no probe.
    """
    there, told = _best(THERE, size, send), wire_kind(wire).ceilings
    if told == "measured":
        ceilings: tuple[Ceiling, ...] = (Ceiling(size, "wire", "wire", there.pps, measured=True),)
    else:
        ceilings = compose(size, there, _best(BACK, size, send), placement)
        if told != "all":
            wires = next(c for c in ceilings if (c.sender, c.receiver) == ("wire", "wire"))
            alike = tuple(replace(c, pps=wires.pps, measured=False) for c in ceilings)
            ceilings = (wires,) if told == "wires" else alike
    background = min(BACKGROUND_PPS, BACKGROUND_SHARE * there.pps)
    software: list[LatencyFloor | None] = []
    other: list[LatencyFloor | None] = []
    for tried in range(TRIES_MOST):
        if tried >= TRIES and any(software) and (read_clock is None or any(other)):
            break
        stats = send(THERE, size, background, PROBE_RATE_PPS)
        record = tester_counts(stats, (THERE,)).latency
        software.append(latency_floor(size, background, record))
        if record is not None and read_clock is not None:
            other.append(latency_floor(size, background, read_clock(record, stats)))
    floors = (median_floor(size, found) for found in (software, other) if found is software or any(found))
    return ceilings, tuple(floors)


def _best(flow: Flow, size: int, send: Send) -> FlatOut:
    tries = [flat_out(flow, send(flow, size, None, 0)) for _ in range(TRIES)]
    best = max(filter(None, tries), key=lambda found: found.pps, default=None)
    if best is None:
        raise DiedError(
            f"no frame of {size} B arrived from {flow.name}: the tester has no CPU; stop other programs on its CPUs"
        )
    return best


def flat_out(flow: Flow, stats: Statistics) -> FlatOut | None:
    """Return rate and cycles of a trial at maximum offered load from ``stats.get``; None if no frame arrived. Pure."""
    counts = tester_counts(stats, (flow,))
    senders, receivers = ends_of(stats, flow)
    packets = counts.directions[0].forwarded_packets
    if not (packets and counts.duration_ns):
        return None
    return FlatOut(
        packets * 1e9 / counts.duration_ns,
        sum(it.busy_cycles for it in senders) / sum(it.tx_packets for it in senders),
        sum(it.busy_cycles for it in receivers) / sum(it.rx_packets for it in receivers),
        stats.tsc_hz,
    )


def compose(size: int, there: FlatOut, back: FlatOut, placement: Placement) -> tuple[Ceiling, ...]:
    """Return the ceilings of all four pairs of ends: two as measured, two from the cycles of the halves. Pure.

    On one CPU the halves take turns, so their cycles add up; with a CPU for each end the slower half is what limits. On
    CPUs for a queue each the halves take turns, too. What these CPUs lose to each other is as measured: the composed
    ceilings are as much below the sum of the CPUs as the worse of the measured ones is.
    """
    by_queue, cpus = placement.tester_by_queue, len(placement.tester_cpus)

    def limit_pps(send_cycles: float, receive_cycles: float) -> float:
        if by_queue:
            return there.tsc_hz * cpus / (send_cycles + receive_cycles)
        return there.tsc_hz / (sum if cpus == 1 else max)((send_cycles, receive_cycles))

    kept = 1.0
    if by_queue:
        kept = min(1.0, *(it.pps / limit_pps(it.send_cycles, it.receive_cycles) for it in (there, back)))
    wire_wire = kept * limit_pps(there.send_cycles, back.receive_cycles)
    vnf_vnf = kept * limit_pps(back.send_cycles, there.receive_cycles)
    return (
        Ceiling(size, "wire", "vnf", there.pps, measured=True),
        Ceiling(size, "vnf", "wire", back.pps, measured=True),
        Ceiling(size, "wire", "wire", wire_wire, measured=False),
        Ceiling(size, "vnf", "vnf", vnf_vnf, measured=False),
    )


def latency_floor(size: int, background_pps: float, record: LatencyRecord | None) -> LatencyFloor | None:
    """Return the probe latency of one try from a to b; None if no probe returned, or the clock stamped none. Pure."""
    counts = None if record is None else decode(record.histogram)
    if record is None or counts is None or not counts.any():
        return None
    return LatencyFloor(
        frame_size_bytes=size,
        background_pps=background_pps,
        probes_sent=record.probes_sent,
        probes_received=record.probes_received,
        p50_ns=percentile_ns(counts, 0.50),
        p99_ns=percentile_ns(counts, 0.99),
        histogram=record.histogram,
        clock=record.clock,
    )


def median_floor(size: int, tries: Sequence[LatencyFloor | None]) -> LatencyFloor:
    """Return the floor with the median p50, the lower of two. Raises DiedError if no probe returned. Pure."""
    found = sorted((floor for floor in tries if floor is not None), key=lambda floor: floor.p50_ns)
    if not found:
        raise DiedError(f"no probe of {size} B returned: the tester has no CPU; stop other programs on its CPUs")
    return found[(len(found) - 1) // 2]


def loop_document(
    settings: LiveSettings, placement: Placement, name: str, workdir: Path, ends: Ends | None = None
) -> Document:
    """Return the planed document of a tester connected to itself. ``ends``: the devices of a wire without socket. Pure.

    Receiving comes before sending in the polling order, as in a run.
    """
    queues, ends_of_loop = settings.tester_cores, pair("a", "b")
    links = LinkSettings(
        workdir,
        settings.wire,
        settings.wire_ring(),
        max_frame_bytes=settings.max_frame_bytes,
        queues=queues,
        ends={} if ends is None else {LOOP: ends},
    )
    clock, kind = port_clock(settings.clock), wire_kind(settings.wire)
    a, b = (Port(name, "ethdev", settings.wire_ring(), queues, clock=clock) for name in "ab")
    near, far = kind.planed_port(a, LOOP, links), kind.planed_port(b, LOOP, links, "switch")
    both = (far, near) if kind.switch_listens else (near, far)  # who listens first: planed opens ports in their order
    needed = memory(
        rings=[port.ring_size or 0 for port in both],
        max_frame_bytes=settings.max_frame_bytes,
        hugepages=settings.hugepages,
        queues=queues,
    )
    tasks, workers = tester_tasks(ends_of_loop, queues), assign_tasks(placement, ends_of_loop, queues)
    return with_gaps(Document(name, needed, both, tasks, workers, nice=-20))


@contextlib.contextmanager
def _self_loop(settings: LiveSettings, placement: Placement, supervisor: Supervisor) -> Iterator[Sender]:
    """Start a tester that is connected to itself and wait until frames cross in both directions; end it in any case."""
    number = len(supervisor.processes)
    workdir = supervisor.workdir(f"calibrate{number}")
    LinkSettings(workdir).make_folders([LOOP])
    control = placement.control_cpus
    with contextlib.ExitStack() as undo:
        ends = named_ends([LOOP], settings.wire).get(LOOP) or wire_kind(settings.wire).loop()
        veth = None
        if wire_kind(settings.wire).makes_veth_pairs(wire_arguments(settings.wire)):
            veth = VethWire.create(supervisor, ["cal"], cpus=control)
            undo.callback(veth.close)
            ends = Ends(*veth.pairs["cal"])
        name = f"{supervisor.root.name}-c{number}".lower().translate({ord("."): "-"})[-NAME_MAX:]
        tester = PlanedProcess.start(
            loop_document(settings, placement, name, workdir, ends),
            supervisor,
            planed=settings.planed,
            name="calibrate",
            title="the tester",
            workdir=workdir,
            cpus=frozenset({*control, *placement.tester_cpus}),
            netns_pid=veth.netns_pid if veth else None,
        )
        undo.callback(tester.stop)
        sender = Sender(tester.call, queues=settings.tester_cores, check=tester.check)
        try:
            sender.wait_until_forwarding((THERE, BACK), CONNECT_DEADLINE_S)
        except PlanebenchError as error:
            raise StartError(f"calibration: {error}\n{tester.process.log_tail()}") from error
        yield sender
