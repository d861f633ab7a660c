# SPDX-License-Identifier: BSD-3-Clause
"""YAML that users write: read, or said in one sentence where and why it is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from planebench.model.errors import UsageError


def parse_yaml(text: str, source: str) -> Any:
    """Return the document of ``text``. Raises UsageError, which names ``source``, line and column."""
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"{source}{where} is not YAML: {what}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def place_in(text: str, keys: Sequence[int | str]) -> str:
    """Return ``, line 3, column 5``: where a key or an item of a YAML text begins.

    ``keys`` lead to it; where they lead to nothing, it is the place of the last one that is there.
    """
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    mark = node.start_mark if node is not None else None
    for key in keys:
        if isinstance(node, yaml.MappingNode):
            named = {str(name.value): (name, value) for name, value in node.value}
            if str(key) not in named:
                break
            name, node = named[str(key)]
            mark = name.start_mark
        elif isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
            node = node.value[key]
            mark = node.start_mark
        else:
            break
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
