# SPDX-License-Identifier: BSD-3-Clause
"""``testbed calibrate``: measure the tester against itself, show the figures, keep them for the runs of a day."""

from __future__ import annotations

import sys
from dataclasses import replace

from planebench.analysis.capacity import least_ns
from planebench.analysis.histogram import decode
from planebench.cli.options import print_table
from planebench.cli.progress import Bar
from planebench.measure.calibrate import calibrate as measure
from planebench.measure.calibrate import check_duration
from planebench.measure.machine import Machine
from planebench.model.header import Calibration
from planebench.model.scenarios import parse_frame_size
from planebench.model.wire import parse_wire
from planebench.model.words import NOTHING
from planebench.plan.schema import check_clock, check_ring_size
from planebench.store.calibration import save
from planebench.store.codec import to_json

STEPS = 100
"""The bar moves by percent."""


def calibrate(
    frame_size: str,
    wire: str,
    ring_size: int,
    duration: float,
    hugepages: bool | None,
    *,
    clock: str = "auto",
    json: bool,
    quiet: bool,
) -> None:
    """Calibrate, print, save. ``frame_size`` is a list with commas.

    Raises UsageError, NotInstalledError without planed, StartError or DiedError if it does not come up or stay, and
    StoreError, after the figures, where they cannot be kept.
    """
    sizes = [parse_frame_size(text.strip()) for text in frame_size.split(",")]
    check_ring_size(ring_size)
    check_duration(duration)
    ports, chosen = parse_wire(wire), check_clock(clock)
    machine = Machine.prepare(wire=ports)
    settings = replace(machine.live_settings(ports, ring_size, max(sizes), hugepages), clock=chosen)
    with machine.measuring() as supervisor, Bar(STEPS, quiet=quiet) as bar:

        def show(text: str, share: float) -> None:
            bar.advance(round(share * STEPS) - bar.done)
            bar.working_on(text)

        found = measure(sizes, settings, cpus=machine.cpus, supervisor=supervisor, duration_s=duration, listener=show)
    if json:
        sys.stdout.write(to_json(found, indent=1).decode() + "\n")
    elif not quiet:
        _show(found)
    path = save(found)
    if not (json or quiet):
        print(f"kept in {path}")


def _show(found: Calibration) -> None:
    """Print the ceilings and the floors of a calibration."""
    memory = "hugepages" if found.hugepages else "4 KiB pages"
    print(
        f"{found.planed_version}, {found.wire} wire, rings of {found.ring_size}, {memory}, "
        f"{found.tester_cpus} tester CPU{'s' if found.tester_cpus > 1 else ''}, {found.duration_s:g} s each\n"
    )
    ends = ("computed from the cycles of sender and receiver", "measured")
    ceilings = [
        (it.frame_size_bytes, f"{it.sender} -> {it.receiver}", f"{it.pps / 1e6:.3f}", ends[it.measured])
        for it in found.ceilings
    ]
    floors = []
    for floor in found.floors:
        p50, p99 = f"{floor.p50_ns / 1e3:.2f}", f"{floor.p99_ns / 1e3:.2f}"
        probes = f"{floor.probes_received} of {floor.probes_sent}"
        least = NOTHING if (ns := least_ns(floor)) is None else f"{ns / 1e3:.2f}"
        load = _rate(floor.background_pps)
        clocked = f"{decode(floor.histogram).sum() / found.duration_s:.0f} per s" if floor.histogram else NOTHING
        floors.append((floor.frame_size_bytes, load, floor.clock, least, p50, p99, probes, clocked))
    print("ceiling: the highest rate of the tester without a switch")
    print_table(("bytes", "from -> to", "Mpps", ""), ceilings, justify="right")
    print("\nlatency baseline: the lowest latency that the tester can measure")
    names = ("bytes", "load", "clock", "floor us", "p50 us", "p99 us", "probes", "by this clock")
    print_table(names, floors, justify="right")
    print()
    if (clocks := found.two_clocks) is not None:
        print(
            f"clocks at the two ends of the wire: offset {clocks.offset_ns} ns ± {2 * clocks.offset_error_ns:.0f}, "
            f"drift {clocks.drift * 1e6:.2f} ppm ± {2e6 * clocks.drift_error:.2f}; least delay {clocks.delay_ns:.0f} ns"
        )


def _rate(pps: float) -> str:
    return f"{pps / 1e6:.3f} Mpps" if pps >= 1e6 else f"{pps / 1e3:.1f} kpps"
