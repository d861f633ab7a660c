# SPDX-License-Identifier: BSD-3-Clause
"""``planebench run``: from options to a finished run folder."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from planebench import __version__
from planebench.cli.output import REPORT_FILE, write_report
from planebench.cli.progress import ProgressListener
from planebench.host import doctor
from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts
from planebench.host.priority import high_priority
from planebench.host.process import Supervisor, sweep_stale
from planebench.measure.campaign import Campaign, planned_trials
from planebench.measure.live import LiveSettings
from planebench.model.errors import NotInstalledError, PlanebenchError
from planebench.model.header import RunHeader, Skipped, SwitchInfo
from planebench.model.records import Point
from planebench.placement import Cpus, LinkSettings, place, switch_request
from planebench.planed import REMEDY, find_planed
from planebench.plans import (
    Plan,
    SwitchLabel,
    estimate,
    expand,
    load_plan,
    max_frame_bytes,
    override,
    skipped,
    switch_labels,
)
from planebench.report.table import print_table
from planebench.scenarios import build
from planebench.store import RunWriter, default_runs_dir, new_run_id, read_run
from planebench.switches import get_adapter
from planebench.switches.base import Found, NotFound, SwitchAdapter

HUGEPAGE_BYTES = 2 * 1024 * 1024
HUGEPAGE_MB_PER_SWITCH = 2048
"""What tester and switch of one comparison partner take at most; with fewer free pages everybody runs without."""

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command line of ``run``; ``overrides`` are the keyword arguments of plans.override."""

    plan: str
    overrides: Mapping[str, Any]
    hugepages: bool | None = None
    runs: Path | None = None
    json: bool = False
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan whose switches are all here."""

    plan: Plan
    points: tuple[Point, ...]
    labels: tuple[SwitchLabel, ...]
    adapters: dict[str, SwitchAdapter]
    versions: dict[str, str]
    skipped: tuple[Skipped, ...]


def run_plan(options: RunOptions) -> int:
    """Run a plan and show what came of it. Returns the exit code: 0, or 130 after Ctrl-C or SIGTERM.

    Raises UsageError and NotInstalledError before anything is started.
    """
    prepared = _prepare(override(load_plan(options.plan), **options.overrides))
    planed = find_planed()
    if planed is None:
        raise NotInstalledError(f"the program planed is not here: {REMEDY}")
    facts = host_facts.collect()
    settings = LiveSettings(
        planed=planed,
        ring_size=prepared.plan.ring_size,
        hugepages=_hugepages(options.hugepages, facts, len(prepared.labels)),
        max_frame_bytes=max_frame_bytes(prepared.plan),
        wire=prepared.plan.wire,
    )
    sweep_stale()
    header = _header(prepared, facts, settings)
    writer = RunWriter.create(options.runs or default_runs_dir(), header)
    try:
        with _terminable():
            _announce(writer, prepared, options)
            code = _measure(prepared, facts, settings, writer, options)
            _show(writer.path, options)
    except KeyboardInterrupt:  # in the report of a run that was complete
        return INTERRUPTED
    return code


def _prepare(plan: Plan) -> _Prepared:
    """Find every switch. One that is not here is left out, or an error if it was asked for by name."""
    labels = switch_labels(plan.switches)
    adapters = {label.label: get_adapter(label.adapter) for label in labels}
    found = {label: adapter.find() for label, adapter in adapters.items()}
    missing = {label: what for label, what in found.items() if isinstance(what, NotFound)}
    if missing and plan.missing_switches == "error":
        label, what = next(iter(missing.items()))
        raise NotInstalledError(f'switch "{label}" is not installed; get it with: {what.remedy}')
    here = {label: what.version for label, what in found.items() if isinstance(what, Found)}
    if not here:
        remedies = "; ".join(f"{label}: {what.remedy}" for label, what in missing.items())
        raise NotInstalledError(f"none of the switches of plan {plan.name} is installed ({remedies})")
    left_out = tuple(Skipped(label, f"not installed; get it with: {what.remedy}") for label, what in missing.items())
    return _Prepared(
        plan=plan,
        points=tuple(point for point in expand(plan) if point.switch in here),
        labels=tuple(label for label in labels if label.label in here),
        adapters={label: adapters[label] for label in here},
        versions=here,
        skipped=(*skipped(plan), *left_out),
    )


def _hugepages(wanted: bool | None, facts: HostFacts, switches: int) -> bool:
    """As the user says; else if enough 2 MB pages are free for every switch of the comparison."""
    if wanted is not None:
        return wanted
    return facts.hugepages_2m_free * HUGEPAGE_BYTES >= switches * HUGEPAGE_MB_PER_SWITCH * 1024 * 1024


def _cpus(facts: HostFacts) -> Cpus:
    return Cpus(allowed=facts.cpus_allowed, siblings=facts.siblings, numa_node=facts.numa_node)


def _header(prepared: _Prepared, facts: HostFacts, settings: LiveSettings) -> RunHeader:
    plan, now = prepared.plan, datetime.now(UTC)
    findings = [finding for finding in doctor.examine(facts) if finding.level != "ok"]
    placement = place(_cpus(facts), max((point.chain_length for point in prepared.points), default=0))
    warnings = [f"{finding.text} ({finding.remedy})" if finding.remedy else finding.text for finding in findings]
    return RunHeader(
        run_id=new_run_id(plan.name, now),
        name=plan.name,
        started_at=now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        command=("planebench", *sys.argv[1:]),
        seed=plan.seed,
        planebench_version=__version__,
        host=facts.as_dict(),
        settings=_settings(plan, settings, placement.switch_cpu, placement.tester_cpus),
        switches=tuple(_switch_info(label, prepared, facts, settings) for label in prepared.labels),
        skipped=prepared.skipped,
        warnings=tuple(dict.fromkeys((*warnings, *placement.warnings))),
    )


def _settings(
    plan: Plan, settings: LiveSettings, switch_cpu: int, tester_cpus: Sequence[int]
) -> dict[str, str | int | float | bool | None]:
    return {
        "trial_duration_s": plan.throughput.duration_s,
        "warmup_s": plan.throughput.warmup_s,
        "repetitions": plan.throughput.repetitions,
        "retries": plan.throughput.retries,
        "latency_loads": ",".join(f"{load:g}" for load in plan.latency.loads),
        "latency_duration_s": plan.latency.duration_s,
        "latency_repetitions": plan.latency.repetitions,
        "probe_rate_pps": plan.latency.probe_rate_pps,
        "v2v_latency_pps": plan.latency.v2v_pps,
        "wire": plan.wire,
        "hosting": plan.hosting,
        "ring_size": plan.ring_size,
        "hugepages": settings.hugepages,
        "switch_cpu": switch_cpu,
        "tester_cpus": ",".join(str(cpu) for cpu in tester_cpus),
    }


def _switch_info(label: SwitchLabel, prepared: _Prepared, facts: HostFacts, settings: LiveSettings) -> SwitchInfo:
    adapter = prepared.adapters[label.label]
    point = next(point for point in prepared.points if point.switch == label.label)
    topology = build(point.scenario, point.chain_length)
    links = LinkSettings(
        workdir=Path("/"),
        ring_size=settings.ring_size,
        hugepages=settings.hugepages,
        max_frame_bytes=settings.max_frame_bytes,
    )
    request = switch_request(topology, place(_cpus(facts), len(topology.vnfs)), links)
    return SwitchInfo(label.label, label.adapter, prepared.versions[label.label], adapter.settings(request))


def _announce(writer: RunWriter, prepared: _Prepared, options: RunOptions) -> None:
    if options.quiet:
        return
    console = Console(stderr=True)
    for entry in prepared.skipped:
        console.print(f"left out: {entry.what}: {entry.reason}", markup=False, highlight=False, soft_wrap=True)
    for warning in writer.header.warnings:
        console.print(f"note: {warning}", markup=False, highlight=False, style="dim", soft_wrap=True)
    minutes = estimate(prepared.plan, prepared.points) / 60
    console.print(
        f"{len(prepared.points)} points, about {minutes:.1f} minutes; trials go to {writer.path}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _measure(
    prepared: _Prepared, facts: HostFacts, settings: LiveSettings, writer: RunWriter, options: RunOptions
) -> int:
    """Run the campaign; whatever happens, the folder is closed in order and nothing is left running."""
    steps = planned_trials(prepared.plan, prepared.points)
    try:
        with (
            _out_of_the_way(place(_cpus(facts)).control_cpus),
            high_priority(),
            Supervisor() as supervisor,
            ProgressListener(steps, prepared.plan.throughput.duration_s, options.quiet) as listener,
        ):
            Campaign(
                plan=prepared.plan,
                points=prepared.points,
                adapters=prepared.adapters,
                cpus=_cpus(facts),
                settings=settings,
                writer=writer,
                listener=listener,
                supervisor=supervisor,
            ).run()
    except KeyboardInterrupt:
        writer.finish("interrupted", "stopped by Ctrl-C or SIGTERM")
        return INTERRUPTED
    except PlanebenchError as error:
        writer.finish("interrupted", str(error))
        raise
    writer.finish()
    return 0


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does; after the first, all are ignored until the process ends in order."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        for caught in signals:
            signal.signal(caught, signal.SIG_IGN)
        raise KeyboardInterrupt

    old = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in old.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)


@contextlib.contextmanager
def _out_of_the_way(cpus: frozenset[int]) -> Iterator[None]:
    """Keep this process off the switch's core while it measures."""
    old = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, old)


def _show(folder: Path, options: RunOptions) -> None:
    """The table, the page, and where they are."""
    run = read_run(folder)
    page = write_report(run, folder / REPORT_FILE)
    if options.json:
        from planebench.report.export import to_json

        sys.stdout.buffer.write(to_json(run))
    elif not options.quiet:
        print_table(run)
        print(f"\nreport: {page}")
