# SPDX-License-Identifier: BSD-3-Clause
"""The calibration of the tester, for the page: maximum rates, rate error, latency baseline."""

from __future__ import annotations

from planebench.model.header import Calibration
from planebench.model.words import count, frame_size, mpps, percent, us
from planebench.report.page.table import PageColumn, PageTable, number, page_table, some

_ENDS = {"wire": "wire", "vnf": "VNF"}


def calibration_words(c: Calibration) -> str:
    """Return when and in which conditions the tester was calibrated."""
    pages = "hugepages" if c.hugepages else "no hugepages"
    return (
        f"Tester calibration of {c.measured_at}: planed {c.planed_version}, {c.cpu_model}, "
        f"kernel {c.kernel}, wire {c.wire}, rings of {c.ring_size}, {pages}, "
        f"{c.tester_cpus} tester CPU{'' if c.tester_cpus == 1 else 's'}, {c.duration_s:g} s per measurement."
    )


def calibration_tables(calibration: Calibration) -> list[PageTable]:
    """Return the tables of a calibration that have rows."""
    return some([_ceilings(calibration), _set_points(calibration), _floors(calibration)])


_FRAME = PageColumn("frame", lambda it: frame_size(it.frame_size_bytes))


def _ceilings(calibration: Calibration) -> PageTable:
    columns = (
        _FRAME,
        PageColumn("from", lambda it: _ENDS[it.sender]),
        PageColumn("to", lambda it: _ENDS[it.receiver]),
        PageColumn("Mpps", lambda it: mpps(it.pps), "strong"),
        PageColumn("how", lambda it: "measured" if it.measured else "composed"),
    )
    note = "composed: computed from the cycles per packet of generator and receiver, each measured alone"
    return page_table(
        "Calibrated tester maximum: generator and receiver without a switch", columns, calibration.ceilings, note
    )


def _set_points(calibration: Calibration) -> PageTable:
    columns = (
        _FRAME,
        number("intended", lambda it: mpps(it.intended_pps)),
        number("offered", lambda it: mpps(it.offered_pps)),
        number("forwarded", lambda it: mpps(it.forwarded_pps)),
        PageColumn("rate error", lambda it: f"{it.rate_error * 100:+.3f} %", "strong"),
    )
    return page_table("Rate accuracy: intended, offered and forwarded load, Mpps", columns, calibration.set_points)


def _floors(calibration: Calibration) -> PageTable:
    columns = (
        _FRAME,
        number("background Mpps", lambda it: mpps(it.background_pps)),
        number("p50", lambda it: us(it.p50_ns / 1e3)),
        number("p99", lambda it: us(it.p99_ns / 1e3)),
        PageColumn("clock", lambda it: it.clock),
        number("probes", lambda it: count(it.probes_sent)),
        number("probe loss", lambda it: percent(1 - it.probes_received / it.probes_sent if it.probes_sent else None)),
    )
    return page_table("Tester latency baseline, µs", columns, calibration.floors)
