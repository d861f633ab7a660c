# SPDX-License-Identifier: BSD-3-Clause
"""``testbed calibrate``: measure the tester against itself, show the figures, keep them for the runs of a day."""

from __future__ import annotations

import sys

from planebench.cli.progress import Bar
from planebench.measure.calibrate import calibrate as measure
from planebench.measure.machine import Machine, terminable
from planebench.model.scenarios import parse_frame_size
from planebench.model.wire import parse_wire
from planebench.plan.schema import check_ring_size
from planebench.report.sections import Sentences
from planebench.report.setup import calibration_tables, calibration_words
from planebench.report.terminal.table import print_parts
from planebench.store.calibration import save
from planebench.store.codec import to_json

STEPS = 100
"""The bar moves by percent."""


def calibrate(
    frame_size: str,
    wire: str,
    ring_size: int,
    hugepages: bool | None,
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Calibrate, print, save. ``frame_size`` is a list with commas.

    Raises UsageError, NotInstalledError without planed, StartError or DiedError if it does not come up or stay, and
    StoreError, after the figures, where they cannot be kept.
    """
    sizes = [parse_frame_size(text.strip()) for text in frame_size.split(",")]
    check_ring_size(ring_size)
    ports = parse_wire(wire)
    machine = Machine.prepare(wire=ports)
    settings = machine.live_settings(ports, ring_size, max(sizes), hugepages)
    with terminable(), machine.measuring() as supervisor, Bar(STEPS, quiet=quiet) as bar:

        def show(text: str, share: float) -> None:
            bar.advance(round(share * STEPS) - bar.done)
            bar.working_on(text)

        found = measure(sizes, settings, cpus=machine.cpus, supervisor=supervisor, listener=show)
    if json:
        sys.stdout.write(to_json(found, indent=1).decode() + "\n")
    elif not quiet:
        print_parts([Sentences([calibration_words(found)]), *calibration_tables(found)])
    path = save(found)
    if not (json or quiet):
        print(f"\nkept in {path}")
