# SPDX-License-Identifier: BSD-3-Clause
"""``calibrate``: measure the tester against itself, show the figures, keep them for the runs of a day."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from planebench.host import facts as host_facts
from planebench.host.facts import cpus_of
from planebench.host.process import Supervisor, sweep_stale
from planebench.measure.calibrate import calibrate as measure
from planebench.measure.calibrate import check_duration
from planebench.model.errors import INTERRUPTED
from planebench.model.header import Calibration, SetPoint
from planebench.planed import require_planed
from planebench.plans.schema import check_ring_size
from planebench.running.machine import enough_hugepages, measuring
from planebench.scenarios.registry import parse_frame_size
from planebench.store.calibration import save
from planebench.store.codec import to_json


def calibrate(
    frame_sizes: str, wire: str, ring_size: int, duration: float, hugepages: bool | None, *, json: bool, quiet: bool
) -> int:
    """Calibrate, print, save. ``frame_sizes`` is a list with commas. Returns 0, or 130 after Ctrl-C.

    Raises UsageError, NotInstalledError without planed, StartError or DiedError if it does not come up or stay, and
    StoreError, after the figures, where they cannot be kept.
    """
    sizes = [parse_frame_size(text.strip()) for text in frame_sizes.split(",")]
    check_ring_size(ring_size)
    check_duration(duration)
    planed = require_planed()
    facts = host_facts.collect()
    sweep_stale()
    try:
        with measuring(facts), Supervisor() as supervisor, _progress(quiet) as listener:
            found = measure(
                sizes,
                wire=wire,
                ring_size=ring_size,
                hugepages=enough_hugepages(hugepages, facts, 1),
                cpus=cpus_of(facts),
                planed=planed,
                supervisor=supervisor,
                duration_s=duration,
                listener=listener,
            )
    except KeyboardInterrupt:
        return INTERRUPTED
    if json:
        sys.stdout.write(to_json(found, indent=1).decode() + "\n")
    elif not quiet:
        _show(found)
    path = save(found)
    if not (json or quiet):
        print(f"kept in {path}")
    return 0


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """Show a bar on standard error, on a terminal only.

    It is drawn between the sends, because drawing takes CPU time from the pollers.
    """
    console = Console(stderr=True)
    columns = (
        BarColumn(bar_width=30),
        TextColumn("[dim]left[/]"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    if quiet or not console.is_terminal:
        yield lambda text, share: None
        return
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(text: str, share: float) -> None:
            bar.update(task, completed=share, description=escape(text))
            bar.refresh()

        yield show


def _show(found: Calibration) -> None:
    memory = "hugepages" if found.hugepages else "4 KiB pages"
    print(
        f"{found.planed_version}, {found.wire} wire, rings of {found.ring_size}, {memory}, "
        f"{found.tester_cpus} tester CPU{'s' if found.tester_cpus > 1 else ''}, {found.duration_s:g} s each\n"
    )
    console = Console()
    tables = {
        "ceiling: the highest rate of the tester without a switch": _ceilings(found),
        "rate error: (offered - intended) / intended": _set_points(found),
        "latency baseline: the lowest latency that the tester can measure": _floors(found),
    }
    for title, table in tables.items():
        console.print(f"[bold]{title}[/]")
        console.print(table)
        console.print()


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _ceilings(found: Calibration) -> Table:
    table = _table("bytes", "from -> to", "Mpps", "")
    for it in found.ceilings:
        how = "measured" if it.measured else "computed from the cycles of sender and receiver"
        table.add_row(str(it.frame_size_bytes), f"{it.sender} -> {it.receiver}", f"{it.pps / 1e6:.3f}", how)
    return table


def _set_points(found: Calibration) -> Table:
    table = _table("bytes", "intended", "rate error", "lost")
    for it in found.set_points:
        table.add_row(str(it.frame_size_bytes), _rate(it.intended_pps), f"{it.rate_error:+.2%}", f"{_loss(it):.2%}")
    return table


def _floors(found: Calibration) -> Table:
    table = _table("bytes", "load", "p50 us", "p99 us", "probes")
    for it in found.floors:
        p50, p99 = f"{it.p50_ns / 1e3:.2f}", f"{it.p99_ns / 1e3:.2f}"
        probes = f"{it.probes_received} of {it.probes_sent}"
        table.add_row(str(it.frame_size_bytes), _rate(it.background_pps), p50, p99, probes)
    return table


def _loss(point: SetPoint) -> float:
    return 1 - point.forwarded_pps / point.offered_pps if point.offered_pps else 0.0


def _rate(pps: float) -> str:
    return f"{pps / 1e6:.3f} Mpps" if pps >= 1e6 else f"{pps / 1e3:.1f} kpps"
