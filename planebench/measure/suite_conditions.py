# SPDX-License-Identifier: BSD-3-Clause
"""The conditions of a suite, part by part, by the names of those of a paper (papers.yaml)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planebench.model.plan import OWN_RING, Plan, has_line
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.model.wire import wire_named
from planebench.plan.expand import points_of, switch_labels
from planebench.plan.taken import PlanPath
from planebench.switches.registry import get_adapter
from planebench.testbed.chain import parse_chain, point_cores

ConditionValue = str | int | float
ConditionValues = tuple[ConditionValue, ...]
OPEN_LOOP, CLOSED_LOOP = "open loop", "closed loop"


def conditions_of(part: Plan) -> dict[str, ConditionValues]:
    """Return the conditions of one matrix of a plan by name, each with its values in order; without empty ones."""
    points = points_of(part)
    latency, throughput = part.latency, part.throughput
    wires = [point for point in points if scenario_named(point.scenario).wired]
    vnfs = [point for point in points if point.chain_length]
    lined = [has_line(point.scenario, part.profile(point.traffic)) for point in wires]
    line_bps = throughput.line_bps
    on_line = dict.fromkeys(line_bps if line_bps and there else "none" for there in lined)
    open_loop = throughput.is_open_loop(has_line_rate=not wire_named(part.wire).replaces_nics)
    loops = dict.fromkeys(OPEN_LOOP if there and open_loop else CLOSED_LOOP for there in lined)
    found: dict[str, Iterable[ConditionValue]] = {
        "switches": (point.switch for point in points),
        "scenarios": (point.scenario for point in points),
        "directions": (point.direction for point in points),
        "frame_sizes_bytes": (
            point.frame_size_bytes for point in points if part.profile(point.traffic).mean_frame_bytes is None
        ),
        "traffic": (point.traffic or "plain" for point in points),
        "chain_lengths": (point.chain_length for point in vnfs if scenario_named(point.scenario).chained),
        "vnf_counts": (point.chain_length for point in vnfs if not scenario_named(point.scenario).chained),
        "functions": (name for point in vnfs for name in _functions(point)),
        "batching": (value for point in vnfs for value in _batching(part, point)),
        "hosting": (hosting for point in points for hosting in _hostings(point)),
        "vnf_cores": (cores for point in vnfs for cores in point_cores(point)),
        "placements": (point.placement for point in vnfs),
        "cpu_clocks": (point.cpu_clock for point in points if point.cpu_clock),
        "wire": (part.wire for _ in wires),
        "line_bps": on_line,
        "saturation": loops,
        "nic_rings": _nic_rings(part, wires),
        "vnf_rings": (part.ring_size for point in points if PlanPath(part, point).vnf_ports),
        "switch_cores": (part.switch_cores,),
        "tester": (part.tester,),
        "clock": ("software" if part.clock == "auto" else part.clock,) if latency.wanted else (),
        "loads": latency.loads,
        "rates_pps": latency.rates_pps,
        "total_bps": latency.total_bps,
        "per_vnf_bps": latency.per_vnf_bps,
        "searches": part.search.methods,
    }
    made = {name: tuple(dict.fromkeys(values)) for name, values in found.items()}
    return {name: values for name, values in made.items() if values}


def _functions(point: Point) -> Iterator[str]:
    functions = parse_chain(point.chain) if point.chain else ()
    yield from (it.hosting or "" if it.own else _without_sending(it.text, it.kind.name) for it in functions)
    if not functions:
        yield "l2fwd"


def _without_sending(text: str, name: str) -> str:
    """Return a function with its options, but without how it collects frames, and what it runs in."""
    options = [option for option in text.split(":") if "=" in option]
    kept = [option for option in options if option.partition("=")[0] not in ("send_burst", "drain_us", "idle")]
    return ":".join((name, *kept))


def _batching(plan: Plan, point: Point) -> Iterator[str]:
    functions = [it for it in parse_chain(point.chain) if not it.own] if point.chain else [None]
    for it in functions:
        sending = (it.sending() if it is not None else {}) or plan.sending
        burst = int(str(sending.get("send_burst", 0)))
        yield f"{burst} frames, {sending.get('drain_us', plan.drain_us)} us" if burst else "none waits"


def _hostings(point: Point) -> Iterator[str]:
    scenario = scenario_named(point.scenario)
    if scenario.has_vnfs or scenario.ends_in_vnfs:
        yield from point.hostings or (point.hosting,)


def _nic_rings(plan: Plan, points: Iterable[Point]) -> Iterator[ConditionValue]:
    """Yield ``SWITCH: N`` for each switch with its own ring at a NIC, or one size for all."""
    if plan.wire_ring_size != OWN_RING:
        yield from (plan.wire_ring_size or plan.ring_size for _ in points)
        return
    adapters = {it.label: it.adapter for it in switch_labels(plan.switches)}
    for label in dict.fromkeys(point.switch for point in points):
        yield f"{label}: {get_adapter(adapters[label]).nic_ring_size}"
