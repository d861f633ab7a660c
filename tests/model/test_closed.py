# SPDX-License-Identifier: BSD-3-Clause
"""Records refuse what they do not declare, also inside others and in containers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from planebench.model.closed import adapter


@dataclass(frozen=True)
class Inner:
    count: int


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Outer, '{"inner": {"count": 1}, "many": [{"count": 2}]}', Outer(Inner(1), (Inner(2),))),
        (tuple[Inner, ...], '[{"count": 1}]', (Inner(1),)),
        (dict[str, str], '{"a": "b"}', {"a": "b"}),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
)
def test_records_and_containers_are_read(kind: Any, text: str, value: object) -> None:
    assert adapter(kind).validate_json(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Outer, '{"inner": {"count": 1, "more": 2}}'),
        (Outer, '{"inner": {"count": "1"}}'),
        (Outer, '{"inner": {"count": 1}, "many": [{"count": 2.0}]}'),
        (tuple[Inner, ...], '[{"count": "1"}]'),
        (tuple[Inner, ...], '[{"count": 1, "more": 2}]'),
    ],
)
def test_what_is_not_declared_is_refused_at_every_depth(kind: Any, text: str) -> None:
    with pytest.raises(ValidationError):
        adapter(kind).validate_json(text)
