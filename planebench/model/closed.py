# SPDX-License-Identifier: BSD-3-Clause
"""Records that refuse what they do not declare: an unknown key, a missing key, a float for a count, a NaN."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter

CLOSED = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ClosedModel(BaseModel):
    """A frozen part of a YAML document; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@cache
def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what parses JSON into a record of class ``kind``, closed and strict, or into a container of records.

    The records in its fields are so, too: pydantic hands the configuration down to them.
    """
    for record in filter(dataclasses.is_dataclass, (kind, *get_args(kind))):
        setattr(record, "__pydantic_config__", CLOSED)  # noqa: B010 - the attribute is pydantic's, not the record's
    return TypeAdapter(kind)
