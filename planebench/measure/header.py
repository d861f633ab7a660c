# SPDX-License-Identifier: BSD-3-Clause
"""The header of a run: everything about plan, machine, switches and tester that a reader needs years later."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from planebench import __version__
from planebench.host.programs import subject_in
from planebench.measure import doctor
from planebench.measure.live import LiveSettings, link_settings
from planebench.measure.machine import Machine
from planebench.measure.runner import SelfMeasured
from planebench.measure.survey import Survey
from planebench.model.cpus import Cpus, cpu_text
from planebench.model.dimensions import is_external
from planebench.model.errors import UsageError
from planebench.model.header import RunHeader, Subject, SwitchHostInfo, SwitchInfo
from planebench.model.plan import LatencyPlan, Plan
from planebench.model.records import Point
from planebench.model.scenarios import build
from planebench.model.text import digests_text, utc_text
from planebench.model.topology import Topology
from planebench.model.wire import wire_named
from planebench.model.words import listed
from planebench.plan.expand import SwitchLabel
from planebench.store import new_run_id
from planebench.store.calibration import version_of
from planebench.switches.linked import requests_of
from planebench.testbed.chain import build_chain, parse_chain, point_cores
from planebench.testbed.placement import Placement, place, place_vnfs
from planebench.testbed.request import Ends
from planebench.testbed.tester_config import switch_request
from planebench.testbed.testers import get_tester
from planebench.testbed.traffic import traffic_infos
from planebench.testbed.traffic_files import remarks

# The labels of a run: tags, testbed, and the source tree that is measured. The store of a lab finds runs by them.

TESTBED_VARIABLE = "PLANEBENCH_TESTBED"
SUBJECT_VARIABLE = "PLANEBENCH_SUBJECT"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one run, as its header has them; ``id_suffix`` is the end of its id."""

    testbed: str = ""
    subject: Subject | None = None
    tags: dict[str, str] = field(default_factory=dict)
    id_suffix: str = ""


def read_labels(testbed: str | None = None, subject: str | None = None, tags: Iterable[str] = ()) -> Labels:
    """Return the labels of a run that starts now. Raises UsageError.

    ``testbed``: default $PLANEBENCH_TESTBED, or the name of this machine. ``subject``: a folder in a git repository, as
    ``../vpp``, or ``vpp=../vpp`` where only the switch ``vpp`` is built from it; default $PLANEBENCH_SUBJECT, or none.
    ``tags``: as ``ring=new``.
    """
    subject = subject or os.environ.get(SUBJECT_VARIABLE)
    found = None
    if subject:
        switch, equals, folder = subject.partition("=")
        found = subject_in(Path(folder), switch) if equals else subject_in(Path(subject))
    given: dict[str, str] = {}
    for text in tags:
        key, equals, value = text.partition("=")
        if not equals or not key or key in given:
            raise UsageError(f'--tag: "{text}" is not valid. Valid: KEY=VALUE, each KEY once, e.g. ring=new')
        given[key] = value
    return Labels(
        testbed=testbed or os.environ.get(TESTBED_VARIABLE) or platform.node() or "unknown",
        subject=found,
        tags=given,
    )


CLOCKS_APART_MS = 100.0
"""Clocks that NTP sets are closer than this."""

HeaderSettings = dict[str, str | int | float | bool | None]


def make_header(survey: Survey, machine: Machine, settings: LiveSettings, labels: Labels | None = None) -> RunHeader:
    """Return the header of a run that starts now."""
    labels = labels or Labels()
    plan, now, facts, cpus = survey.plan, datetime.now(UTC), machine.facts, machine.cpus
    placement = placement_of(survey.measured, cpus)
    hosted, shared = _hosted_settings(survey.measured, cpus)
    info = None if machine.switch_host is None else machine.switch_host.info()
    warnings = _warnings(survey, machine, info, shared)
    ours = {name: value for name, value in sorted(os.environ.items()) if name.startswith("PLANEBENCH_")}
    return RunHeader(
        run_id=new_run_id(plan.name, now, labels.id_suffix),
        name=plan.name,
        started_at=utc_text(now),
        command=("planebench", *sys.argv[1:]),
        seed=plan.seed,
        planebench_version=__version__,
        host=facts.as_dict(),
        settings=_settings(plan, settings, placement)
        | file_settings(plan)
        | {"core_kinds": cpus.kind_names(placement.pollers) or None}
        | hosted,
        switches=tuple(_switch_info(label, survey, cpus, settings) for label in survey.labels),
        skipped=survey.skipped,
        warnings=tuple(dict.fromkeys(warnings if survey.simulated else (*warnings, *placement.warnings))),
        calibration=settings.calibration,
        traffic=traffic_infos(plan.traffic),
        papers=plan.papers,
        left_out=plan.left_out,
        # The variables that change what planebench runs, nothing else of the user's environment.
        environment={"python": platform.python_version(), "folder": str(Path.cwd()), **ours},
        plan=plan,
        switch_host=info,
        tags=labels.tags,
        subject=labels.subject,
        testbed=labels.testbed,
    )


def _warnings(survey: Survey, machine: Machine, info: SwitchHostInfo | None, shared: Sequence[str]) -> list[str]:
    """Return what is wrong with the machine, and the limits of the tester and of simulated switches."""
    found: list[str] = []
    if not survey.simulated:
        # What is said of hugepages is said of this plan.
        findings = [it for it in doctor.examine(machine.facts) if it.level != "ok" and it.code != "hugepages"]
        found += [f"{finding.text} ({finding.remedy})" if finding.remedy else finding.text for finding in findings]
        found += [survey.small_pages] if survey.small_pages else []
        if names := ", ".join(profile.name for profile in survey.plan.traffic if not profile.plain):
            found.append(
                f"limits and latency baseline of the tester are unknown for traffic {names}: it is calibrated with "
                "plain frames"
            )
    simulated = [label for label, adapter in survey.adapters.items() if isinstance(adapter, SelfMeasured)]
    points = [point for point in survey.measured if point.switch in simulated]
    missing = {
        "network functions": any(point.chain_length for point in points),
        "what they run in": any(point.hosted for point in points),
        "traffic profiles": any(point.traffic for point in points),
    }
    if said := " or ".join(what for what, there in missing.items() if there):
        found.append(f"{', '.join(simulated)}: the simulator does not model {said}; they have no effect")
    found += [text for profile in survey.plan.traffic for text in remarks(profile)]
    if machine.switch_host is not None:
        found += [f"host {machine.switch_host.name}: {text}" for text in machine.switch_host.answer.findings]
    if info is not None:  # logs and stores of hosts whose clocks are apart tell another time, too
        apart_ms, error_ms = info.clock.offset_ns / 1e6, info.clock.error_ns / 1e6
        if abs(apart_ms) > CLOCKS_APART_MS + error_ms:
            off = f"{apart_ms:+.0f} ms off ours (+-{error_ms:.1f} ms)"
            found.append(f"the clock of host {info.name} is {off}; set both by NTP")
    return [*found, *(() if survey.simulated else shared)]


def placement_of(points: Sequence[Point], cpus: Cpus) -> Placement:
    """Return the placement of the topology with most VNFs, hosted ones before tasks of the tester.

    VNFs side by side are placed separately: :func:`_hosted_settings`.
    """
    chained = [point for point in points if not point.side_by_side]
    longest = max(chained, key=lambda point: (point.chain_length, len(point.hosted)), default=None)
    beside = max((point.chain_length for point in points if point.side_by_side), default=0)
    if longest is None or (beside and not longest.chain_length):
        return place(cpus, beside, hosted=range(beside))
    return place_vnfs(cpus, point_cores(longest), hosted=longest.hosted, idle_tester=longest.idle_tester)


def _hosted_settings(points: Sequence[Point], cpus: Cpus) -> tuple[HeaderSettings, list[str]]:
    """Return where hosted VNFs run, and a warning where those of chains, or hosted ends, share their CPUs."""
    found: HeaderSettings = {}
    if beside := max((point.chain_length for point in points if point.side_by_side), default=0):
        # What over-provisioning is.
        used = sorted(set(place(cpus, beside, hosted=range(beside)).vnf_cpus))
        found["parallel_vnfs"] = f"one process each, at most {beside} on CPU {','.join(map(str, used))}"
    hosted = [point for point in points if not point.side_by_side and point.hosted]
    most = max(hosted, key=lambda point: len(point.hosted), default=None)
    if most is None:
        return found, []
    cores = point_cores(most)
    placement = place_vnfs(cpus, cores, hosted=most.hosted, idle_tester=most.idle_tester)
    on = cpu_text({cpu for number in most.hosted for cpu in placement.cpus_of_vnf(number)})
    names = [name for number in most.hosted for name in placement.cpu_neighbours(number)]
    others = dict.fromkeys("each other" if name.startswith("vnf") else name for name in names)
    shared = (
        f"hosted VNFs share CPU {on} with {listed(tuple(others))}: trials with them are functional, frames count and "
        f"rates tell nothing; give {sum(cores) + 2 - most.idle_tester} CPUs or more"
    )
    return found | {"hosted_vnfs": f"at most {len(most.hosted)} on CPU {on}"}, [shared] if others else []


def _settings(plan: Plan, settings: LiveSettings, placement: Placement) -> HeaderSettings:
    throughput, latency, search = plan.throughput, plan.latency, plan.search
    external = is_external(plan.tester)
    return {
        "trial_duration_s": throughput.duration_s,
        "warmup_s": throughput.warmup_s,
        "repetitions": throughput.repetitions,
        "restarts": throughput.restarts,
        "max_rate_pps": throughput.max_rate_pps,
        "line_bps": throughput.line_bps,
        "open_loop": throughput.is_open_loop(has_line_rate=not wire_named(plan.wire).replaces_nics),
        "latency_loads": ",".join(f"{load:g}" for load in latency.loads),
        "latency_of": _joined_over_parts(plan, lambda how: how.of),
        "latency_rates_pps": ",".join(f"{rate:.12g}" for rate in latency.rates_pps),
        "latency_total_bps": ",".join(f"{rate:.12g}" for rate in latency.total_bps),
        "latency_per_vnf_bps": ",".join(f"{rate:.12g}" for rate in latency.per_vnf_bps),
        "latency_duration_s": _joined_over_parts(plan, lambda how: how.duration_s),
        "latency_repetitions": _joined_over_parts(plan, lambda how: how.repetitions),
        "probe_rate_pps": _joined_over_parts(plan, lambda how: how.probe_rate_pps),
        "v2v_latency_pps": _joined_over_parts(plan, lambda how: how.v2v_pps),
        "search": ",".join(("r_plus", *search.methods)),
        **{
            f"search_{'trial_duration_s' if field.name == 'duration_s' else field.name}": getattr(search, field.name)
            for field in fields(search)
            if field.name != "methods"
        },
        "anatomy": latency.anatomy,
        "stamp": _joined_over_parts(plan, lambda how: how.stamp),
        "wire": plan.wire,
        "clock": plan.clock,
        "check": plan.check,
        "hosting": ",".join(plan.hostings),
        "ring_size": plan.ring_size,
        **({"wire_ring_size": plan.wire_ring_size} if plan.wire_ring_size else {}),
        "send_burst": plan.send_burst,
        **plan.sending,
        "hugepages": settings.hugepages,
        "tester_version": get_tester(plan.tester).version() if external else version_of(settings.planed),
        "placements": ",".join(plan.placements),
        "tester": plan.tester,
        "switch_cpu": placement.switch_cpu,
        "more_switch_cpus": ",".join(str(cpu) for cpu in placement.more_switch_cpus),
        "tester_cpus": ",".join(str(cpu) for cpu in placement.tester_cpus),
        **({"tester_cores": plan.tester_cores} if plan.tester_cores > 1 else {}),
    }


def _joined_over_parts(plan: Plan, value: Callable[[LatencyPlan], float | int | str]) -> float | int | str:
    """Return the values of the parts of a plan that measure latency, separated by commas."""
    parts = [part.latency for part in plan.sections if part.latency.wanted] or [plan.latency]
    first, *others = dict.fromkeys(value(how) for how in parts)
    return ",".join(it if isinstance(it, str) else f"{it:g}" for it in (first, *others)) if others else first


def file_settings(plan: Plan) -> HeaderSettings:
    """Return the chains by name, and digests of the files that chains and traffic profiles name.

    Raises UsageError for a file that cannot be read.
    """
    of_chains = [file for chain in plan.chains for vnf in parse_chain(chain) for file in vnf.files()]
    sources = [source for profile in plan.traffic for source in (profile.dst_ips, profile.pcap) if source]
    of_traffic = [Path(source.path) for source in sources if source.path]
    chains = {"chains": "; ".join(plan.chains), "chain_files": _digests(of_chains)} if plan.chains else {}
    return {**chains, **({"traffic_files": _digests(of_traffic)} if of_traffic else {})}


def _digests(files: Iterable[Path]) -> str:
    """Return path and digest of each file, once. Raises UsageError for an unreadable file."""
    found = {}
    try:
        for file in files:
            with file.open("rb") as content:  # an image of a disk may be larger than the memory
                found[str(file)] = hashlib.file_digest(content, "sha256").hexdigest()[:16]
    except OSError as error:
        raise UsageError(f'file "{error.filename}" cannot be read: {error.strerror}; give a readable file') from None
    return digests_text(found)


def _representative(points: Sequence[Point]) -> Topology:
    """Return the longest topology with all kinds of ports that the points have; p2v if no point has them all.

    Without a point it is v2v: a switch that refuses every other point cannot tell the settings of their ports.
    """
    shapes = {(p.scenario, p.chain_length, p.chain, p.hosting) for p in points}
    built = {shape: build_chain(*shape[:2], chain=shape[2], hosting=shape[3]) for shape in sorted(shapes)}
    there = {port.side for topology in built.values() for port in topology.ports}
    whole = [topology for topology in built.values() if {port.side for port in topology.ports} == there]
    return max(whole, key=lambda topology: len(topology.ports)) if whole else build("p2v" if points else "v2v")


def _switch_info(label: SwitchLabel, survey: Survey, cpus: Cpus, settings: LiveSettings) -> SwitchInfo:
    adapter = survey.adapters[label.label]
    topology = _representative([point for point in survey.measured if point.switch == label.label])
    port_names = [*(port.name for port in topology.ports), *(topology.link or ())]
    links = link_settings(adapter, topology, settings, Path("/"))
    unnamed = {name: Ends(f"{name}-tester", f"{name}-switch") for name in port_names}
    links = replace(links, ends={**unnamed, **links.ends})
    placement = place_vnfs(cpus, topology.cores_of_vnfs, hosted=topology.hosted_numbers)
    request = requests_of(switch_request(topology, placement, links), topology, links)[0]
    return SwitchInfo(
        label.label,
        label.adapter,
        survey.versions[label.label],
        adapter.settings(request),
        adapter.remedy,
        adapter.build(),
    )
