# SPDX-License-Identifier: BSD-3-Clause
"""The test conditions of a run: each condition for all switches, and the conditions that differ.

A measured value takes precedence over what an adapter declares; if the two differ, both are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from planebench.model.claims import parse_claim
from planebench.model.header import SwitchInfo
from planebench.model.manifest import DEFAULT, MANIFEST_KEYS, UNKNOWN
from planebench.model.run import Run
from planebench.stats.measured import AF_XDP, FEATURES, MEASURED_ONLY, MHZ, THREADS, Measured, measured

NOT_STATED = "\N{EN DASH}"
"""Text for a key that only another switch has."""
MHZ_TOLERANCE = 0.02
"""A CPU whose frequency is reported is never twice at the same MHz."""

_HOST: Mapping[str, tuple[Literal["settings", "host"], str]] = {
    "wire": ("settings", "replacement of a NIC"),
    "governor": ("host", "governor of the CPU frequency"),
    "turbo": ("host", "turbo: CPU frequency above nominal allowed"),
}
_NUMBERS = ("ring_size", "queues")
BUILD = "build"
_BUILD_MEANING = "for which CPUs it was compiled: a named one (native), or every one of the architecture (generic)"

State = Literal["same", "differs", "not known", "own"]


@dataclass(frozen=True, slots=True)
class Cell:
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
    cells: tuple[Cell, ...]
    state: State

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
    sides = [
        _Side({**switch.settings, **_build_of(switch)}, _measured_of(run, switch.label))
        for switch in run.header.switches
    ]
    if not sides:
        return ()
    own = [key for side in sides for key in side.settings if key not in MANIFEST_KEYS]
    keys = dict.fromkeys([*MANIFEST_KEYS, BUILD, *own, *MEASURED_ONLY])
    rows = [_condition(key, sides) for key in keys if any(side.has(key) for side in sides)]
    return (*rows, *_host_conditions(run, len(sides)))


def differing(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions that differ between the switches."""
    return tuple(condition for condition in conditions if condition.state == "differs")


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
    return tuple(text for switch in a.header.switches if switch.label in labels for text in _moved(a, b, switch.label))


@dataclass(frozen=True, slots=True)
class _Side:
    """The conditions of one switch."""

    settings: Mapping[str, str]
    measured: Mapping[str, Measured]

    def has(self, key: str) -> bool:
        return key in self.settings or key in self.measured

    def cell(self, key: str) -> Cell:
        claim = self.settings.get(key)
        if (found := self.measured.get(key)) is not None:
            wrong = claim is not None and _contradicts(key, claim, found)
            return Cell(found.text, True, claim if wrong and claim is not None else "")
        return Cell(_stated(key, claim), False, self._misplaced(key, claim))

    def _misplaced(self, key: str, claim: str | None) -> str:
        """Return the claim if the measured CPUs of the threads contradict the claimed cores."""
        threads = self.measured.get(THREADS)
        if key != "cores" or claim is None or threads is None:
            return ""
        claimed = frozenset(re.findall(r"\d+", claim))
        return claim if claimed and not threads.values <= claimed else ""


def _stated(key: str, claim: str | None) -> str:
    if claim is not None:
        return claim or UNKNOWN
    return UNKNOWN if key in MANIFEST_KEYS or key in MEASURED_ONLY else NOT_STATED


def _contradicts(key: str, claim: str, found: Measured) -> bool:
    """Return whether a claim certainly differs from the measurement; an unreadable claim contradicts nothing."""
    if key in _NUMBERS:
        numbers = frozenset(re.findall(r"\d+", claim))
        return bool(numbers) and not found.values <= numbers
    said = parse_claim(claim) if key in FEATURES else None
    return said is not None and any(said.contradicts(side, values) for side, values in found.sides.items())


def _measured_of(run: Run, label: str) -> dict[str, Measured]:
    return measured([conditions for conditions in run.conditions if conditions.switch == label])


def _condition(key: str, sides: Sequence[_Side]) -> Condition:
    cells = tuple(side.cell(key) for side in sides)
    meaning = MANIFEST_KEYS.get(key) or {**MEASURED_ONLY, BUILD: _BUILD_MEANING}.get(key, "its own")
    if key == "cores":
        cells = tuple(_with_threads(cell, side) for cell, side in zip(cells, sides, strict=True))
    return Condition(key, meaning, cells, _state(key, [cell.text for cell in cells]))


def _with_threads(cell: Cell, side: _Side) -> Cell:
    """Return the placement with the measured CPUs of the threads in place of a wrong claim."""
    if not cell.claim:
        return cell
    return Cell(",".join(sorted(side.measured[THREADS].values, key=int)), True, cell.claim)


def _state(key: str, texts: Sequence[str]) -> State:
    known = [text for text in texts if text not in (UNKNOWN, DEFAULT, NOT_STATED)]
    if key == BUILD:  # unknown beside a known one is a difference: it may be the slower build
        texts = [_comparable(key, text) for text in texts]
        differs = len(set(texts) - {NOT_STATED}) > 1
    elif key == MHZ:
        differs = _spread([float(text) for text in known]) > MHZ_TOLERANCE
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


def _build_of(switch: SwitchInfo) -> dict[str, str]:
    return {} if switch.build is None else {BUILD: switch.build.words}


def _spread(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1 if values and min(values) > 0 else 0.0


def _host_conditions(run: Run, switches: int) -> Iterator[Condition]:
    for key, (where, meaning) in _HOST.items():
        table = getattr(run.header, where)
        if key in table:
            value = table[key]
            text = UNKNOWN if value is None else {True: "on", False: "off"}.get(value, str(value))
            state: State = "not known" if text == UNKNOWN else "same"
            yield Condition(key, meaning, (Cell(text),) * switches, state)


def _moved(a: Run, b: Run, label: str) -> Iterator[str]:
    was, now = (next(it for it in run.header.switches if it.label == label) for run in (a, b))
    if was.build is not None and now.build is not None and (files := now.build.unlike(was.build)):
        yield f"{label}: build {was.build.words} against {now.build.words}: other files {', '.join(files)}"
    old, new = (_Side(it.settings, _measured_of(run, label)) for it, run in ((was, a), (now, b)))
    for key in dict.fromkeys([*MANIFEST_KEYS, *old.settings, *new.settings, *MEASURED_ONLY]):
        if old.has(key) and new.has(key):
            left, right = old.cell(key).text, new.cell(key).text
            if left != right and _state(key, [left, right]) == "differs":
                yield f"{label}: {title(key)} {left} against {right}"
