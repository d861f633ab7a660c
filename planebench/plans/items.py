# SPDX-License-Identifier: BSD-3-Clause
"""Comma-separated lists of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from planebench.model.chain_name import split
from planebench.model.errors import UsageError

T = TypeVar("T")


def items(what: str, text: str) -> tuple[str, ...]:
    """Return the entries of a list; commas in double quotes are text. UsageError for an empty one."""
    found = tuple(item.strip() for item in split(text, ","))
    if not all(found):
        raise UsageError(f'{what} "{text}" has an empty entry; separate names by single commas')
    return found


def each(what: str, text: str, parse: Callable[[str], T]) -> tuple[T, ...]:
    """Return the parsed entries, each once."""
    return tuple(dict.fromkeys(parse(item) for item in items(what, text)))
