# SPDX-License-Identifier: BSD-3-Clause
"""In what a search departs from the standard it is named after: one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from planebench.search.ask import SearchSettings
from planebench.search.burst import BURST_MAX_S
from planebench.search.curve import CURVE_TRIAL_S
from planebench.search.goals import BSWLV_TRIAL_S, CSIT_TRIAL_S, CSIT_TRIALS, CSIT_WIDTH, RFC2544_TRIAL_S
from planebench.search.task import MAX_LOAD_FACTOR

RFC2544_REPETITIONS = 50
RFC9004_BURST_MAX_S = 30
CSIT_PDR_LOSS_RATIO = 0.005


def none(settings: SearchSettings) -> tuple[str, ...]:
    """R+ is of a paper, and has no standard to depart from."""
    return ()


def of_ndr(settings: SearchSettings) -> tuple[str, ...]:
    """Departures from the goals of FD.io CSIT."""
    return (*_csit(settings), *_max_load(settings))


def of_pdr(settings: SearchSettings) -> tuple[str, ...]:
    """Departures from the goals of FD.io CSIT."""
    ratio = settings.pdr_loss_ratio
    other = [] if ratio == CSIT_PDR_LOSS_RATIO else [f"loss ratio {ratio:g}; CSIT takes {CSIT_PDR_LOSS_RATIO:g}"]
    return (*other, *_csit(settings), *_max_load(settings))


def of_rfc2544(settings: SearchSettings) -> tuple[str, ...]:
    """Departures from RFC 2544 sections 24 and 26.1."""
    return (*_short(settings, RFC2544_TRIAL_S), *_width(settings), *_max_load(settings))


def of_bswlv(settings: SearchSettings) -> tuple[str, ...]:
    """Departures from ETSI GS NFV-TST 009 as RFC 9971 (MLRsearch) states its goal."""
    trial_s = settings.trial_duration_s or BSWLV_TRIAL_S
    short = []
    if trial_s < RFC2544_TRIAL_S:
        short = [f"trials of {trial_s:g} s; RFC 9971 gives {RFC2544_TRIAL_S:g} s for the TST 009 goal"]
    return (*short, *_width(settings), *_max_load(settings))


def of_curve(settings: SearchSettings) -> tuple[str, ...]:
    """Departures from RFC 2544 sections 24 and 26.3."""
    return (*_short(settings, CURVE_TRIAL_S), *_max_load(settings))


def of_b2b(settings: SearchSettings) -> tuple[str, ...]:
    """Departures from RFC 9004, and from RFC 2544 section 26.4 that it updates."""
    found = []
    if settings.burst_repetitions < RFC2544_REPETITIONS:
        found.append(f"{settings.burst_repetitions} repetitions; RFC 2544 asks for {RFC2544_REPETITIONS}")
    found.append(f"bursts of {BURST_MAX_S:g} s at most; RFC 9004 wants up to {RFC9004_BURST_MAX_S} s to be possible")
    found.append("the buffer time is corrected by the rate forwarded flat out; RFC 9004 takes the RFC 2544 throughput")
    return (*found, *_max_load(settings))


def _csit(settings: SearchSettings) -> Iterator[str]:
    trial_s = settings.trial_duration_s or CSIT_TRIAL_S
    sum_s = settings.duration_sum_s or max(trial_s, CSIT_TRIALS * min(trial_s, CSIT_TRIAL_S))
    if trial_s != CSIT_TRIAL_S:
        yield f"trials of {trial_s:g} s; CSIT takes {CSIT_TRIAL_S:g} s"
    if sum_s != CSIT_TRIALS * CSIT_TRIAL_S:
        yield f"{sum_s:g} s of trials decide a load; CSIT takes {CSIT_TRIALS * CSIT_TRIAL_S:g} s"
    yield from _width(settings)


def _short(settings: SearchSettings, standard_s: float) -> Iterator[str]:
    trial_s = settings.trial_duration_s
    if trial_s is not None and trial_s < standard_s:
        yield f"trials of {trial_s:g} s; RFC 2544 section 24 asks for {standard_s:g} s"


def _width(settings: SearchSettings) -> Iterator[str]:
    width = settings.relative_width
    if width is not None and width > CSIT_WIDTH:
        yield f"the bounds may differ by {width:.2%}; usual is {CSIT_WIDTH:.2%}"


def _max_load(settings: SearchSettings) -> Iterator[str]:
    """An emulated wire has no line rate to begin at."""
    if settings.max_load_pps is None:
        yield f"the highest load is {MAX_LOAD_FACTOR:g} x the rate forwarded flat out, for want of a line rate"
    else:
        yield f"the highest load is set to {settings.max_load_pps / 1e6:.6g} Mpps, for want of a line rate"
