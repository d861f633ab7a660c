# SPDX-License-Identifier: BSD-3-Clause
"""The seam of a search: what it asks for, and how it is answered. No I/O, no clock, nothing of planebench.measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from planebench.model.records import Trial


@dataclass(frozen=True, slots=True)
class Ask:
    """A trial that a search wants. ``load_pps`` is the aggregate of all directions; None is flat out.

    ``restart``: the switch is to be started anew before it. ``repetition`` tells repetitions of R+ apart, from 0.
    ``goal``: the loss ratio that the search forgives; a trial that loses more, by no more than gaps of the pollers
    explain, is passed over for it. None: every trial is taken as it is.
    """

    load_pps: float | None
    duration_s: float
    restart: bool = False
    repetition: int = 0
    goal: float | None = None


class Measure(Protocol):
    """How a search gets a trial. The trial it gets has been accepted; raises to end the search (see replay.py)."""

    def __call__(self, ask: Ask) -> Trial:
        """Measure, or look up."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How every search of a run is done. None: what the method's standard says (60 s trials of rfc2544, ...)."""

    trial_duration_s: float | None = None
    duration_sum_s: float | None = None
    """NDR and PDR: trial seconds at a load before it is decided (CSIT: 21)."""
    relative_width: float | None = None
    """Upper and lower bound may differ by this share of the upper (CSIT: 0.005)."""
    pdr_loss_ratio: float = 0.005
    max_r: int = 2
    """BSwLV (ETSI GS NFV-TST 009): a load fails only when this many trials at it lost frames."""
    repetitions: int = 3
    """Of saturating trials for R+."""
    burst_repetitions: int = 3
    """Of the search for the longest burst, b2b (RFC 2544 asks for 50)."""
    restarts: int = 0
    """R+: how often the switch is started anew between repetitions, spread evenly."""
    r_plus_duration_s: float = 1.0
    """Of a saturating trial; also of the one a search starts with."""
    max_load_pps: float | None = None
    """Aggregate; None: a quarter above what the switch forwarded flat out."""
    min_load_pps: float = 1000.0


METHOD_NAMES = ("r_plus", "ndr", "pdr", "rfc2544", "bswlv", "curve", "b2b")
"""Every search there is, in the order in which they are run: an earlier one leaves trials that a later one can use."""


def restarts_before(repetitions: int, restarts: int) -> frozenset[int]:
    """The repetitions of R+ before which the switch is started anew, spread evenly: (4, 1) -> {2}."""
    return frozenset(round((k + 1) * repetitions / (restarts + 1)) for k in range(restarts))
