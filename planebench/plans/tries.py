# SPDX-License-Identifier: BSD-3-Clause
"""How often trials are repeated because they were disturbed: what one run tells of the next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import get_args

from planebench.model.records import Role, Trial, VerdictKind
from planebench.plans.costs import Tries
from planebench.plans.length import INTERRUPTED_SHARE

TRIALS_MIN = 50
"""With fewer trials of a role a run does not tell how often they are repeated."""
USUAL_TRIES = 1 / (1 - INTERRUPTED_SHARE)


def expected_tries(past: Iterable[Trial]) -> Tries:
    """Return how often trials will be measured on a machine where ``past`` were, repetitions among them."""
    measured, repetitions = Counter[Role](), Counter[Role]()
    disturbed: set[object] = set()
    for trial in past:
        request = (trial.point, trial.role, trial.search, trial.load.label, trial.repetition)
        measured[trial.role] += 1
        repetitions[trial.role] += request in disturbed
        if trial.verdict.kind is VerdictKind.DISTURBED:
            disturbed.add(request)
    return {
        role: measured[role] / (measured[role] - repetitions[role]) if measured[role] >= TRIALS_MIN else USUAL_TRIES
        for role in get_args(Role)
    }
