# SPDX-License-Identifier: BSD-3-Clause
"""The statement of a switch adapter about a virtio feature of its ports, to be compared with the negotiated feature.

As text, in the settings of a run: ``STATE``, or ``wires STATE, VNFs STATE`` or one of the two, or ``no virtio port``;
a note may follow after a colon. A state is ``on``, ``off``, ``offered`` (the other end decides), ``default`` (of the
program, not known which) or ``unknown``; ``none`` is ``off``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from planebench.model.conditions import Side

State = Literal["on", "off", "offered", "default", "unknown"]

NO_PORT = "no virtio port"
_WORDS: dict[Side, str] = {"wire": "wires", "vnf": "VNFs"}
_STATE = "|".join([*get_args(State), "none"])
_GRAMMAR = re.compile(
    rf"(?:(?P<both>{_STATE})|(?:wires? (?P<wire>{_STATE}))?(?:, )?(?:VNFs? (?P<vnf>{_STATE}))?|-|{NO_PORT})"
    r"(?:[:;] *(?P<note>\S.*)| +\((?P<remark>.*)\))?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FeatureClaim:
    """The stated feature at the wire ports and at the VNF ports; None if the switch has no such port."""

    wire: State | None
    vnf: State | None
    note: str = ""

    def __str__(self) -> str:
        """Return the claim as text, which :func:`parse_claim` reads."""
        if self.wire is not None and self.wire == self.vnf:
            text: str = self.wire
        else:
            sides: tuple[tuple[Side, State | None], ...] = (("wire", self.wire), ("vnf", self.vnf))
            text = ", ".join(f"{_WORDS[side]} {state}" for side, state in sides if state is not None) or NO_PORT
        return f"{text}: {self.note}" if self.note else text

    def contradicts(self, side: Side, negotiated: frozenset[str]) -> bool:
        """Return whether the ports of a side, which are ``on``, ``off`` or both, are not all as this says."""
        state = self.wire if side == "wire" else self.vnf
        return state in ("on", "off") and bool(negotiated - {state})


def everywhere(state: State, note: str = "") -> FeatureClaim:
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


def _state(word: str | None) -> State | None:
    known: dict[str, State] = {state: state for state in get_args(State)}
    return None if word is None else known.get(word.lower(), "off")
