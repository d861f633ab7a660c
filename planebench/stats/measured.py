# SPDX-License-Identifier: BSD-3-Clause
"""The measured conditions of a switch, over all its starts and topologies, in the words of the manifest."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from planebench.model.conditions import Conditions, PortConditions, Side, ThreadConditions

ON, OFF = "on", "off"
THREADS, MHZ, AF_XDP, SPEED = "polling_threads", "cpu_mhz", "af_xdp", "link_speed"

FEATURES: Mapping[str, tuple[str, ...]] = {
    "checksum_offload": ("csum", "guest_csum"),
    "segmentation_offload": (
        "gso",
        *(f"{end}_{what}" for end in ("host", "guest") for what in ("tso4", "tso6", "ecn", "ufo")),
        *("host_uso", "guest_uso4", "guest_uso6"),
    ),
    "mergeable_buffers": ("mrg_rxbuf",),
    "indirect_descriptors": ("indirect_desc",),
    "packed_rings": ("packed",),
    "in_order": ("in_order",),
    "event_index": ("event_idx",),
}
"""Key -> virtio features: any of them negotiated is ``on``."""

MEASURED_ONLY: Mapping[str, str] = {
    "indirect_descriptors": "VIRTIO_F_INDIRECT_DESC",
    "packed_rings": "VIRTIO_F_RING_PACKED",
    "in_order": "VIRTIO_F_IN_ORDER",
    "event_index": "VIRTIO_F_EVENT_IDX",
    THREADS: "CPUs and scheduling of the polling threads",
    SPEED: "speed of the links of the NICs in Mb/s",
    AF_XDP: "mode of the AF_XDP sockets, as the kernel reports it",
    MHZ: "frequency of their CPU at start, median over the starts",
}
"""Key -> what it is, of those that no adapter needs to state."""

_NAMES: Mapping[Side, str] = {"wire": "wire", "vnf": "VNF"}


@dataclass(frozen=True, slots=True)
class Measured:
    """``text`` is for people; ``values`` are what ports or threads have, each once: ``on``, ``256``, a CPU number."""

    text: str
    values: frozenset[str]
    sides: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    """The values by the side of the port, where ports have them."""


def measured(found: Sequence[Conditions]) -> dict[str, Measured]:
    """Return the known conditions by key. ``found`` are the conditions of one switch."""
    ports = [port for conditions in found for port in conditions.ports]
    known: dict[str, Measured | None] = {
        "ring_size": _by_side(ports, _ring_sizes),
        "queues": _by_side(ports, _queues),
        SPEED: _by_side([port for port in ports if port.speed_mbps], _speed),
        **{key: _by_side(ports, _has(names)) for key, names in FEATURES.items()},
    }
    if modes := dict.fromkeys(conditions.af_xdp for conditions in found if conditions.af_xdp):
        known[AF_XDP] = Measured(" or ".join(modes), frozenset(modes))
    threads = [conditions.threads for conditions in found if conditions.threads is not None]
    if threads:
        known[THREADS] = _threads(threads)
        known[MHZ] = _mhz(thread for some in threads for thread in some)
    return {key: value for key, value in known.items() if value is not None}


def _ring_sizes(port: PortConditions) -> frozenset[str] | None:
    return None if port.ring_sizes is None else frozenset(str(size) for size in port.ring_sizes)


def _queues(port: PortConditions) -> frozenset[str] | None:
    """Return the active queue pairs: a driver may have enabled fewer than the device has."""
    return frozenset({str(len(port.ring_sizes) // 2)}) if port.ring_sizes else None


def _speed(port: PortConditions) -> frozenset[str]:
    return frozenset({str(port.speed_mbps)})


def _has(names: Iterable[str]) -> Callable[[PortConditions], frozenset[str] | None]:
    wanted = frozenset(names)

    def look(port: PortConditions) -> frozenset[str] | None:
        return None if port.features is None else frozenset({ON if wanted & set(port.features) else OFF})

    return look


def _by_side(
    ports: Sequence[PortConditions], look: Callable[[PortConditions], frozenset[str] | None]
) -> Measured | None:
    """Return ``256``, or ``wire 256, VNF 1024`` where the sides differ or one is unknown."""
    texts: dict[Side, str] = {}
    sides: dict[Side, frozenset[str]] = {}
    for side in dict.fromkeys(port.side for port in ports):
        found = [value for port in ports if port.side == side and (value := look(port))]
        if found:
            here = frozenset[str]().union(*found)
            sides[side] = here
            texts[side] = " or ".join(sorted(here, key=lambda text: (len(text), text)))
    if not texts:
        return None
    alike = len(set(texts.values())) == 1 and len(texts) == len({port.side for port in ports})
    named = ", ".join(f"{_NAMES[side]} {text}" for side, text in sorted(texts.items(), reverse=True))
    return Measured(next(iter(texts.values())) if alike else named, frozenset[str]().union(*sides.values()), sides)


def _threads(starts: Sequence[Sequence[ThreadConditions]]) -> Measured:
    """Return ``CPU 1, SCHED_OTHER, nice -20``, each once; the values are the CPUs."""
    words = dict.fromkeys(
        f"CPU {thread.cpus}, {thread.policy}, nice {thread.nice}" for threads in starts for thread in threads
    )
    cpus = {cpu for threads in starts for thread in threads for cpu in thread.cpus.split(",")}
    return Measured("; ".join(words) or "none of its own", frozenset(cpus))


def _mhz(threads: Iterable[ThreadConditions]) -> Measured | None:
    known = [thread.mhz for thread in threads if thread.mhz is not None]
    if not known:
        return None
    median = str(round(statistics.median(known)))
    return Measured(median, frozenset({median}))
