# SPDX-License-Identifier: BSD-3-Clause
"""The ratio of two figures as it is printed: with its interval, and the answer that follows from the interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planebench.stats.answers import ALPHA, EXACT, Answer, Bounds, answer
from planebench.stats.noise import Estimate, fit_noise


def effect_of(estimate: Estimate | None, ratio: float, alpha: float = ALPHA, bounds: Bounds = EXACT) -> Answer:
    """Return the answer of an estimate of log(b / a); ``ratio`` is the one shown where there is no estimate."""
    return Answer(ratio, None, None, "untested") if estimate is None else answer(estimate, alpha, bounds=bounds)


def estimate_alone(values: Sequence[float]) -> Estimate | None:
    """Return the estimate of independent positive values, by their own noise alone; None for fewer than two."""
    logs = list(map(math.log, values))
    return fit_noise([logs], len(logs) - 1).estimate(logs)


def ratio_effect(a: Sequence[float], b: Sequence[float]) -> Answer:
    """Return the ratio of the geometric means of two samples of independent positive values, by Welch's t."""
    ratio = math.exp(sum(map(math.log, b)) / len(b) - sum(map(math.log, a)) / len(a))
    of_a, of_b = estimate_alone(a), estimate_alone(b)
    return effect_of(None if of_a is None or of_b is None else of_b.minus(of_a), ratio)
