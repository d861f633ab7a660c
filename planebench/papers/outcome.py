# SPDX-License-Identifier: BSD-3-Clause
"""The judgement on a claim, as plain records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from planebench.papers.claims import Claim
from planebench.papers.told import Told

Why = Literal["", "not testable on this host", "not covered by this run", "insufficient data"]
"""Why a claim cannot be tested: the bench or the machine cannot, the run has not got it, the figures do not decide."""


class Outcome(StrEnum):
    """The three outcomes of a claim."""

    CONFIRMED = "confirmed here"
    NOT_CONFIRMED = "not confirmed here"
    CANNOT_BE_TESTED = "inconclusive"


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison of a claim. ``holds`` is None if it is inconclusive; ``told`` says why.

    ``words`` has both figures with their marks, ratio and interval; ``paper`` the published ratio, if there is one.
    """

    what: str
    words: str
    holds: bool | None
    told: Told
    paper: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim, its outcome, and the evidence in one line.

    The outcome rests on ``compared``; ``beside`` has the same comparisons for switches that the paper does not have.
    """

    claim: Claim
    outcome: Outcome
    why: Why
    evidence: str
    compared: tuple[Compared, ...] = ()
    beside: tuple[Compared, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return the outcome and its reason: ``inconclusive: insufficient data``."""
        return f"{self.outcome.value}: {self.why}" if self.why else self.outcome.value
