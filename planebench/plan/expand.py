# SPDX-License-Identifier: BSD-3-Clause
"""From a plan to its points: the Cartesian product, less what a scenario does not have."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from planebench.model.chain_name import join, vnf_texts
from planebench.model.dimensions import HostingName
from planebench.model.errors import UsageError
from planebench.model.plan import Plan, Skipped
from planebench.model.records import Point
from planebench.model.scenario import Direction, ScenarioName, scenario_named, scenarios_with
from planebench.model.scenarios import FRAME_SIZE_MAX_BYTES
from planebench.model.server import NEAR
from planebench.model.switch import parse_switch, plain
from planebench.model.traffic import TrafficProfile
from planebench.model.wire import wire_named
from planebench.testbed.chain import hosted_chain, parse_chain
from planebench.testbed.traffic import check_methods, check_sizes, check_wire, largest_frame_bytes

STAMPS_MAX = 65536
"""So many stamps of probes a task of planed keeps; a VNF sees the probes of both directions."""


@dataclass(frozen=True, slots=True)
class SwitchLabel:
    """A switch of a run: its label in results, and the adapter behind it, with its options as the user wrote them."""

    label: str
    adapter: str


def switch_labels(switches: tuple[str, ...]) -> tuple[SwitchLabel, ...]:
    """Return ``planed``, and ``planed#2`` for the second entry of the same label; which may be the user's own."""
    seen: Counter[str] = Counter()
    labels = []
    for text in switches:
        label = parse_switch(text).label
        seen[label] += 1
        labels.append(SwitchLabel(label if seen[label] == 1 else f"{label}#{seen[label]}", plain(text)))
    return tuple(labels)


def expand(plan: Plan) -> tuple[Point, ...]:
    """Return every point of the plan, once, in the order of the plan: part, switch, scenario, chain, direction, frames.

    A direction that a scenario does not have is left out of it, traffic that a network function cannot pass out of
    its chains. UsageError when nothing is left, or for traffic that does not go with the rest.
    """
    for section in plan.sections:
        beside = scenarios_with("side-by-side", section.scenarios)
        for profile in section.traffic:
            if profile.pcap is not None and beside:
                raise UsageError(
                    f"traffic {profile.name}: frames of a capture keep their addresses, but scenario {beside[0]} "
                    "sends to those of its VNFs; give other traffic"
                )
            check_sizes(profile, section.frame_sizes_bytes)
            check_wire(section.wire, profile, section.frame_sizes_bytes)
            check_methods(
                profile,
                section.search.methods,
                (*section.latency.loads, *section.latency.fixed),
                section.throughput.max_rate_pps is not None or section.throughput.line_bps is not None,
            )
        latency = section.latency
        probes = round(latency.probe_rate_pps * latency.duration_s * 2)
        if latency.anatomy and latency.wanted and probes > STAMPS_MAX:
            raise UsageError(
                f"anatomy: {latency.probe_rate_pps} probes a second for {latency.duration_s:g} s in both directions "
                f"are {probes}; a task notes {STAMPS_MAX}. Give a shorter --duration, or a "
                "lower latency.probe_rate_pps in the plan"
            )
    points = tuple(dict.fromkeys(point for section in plan.sections for point in points_of(section)))
    if not points:
        raise UsageError(f"nothing to measure: {'; '.join(dict.fromkeys(entry.reason for entry in skipped(plan)))}")
    return points


@functools.lru_cache(maxsize=256)
def points_of(plan: Plan) -> tuple[Point, ...]:
    """Return the points of one matrix, a plan without parts or one of them; perhaps none.

    Kept, since every visit of a plan asks for those of every part: half of the time of an estimate, or more.
    """
    return tuple(
        Point(label.label, scenario, direction, length, size, plan.wire_name, hosting, chain, traffic, placing, clock)
        for label in switch_labels(plan.switches)
        if not plan.only or label.label in plan.only
        for scenario in plan.scenarios
        for length, chain, hosting in _shapes(plan, scenario)
        for placing in (plan.placements if scenario_named(scenario).has_vnfs else (NEAR,))
        for clock in plan.cpu_clocks
        for direction in _directions(plan, scenario)
        for traffic, size in _frames(plan, chain)
    )


def _shapes(plan: Plan, scenario: ScenarioName) -> tuple[tuple[int, str, HostingName], ...]:
    """Return the number of VNFs, the chain and the hosting of each topology of a scenario, each once."""
    known = scenario_named(scenario)
    if known.chained:
        chains = ((n, *hosted_chain(chain, n, hosting)) for n, chain in _chains(plan) for hosting in plan.hostings)
        return tuple(dict.fromkeys(chains))
    if not known.side_by_side:
        return tuple((0, "", hosting) for hosting in (plan.hostings if known.ends_in_vnfs else ("process",)))
    functions = tuple(join((chain,)) for chain in plan.chains if len(vnf_texts(chain, 0)) == 1) or ("",)
    hosted = {kind: [hosted_chain(kind, 1, hosting) for hosting in plan.hostings] for kind in functions}
    # Side by side each VNF is a process of its own in any case.
    beside = (
        (n, chain, "process" if hosting == "separate" else hosting)
        for kinds in hosted.values()
        for n in plan.vnf_counts
        for chain, hosting in kinds
    )
    return tuple(dict.fromkeys(beside))


def skipped(plan: Plan) -> tuple[Skipped, ...]:
    """Return scenarios without a direction of the plan, traffic that its chains cannot pass, and parts left empty."""
    found = [] if plan.parts else [*_skipped_of_matrix(plan)]
    for part in plan.parts:
        what = f"part {part.name}"
        found += (Skipped(f"{what}: {entry.what}", entry.reason) for entry in _skipped_of_matrix(part))
        if not points_of(part):
            why = "the options leave nothing of it"
            labels = [label.label for label in switch_labels(part.switches)]
            if part.only and not {*part.only} & {*labels}:
                why = f"it is of {', '.join(part.only)} only, and the switches are {', '.join(labels)}"
            found.append(Skipped(what, why))
    return tuple(found)


def _skipped_of_matrix(plan: Plan) -> Iterator[Skipped]:
    for scenario in plan.scenarios:
        if not _directions(plan, scenario):
            wanted, valid = (", ".join(it) for it in (plan.directions, scenario_named(scenario).directions))
            yield Skipped(scenario, f"direction {wanted} is not valid for {scenario}. Valid: {valid}")
    for scenario in scenarios_with("chain", plan.scenarios):
        for chain in (chain for _, chain in _chains(plan) if chain):
            for profile in plan.traffic:
                if refusal := cannot_pass(chain, profile):
                    yield Skipped(f"{scenario} {chain}, traffic {profile.name}", refusal)
    labels = dict.fromkeys(point.scenario_label for point in points_of(plan) if point.two_clocks)
    for label in labels if plan.latency.wanted else ():
        yield Skipped(f"latency of {label}", "generator and monitor have different clocks; use --hosting container")


def cannot_pass(chain: str, profile: TrafficProfile) -> str:
    """Return why no frame of a profile comes through a chain, whatever its settings; empty where that is not known."""
    if profile.pcap is not None or not chain:
        return ""
    refusing = [vnf.kind for vnf in parse_chain(chain) if profile.ip not in vnf.kind.ip_versions]
    if not refusing:
        return ""
    valid = ", ".join(f"IPv{version}" for version in refusing[0].ip_versions)
    return (
        f"{refusing[0].name} passes {valid} only, and traffic {profile.name} is IPv{profile.ip}; "
        "give another chain or other traffic"
    )


def max_frame_bytes(plan: Plan) -> int:
    """Return the largest frame that ports must take: 1518, or more where the plan has it and the wire takes it."""
    if wire_named(plan.wire).standard_frames_driver:
        return FRAME_SIZE_MAX_BYTES
    largest = (largest_frame_bytes(profile, plan.frame_sizes_bytes) for profile in plan.traffic)
    return max(FRAME_SIZE_MAX_BYTES, *largest)


def plain_frame_sizes(plan: Plan) -> tuple[int, ...]:
    """Return the frame sizes measured without a traffic profile: those that a calibration of the tester covers."""
    return plan.frame_sizes_bytes if any(profile.plain for profile in plan.traffic) else ()


def _frames(plan: Plan, chain: str) -> tuple[tuple[str, int], ...]:
    """Return traffic and frame size of the points: a mix has its mean, other traffic each size of the plan."""
    found: list[tuple[str, int]] = []
    for profile in plan.traffic:
        if not cannot_pass(chain, profile):
            mean = profile.mean_frame_bytes
            found += ((profile.name, size) for size in (plan.frame_sizes_bytes if mean is None else (round(mean),)))
    return tuple(found)


def _chains(plan: Plan) -> tuple[tuple[int, str], ...]:
    """Return length and name of every chain, once: a chain of only plain l2fwd has no name."""
    named = [vnf_texts(chain, 0) for chain in plan.chains]
    return tuple(dict.fromkeys([*((n, "") for n in plan.chain_lengths), *((len(v), join(v)) for v in named)]))


def _directions(plan: Plan, scenario: ScenarioName) -> tuple[Direction, ...]:
    return tuple(direction for direction in plan.directions if direction in scenario_named(scenario).directions)
