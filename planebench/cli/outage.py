# SPDX-License-Identifier: BSD-3-Clause
"""``planebench outage``: a VNF, or the switch, restarted under traffic; how long nothing came, and what was lost."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from planebench.cli.bar import Bar
from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts
from planebench.host.process import Supervisor, sweep_stale
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.outage import OutageRequest, check_victim, measure_outage
from planebench.measure.runner import SelfMeasured
from planebench.model.chain_name import vnf_texts
from planebench.model.errors import INTERRUPTED, NotInstalledError, UsageError
from planebench.model.outage import Outage, OutageReport, OutageReports
from planebench.placement import place
from planebench.planed import require_planed
from planebench.plans import switch_labels
from planebench.plans.items import each
from planebench.plans.schema import check_ring_size, parse_hosting, parse_wire
from planebench.running.machine import cpus_of, enough_hugepages, measuring, terminable
from planebench.scenarios import Topology, parse_frame_size
from planebench.store.codec import to_json
from planebench.switches.base import Found, NotFound, Situation, SwitchAdapter, refusal_of
from planebench.switches.registry import get_adapter
from planebench.traffic.rates import parse_rate
from planebench.vnfs import build_chain
from planebench.vnfs.chain import hosted_chain, resolve_chain

MAX_FRAME_BYTES = 1518


@dataclass(frozen=True, slots=True)
class OutageOptions:
    """The command line of ``outage``."""

    switch: str
    chain: str
    restart: str
    hosting: str = "separate"
    kill: bool = False
    rate: str = "10k"
    frame_size: int = 64
    repetitions: int = 5
    wire: str = "virtio"
    ring_size: int = 256
    hugepages: bool | None = None
    json: bool = False
    quiet: bool = False


@dataclass
class _Subject:
    """A switch whose outages are measured."""

    label: str
    adapter: SwitchAdapter
    version: str
    live: LiveTopology
    outages: list[Outage]


def outage(options: OutageOptions) -> int:
    """Measure and show. Exit code: 0, or 130. Raises UsageError and NotInstalledError before anything is started."""
    facts = host_facts.collect()
    topology = _topology(options)
    request = _request(options, topology)
    switches = _switches(options.switch)
    settings = _settings(options, facts, len(switches))
    _check_supported(switches, topology, settings)
    sweep_stale()
    steps = options.repetitions * len(switches)
    try:
        with terminable(), measuring(facts), Supervisor() as supervisor, Bar(steps, quiet=options.quiet) as bar:
            reports = _measure(switches, topology, request, options, settings, facts, supervisor, bar)
    except KeyboardInterrupt:
        return INTERRUPTED
    if options.json:
        sys.stdout.write(to_json(OutageReports(tuple(reports)), indent=1).decode() + "\n")
    elif not options.quiet:
        _show(reports)
    return 0


def _topology(options: OutageOptions) -> Topology:
    chain = resolve_chain(options.chain, Path.cwd())
    length = len(vnf_texts(chain, 1))
    text, hosting = hosted_chain(chain, length, parse_hosting(options.hosting))
    return build_chain("loopback", length, chain=text, hosting=hosting)


def _request(options: OutageOptions, topology: Topology) -> OutageRequest:
    if options.repetitions < 1:
        raise UsageError(f"repetitions {options.repetitions} is not valid. Valid: 1 and more")
    check_victim(options.restart, [vnf.name for vnf in topology.vnfs], [vnf.name for vnf in topology.hosted_vnfs])
    return OutageRequest(
        options.restart, parse_rate(options.rate), parse_frame_size(options.frame_size), kill=options.kill
    )


def _switches(text: str) -> list[tuple[str, SwitchAdapter, str]]:
    """Label, adapter and version of each. NotInstalledError names one that is not here."""
    found = []
    for label in switch_labels(each("switch", text, str)):
        adapter = get_adapter(label.adapter)
        if isinstance(adapter, SelfMeasured):
            raise UsageError(f"switch {label.label} forwards no packets, so nothing can be restarted; name another")
        here = adapter.find()
        if isinstance(here, NotFound):
            raise NotInstalledError(f'switch "{label.label}" {here.words}')
        assert isinstance(here, Found)
        found.append((label.label, adapter, here.version))
    return found


def _check_supported(
    switches: Sequence[tuple[str, SwitchAdapter, str]], topology: Topology, settings: LiveSettings
) -> None:
    """Raise UsageError for a switch that refuses this topology, with its reason."""
    situation = Situation(
        topology.scenario,
        settings.wire,
        len(topology.vnfs),
        settings.hugepages,
        settings.max_frame_bytes,
        topology.chain,
        hosted=bool(topology.hosted_vnfs),
    )
    for label, adapter, _ in switches:
        if why := refusal_of(adapter, situation):
            raise UsageError(f"--switch {label}: not supported: {why}")


def _settings(options: OutageOptions, facts: HostFacts, switches: int) -> LiveSettings:
    return LiveSettings(
        planed=require_planed(),
        ring_size=check_ring_size(options.ring_size),
        hugepages=enough_hugepages(options.hugepages, facts, switches),
        max_frame_bytes=MAX_FRAME_BYTES,
        wire=parse_wire(options.wire),
    )


def _measure(
    switches: Sequence[tuple[str, SwitchAdapter, str]],
    topology: Topology,
    request: OutageRequest,
    options: OutageOptions,
    settings: LiveSettings,
    facts: HostFacts,
    supervisor: Supervisor,
    bar: Bar,
) -> list[OutageReport]:
    """All switches up at once, and paused but for the one in turn: what drifts on the machine hits all alike."""
    placement = place(cpus_of(facts), len(topology.vnfs), hosted=topology.hosted_numbers)
    with contextlib.ExitStack() as undo:
        subjects = []
        for label, adapter, version in switches:
            bar.working_on(f"starting {label}")
            live = LiveTopology.start(label, adapter, topology, placement, settings, supervisor, ("unidirectional",))
            undo.callback(live.stop)
            subjects.append(_Subject(label, adapter, version, live, []))
        for number in range(options.repetitions):
            for it in subjects:
                bar.working_on(f"{it.label}: restart {number + 1} of {request.victim}")
                it.live.resume()
                it.outages.append(measure_outage(it.live, it.adapter, supervisor, request))
                it.live.pause()
                bar.advance()
                bar.line(f"[{bar.done}/{bar.steps}] {it.label}: {_line(it.outages[-1])}")
        return [_report(it, request, topology) for it in subjects]


def _report(it: _Subject, request: OutageRequest, topology: Topology) -> OutageReport:
    return OutageReport(
        switch=it.label,
        version=it.version,
        chain=",".join(f"{vnf.hosting}:{vnf.kind}".rstrip(":") for vnf in topology.vnfs),
        victim=request.victim,
        killed=request.kill,
        rate_pps=request.rate_pps,
        frame_size_bytes=request.frame_size_bytes,
        functional=it.live.functional,
        outages=tuple(it.outages),
        hosted=it.live.hosted.facts if it.live.hosted is not None else (),
    )


def _line(it: Outage) -> str:
    return f"outage {it.silence.duration_ns / 1e6:.1f} ms, {it.lost_packets} frames lost"


def _show(reports: Sequence[OutageReport]) -> None:
    console = Console()
    for report in reports:
        how = "killed" if report.killed else "ended"
        traffic = f"{report.rate_pps:,.0f} frames/s of {report.frame_size_bytes} B"
        console.print(
            f"[bold]{report.switch}[/], {report.version}, {report.chain}: {report.victim} {how} and started again\n"
            f"under {traffic}; times in ms, then frames",
            highlight=False,
            soft_wrap=True,
        )
        console.print(_table(report))
        for reason in report.functional:
            console.print(f"counts hold, times are those of such a machine: {reason}", markup=False, soft_wrap=True)
        median = f"{report.silence_median_ns / 1e6:.1f} ms, {report.lost_median_packets:,.0f} frames"
        console.print(f"median of {len(report.outages)}: outage {median}\n", highlight=False)


def _table(report: OutageReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "outage", "calm", "restart", "lost", "not taken", "dropped", "gone", "of", "late"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, it in enumerate(report.outages, start=1):
        table.add_row(
            str(number),
            *(f"{ns / 1e6:.1f}" for ns in (it.silence.duration_ns, it.calm.duration_ns, it.restart_ns)),
            f"{it.lost_packets:,}",
            f"{it.unsent_ring_full_packets:,}",
            f"{it.dropped_packets:,}",
            f"{it.gone_packets:,}",
            f"{it.intended_packets:,}",
            f"{it.unsent_late_packets:,}",
        )
    return table
