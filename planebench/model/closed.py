# SPDX-License-Identifier: BSD-3-Clause
"""Records that refuse what they do not declare: an unknown key, a missing key, a float for a count, a NaN."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter

CLOSED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ClosedModel(BaseModel):
    """A frozen part of a YAML document; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@cache
def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what parses JSON into a record of class ``kind``, closed and strict, or into a container of records."""
    for record in _records_in(kind):
        close(record)
    return TypeAdapter(kind)


def close(kind: type[Any]) -> None:
    """Close a record and the records in its fields: pydantic, which reads this attribute, is then strict with them.

    Everything that is read goes through this, so a record is closed wherever it is defined.
    """
    if vars(kind).get("__pydantic_config__") is CLOSED:  # or on the way to it: a plan has plans for parts
        return
    setattr(kind, "__pydantic_config__", CLOSED)  # noqa: B010 - the attribute is pydantic's, not the record's
    for hint in get_type_hints(kind).values():
        for record in _records_in(hint):
            close(record)


def _records_in(hint: Any) -> Iterator[type[Any]]:
    """Yield the dataclasses in a type, as in ``tuple[Plan, ...]`` or ``Plan | None``; those in their fields are not."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
    for argument in get_args(hint):
        yield from _records_in(argument)
