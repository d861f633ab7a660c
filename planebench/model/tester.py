# SPDX-License-Identifier: BSD-3-Clause
"""The names of testers, as plans have them: planed near or far, or a tester that is no part of planebench."""

from __future__ import annotations

TESTER_PLACES = ("near", "other-node")
"""The places of planed as the tester. ``near``: the NUMA node of its NICs, or of the switch if it has none.
``other-node``: another node than that of the switch."""
EXTERNAL = {"otg": "otg:https://HOST:PORT,...", "trex": "trex:HOST,..."}
"""Kinds of external testers, and how they are written (docs/testers.md)."""

_PORT = "@"


def is_external(tester: str) -> bool:
    """Return whether a tester is no part of planebench."""
    return tester not in TESTER_PLACES


def is_tester_port(end: str) -> bool:
    """Return whether an end of a cable is a port of an external tester, ``@NAME``, and no device of a host of ours."""
    return end.startswith(_PORT)


def port_name(end: str) -> str:
    """Return the name that an external tester has for the port at an end of a cable."""
    return end.removeprefix(_PORT)
