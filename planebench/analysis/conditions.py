# SPDX-License-Identifier: BSD-3-Clause
"""The test conditions of a run: each condition for all switches, and the conditions that differ.

A measured value takes precedence over what an adapter declares; if the two differ, both are reported.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from planebench.model.conditions import (
    DEFAULT,
    MANIFEST_KEYS,
    UNKNOWN,
    Conditions,
    PortConditions,
    parse_claim,
)
from planebench.model.errors import UsageError
from planebench.model.header import Run, RunHeader
from planebench.model.text import named_digests, without_folders
from planebench.model.topology import Side
from planebench.model.words import SIDES

# The measured conditions of a switch, over all its starts and topologies, in the words of the manifest.

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


@dataclass(frozen=True, slots=True)
class MeasuredCondition:
    """``text`` is for people; ``values`` are what ports or threads have, each once: ``on``, ``256``, a CPU number."""

    text: str
    values: frozenset[str]
    sides: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    """The values by the side of the port, where ports have them."""


def measured(found: Sequence[Conditions]) -> dict[str, MeasuredCondition]:
    """Return the known conditions by key. ``found`` are the conditions of one switch."""
    ports = [port for conditions in found for port in conditions.ports]
    known: dict[str, MeasuredCondition | None] = {
        "ring_size": _by_side(ports, lambda port: [str(size) for size in port.ring_sizes or ()]),
        # The active queue pairs: a driver may have enabled fewer than the device has.
        "queues": _by_side(ports, lambda port: [str(len(port.ring_sizes) // 2)] if port.ring_sizes else None),
        SPEED: _by_side([port for port in ports if port.speed_mbps], lambda port: [str(port.speed_mbps)]),
        **{key: _by_side(ports, partial(_negotiated, names)) for key, names in FEATURES.items()},
    }
    if modes := dict.fromkeys(conditions.af_xdp for conditions in found if conditions.af_xdp):
        known[AF_XDP] = MeasuredCondition(" or ".join(modes), frozenset(modes))
    threads = [conditions.threads for conditions in found if conditions.threads is not None]
    if threads:
        every = [thread for some in threads for thread in some]
        words = dict.fromkeys(f"CPU {thread.cpus}, {thread.policy}, nice {thread.nice}" for thread in every)
        cpus = frozenset(cpu for thread in every for cpu in thread.cpus.split(","))
        known[THREADS] = MeasuredCondition("; ".join(words) or "none of its own", cpus)
        if clocks := [thread.mhz for thread in every if thread.mhz is not None]:
            median = str(round(statistics.median(clocks)))
            known[MHZ] = MeasuredCondition(median, frozenset({median}))
    return {key: value for key, value in known.items() if value is not None}


def _negotiated(names: Iterable[str], port: PortConditions) -> list[str] | None:
    return None if port.features is None else [OFF if set(port.features).isdisjoint(names) else ON]


def _by_side(
    ports: Sequence[PortConditions], look: Callable[[PortConditions], Sequence[str] | None]
) -> MeasuredCondition | None:
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
    named = ", ".join(f"{SIDES[side]} {text}" for side, text in sorted(texts.items(), reverse=True))
    return MeasuredCondition(
        next(iter(texts.values())) if alike else named, frozenset[str]().union(*sides.values()), sides
    )


NOT_STATED = "\N{EN DASH}"
"""Text for a key that only another switch has."""
MHZ_TOLERANCE = 0.02
"""A CPU whose frequency is reported is never twice at the same MHz."""

_HOST: Mapping[str, tuple[Literal["settings", "host"], str]] = {
    "wire": ("settings", "replacement of a NIC"),
    "check": ("settings", "frames that the tester looks into in trials without probes: all, or one burst in 16"),
    "governor": ("host", "governor of the CPU frequency"),
    "turbo": ("host", "turbo: CPU frequency above nominal allowed"),
}
_NUMBERS = ("ring_size", "queues")
BUILD = "build"
_BUILD_MEANING = "for which CPUs it was compiled: a named one (native), or every one of the architecture (generic)"

ConditionState = Literal["same", "differs", "not known", "own"]


@dataclass(frozen=True, slots=True)
class ConditionCell:
    """The value for one switch. ``claim`` is the value stated by its adapter if the measured one differs."""

    text: str
    measured: bool = False
    claim: str = ""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, with a cell for each switch of the run.

    ``not known``: unknown for some, and the known ones do not differ. ``own``: only some switches have it at all.
    """

    key: str
    meaning: str
    cells: tuple[ConditionCell, ...]
    state: ConditionState

    @property
    def title(self) -> str:
        """Return the key in words."""
        return title(self.key)


def title(key: str) -> str:
    """Return a key in words: ``ring size``, ``CPU MHz``."""
    return {MHZ: "CPU MHz", AF_XDP: "AF_XDP"}.get(key, key.replace("_", " "))


def fairness(run: Run) -> tuple[Condition, ...]:
    """Return every condition stated or measured of any switch, with cells in the order of ``run.header.switches``.

    The order is: the manifest, keys of single switches, values that were only measured, the host.
    """
    sides = []
    for switch in run.header.switches:
        build = {} if switch.build is None else {BUILD: switch.build.words}
        sides.append(_SwitchConditions({**switch.settings, **build}, _measured_of(run, switch.label)))
    if not sides:
        return ()
    own = [key for side in sides for key in side.settings if key not in MANIFEST_KEYS]
    keys = dict.fromkeys([*MANIFEST_KEYS, BUILD, *own, *MEASURED_ONLY])
    rows = []
    for key in keys:
        if not any(side.has(key) for side in sides):
            continue
        cells = [side.cell(key) for side in sides]
        if key == "cores":  # the measured CPUs of the threads take the place of a wrong claim
            for number, (cell, side) in enumerate(zip(cells, sides, strict=True)):
                if cell.claim:
                    cpus = ",".join(sorted(side.measured[THREADS].values, key=int))
                    cells[number] = ConditionCell(cpus, True, cell.claim)
        meaning = MANIFEST_KEYS.get(key) or {**MEASURED_ONLY, BUILD: _BUILD_MEANING}.get(key, "its own")
        rows.append(Condition(key, meaning, tuple(cells), _state(key, [cell.text for cell in cells])))
    for key, (where, meaning) in _HOST.items():
        table = getattr(run.header, where)
        if key in table:
            text = UNKNOWN if table[key] is None else {True: ON, False: OFF}.get(table[key], str(table[key]))
            state: ConditionState = "not known" if text == UNKNOWN else "same"
            rows.append(Condition(key, meaning, (ConditionCell(text),) * len(sides), state))
    return tuple(rows)


def contradictions(run: Run, conditions: Sequence[Condition]) -> tuple[str, ...]:
    """Return a sentence for each condition that an adapter states differently than measured."""
    labels = [switch.label for switch in run.header.switches]
    return tuple(
        f"{label} declares {condition.title} {cell.claim}, but {cell.text} was measured"
        for condition in conditions
        for label, cell in zip(labels, condition.cells, strict=True)
        if cell.claim
    )


def unread(run: Run) -> tuple[str, ...]:
    """Return a sentence for each condition that could not be read, once per switch."""
    found = (f"conditions of {it.switch} could not all be read: {it.problem}" for it in run.conditions if it.problem)
    return tuple(dict.fromkeys(found))


def between(a: Run, b: Run) -> tuple[str, ...]:
    """Return the known conditions of a switch that differ in two runs: ``planed: burst 32 against 64``."""
    labels = [switch.label for switch in b.header.switches]
    there = [switch.label for switch in a.header.switches if switch.label in labels]
    found: list[str] = []
    for label in there:
        was, now = (next(it for it in run.header.switches if it.label == label) for run in (a, b))
        if was.build is not None and now.build is not None and (files := now.build.unlike(was.build)):
            words = f"build {was.build.words} against {now.build.words}"
            found.append(f"{label}: {words}: other files {', '.join(files)}")
        old, new = (_SwitchConditions(it.settings, _measured_of(run, label)) for it, run in ((was, a), (now, b)))
        for key in dict.fromkeys([*MANIFEST_KEYS, *old.settings, *new.settings, *MEASURED_ONLY]):
            if old.has(key) and new.has(key):
                left, right = old.cell(key).text, new.cell(key).text
                if left != right and _state(key, [left, right]) == "differs":
                    found.append(f"{label}: {title(key)} {left} against {right}")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _SwitchConditions:
    """The conditions of one switch."""

    settings: Mapping[str, str]
    measured: Mapping[str, MeasuredCondition]

    def has(self, key: str) -> bool:
        return key in self.settings or key in self.measured

    def cell(self, key: str) -> ConditionCell:
        claim = self.settings.get(key)
        if (found := self.measured.get(key)) is not None:
            return ConditionCell(found.text, True, claim if claim and _contradicts(key, claim, found) else "")
        if claim is None:
            return ConditionCell(UNKNOWN if key in MANIFEST_KEYS or key in MEASURED_ONLY else NOT_STATED)
        if key == "cores" and THREADS in self.measured:
            claimed, cpus = frozenset(re.findall(r"\d+", claim)), self.measured[THREADS].values
            if claimed and not cpus <= claimed:  # the threads run elsewhere
                return ConditionCell(claim, False, claim)
        return ConditionCell(claim or UNKNOWN)


def _contradicts(key: str, claim: str, found: MeasuredCondition) -> bool:
    """Return whether a claim certainly differs from the measurement; an unreadable claim contradicts nothing."""
    if key in _NUMBERS:
        numbers = frozenset(re.findall(r"\d+", claim))
        return bool(numbers) and not found.values <= numbers
    said = parse_claim(claim) if key in FEATURES else None
    return said is not None and any(said.contradicts(side, values) for side, values in found.sides.items())


def _measured_of(run: Run, label: str) -> dict[str, MeasuredCondition]:
    return measured([conditions for conditions in run.conditions if conditions.switch == label])


def _state(key: str, texts: Sequence[str]) -> ConditionState:
    known = [text for text in texts if text not in (UNKNOWN, DEFAULT, NOT_STATED)]
    if key == BUILD:  # unknown beside a known one is a difference: it may be the slower build
        texts = [_comparable(key, text) for text in texts]
        differs = len(set(texts) - {NOT_STATED}) > 1
    elif key == MHZ:
        mhz = [float(text) for text in known]
        differs = bool(mhz) and min(mhz) > 0 and not _alike_mhz(min(mhz), max(mhz))
    else:
        differs = len({_comparable(key, text) for text in known}) > 1
    if differs:
        return "differs"
    if NOT_STATED in texts:
        return "own"
    return "not known" if any(text in (UNKNOWN, DEFAULT) for text in texts) else "same"


def _comparable(key: str, text: str) -> str:
    """Return what a function is, without how it is made, and the level of a build, without its compiler."""
    if key == BUILD:
        return text.partition(" ")[0]
    return text.partition(":")[0].strip().lower() if key == "function" else text


# The facts that must be equal in two runs for their figures to be comparable.


MUST_MATCH: Mapping[Literal["settings", "host"], Mapping[str, str]] = {
    "settings": {
        "wire": "wire",
        "ring_size": "ring size",
        "wire_ring_size": "ring size of wires",
        "send_burst": "batch of VNFs (send_burst)",
        "drain_us": "drain time of VNFs (drain_us)",
        "hugepages": "hugepages",
        "hosting": "hosting",
        "trial_duration_s": "seconds of a saturating trial",
        "latency_duration_s": "seconds of a latency trial",
        "search_trial_duration_s": "seconds of a search trial",
        "search_duration_sum_s": "seconds of search trials at a load",
        "search_relative_width": "relative width of a search",
        "search_pdr_loss_ratio": "loss ratio of PDR",
        "search_max_r": "max(r) of BSwLV",
        "max_rate_pps": "highest rate of a direction",
        "line_bps": "speed of a link",
        "open_loop": "open loop",
        "warmup_s": "seconds of warm-up",
        "probe_rate_pps": "latency probes per second",
        "stamp": "frames with a time stamp",
        "anatomy": "latency breakdown",
        "clock": "clock of latencies",
        "check": "check of frames",
        "switch_cpu": "CPU of the switch",
        "more_switch_cpus": "further CPUs of the switch",
        "tester_cpus": "CPUs of the tester",
        "tester_cores": "cores of the tester, each with a queue pair of every port",
        "core_kinds": "kinds of cores of pollers",
    },
    "host": {
        "cpu_model": "CPU",
        "cores_allowed": "cores",
        "governor": "frequency governor",
        "turbo": "turbo",
        "cpu_mhz": "CPU MHz",
        "kernel": "kernel",
    },
}
"""Table of run.json -> key -> name of a fact. Each of these alone can move figures by more than switches differ.
Versions are not here: they are what changes."""


_OLDER = {"check": "full"}
"""What a fact was in runs from before it was recorded."""


def differing_facts(a: RunHeader, b: RunHeader) -> tuple[str, ...]:
    """Return one sentence per differing fact: ``kernel: 6.1.0 against 6.5.0``."""
    found = []
    for where, names in MUST_MATCH.items():
        for key, name in names.items():
            left, right = (getattr(header, where).get(key, _OLDER.get(key)) for header in (a, b))
            if left != right and not (key == "cpu_mhz" and _alike_mhz(left, right)):
                found.append(f"{name}: {_words(left)} against {_words(right)}")
    return (*found, *_changed_files(a, b), *_unlike_traffic(a, b))


def _alike_mhz(a: Any, b: Any) -> bool:
    """Return whether two clocks that were read at some moment may be that of one CPU."""
    return bool(a and b) and max(a, b) / min(a, b) - 1 <= MHZ_TOLERANCE


def check_comparable(a: RunHeader, b: RunHeader, force: str, *, forced: bool) -> tuple[str, ...]:
    """Return the facts that differ. Raises UsageError if there are any, unless ``forced``, by what ``force`` names."""
    found = differing_facts(a, b)
    if found and not forced:
        raise UsageError(
            f"{a.run_id} and {b.run_id} are not comparable: {'; '.join(found)}. Repeat with identical settings, or "
            f"override with {force}"
        )
    return found


def _changed_files(a: RunHeader, b: RunHeader) -> Iterator[str]:
    """Yield a sentence for each file that has another content in the other run."""
    others = named_digests(b.settings)
    for name, digest in named_digests(a.settings).items():
        if others.get(name, digest) != digest:
            yield f"{name} has changed: digest {digest[:8]} against {others[name][:8]}"


def _unlike_traffic(a: RunHeader, b: RunHeader) -> Iterator[str]:
    """Yield a sentence for each setting of a profile that differs in the other run, unless its capture has changed."""
    others = {profile.name: profile for profile in b.traffic}
    same_files = not any(_changed_files(a, b))
    for profile in a.traffic:
        other = others.get(profile.name, profile)
        for key in dict.fromkeys((*profile.settings, *other.settings)):
            if key == "pcap" and not same_files:
                continue
            mine, theirs = (
                without_folders(each.settings.get(key, ""), header.settings)
                for each, header in ((profile, a), (other, b))
            )
            if mine != theirs:
                yield f"{key} of traffic {profile.name}: {mine or 'none'} against {theirs or 'none'}"


def _words(value: str | int | float | bool | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "not stated"
    return f"{value:g}" if isinstance(value, float) else str(value)
