# SPDX-License-Identifier: BSD-3-Clause
"""Every search, by name (docs/design/adding.md)."""

from __future__ import annotations

from planebench.analysis.search.goals import B2B, BSWLV, CARRIED, CURVE, NDR, PDR, RFC2544
from planebench.analysis.search.method import SEARCH_STARTS, TRIAL_DURATION, Method, Parameter
from planebench.model.plan import R_PLUS

METHODS: dict[str, Method] = {it.name: it for it in (CARRIED, NDR, PDR, RFC2544, BSWLV, CURVE, B2B)}
"""In the order in which they are run: an earlier one leaves trials that a later one can use."""


def short_name(name: str) -> str:
    """Return the short name of a search, or MRR; ``name`` itself for a search of another planebench."""
    if name == R_PLUS:
        return "MRR"
    return METHODS[name].short_name if name in METHODS else name


def load_name(of: str) -> str:
    """Return what a load is a share of, as its label has it: empty for R+, the short name of a search otherwise."""
    return "" if of == R_PLUS else short_name(of)


def parameters() -> tuple[Parameter, ...]:
    """Return the parameters of all searches, each once."""
    own = (parameter for method in METHODS.values() for parameter in method.parameters)
    return tuple(dict.fromkeys((TRIAL_DURATION, SEARCH_STARTS, *own)))
