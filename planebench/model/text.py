# SPDX-License-Identifier: BSD-3-Clause
"""Text that users write: YAML, files that a plan names, numbers.

Named files: of two files with one name and different contents in one plan, the name has a part of the digest behind it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import yaml
from annotated_types import Predicate

from planebench.model.chain_name import quote
from planebench.model.errors import UsageError, unreadable

FILES = ("chain_files", "traffic_files")
"""Settings of a header: path and digest of each file."""

_ENTRY = re.compile(r"(?:^|, )(.+?) ([0-9a-f]{16})(?=, |$)")


def user_path(text: str) -> Path:
    """Return a path that a user gives; ``~`` is a home, where there is one of that name."""
    return Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser() raises RuntimeError without one


def digests_text(digests: Mapping[str, str]) -> str:
    """Return the digests of files, by path, as a setting of a header."""
    return ", ".join(f"{path} {digest}" for path, digest in digests.items())


def digests_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the digest of every file of a run by its path; empty where the settings of its header have none."""
    texts = (str(settings.get(key) or "") for key in FILES)
    return dict(entry for text in texts for entry in _ENTRY.findall(text))


def file_names(digests: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each file by its path."""
    last = {path: path.rpartition("/")[2] for path in digests}
    contents: dict[str, set[str]] = {}
    for path, digest in digests.items():
        contents.setdefault(last[path], set()).add(digest)
    return {path: name if len(contents[name]) == 1 else f"{name}@{digests[path][:8]}" for path, name in last.items()}


def named_digests(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the digest of every file of a run by its name."""
    digests = digests_of(settings)
    return {name: digests[path] for path, name in file_names(digests).items()}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return a text, as that of a chain, with other names of files."""
    forms = {form(path): form(name) for form in (str, quote) for path, name in names.items()}
    known = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.sub(known, lambda match: forms[match[0]], text) if forms else text


def without_folders(text: str, settings: Mapping[str, object]) -> str:
    """Return a text with names in the place of the paths of the files of a run."""
    return renamed(text, file_names(digests_of(settings)))


def names_by_content(settings: Mapping[str, object], known: dict[str, str]) -> dict[str, str]:
    """Return the name of each file by its path: that of the first equal file, where no other file here has this name.

    ``known``, the names by digest, learns what is new.
    """
    digests = digests_of(settings)
    names = file_names(digests)
    first = {path: known.setdefault(digests[path], name) for path, name in names.items()}
    return {path: name if first[path] in names.values() else first[path] for path, name in names.items()}


# YAML and other text that users write: read, or said in one sentence where and why it cannot be.
#
# Nothing is lost or read as something else without a word: YAML takes the last of two equal keys, and 52:54:00:12:34:56
# for a number.

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
                    why = f"key {key.value} is there twice, first in line {first}; remove one of them"
                    raise _Refused(problem=why, problem_mark=key.start_mark)
                lines[value] = key.start_mark.line + 1
        return node

    def compose_scalar_node(self, anchor: Any) -> yaml.ScalarNode:
        node: yaml.ScalarNode = super().compose_scalar_node(anchor)
        if node.style is None and node.tag in _NUMBERS and (":" in node.value or _OCTAL.fullmatch(node.value)):
            number = self.construct_object(node)
            also = "" if ":" in node.value else ", or without the leading 0"
            why = f"YAML reads {node.value} as the number {number}; write it in quotes{also}"
            raise _Refused(problem=why, problem_mark=node.start_mark)
        return node


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


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
    except (yaml.YAMLError, ValueError, TypeError) as error:  # the latter of numbers that are none, as 0x_
        raise UsageError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def fault_words(found: Mapping[str, Any]) -> str:
    """Return what pydantic found wrong in a document, in one sentence; with a remedy where YAML reads no text."""
    path, kind, given = ".".join(str(key) for key in found["loc"] if key != "[key]"), found["type"], found["input"]
    if kind == "missing":
        return f"key {path} is missing; add it"
    where, message = f"{path}: " if path else "", found["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return f"{where}{message}"
    text = str(given) if len(str(given)) <= 60 else f"{str(given)[:57]}..."
    number = kind == "string_type" and isinstance(given, int | float)
    is_read = number or (kind in ("literal_error", "enum") and isinstance(given, bool))
    remedy = "; write it in quotes: YAML reads off, on, no and yes as false and true, and digits as a number"
    return f'{where}"{text}" is not valid: {message[:1].lower()}{message[1:]}{remedy if is_read else ""}'


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


# Numbers as users write them, with k, M and G, in per cent or as a time; and moments as files have them.

SI: Mapping[str, float] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
SHARES: Mapping[str, float] = {**SI, "%": 0.01}
SECONDS: Mapping[str, float] = {"": 1, "s": 1, "m": 60, "h": 3600}

_NUMBER = re.compile(r"((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)([a-zA-Z%]?)")
_WHOLE = re.compile(r"([0-9]{1,18})([a-zA-Z]?)")


def parse_number(text: str, units: Mapping[str, float] = SI) -> float | None:
    """Return the value of ``14.88M``, ``5e6``, or with other ``units`` of ``90s``; None for what is not a number."""
    match = _NUMBER.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    value = float(match[1]) * units[match[2]]
    return value if math.isfinite(value) else None


def parse_whole(text: str) -> int | None:
    """Return the value of ``1500``, ``64k`` or ``10G``, exactly; None for what is not a whole number from 0."""
    match = _WHOLE.fullmatch(text)
    return int(match[1]) * int(SI[match[2]]) if match and match[2] in SI else None


def utc_text(moment: datetime, timespec: str = "seconds") -> str:
    """Return a moment as RFC 3339 in UTC: ``2026-11-21T12:33:56Z``."""
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def utc_now(timespec: str = "milliseconds") -> str:
    """Return the present moment as :func:`utc_text`."""
    return utc_text(datetime.now(UTC), timespec)


def is_moment(text: str) -> bool:
    """Return whether a text is a moment of this age as RFC 3339 has it, with its zone: all others cannot be shown."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return False
    return moment.tzinfo is not None and 1970 <= moment.year < 3000


Moment = Annotated[str, Predicate(is_moment)]
"""A moment as :func:`utc_text` has it. Text that is none is refused where it is read."""


def seconds_since_epoch(text: Moment) -> float:
    """Return the moment in an RFC 3339 text, as of :func:`utc_text`, in seconds."""
    return datetime.fromisoformat(text).timestamp()
