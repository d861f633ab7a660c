# SPDX-License-Identifier: BSD-3-Clause
"""What the tester can do on its own, for the page: ceilings, rate error, latency floor."""

from __future__ import annotations

from dataclasses import dataclass

from planebench.model.header import Calibration
from planebench.model.words import count, frame_size, mpps, percent, us
from planebench.report.page_table import Head, PageTable, Row, heads, some

_ENDS = {"wire": "wire", "vnf": "VNF"}


@dataclass(frozen=True, slots=True)
class CalibrationPage:
    """``words`` says when and in which conditions; tables without rows are left out."""

    words: str
    tables: list[PageTable]


def calibration_page(calibration: Calibration | None) -> CalibrationPage | None:
    """None for a run whose tester was not calibrated."""
    if calibration is None:
        return None
    c = calibration
    pages = "hugepages" if c.hugepages else "no hugepages"
    words = (
        f"Tester calibration of {c.measured_at}: planed {c.planed_version}, {c.cpu_model}, "
        f"kernel {c.kernel}, wire {c.wire}, rings of {c.ring_size}, {pages}, "
        f"{c.tester_cpus} tester CPU{'' if c.tester_cpus == 1 else 's'}, {c.duration_s:g} s per measurement."
    )
    return CalibrationPage(words, some([_ceilings(c), _set_points(c), _floors(c)]))


def _ceilings(calibration: Calibration) -> PageTable:
    rows = tuple(
        Row(
            (
                frame_size(c.frame_size_bytes),
                _ENDS[c.sender],
                _ENDS[c.receiver],
                mpps(c.pps),
                "measured" if c.measured else "composed",
            )
        )
        for c in calibration.ceilings
    )
    columns = (Head("frame"), Head("from"), Head("to"), Head("Mpps", "strong"), Head("how"))
    note = (
        "composed: computed from the cycles per packet of generator and receiver, each measured alone" if rows else ""
    )
    return PageTable("Calibrated tester maximum: generator and receiver without a switch", columns, rows, note)


def _set_points(calibration: Calibration) -> PageTable:
    rows = tuple(
        Row(
            (
                frame_size(s.frame_size_bytes),
                mpps(s.intended_pps),
                mpps(s.offered_pps),
                mpps(s.forwarded_pps),
                f"{s.rate_error * 100:+.3f} %",
            )
        )
        for s in calibration.set_points
    )
    columns = (Head("frame"), *heads(("intended", "offered", "forwarded")), Head("rate error", "strong"))
    return PageTable("Rate accuracy: intended, offered and forwarded load, Mpps", columns, rows)


def _floors(calibration: Calibration) -> PageTable:
    rows = tuple(
        Row(
            (
                frame_size(f.frame_size_bytes),
                mpps(f.background_pps),
                us(f.p50_ns / 1e3),
                us(f.p99_ns / 1e3),
                count(f.probes_sent),
                percent(1 - f.probes_received / f.probes_sent if f.probes_sent else None),
            )
        )
        for f in calibration.floors
    )
    columns = (Head("frame"), *heads(("background Mpps", "p50", "p99", "probes", "probe loss")))
    return PageTable("Tester latency baseline, µs", columns, rows)
