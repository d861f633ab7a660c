# SPDX-License-Identifier: BSD-3-Clause
"""Every search there is: its name, what it follows, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from planebench.search import deviations
from planebench.search.ask import Measure, SearchSettings
from planebench.search.burst import b2b
from planebench.search.curve import curve
from planebench.search.saturating import r_plus
from planebench.search.task import Finding, Task


@dataclass(frozen=True, slots=True)
class Method:
    """A search. ``search`` fills a Finding, ``deviations`` says in what it departs from ``standard``.

    ``title`` and ``standard`` are what a report calls it, and whose it is.
    """

    name: str
    title: str
    standard: str
    search: Callable[[Measure, Task, Finding], None]
    deviations: Callable[[SearchSettings], tuple[str, ...]]


def _mlr(name: str) -> Callable[[Measure, Task, Finding], None]:
    """A search of planebench.search.mlr, imported when it is first used: MLRsearch inspects the stack on import, which
    takes seconds at the end of a chain of imports, and hardly any run searches."""

    def search(measure: Measure, task: Task, found: Finding) -> None:
        getattr(import_module("planebench.search.mlr"), name)(measure, task, found)

    return search


_ALL = (
    Method(
        "r_plus",
        "R+",
        "Zhang et al., CoNEXT 2019",
        r_plus,
        deviations.none,
    ),
    Method(
        "ndr",
        "NDR",
        "MLRsearch (RFC 9971), goals of FD.io CSIT",
        _mlr("ndr"),
        deviations.of_ndr,
    ),
    Method(
        "pdr",
        "PDR",
        "MLRsearch (RFC 9971), goals of FD.io CSIT",
        _mlr("pdr"),
        deviations.of_pdr,
    ),
    Method(
        "rfc2544",
        "RFC 2544 throughput",
        "RFC 2544 section 26.1",
        _mlr("rfc2544"),
        deviations.of_rfc2544,
    ),
    Method(
        "bswlv",
        "Binary search with loss verification",
        "ETSI GS NFV-TST 009 section 12.3.3",
        _mlr("bswlv"),
        deviations.of_bswlv,
    ),
    Method(
        "curve",
        "Loss-rate curve",
        "RFC 2544 section 26.3",
        curve,
        deviations.of_curve,
    ),
    Method(
        "b2b",
        "Back-to-back frames",
        "RFC 9004",
        b2b,
        deviations.of_b2b,
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}
"""By name, in the order of METHOD_NAMES."""
