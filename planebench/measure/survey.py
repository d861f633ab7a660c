# SPDX-License-Identifier: BSD-3-Clause
"""A plan checked against this machine: installed switches, refused points, what is left to measure.

Nothing is started.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planebench.host import facts as host_facts
from planebench.host.device_settings import clock_refusal
from planebench.host.facts import HostFacts
from planebench.host.memory import enough_hugepages, too_few_words
from planebench.host.planed_program import FACTS_DEADLINE_S, complaint, find_planed
from planebench.host.programs import Found, NotFound, run_tool
from planebench.measure.machine import run_cpus
from planebench.measure.runner import SelfMeasured
from planebench.model.cpus import Cpus, range_text
from planebench.model.dimensions import is_external, is_tester_port
from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.plan import Plan, Skipped
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.model.scenarios import FRAME_SIZE_MAX_BYTES, build
from planebench.model.server import OWN_CLOCK, mhz_of
from planebench.model.switch import SwitchCost
from planebench.model.traffic import TrafficProfile
from planebench.model.wire import wire_arguments
from planebench.plan.estimate import duration_words, estimate, estimate_longest, fit, fit_memory, parse_budget
from planebench.plan.expand import SwitchLabel, expand, max_frame_bytes, skipped, switch_labels
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.switches.adapter import Adapter, Situation, refusal_of
from planebench.switches.registry import get_adapter
from planebench.switches.remote import RemoteAdapter, SwitchHost, check_wire
from planebench.testbed.chain import build_chain, parse_chain, vnf_cores
from planebench.testbed.hosting import image
from planebench.testbed.hosting.exec import missing_program
from planebench.testbed.hosting.guest_image import kept_kernel
from planebench.testbed.hosting.qemu import kvm_failure
from planebench.testbed.hosting.registry import HOSTINGS
from planebench.testbed.placement import place, place_vnfs, refusal
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import assign_tasks, full_stage
from planebench.testbed.testers import get_tester
from planebench.testbed.traffic_files import draw_addresses, router_settings
from planebench.testbed.wires.base import cabled, named_ends, wire_kind

# Have planed check the settings and files of chains before anything is started.


def check_chains(chains: Iterable[str], planed: Path) -> None:
    """Raise UsageError with the message of planed for the first chain that planed rejects.

    The document is that of a tester with all functions of the chain, so that its memory is checked, too.
    """
    for chain in chains:
        built = build_chain("loopback", len(parse_chain(chain)), chain=chain)
        vnfs = tuple(replace(vnf, hosting="process") if vnf.kind else vnf for vnf in built.vnfs)
        topology = replace(built, vnfs=vnfs)
        placement = place_vnfs(Cpus(tuple(sorted(os.sched_getaffinity(0)))), topology.cores_of_vnfs)
        with tempfile.TemporaryDirectory(prefix="planebench-") as folder:
            links = LinkSettings(workdir=Path(folder), name="check", queues=topology.vnf_cores)
            links.make_folders(port.name for port in topology.ports)
            path = Path(folder) / "tester.json"
            full_stage(topology, assign_tasks(placement, topology, links.queues), links).write(path)
            said = run_tool([planed, "--check", path], FACTS_DEADLINE_S, env={"RUNTIME_DIRECTORY": folder})
        if not said.ok:
            raise UsageError(f'chain "{chain}": {complaint(said).replace(f"{path}: ", "")}')


def check_draws(profiles: Iterable[TrafficProfile], chains: Sequence[str]) -> None:
    """Raise UsageError if the first router of a chain has no routes that a profile's addresses can be drawn from."""
    given = [settings for settings in map(router_settings, chains) if {"routes", "routes_file"} & settings.keys()]
    for profile in profiles:
        wanted = profile.dst_ips
        if wanted is not None and wanted.fib is not None and not wanted.path:
            for settings in given:
                draw_addresses(settings, profile.ip, wanted.fib, profile.seed)


# Refuse, before anything starts, what a plan cannot ask of an external tester.

_CABLES = "pci:@PORT=NIC,@PORT=NIC, or veth:@PORT=INTERFACE,@PORT=INTERFACE"


def check_tester(plan: Plan) -> None:
    """Raise UsageError for a plan whose tester and wire do not fit, or that asks an external tester for what it cannot
    do."""
    kind = wire_kind(plan.wire)
    ports = [is_tester_port(cable.tester) for cable in kind.cables(wire_arguments(plan.wire))]
    if not is_external(plan.tester):
        if any(ports):
            raise UsageError(f'wire "{plan.wire}" names ports of an external tester: add --tester, e.g. otg:URL')
        return
    if not (kind.between_hosts and ports and all(ports)):
        raise UsageError(f'wire "{plan.wire}" has no end at tester {plan.tester}; give --wire {_CABLES}')
    names = [cable.tester for cable in kind.cables(wire_arguments(plan.wire))]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f'wire "{plan.wire}": {twice} is named twice; each end of a cable is a port of its own')
    rates = plan.throughput.max_rate_pps, plan.throughput.line_bps, get_tester(plan.tester).line_bps
    if rates == (None, None, None):
        raise UsageError(
            f"an external tester sends at a rate: give the speed of its links, --tester {plan.tester},line=10G or "
            "--line 10G, or --max-rate, e.g. 14.88M"
        )
    if any(part.latency.anatomy for part in plan.sections):
        raise UsageError("--anatomy needs the stamps of planed; leave out --tester")
    if plan.throughput.open_loop is False:
        raise UsageError("--closed-loop is for planed; an external tester sends at a rate")
    if plan.tester_cores > 1:
        raise UsageError("--tester-cores is for planed; an external tester has its own cores")
    if plan.clock != "auto":
        raise UsageError(f"--clock {plan.clock} is for planed; an external tester has its own clock")


def external_refusal(plan: Plan, point: Point, adapter: Adapter) -> str:
    """Return why a point cannot be measured with an external tester; empty if it can."""
    if isinstance(adapter, SelfMeasured):
        return f"{adapter.name} simulates its tester, too"
    scenario = scenario_named(point.scenario)
    if scenario.has_vnfs or scenario.ends_in_vnfs or scenario.bare:
        return "planed drives the VNFs, and the tester is an external one, which measures p2p"
    if adapter.vnf_interface != "vhost-user":
        return f"{adapter.name} works on interfaces that planebench makes; an external tester has cables"
    if point.traffic:
        return f"an external tester sends plain frames, not traffic {point.traffic}"
    if mhz_of(point.cpu_clock) is not None:
        return "CPU clocks are set for planed's trials only; leave out --cpu-mhz"
    return ""


HOSTED_MB = image.DEFAULT_MEMORY_MB
"""MiB of hugepages of a hosted VNF: the usual memory of a guest. A process takes no more."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A plan checked against this machine: the points it can measure, and the reasons for the others."""

    plan: Plan
    labels: tuple[SwitchLabel, ...]
    """The switches of the run: all of the plan, less those that are not installed and may be left out."""
    adapters: Mapping[str, Adapter]
    """Adapters by label."""
    versions: Mapping[str, str]
    """Versions of the installed switches, by label."""
    points: tuple[Point, ...]
    """Every point of the plan."""
    absent: Mapping[Point, str]
    """The points that are not measured, and why: the switch is not installed, or refuses them."""
    missing: tuple[str, ...]
    """Missing software, one sentence each; a run does not start without it."""
    smaller: tuple[Skipped, ...]
    """What was made smaller: FIBs to fit into memory, latency to fit into a time."""
    hugepages: bool
    """True if the switches run with hugepages."""
    small_pages: str = ""
    """That too few hugepages are free for the switches of this run; empty if they are enough, or not asked for."""
    switch_host: SwitchHost | None = None
    """The host of the switches, if it is not this one."""

    @property
    def measured(self) -> tuple[Point, ...]:
        """Return the points that a run measures."""
        return tuple(point for point in self.points if point not in self.absent)

    @property
    def test_points(self) -> int:
        """Return the number of test points, which the switches share."""
        return len({replace(point, switch="") for point in self.measured})

    @property
    def points_words(self) -> str:
        """Return what a run measures: ``18 test points of 3 switches``."""
        switches = len({point.switch for point in self.measured})
        points = f"{self.test_points} test point{'s' * (self.test_points != 1)}"
        return f"{points} of {switches} switch{'es' * (switches != 1)}"

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Return everything that is left out, and why: one entry for each switch and reason, with its scenarios."""
        scenarios: dict[tuple[str, str], dict[str, None]] = {}
        for point, reason in self.absent.items():
            scenarios.setdefault((point.switch, reason), {})[point.scenario_label] = None
        measured, reasons = {point.switch for point in self.measured}, Counter(switch for switch, _ in scenarios)
        found = [*self.smaller, *skipped(self.plan)]
        for (switch, reason), labels in scenarios.items():
            everywhere = switch not in measured and reasons[switch] == 1
            found.append(Skipped(switch if everywhere else f"{switch} {', '.join(labels)}", reason))
        return tuple(found)

    @property
    def costs(self) -> dict[str, SwitchCost]:
        """Return the time that each switch adds to the run, by label."""
        return {label: adapter.cost for label, adapter in self.adapters.items()}

    @property
    def takes_s(self) -> float:
        """Return seconds that measuring takes; calibration and report come on top."""
        return estimate(self.plan, self.measured, self.costs)

    @property
    def at_most_s(self) -> float:
        """Return seconds that measuring takes with all further passes over comparisons that are open."""
        return estimate_longest(self.plan, self.measured, self.costs)

    @property
    def takes_words(self) -> str:
        """Return the expected duration in words."""
        shortest, longest = duration_words(self.takes_s), duration_words(self.at_most_s)
        budget_s = self.plan.time_budget_s
        if budget_s is not None and self.takes_s > budget_s and shortest != duration_words(budget_s):
            longer = f"longer than the {duration_words(budget_s)} that the time budget leaves for it"
            return f"about {shortest} of measuring: {longer}; fewer switches, scenarios or frame sizes take less"
        more = f", at most {longest} if comparisons stay open" if longest != shortest else ""
        return f"about {shortest} of measuring{more}"

    @property
    def simulated(self) -> bool:
        """Return whether no switch of the run needs the tester."""
        return all(isinstance(self.adapters[label.label], SelfMeasured) for label in self.labels)

    def required(self) -> Survey:
        """Return this survey. Raises NotInstalledError for what is missing, UsageError where nothing is measured."""
        if self.missing:
            raise NotInstalledError("; ".join(self.missing))
        if not self.measured:
            reasons = dict.fromkeys(f"{entry.what}: {entry.reason}" for entry in self.skipped)
            raise UsageError(f"plan {self.plan.name} has nothing to measure on this machine: {'; '.join(reasons)}")
        return self

    def within(self, time_budget: str | None) -> Survey:
        """Return the survey with a plan that fits into ``time_budget`` (``20m``); None changes nothing."""
        if time_budget is None:
            return self
        plan = fit(self.plan, self.measured, parse_budget(time_budget), self.costs)
        away = [f"{load * 100:g} %" for load in self.plan.latency.loads if load not in plan.latency.loads]
        why = "the time budget is spent on more starts of the switches; a longer one has it"
        left_out = (Skipped(f"latency at {', '.join(away)} of its load", why),) if away else ()
        return replace(self, plan=plan, smaller=(*self.smaller, *left_out))

    def limited(self) -> Survey:
        """Return the survey with a time budget for what is measured more than once: as long as is said before the run.

        Only where there may be further passes: otherwise every repetition is wanted.
        """
        if self.simulated or self.plan.time_budget_s is not None or self.plan.throughput.repetitions_max is None:
            return self
        return replace(self, plan=replace(self.plan, time_budget_s=self.at_most_s))


def survey(
    plan: Plan | str | Path,
    options: Mapping[str, Any] | None = None,
    *,
    hugepages: bool | None = None,
    facts: HostFacts | None = None,
    connect: Callable[[Plan], SwitchHost] | None = None,
    made: bool = True,
) -> Survey:
    """Check a plan, a suite or a plan file against this machine, and against the host of the switches.

    ``options`` are those of :func:`planebench.plan.override.override`. ``hugepages``: None for as many as are free.
    ``connect`` connects to the host of the switches; None if they are here. ``made``: planed makes each chain once,
    which takes half a second.
    Raises UsageError for a plan that cannot be run anywhere.
    """
    named = plan if isinstance(plan, Plan) else load_plan(plan)
    memory_bytes = host_facts.memory_total_bytes()
    fitting, smaller = fit_memory(
        override(named, **(options or {})), memory_bytes, lambda switch: get_adapter(switch).offloads
    )
    labels = switch_labels(fitting.switches)
    adapters = {label.label: get_adapter(label.adapter) for label in labels}
    host = None
    check_tester(fitting)
    if connect is not None:
        check_wire(fitting.wire)
        host = connect(fitting)
        adapters = {label.label: RemoteAdapter(label.adapter, adapters[label.label], host) for label in labels}
    else:
        wire_kind(fitting.wire).devices(wire_arguments(fitting.wire), None)
    found = {label: adapter.find() for label, adapter in adapters.items()}
    here = {label: what.version for label, what in found.items() if isinstance(what, Found)}
    away = {label: what.words for label, what in found.items() if isinstance(what, NotFound)}
    points = expand(fitting)
    leave_out = away if fitting.missing_switches == "skip" and here else {}
    facts = facts or host_facts.collect()
    real = [point for point in points if not isinstance(adapters[point.switch], SelfMeasured)]
    if real and host is None:
        allowed = facts.cpus_allowed  # fewer whole cores than wanted are a warning
        if fitting.switch_cores > len(allowed):
            most = max(len(allowed) - 1, 1)
            raise UsageError(
                f"--switch-cores: {fitting.switch_cores} is not possible: this process may use {len(allowed)} "
                f"CPU{'s' * (len(allowed) != 1)} ({range_text(allowed)}), and the tester needs one. Valid here: 1"
                + (f" to {most}" if most > 1 else "")
            )
    cpus = run_cpus(facts, fitting.switch_cores, fitting.wire, fitting.tester, host, fitting.tester_cores)
    absent: dict[Point, str] = {}
    for point in real:
        hosted = range(point.chain_length) if point.side_by_side else point.hosted
        if why := refusal(cpus, point.chain_length, hosted=hosted, placing=point.placement):
            absent[point] = why
    absent |= {p: away[p.switch].removeprefix("is ") for p in points if p.switch in leave_out}
    if fitting.missing_hostings == "skip":
        away_hostings = _without_hosting(points)
        absent |= {p: away_hostings[name] for p in points for name in p.hostings if name in away_hostings}
        absent |= {p: why for p in points if p.chain and (why := _without_program(p.chain))}
    at_once_mb = _hugepages_mb(fitting, [point for point in points if point not in absent], adapters)
    enough = enough_hugepages(hugepages, facts, at_once_mb)
    enough &= hugepages or host is None or host.answer.hugepages
    placement = place(cpus)
    absent |= {
        point: absent.get(point, why)
        for point, why in refusals(
            fitting,
            points,
            adapters,
            hugepages=enough,
            switch_cores=len(placement.switch_cpus),
            clocked=frozenset(placement.switch_cpus) - frozenset(placement.tester_cpus),
        ).items()
    }
    missing = [f'switch "{label}" {words}' for label, words in away.items()]
    if len(away) == len(labels) and fitting.missing_switches == "skip":
        missing = [f"none of the switches of plan {fitting.name} is installed: {'; '.join(missing)}"]
    real = [p for p in points if p not in absent and not isinstance(adapters[p.switch], SelfMeasured)]
    if made and real and (planed := find_planed()) is not None:
        check_chains(fitting.chains, planed)
        check_draws(fitting.traffic, fitting.chains)
    return Survey(
        plan=fitting,
        labels=tuple(label for label in labels if label.label not in leave_out),
        adapters=adapters,
        versions=here,
        points=points,
        absent=absent,
        missing=(
            *(() if leave_out else missing),
            *missing_hostings(real),
            *dict.fromkeys(why for p in real if p.chain and (why := _without_program(p.chain))),
        ),
        smaller=smaller,
        hugepages=enough,
        small_pages=too_few_words(facts, at_once_mb) if hugepages is None else "",
        switch_host=host,
    )


def _hugepages_mb(plan: Plan, points: Iterable[Point], adapters: Mapping[str, Adapter]) -> int:
    """Return the most MiB of hugepages that the switches of some points take at once, with testers and hosted VNFs.

    With large frames, or several queues, a switch takes twice the usual. Half of it is for the VNFs in the tester.
    """
    large = max_frame_bytes(plan) > FRAME_SIZE_MAX_BYTES
    most_mb: dict[str, int] = {}
    for point in points:
        adapter = adapters[point.switch]
        usual_mb = adapter.hugepages_mb * (2 if large or max(adapter.queues, plan.tester_cores) > 1 else 1)
        # Hosted VNFs of a point have each the memory that its hosting was given, or the usual one.
        functions = parse_chain(point.chain) if point.chain else ()
        given = {number: vnf.hosting_values().get("memory_mb") for number, vnf in enumerate(functions)}
        hosted_mb = sum(int(str(given.get(number) or HOSTED_MB)) for number in point.hosted)
        if point.side_by_side and "vm" in point.hostings:  # one stands for all of them
            hosted_mb *= point.chain_length
        wanted_mb = max(usual_mb, usual_mb // 2 + hosted_mb)
        most_mb[point.switch] = max(most_mb.get(point.switch, 0), wanted_mb)
    return sum(most_mb.values())


def refusals(
    plan: Plan,
    points: Sequence[Point],
    adapters: Mapping[str, Adapter],
    *,
    hugepages: bool,
    switch_cores: int | None = None,
    clocked: Collection[int] = (),
) -> dict[Point, str]:
    """Return the refused points with the reason: they are reported as not supported and take no time.

    ``clocked``: the CPUs of the switch, whose clock a plan may set.
    """
    largest, found = max_frame_bytes(plan), {}
    for point in points:
        situation = Situation(
            point.scenario,
            point.wire,
            point.chain_length,
            hugepages,
            largest,
            point.chain,
            hosted=bool(point.hosted),
            vnf_cores=max(vnf_cores(point.chain, point.chain_length), default=1),
            switch_cores=switch_cores,
            tester_cores=plan.tester_cores,
        )
        if why := _refusal(plan, point, adapters[point.switch], situation, clocked):
            found[point] = why
    return found


def _refusal(plan: Plan, point: Point, adapter: Adapter, situation: Situation, clocked: Collection[int]) -> str:
    """Return why a point cannot be measured with its switch; empty if it can."""
    if is_external(plan.tester) and (why := external_refusal(plan, point, adapter)):
        return f"not supported: {why}"
    if plan.tester_cores > 1 and point.hosted and not point.chain_length:
        return "not supported: ends in VNFs are no tasks of the tester; leave out --tester-cores"
    profile, mhz = plan.profile(point.traffic), mhz_of(point.cpu_clock)
    why = refusal_of(adapter, situation)
    if not why and isinstance(adapter, RemoteAdapter) and point.cpu_clock != OWN_CLOCK:
        why = "the clock of the CPUs of another host cannot be set"
    elif not why:
        try:
            adapter.at_clock(point.cpu_clock)
            if mhz is not None:
                why = clock_refusal(clocked, mhz) or ("only root can set the clock of a CPU" if os.geteuid() else "")
        except UsageError as error:
            why = str(error)
    if why:
        return f"not supported: {why}"
    try:  # whether the wire names enough devices
        named_ends(cabled(build(point.scenario, point.chain_length), adapter.vnf_interface), plan.wire)
    except UsageError as error:
        return str(error)
    if not profile.has_control or (point.side_by_side and adapter.offloads):
        return ""
    if profile.control_pps is not None:
        return "not supported: control packets need a switch that forwards in place of its VNFs"
    if point.side_by_side and adapter.takes_updates:
        return ""
    return (
        "not supported: traffic with FIB updates needs a switch that forwards in place of its VNFs, or whose own table "
        "takes updates"
    )


def _without_hosting(points: Iterable[Point]) -> dict[str, str]:
    """Return why points with a hosting are skipped, by hosting: it is not installed, or its VMs would be emulated."""
    hostings = _hostings(points)
    found = {name: what.words for name, what in hostings.items() if isinstance(what, NotFound)}
    vm = hostings.get("vm")
    if isinstance(vm, Found) and (why := kvm_failure(vm.binary, kept_kernel())):
        found["vm"] = f"would be emulated, so that its rates and latencies say nothing: {why}"
    return {name: f"hosting {name} {words}" for name, words in found.items()}


def _without_program(chain: str) -> str:
    """Return that the program of a command of a chain is not installed; empty if all are."""
    commands = (vnf.hosting_values() for vnf in parse_chain(chain) if vnf.hosting == "exec")
    return next(filter(None, map(missing_program, commands)), "")


def _hostings(points: Iterable[Point]) -> dict[str, Found | NotFound]:
    """Return the hostings of points, as found."""
    names = dict.fromkeys(name for point in points for name in point.hostings if name != "process")
    return {name: HOSTINGS[name].find() if name in HOSTINGS else NotFound("a newer planebench") for name in names}


def missing_hostings(points: Iterable[Point]) -> tuple[str, ...]:
    """Return a sentence for each hosting of the VNFs of ``points`` that is not installed."""
    found = _hostings(points)
    return tuple(f'hosting "{name}" {what.words}' for name, what in found.items() if isinstance(what, NotFound))
