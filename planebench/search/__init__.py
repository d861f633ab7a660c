# SPDX-License-Identifier: BSD-3-Clause
"""Searches as pure code over ``measure(ask) -> Trial``: R+, NDR, PDR, RFC 2544, BSwLV, loss curve, back-to-back."""

from planebench.search.ask import METHOD_NAMES, Ask, Measure, SearchSettings, restarts_before
from planebench.search.facts import explained_by_gaps
from planebench.search.log import TRIES_MAX
from planebench.search.methods import METHODS, Method
from planebench.search.replay import so_far, step

__all__ = [
    "METHODS",
    "METHOD_NAMES",
    "TRIES_MAX",
    "Ask",
    "Measure",
    "Method",
    "SearchSettings",
    "explained_by_gaps",
    "restarts_before",
    "so_far",
    "step",
]
