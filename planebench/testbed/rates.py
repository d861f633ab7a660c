# SPDX-License-Identifier: BSD-3-Clause
"""Loads of a trial: maximum, a share of R+, or a fixed rate; and their labels, by which tables group them."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.errors import UsageError
from planebench.model.plan import LatencyPlan
from planebench.model.records import L1_OVERHEAD_BYTES, Load
from planebench.model.scenario import ScenarioName, scenario_named
from planebench.model.scenarios import FRAME_SIZE_MIN_BYTES
from planebench.model.text import parse_number

SATURATING = Load("saturating")
"""Maximum offered load."""


def line_rate_pps(frame_size_bytes: float, line_rate_bps: float = 10_000_000_000) -> float:
    """Return the frames per second that fill a line: 14.88 million of 64 bytes at 10 Gb/s, with layer-1 overhead.

    For a mix give the mean frame size, not rounded.
    """
    return line_rate_bps / ((frame_size_bytes + L1_OVERHEAD_BYTES) * 8)


def share_label(share: float, of: str = "") -> str:
    """Return e.g. ``0.10``, ``0.995``, ``0.50 PDR``: at least two decimals, never rounded to another share.

    ``of``: what it is a share of, empty for R+.
    """
    two = f"{share:.2f}"
    return f"{two if float(two) == share else repr(share)} {of}".strip()


def rate_label(pps: float) -> str:
    """Return e.g. ``1Mpps``, ``2.5Mpps``, ``100kpps``, ``100pps``."""
    return _with_prefix(pps, (("M", 1e6), ("k", 1e3)), "pps")


def parse_rate(text: str) -> float:
    """Return ``14.88M``, ``100k`` or ``5e6`` in packets per second. Raises UsageError for anything else."""
    return _parsed(text, 1e10, "rate", "packets per second, e.g. 14.88M, 100k or 5e6")


def bits_label(bps: float) -> str:
    """Return e.g. ``2.5Gb/s``, ``156Mb/s``."""
    return _with_prefix(bps, (("G", 1e9), ("M", 1e6), ("k", 1e3)), "b/s")


def _with_prefix(value: float, prefixes: Sequence[tuple[str, float]], unit: str) -> str:
    """Return a value with the first prefix, the largest one first, whose factor it reaches."""
    prefix, factor = next((it for it in prefixes if value >= it[1]), ("", 1.0))
    return f"{value / factor:g}{prefix}{unit}"


def parse_bits(text: str) -> float:
    """Return ``2.5G`` or ``156M`` in bits per second. Raises UsageError for anything else."""
    return _parsed(text, 1e13, "bit rate", "bits per second, e.g. 10G or 156M")


def _parsed(text: str, most: float, what: str, valid: str) -> float:
    value = parse_number(text)
    if value is None or not 0 < value <= most:
        raise UsageError(f'{what} "{text}" is not valid. Valid: {valid}')
    return value


def bit_loads(
    total_bps: Sequence[float],
    per_vnf_bps: Sequence[float],
    frame_size_bytes: float = FRAME_SIZE_MIN_BYTES,
    vnfs: int = 1,
    senders: int = 1,
) -> tuple[Load, ...]:
    """Return the loads that are bit rates on layer 1: of all sending ends together, and of each of ``vnfs`` VNFs.

    A rate per VNF is multiplied by their number; only those side by side have a number, the VNFs of a chain share one
    stream. The labels depend on the bit rates alone.
    """
    totals = [(bits_label(bps), bps) for bps in total_bps]
    each = [(f"{bits_label(bps)} per VNF", bps * vnfs) for bps in per_vnf_bps]
    frame_bits = (frame_size_bytes + L1_OVERHEAD_BYTES) * 8
    return tuple(Load(label, bps / frame_bits / senders) for label, bps in dict.fromkeys((*totals, *each)))


def fixed_loads(scenario: ScenarioName, how: LatencyPlan) -> tuple[Load, ...]:
    """Return the loads that do not depend on R+: the requested rates per sending end; in v2v one for all shares."""
    rates = (how.v2v_pps, *how.rates_pps) if scenario_named(scenario).latency_by_echo and how.loads else how.rates_pps
    return tuple(Load(rate_label(rate), rate) for rate in dict.fromkeys(rates))


def latency_loads(
    scenario: ScenarioName, how: LatencyPlan, whole_pps: float = 0.0, senders: int = 1, of: str = ""
) -> tuple[Load, ...]:
    """Return the loads of latency trials: shares, split evenly over the sending ends, and :func:`fixed_loads`.

    ``whole_pps`` is what they are shares of, aggregate over all directions, without which the labels alone count;
    ``of`` is its name, empty for R+. Without shares and rates the result is empty, for v2v too.
    """
    fixed = fixed_loads(scenario, how)
    if scenario_named(scenario).latency_by_echo:
        return fixed
    return (*(Load(share_label(share, of), share * whole_pps / senders) for share in how.loads), *fixed)
