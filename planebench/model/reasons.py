# SPDX-License-Identifier: BSD-3-Clause
"""Why a trial or a result has its verdict: a code for programs, a sentence for people, and the numbers in it.

Whoever decides by a reason asks for its code. The sentence may change from one version to the next; a code stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ReasonCode(StrEnum):
    """The cause that a reason names."""

    # of a trial that is invalid
    ERROR = "error"
    """A process died, or refused what it was asked; the text has its words."""
    RECEIVED_MORE_THAN_SENT = "received-more-than-sent"
    SENT_MORE_THAN_INTENDED = "sent-more-than-intended"
    UNSENT_NOT_ACCOUNTED = "unsent-not-accounted"
    NOTHING_SENT = "nothing-sent"
    NOTHING_FORWARDED = "nothing-forwarded"
    IMPOSSIBLE_BYTES = "impossible-bytes"
    ABOVE_LINE_RATE = "above-line-rate"
    MISDIRECTED = "misdirected"
    ON_SEVERAL_QUEUES = "on-several-queues"

    # of a trial that is functional
    EMULATED_OR_SHARED = "emulated-or-shared"
    MISPLACED = "misplaced"
    """Threads or memory are not where the placement has them."""

    # remarks on what the host did
    ONE_CPU = "one-cpu"
    CPU_WAIT = "cpu-wait"
    POLL_GAPS = "poll-gaps"
    STEAL = "steal"
    DISTANCE_CHANGED = "distance-changed"
    OTHER_CLOCK = "other-clock"
    SHARED_CORE = "shared-core"
    """Another hyperthread used a core of an old run that accepted cores alone only."""

    # of a trial that is tester-limited
    GENERATOR_LATE = "generator-late"
    MONITOR_BEHIND = "monitor-behind"
    NOT_SATURATED = "not-saturated"
    STRETCHED = "stretched"
    TESTER_CEILING = "tester-ceiling"

    # The links limit the trial or the search.
    LINE_RATE = "line-rate"

    # The switch did not carry the load of a latency trial.
    OVERLOAD = "overload"

    # remarks on a trial that counts
    NOT_CARRIED = "not-carried"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    """Frames arrived that the tester had not sent; they count nowhere."""
    DRAINED = "drained"
    UNSTEADY = "unsteady"
    DROPPED_BY_FUNCTIONS = "dropped-by-functions"
    UNEXPLAINED_LOSS = "unexplained-loss"
    TRAFFIC_DIFFERS = "traffic-differs"
    UPDATES_MISSING = "updates-missing"
    CONTROL_UNANSWERED = "control-unanswered"

    # of a result, over its trials
    NO_TRIAL = "no-trial"
    NO_SATURATING_TRIAL = "no-saturating-trial"
    NONE_COUNTS = "none-counts"
    DRIFT = "drift"
    NO_PROBE = "no-probe"
    NO_DISTRIBUTION = "no-distribution"
    PROBES_MISSING = "probes-missing"

    # of a search
    INTERRUPTED = "interrupted"
    GAVE_UP = "gave-up"
    MET_AT_MAXIMUM = "met-at-maximum"
    GAPS_AT_BOUND = "gaps-at-bound"
    LOSS_AT_BOUND = "loss-at-bound"
    HYSTERESIS = "hysteresis"
    NO_LOAD_MET = "no-load-met"
    NOT_APPLICABLE = "not-applicable"
    NO_BURST = "no-burst"


HOST = frozenset(
    {
        ReasonCode.CPU_WAIT,
        ReasonCode.POLL_GAPS,
        ReasonCode.STEAL,
        ReasonCode.DISTANCE_CHANGED,
        ReasonCode.SHARED_CORE,
        ReasonCode.OTHER_CLOCK,
    }
)
"""Remarks on what the host did during a trial."""
SUSPECT = frozenset(
    {
        ReasonCode.UNEXPLAINED_LOSS,
        ReasonCode.TRAFFIC_DIFFERS,
        ReasonCode.UPDATES_MISSING,
        ReasonCode.CONTROL_UNANSWERED,
    }
)
"""Remarks that put a figure in doubt: counters or traffic are not what they should be."""
REMARKS = frozenset(
    {
        *HOST,
        *SUSPECT,
        ReasonCode.NOT_CARRIED,
        ReasonCode.DUPLICATED,
        ReasonCode.REORDERED,
        ReasonCode.DAMAGED,
        ReasonCode.FOREIGN,
        ReasonCode.DRAINED,
        ReasonCode.UNSTEADY,
        ReasonCode.DROPPED_BY_FUNCTIONS,
    }
)
"""Remarks on a trial, whatever its verdict: none is the reason of it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A cause, a sentence about it, and the numbers in the sentence by name, where there are any.

    ``values`` has ``trials`` where one reason stands for that many equal ones.
    """

    code: ReasonCode
    text: str
    values: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        """Return the sentence for people: marked where it puts the figure in doubt, with how often it was given."""
        trials = int(self.values.get("trials", 1))
        return f"{'suspect: ' * (self.code in SUSPECT)}{self.text}{f' (x{trials})' * (trials > 1)}"
