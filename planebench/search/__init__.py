# SPDX-License-Identifier: BSD-3-Clause
"""Searches as pure code over ``measure(ask) -> Trial``: R+, NDR, PDR, RFC 2544, BSwLV, loss curve, back-to-back."""

from planebench.search.ask import Ask, Measure, SearchSettings, search_settings
from planebench.search.method import METHODS, Method, Parameter, load_name, parameters, register, short_name
from planebench.search.replay import repetitions, so_far, step

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

