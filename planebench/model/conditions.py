# SPDX-License-Identifier: BSD-3-Clause
"""The conditions under which a switch ran, as found on a live topology: a line of conditions.jsonl.

What an adapter says of itself is in the header (``SwitchInfo.settings``); this is what was negotiated and measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from planebench.model.dimensions import HostingFacts, HostingName
from planebench.model.scenario import ScenarioName
from planebench.model.server import NEAR, OWN_CLOCK, CpuClock, Placing
from planebench.model.text import Moment
from planebench.model.topology import Side
from planebench.model.wire import WireName


@dataclass(frozen=True, slots=True)
class PortConditions:
    """A port of the tester, and so of the switch at its other end. None: not known; ``features`` of virtio only.

    ``features`` are those that driver and device negotiated, by name: ``version_1``, ``mrg_rxbuf``, ``packed``, ...
    ``ring_sizes``: entries of each ring that runs. ``driver`` is the tester's.
    """

    name: str
    side: Side
    kind: str
    driver: str
    queues: int | None = None
    ring_sizes: tuple[int, ...] | None = None
    features: tuple[str, ...] | None = None
    speed_mbps: int | None = None
    """The speed of the link, of a NIC only."""


@dataclass(frozen=True, slots=True)
class ThreadConditions:
    """A thread of the switch that polls: where it may run, how it is scheduled, and how fast its CPU was just then."""

    name: str
    cpus: str
    """Allowed CPUs, e.g. ``1`` or ``0,1``."""
    policy: str
    """``SCHED_OTHER``, ``SCHED_FIFO``, ..."""
    nice: int
    mhz: int | None = None
    """Frequency of the CPU on which the thread ran last; None if the host does not report it."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """One start of one switch on one topology. ``problem``: why something could not be read; empty if all could."""

    switch: str
    """Its label in this run."""
    scenario: ScenarioName
    chain_length: int
    wire: WireName
    start: int
    measured_at: Moment
    ports: tuple[PortConditions, ...] = ()
    threads: tuple[ThreadConditions, ...] | None = None
    """None where they could not be read; empty for a switch that has no thread of its own."""
    problem: str = ""
    chain: str = ""
    """The chain, as in points; empty for VNFs without a name."""
    af_xdp: str = ""
    """The mode of the AF_XDP sockets as the kernel reports it: ``copy, native``; empty without
    any. ``tester ...; switch ...`` where the sides differ."""
    hosting: tuple[HostingFacts, ...] = ()
    """The facts of each hosted VNF, in path order."""
    vnf_hosting: HostingName = "process"
    """As ``hosting`` of points."""
    placement: Placing = NEAR
    cpu_clock: CpuClock = OWN_CLOCK


# The statement of a switch adapter about a virtio feature of its ports, to be compared with the negotiated feature.
#
# As text, in the settings of a run: ``STATE``, or ``wires STATE, VNFs STATE`` or one of the two, or ``no virtio port``;
# a note may follow after a colon. A state is ``on``, ``off``, ``offered`` (the other end decides), ``default`` (of the
# program, not known which) or ``unknown``; ``none`` is ``off``.

FeatureState = Literal["on", "off", "offered", "default", "unknown"]

NO_PORT = "no virtio port"
_WORDS: dict[Side, str] = {"wire": "wires", "vnf": "VNFs"}
_STATE = "|".join([*get_args(FeatureState), "none"])
_GRAMMAR = re.compile(
    rf"(?:(?P<both>{_STATE})|(?:wires? (?P<wire>{_STATE}))?(?:, )?(?:VNFs? (?P<vnf>{_STATE}))?|-|{NO_PORT})"
    r"(?:[:;] *(?P<note>\S.*)| +\((?P<remark>.*)\))?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FeatureClaim:
    """The stated feature at the wire ports and at the VNF ports; None if the switch has no such port."""

    wire: FeatureState | None
    vnf: FeatureState | None
    note: str = ""

    def __str__(self) -> str:
        """Return the claim as text, which :func:`parse_claim` reads."""
        if self.wire is not None and self.wire == self.vnf:
            text: str = self.wire
        else:
            sides: tuple[tuple[Side, FeatureState | None], ...] = (("wire", self.wire), ("vnf", self.vnf))
            text = ", ".join(f"{_WORDS[side]} {state}" for side, state in sides if state is not None) or NO_PORT
        return f"{text}: {self.note}" if self.note else text

    def contradicts(self, side: Side, negotiated: frozenset[str]) -> bool:
        """Return whether the ports of a side, which are ``on``, ``off`` or both, are not all as this says."""
        state = self.wire if side == "wire" else self.vnf
        return state in ("on", "off") and bool(negotiated - {state})


def everywhere(state: FeatureState, note: str = "") -> FeatureClaim:
    """Return a claim that holds for the ports of both sides."""
    return FeatureClaim(state, state, note)


def parse_claim(text: str) -> FeatureClaim | None:
    """Return the claim that a text is; None for a text that is not one."""
    found = _GRAMMAR.fullmatch(text.strip())
    if found is None or not text.strip() or text.strip()[0] in ":;(,":
        return None
    both = found["both"]
    return FeatureClaim(
        _state(both or found["wire"]), _state(both or found["vnf"]), found["note"] or found["remark"] or ""
    )


def _state(word: str | None) -> FeatureState | None:
    known: dict[str, FeatureState] = {state: state for state in get_args(FeatureState)}
    return None if word is None else known.get(word.lower(), "off")


# The fairness manifest: under which conditions a switch ran, in the same words for all, to be set side by side.
#
# Each switch fills what it knows when it is started; what it does not say is ``unknown``. What differs between switches
# of a run is marked in the report. More keys of a switch's own may follow.
#
# A value is free text, but for what is held against what was measured (planebench.analysis.conditions): the values of
# :data:`FEATURE_KEYS` are claims by the side of the port (planebench.model.conditions), the numbers in ``ring_size``
# and ``queues`` are all there are, and those in ``cores`` are CPUs.

UNKNOWN = "unknown"
DEFAULT = "default"
"""The default of the switch, whose value is unknown."""
LOOK_PER_RING = "one for all that a ring holds"
"""``index_look`` of a switch that does not look at the index of a ring for each burst, if there are more frames."""

MANIFEST_KEYS: Mapping[str, str] = {
    "function": "forwarding function: patch, learning, match/action, ...",
    "cores": "cores that forward",
    "queues": "queue pairs of each port",
    "nic_driver": "driver of the wire ports",
    "vnf_interface": "interface of the VNFs, and its implementation",
    "ring_size": "entries of a ring",
    "burst": "maximum number of frames received from a port at once",
    "checksum_offload": "checksums offloaded to the other side of a port",
    "segmentation_offload": "TSO, UFO, LRO",
    "mergeable_buffers": "VIRTIO_NET_F_MRG_RXBUF",
    "memory": "hugepages, or 4 KiB pages",
    "buffers": "packet buffers of the switch",
}
"""Key -> what it is, in the order in which they are shown."""

FEATURE_KEYS = ("checksum_offload", "segmentation_offload", "mergeable_buffers")
"""Keys whose values are claims."""


# The extended statistics of NICs (``rte_eth_xstats``) that speak of lost frames.
#
# Their names and meanings are the drivers'. Those that drivers count nowhere else are losses of the drop ledger; others
# may be a part of the basic counters, so they only explain what the ledger leaves open.

NOT_BASIC = frozenset({"rx_phy_discard_packets", "tx_phy_discard_packets"})
"""Frames that no basic counter has. mlx5: the port had no room for them before a queue was chosen (rx_discards_phy of
the kernel; imissed is its out_of_buffer)."""
_LOSS = re.compile(r"drop|discard|miss|error|no_?buf|nombuf|out_of_buffer|overrun|overflow|fifo|jabber|size_p|fragment")
_BASIC = frozenset({"rx_missed_errors", "rx_errors", "tx_errors", "rx_mbuf_allocation_errors"})
"""The names of the basic counters among the extended ones (rte_ethdev.c)."""


def of_losses(counters: Mapping[str, int]) -> dict[str, int]:
    """Return those of the extended statistics of a port that speak of lost frames and are not 0, without the basic
    counters."""
    return {name: count for name, count in counters.items() if count and name not in _BASIC and _LOSS.search(name)}
