# SPDX-License-Identifier: BSD-3-Clause
"""A switch as a user names it: ``planed``, ``sim:capacity=10M:noise=1%``, ``faulty=planed:drop_one_in=1000``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from planebench.model.errors import UsageError

LABEL_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}"
_NEXT_OPTION = re.compile(r",[a-z_]+=")


@dataclass(frozen=True, slots=True)
class SwitchSpec:
    """``adapter`` and its ``options``; ``label`` is the option ``name``, or the adapter's own name."""

    adapter: str
    label: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SwitchCost:
    """The time that a switch adds to a run, as measured on the two-core development VM."""

    start_s: float = 1.5
    """Tester and switch up and connected, and down again: once for each switch and topology."""
    trial_overhead_s: float = 0.1
    """What a trial takes beside its sending: two core-distance probes, clearing, waiting for stragglers, reading."""
    offloads: bool = False
    """It forwards in the place of VNFs side by side, which are then no processes that forward."""


USUAL_COST = SwitchCost()


def parse_options(what: str, parts: Iterable[str], example: str, files: Collection[str] = ()) -> dict[str, str]:
    """Parse ``key=value`` texts, which colons separated. ``files``: keys of paths, in which there may be colons.

    Raises UsageError that begins with ``what`` for a text without ``=`` or a repeated key.
    """
    options: dict[str, str] = {}
    for part in parts:
        if "=" not in part and (last := next(reversed(options), None)) in files:
            options[str(last)] += f":{part}"
            continue
        key, equals, value = part.partition("=")
        if not (key and equals and value):
            raise UsageError(f'{what}: option "{part}" is not key=value, e.g. {example}')
        if key in options:
            raise UsageError(f"{what}: option {key} is given twice; give it once")
        options[key] = value
    return options


def plain(text: str) -> str:
    """Return ``planed:name=faulty:...`` for ``faulty=planed:...``, which is the same; any other text as it is."""
    head, colon, rest = text.partition(":")
    label, equals, adapter = head.partition("=")
    return f"{adapter}:name={label}{colon}{rest}" if equals else text


def parse_switch(text: str) -> SwitchSpec:
    """Take the text of a switch apart. UsageError for an option without ``=``, named twice, or a bad label."""
    adapter, *parts = plain(text).split(":")
    if any(_NEXT_OPTION.search(part) for part in parts):
        raise UsageError(f'switch "{text}": options are joined by ":", not by ",", which begins the next switch')
    options = parse_options(f'switch "{text}"', parts, f"{adapter}:name=other")
    label = options.pop("name", adapter)
    if label != adapter and not re.fullmatch(LABEL_PATTERN, label):
        raise UsageError(
            f'switch "{text}": name "{label}" is not valid. Valid: letters, digits, ".", "_" and "-", 32 at most'
        )
    return SwitchSpec(adapter, label, options)
