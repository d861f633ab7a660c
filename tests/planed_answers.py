# SPDX-License-Identifier: BSD-3-Clause
"""Answers of planed as tests make them up: what a test leaves out is zero, or empty."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_type_hints

from planebench.planed.statistics import PortState, PortStates, Statistics, decoded

R = TypeVar("R")


def answered(kind: type[R], answer: Mapping[str, Any]) -> R:
    """Decode a part of an answer."""
    return decoded(kind, "a method", _filled(kind, answer))


def statistics(answer: Mapping[str, Any]) -> Statistics:
    """Decode an answer to ``stats.get``."""
    return decoded(Statistics, "stats.get", whole(answer))


def port_states(*ports: Mapping[str, Any]) -> tuple[PortState, ...]:
    """Decode an answer to ``ports.get``."""
    return answered(PortStates, {"ports": ports}).ports


def whole(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer to ``stats.get`` with everything that a planed has in it."""
    return _filled(Statistics, {"tsc_hz": 1, **answer})


def _filled(kind: type[Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    hints, found = get_type_hints(kind), dict(answer)
    for field in dataclasses.fields(kind):
        if field.name in found:
            found[field.name] = _inside(hints[field.name], found[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            found[field.name] = _zero(hints[field.name])
    return found


def _inside(hint: Any, value: Any) -> Any:
    inner = next((it for it in (hint, *get_args(hint)) if dataclasses.is_dataclass(it)), None)
    if inner is None or value is None:
        return value
    return _filled(inner, value) if isinstance(value, Mapping) else [_filled(inner, one) for one in value]


def _zero(hint: Any) -> Any:
    if hint in (int, str, bool):
        return hint()
    if type(None) in get_args(hint):
        return None
    return [] if str(hint).startswith("tuple") else {}
