# SPDX-License-Identifier: BSD-3-Clause
"""Before a run: find its switches, its tester, its memory, and what the tester can do."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts
from planebench.host.priority import high_priority
from planebench.host.process import Supervisor
from planebench.hosting.registry import HOSTINGS
from planebench.measure.calibrate import calibrate
from planebench.measure.live import LiveSettings
from planebench.measure.refusals import refusals, takes_no_updates
from planebench.measure.runner import SelfMeasured
from planebench.model.errors import NotInstalledError, StoreError
from planebench.model.header import Calibration, Skipped
from planebench.model.records import Point
from planebench.placement import Cpus, place
from planebench.planed import find_planed, require_planed
from planebench.plans import (
    Plan,
    SwitchLabel,
    expand,
    fit_memory,
    load_plan,
    max_frame_bytes,
    override,
    plain_frame_sizes,
    skipped,
    switch_labels,
)
from planebench.store.calibration import Condition, load, save, version_of
from planebench.switches.base import Found, NotFound, SwitchAdapter
from planebench.switches.registry import get_adapter
from planebench.vnfs.check import check_chains

HUGEPAGE_BYTES = 2 * 1024 * 1024
HUGEPAGE_MB_PER_SWITCH = 2048
"""What tester and switch of one comparison partner take at most; with fewer free pages everybody runs without."""

CALIBRATION_S = 0.1
"""Of each step of a calibration that a run makes for itself."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan whose switches are all here."""

    plan: Plan
    points: tuple[Point, ...]
    labels: tuple[SwitchLabel, ...]
    adapters: dict[str, SwitchAdapter]
    versions: dict[str, str]
    skipped: tuple[Skipped, ...]

    @property
    def simulated(self) -> bool:
        """Whether no switch of the run needs the tester."""
        return all(isinstance(adapter, SelfMeasured) for adapter in self.adapters.values())


def planned(name: str, overrides: Mapping[str, Any]) -> tuple[Plan, tuple[Skipped, ...]]:
    """The plan with its options, FIBs as large as this machine can hold; and which were made smaller."""
    return fit_memory(override(load_plan(name), **overrides), host_facts.memory_total_bytes())


def prepare(plan: Plan, smaller: tuple[Skipped, ...] = ()) -> Prepared:
    """Find every switch. One that is not here is left out, or an error if it was asked for by name.

    ``smaller``: what :func:`planned` said.
    """
    labels = switch_labels(plan.switches)
    adapters = {label.label: get_adapter(label.adapter) for label in labels}
    found = {label: adapter.find() for label, adapter in adapters.items()}
    missing = {label: what for label, what in found.items() if isinstance(what, NotFound)}
    if missing and plan.missing_switches == "error":
        label, what = next(iter(missing.items()))
        raise NotInstalledError(f'switch "{label}" {what.words}')
    here = {label: what.version for label, what in found.items() if isinstance(what, Found)}
    if not here:
        remedies = "; ".join(f"{label}: {what.remedy}" for label, what in missing.items())
        raise NotInstalledError(f"none of the switches of plan {plan.name} is installed ({remedies})")
    if not all(isinstance(adapters[label], SelfMeasured) for label in here):
        check_named_chains(plan)
        check_hostings(expand(plan))
    left_out = tuple(Skipped(label, what.words.removeprefix("is ")) for label, what in missing.items())
    points = tuple(point for point in expand(plan) if point.switch in here)
    without_fib = {point: why for point in points if (why := takes_no_updates(plan, point, adapters[point.switch]))}
    left_out += tuple(
        Skipped(*it) for it in dict.fromkeys((f"{p.switch} {p.scenario_label}", w) for p, w in without_fib.items())
    )
    return Prepared(
        plan=plan,
        points=tuple(point for point in points if point not in without_fib),
        labels=tuple(label for label in labels if label.label in here),
        adapters={label: adapters[label] for label in here},
        versions=here,
        skipped=(*smaller, *skipped(plan), *left_out),
    )


def measured_points(prepared: Prepared, hugepages: bool) -> tuple[Point, ...]:
    """The points that take time: those that no switch refuses."""
    refused = refusals(prepared.plan, prepared.points, prepared.adapters, hugepages=hugepages)
    return tuple(point for point in prepared.points if point not in refused)


def cpus_of(facts: HostFacts, switch_cores: int = 1) -> Cpus:
    """The CPUs of this machine as placement wants them."""
    return Cpus(facts.cpus_allowed, facts.siblings, facts.numa_node, switch_cores, frozenset(facts.isolated_cpus))


def check_named_chains(plan: Plan) -> None:
    """Have planed look at the chains of a plan, if it is here. UsageError, with its sentence, for one it refuses."""
    planed = find_planed()
    if planed is not None:
        check_chains(plan.chains, planed)


def check_hostings(points: Iterable[Point]) -> None:
    """NotInstalledError for the first that is not here of what VNFs shall run in."""
    for name in dict.fromkeys(name for point in points for name in point.hostings if name != "process"):
        found = HOSTINGS[name].find() if name in HOSTINGS else NotFound("a newer planebench")
        if isinstance(found, NotFound):
            raise NotInstalledError(f'hosting "{name}" {found.words}')


def live_settings(prepared: Prepared, facts: HostFacts, hugepages: bool | None) -> LiveSettings:
    """What all topologies of the run have in common. NotInstalledError without planed, which is the tester."""
    planed = Path("planed") if prepared.simulated else require_planed()
    return LiveSettings(
        planed=planed,
        ring_size=prepared.plan.ring_size,
        hugepages=enough_hugepages(hugepages, facts, len(prepared.labels)),
        max_frame_bytes=max_frame_bytes(prepared.plan),
        wire=prepared.plan.wire,
    )


def enough_hugepages(wanted: bool | None, facts: HostFacts, switches: int) -> bool:
    """As the user says; else if enough 2 MB pages are free for every switch of the comparison."""
    if wanted is not None:
        return wanted
    return facts.hugepages_2m_free * HUGEPAGE_BYTES >= switches * HUGEPAGE_MB_PER_SWITCH * 1024 * 1024


def known_calibration(prepared: Prepared, facts: HostFacts, settings: LiveSettings) -> Calibration | None:
    """The stored calibration that holds for this run; None where there is none, or nothing to calibrate."""
    if prepared.simulated or not plain_frame_sizes(prepared.plan):
        return None
    condition = Condition(
        planed_version=version_of(settings.planed),
        cpu_model=facts.cpu_model,
        kernel=facts.kernel,
        wire=settings.wire,
        ring_size=settings.ring_size,
        hugepages=settings.hugepages,
        tester_cpus=len(place(cpus_of(facts, prepared.plan.switch_cores)).tester_cpus),
    )
    return load(condition, plain_frame_sizes(prepared.plan))


def make_calibration(
    prepared: Prepared, facts: HostFacts, settings: LiveSettings, listener: Callable[[str, float], None] | None = None
) -> Calibration:
    """Calibrate the tester as this run uses it, and keep it for the next. Raises what calibrate raises."""
    with measuring(facts, prepared.plan.switch_cores), Supervisor() as supervisor:
        found = calibrate(
            plain_frame_sizes(prepared.plan),
            wire=settings.wire,
            ring_size=settings.ring_size,
            hugepages=settings.hugepages,
            cpus=cpus_of(facts, prepared.plan.switch_cores),
            planed=settings.planed,
            supervisor=supervisor,
            duration_s=CALIBRATION_S,
            listener=listener,
        )
    with contextlib.suppress(StoreError):  # a home that cannot be written: it is measured again next time
        save(found)
    return found


@contextlib.contextmanager
def measuring(facts: HostFacts, switch_cores: int = 1) -> Iterator[None]:
    """This process at high priority, and off the switch's cores, while it measures."""
    old = os.sched_getaffinity(0)
    os.sched_setaffinity(0, place(cpus_of(facts, switch_cores)).control_cpus)
    try:
        with high_priority():
            yield
    finally:
        os.sched_setaffinity(0, old)
