# SPDX-License-Identifier: BSD-3-Clause
"""Searches as pure code over ``measure(ask) -> Trial``: R+, NDR, PDR, RFC 2544, BSwLV, loss curve, back-to-back."""

from __future__ import annotations

from planebench.analysis.search.goals import B2B, BSWLV, CARRIED, CURVE, NDR, PDR, RFC2544
from planebench.analysis.search.method import METHODS, Method, Parameter, load_name, parameters, register, short_name
from planebench.analysis.search.replay import repetitions, so_far, step
from planebench.analysis.search.task import Ask, Measure, SearchSettings, search_settings

__all__ = [
    "METHODS",
    "Ask",
    "Measure",
    "Method",
    "Parameter",
    "SearchSettings",
    "load_name",
    "parameters",
    "register",
    "repetitions",
    "search_settings",
    "short_name",
    "so_far",
    "step",
]


# Every search that comes with planebench, a line each: :data:`planebench.analysis.search.method.METHODS` is filled
# here.

for _method in (CARRIED, NDR, PDR, RFC2544, BSWLV, CURVE, B2B):
    register(_method)
