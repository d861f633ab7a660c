# SPDX-License-Identifier: BSD-3-Clause
"""What refuses what is not declared: records an unknown key, a missing key, a float for a count or a NaN; registries a
name."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic_core import core_schema

from planebench.model.errors import unknown

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


R = TypeVar("R", bound=Any)


class Registry(dict[str, R]):
    """Things of one kind by ``name``, sorted by their ``order``. ``what`` is one of them in words."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def register(self, found: R) -> None:
        """Add one."""
        self[found.name] = found
        for known in sorted(self.values(), key=lambda it: it.order):
            self[known.name] = self.pop(known.name)

    def named(self, name: str) -> R:
        """Return the one of a name; raise UsageError for an unknown one."""
        if name not in self:
            raise unknown(self.what, name, self)
        return self[name]


class RegisteredName:
    """Has pydantic check a name against a registry, and list the names in JSON schemas.

    ``arguments``: arguments may follow after a colon; those in the registry that have some say so by ``arguments``.
    """

    def __init__(self, registry: Mapping[str, Any], *, arguments: bool = False) -> None:
        self._registry = registry
        self._arguments = arguments

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Any:
        known = self._registry.values()
        if self._arguments and any(it.arguments for it in known):
            names = (re.escape(it.name) + ("(:.+)?" if it.arguments else "") for it in known)
            return {"pattern": f"^({'|'.join(names)})$", "type": "string"}
        return {"enum": list(self._registry), "type": "string"}

    def _check(self, text: str) -> str:
        if (text.partition(":")[0] if self._arguments else text) not in self._registry:
            raise ValueError(f"Input should be one of {', '.join(self._registry)}")
        return text
