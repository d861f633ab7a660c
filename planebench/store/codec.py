# SPDX-License-Identifier: BSD-3-Clause
"""Records to JSON and back: the one place where stored text is validated.

The schema is closed and strict: an unknown key, a missing key, a float for a count or a NaN is an error that names the
key. It is derived from the frozen records, so there is no second copy of it to drift.
"""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from typing import Any, TypeVar

from pydantic import ValidationError

from planebench.model.closed import adapter
from planebench.model.errors import StoreError
from planebench.model.header import SCHEMA_VERSION, RunHeader

R = TypeVar("R")

MAX_DIGITS = 20
_LONG = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))


def to_json(record: Any, *, indent: int | None = None) -> bytes:
    """Return one record as UTF-8 JSON, on one line unless ``indent`` is given.

    Text that is no valid Unicode (a log tail read with surrogateescape) gets ``?`` for what cannot be encoded.
    Raises StoreError for NaN and infinity, which JSON does not have.
    """
    try:
        text = json.dumps(dataclasses.asdict(record), ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError as error:
        raise StoreError(f"cannot store {type(record).__name__}: {error}. Rates and shares must be finite") from error
    return text.encode("utf-8", errors="replace")


def from_json(kind: type[R], data: bytes, where: str) -> R:
    """Parse one record of class ``kind``; ``where`` (file, line) opens the message of the StoreError."""
    try:
        if _LONG.search(data):
            json.loads(data, parse_int=_bounded)
        record: R = adapter(kind).validate_json(data)  # type: ignore[arg-type]
    except ValidationError as error:
        raise StoreError(f"{where}: {explain(error)}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where}: {error}") from error
    return record


def _bounded(digits: str) -> int:
    """Return a whole number. Raises ValueError for one that no count is, and no float takes."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is no count")
    return int(digits)


# A record of a run folder ends in a checksum: the last key is "crc32", the CRC-32 (zlib) of all bytes before its comma.

_SEAL = re.compile(rb', "crc32": "([0-9a-f]{8})"\}\n?\Z')
_SEAL_MAX = len(b', "crc32": "01234567"}\n')


def sealed(record: bytes) -> bytes:
    """Return a JSON object with a checksum as its last key."""
    body = record.rstrip()[:-1].rstrip()
    return body + b', "crc32": "%08x"}' % zlib.crc32(body)


def unsealed(data: bytes, where: str, *, required: bool = False) -> bytes:
    """Return a JSON object without its checksum. Raises StoreError for a wrong one, and for none if it is required."""
    seal = _SEAL.search(data, max(0, len(data) - _SEAL_MAX))
    if seal is None:
        if required:
            raise StoreError(f"{where}: it has no checksum, and the others of this run have one; it was changed")
        return data
    body = data[: seal.start()]
    if int(seal[1], 16) != zlib.crc32(body):
        raise StoreError(f"{where}: its checksum is wrong; it was changed since planebench wrote it")
    return body + b"}"


def header_from_json(data: bytes, where: str) -> RunHeader:
    """Parse run.json. Another schema version is reported first: its other differences would only confuse."""
    try:
        version = json.loads(data).get("schema_version")
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where}: not a JSON object: {error}") from error
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise StoreError(
            f"{where}: schema_version is {version!r}, this planebench reads {SCHEMA_VERSION}. "
            "Read the run with the planebench that wrote it (planebench_version in the same file)"
        )
    header = from_json(RunHeader, record := unsealed(data, where), where)
    if header.checksums and record is data:
        unsealed(data, where, required=True)
    return header


def explain(error: ValidationError) -> str:
    """Return the first problems of a validation error, each as ``key.path: what is wrong``."""
    found = error.errors(include_url=False, include_context=False)
    lines = [_explain_one(tuple(e["loc"]), e["type"], e["msg"], e["input"]) for e in found[:3]]
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(lines) + more


def _explain_one(loc: tuple[int | str, ...], kind: str, message: str, value: object) -> str:
    key = ".".join(str(part) for part in loc) or "the record"
    if kind == "json_invalid":
        return message
    if kind == "unexpected_keyword_argument":
        return f"unknown key {key}"
    if kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return f"missing key {key}"
    if kind == "predicate_failed":
        message = "no moment such as 2026-11-21T12:33:56Z"
    shown = repr(value)
    return f"{key}: {message[:1].lower()}{message[1:]}, got {shown if len(shown) <= 60 else shown[:57] + '...'}"
