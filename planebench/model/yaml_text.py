# SPDX-License-Identifier: BSD-3-Clause
"""YAML and other text that users write: read, or said in one sentence where and why it cannot be.

Nothing is lost or read as something else without a word: YAML takes the last of two equal keys, and 52:54:00:12:34:56
for a number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from planebench.model.errors import UsageError, unreadable

SUFFIXES = (".yaml", ".yml")
_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_MERGE, _DATE = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:timestamp"
_OCTAL = re.compile(r"[-+]?0[0-7_]+")


def is_yaml_file(text: str) -> bool:
    """Return whether a text is the path of a YAML file, not a name: it has a slash or ends in .yaml or .yml."""
    return "/" in text or text.lower().endswith(SUFFIXES)


def read_text(path: Path, what: str, remedy: str) -> str:
    """Return the text of a file, without a byte-order mark. Raises UsageError: ``what`` cannot be read, and why."""
    try:
        data = path.read_bytes()
        if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
            raise UsageError(f"{what} cannot be read: it is UTF-16 text; save it as UTF-8")
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(what, error, remedy) from None


class _Refused(yaml.MarkedYAMLError):
    """What is YAML, but hardly what its author means."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, and texts and whole numbers that it would read as others. A date is text."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[Any, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                value = self.construct_object(key)
                if value in lines:
                    first = lines[value]
                    raise _refused(key, f"key {key.value} is there twice, first in line {first}; remove one of them")
                lines[value] = key.start_mark.line + 1
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        if node.style is None and node.tag in _NUMBERS and (":" in node.value or _OCTAL.fullmatch(node.value)):
            number = self.construct_object(node)
            also = "" if ":" in node.value else ", or without the leading 0"
            raise _refused(node, f"YAML reads {node.value} as the number {number}; write it in quotes{also}")
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _refused(node: yaml.Node, why: str) -> _Refused:
    return _Refused(problem=why, problem_mark=node.start_mark)


def parse_yaml(text: str, source: str) -> Any:
    """Return the document of ``text``. Raises UsageError, which names ``source``, line and column."""
    try:
        return yaml.load(text, Loader=_Loader)
    except _Refused as error:
        raise UsageError(f"{source}{_where(error.problem_mark)}: {error.problem}") from None
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply; remove some levels of brackets or indentation") from None
    except yaml.MarkedYAMLError as error:
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"{source}{_where(error.problem_mark or error.context_mark)} is not YAML: {what}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def type_remedy(found: Mapping[str, Any]) -> str:
    """Return what to do about an error of pydantic, if YAML has read the text that was wanted as something else."""
    number = found["type"] == "string_type" and isinstance(found["input"], int | float)
    if number or (found["type"] in ("literal_error", "enum") and isinstance(found["input"], bool)):
        return "; write it in quotes: YAML reads off, on, no and yes as false and true, and digits as a number"
    return ""


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
    return _where(mark)


def _where(mark: Any) -> str:
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
