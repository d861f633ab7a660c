# SPDX-License-Identifier: BSD-3-Clause
"""A chain as a user writes it: ``l3fwd``, ``firewall:rules=my.rules,l3fwd:routes=table.txt``.

Functions in path order, commas between them; options of a function as of a switch, colons between them. What is kept
in plans and points is the text with absolute paths: it means the same from everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planebench.model.chain_name import SEPARATOR
from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.option import Option, existing_file, parse_values
from planebench.model.spec import parse_options
from planebench.traffic.profile import TrafficProfile
from planebench.vnfs.registry import SETTINGS_OPTION, VNFS, VnfKind

CHAIN_LENGTH_MAX = 5
"""Functions of a chain."""


@dataclass(frozen=True, slots=True)
class ChainVnf:
    """One function of a chain, with its options as they were written."""

    kind: VnfKind
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """As in the text of a chain; options in the order of the registry, so that one chain has one text."""
        given = [option.name for option in self.kind.all_options if option.name in self.options]
        return ":".join([self.kind.name, *(f"{name}={self.options[name]}" for name in given)])

    def settings(self) -> dict[str, Any]:
        """The settings object of its task; empty: planed's defaults. Reads a file of settings. UsageError."""
        path = self.options.get(SETTINGS_OPTION)
        found = _read_settings(Path(path), self.kind.name) if path else {}
        for option in self.kind.options:
            if option.name in self.options:
                found[option.key] = option.value(self.options[option.name], self.kind.name)
        return found

    def files(self) -> tuple[Path, ...]:
        """Every file that its settings come from."""
        named = {key: value for key, value in self.settings().items() if _names_file(key, value)}
        own = [self.options[SETTINGS_OPTION]] if SETTINGS_OPTION in self.options else []
        return tuple(Path(path) for path in dict.fromkeys([*own, *named.values()]))


def parse_chain(text: str) -> tuple[ChainVnf, ...]:
    """The functions of a chain. Looks at no file. UsageError: unknown function or option, bad value, wrong length."""
    parts = [part.strip() for part in text.split(SEPARATOR)]
    if not all(parts):
        raise UsageError(f'chain "{text}" has an empty entry; give functions separated by single commas')
    if len(parts) > CHAIN_LENGTH_MAX:
        raise UsageError(f'chain "{text}" has {len(parts)} functions. Valid: 1..{CHAIN_LENGTH_MAX}')
    try:
        return tuple(map(_parse_vnf, parts))
    except UsageError as error:
        raise UsageError(f'chain "{text}": {error}') from None


def resolve_chain(text: str, base: Path) -> str:
    """The text as it is kept: every path absolute (``base``: where relative ones begin), every value and file checked.

    UsageError as of :func:`parse_chain`, and for a file that is not there, or is no settings object.
    """
    try:
        return SEPARATOR.join(_resolved(vnf, base).text for vnf in parse_chain(text))
    except UsageError as error:
        said = str(error)
        raise UsageError(said if said.startswith("chain ") else f'chain "{text}": {said}') from None


def cannot_pass(chain: str, profile: TrafficProfile) -> str:
    """Why no frame of a traffic profile comes through a chain, whatever its settings; empty where that is not known."""
    if profile.pcap is not None or not chain:
        return ""
    refusing = [vnf.kind for vnf in parse_chain(chain) if profile.ip not in vnf.kind.ip_versions]
    if not refusing:
        return ""
    valid = ", ".join(f"IPv{version}" for version in refusing[0].ip_versions)
    return (
        f"{refusing[0].name} passes {valid} only, and traffic {profile.name} is IPv{profile.ip}; "
        "give another chain or other traffic"
    )


def _resolved(vnf: ChainVnf, base: Path) -> ChainVnf:
    name = vnf.kind.name
    options = {o.name: o.resolved(vnf.options[o.name], name, base) for o in _given(vnf)}
    new = ChainVnf(vnf.kind, options)
    for key, value in new.settings().items():
        if _names_file(key, value):
            existing_file(value, f"{name}: {key}", base)
    return new


def _given(vnf: ChainVnf) -> Iterator[Option]:
    return (option for option in vnf.kind.all_options if option.name in vnf.options)


def _parse_vnf(text: str) -> ChainVnf:
    name, *parts = text.split(":")
    if name not in VNFS:
        raise unknown("network function", name, tuple(VNFS))
    kind = VNFS[name]
    options = parse_options(name, parts, f"{name}:{kind.options[0].name}=..." if kind.options else name)
    parse_values(name, kind.all_options, options)
    return ChainVnf(kind, options)


def _read_settings(path: Path, vnf: str) -> dict[str, Any]:
    """The object in a file; paths in it are from its folder."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"not JSON: {error}"
        raise UsageError(f'{vnf}: settings "{path}" cannot be read: {reason}; give a JSON file') from None
    if not isinstance(found, dict):
        raise UsageError(f'{vnf}: settings "{path}" is no object; give a JSON file as {{"key": value}}')
    return {key: str(path.parent / value) if _names_file(key, value) else value for key, value in found.items()}


def _names_file(key: str, value: Any) -> bool:
    return key.endswith("_file") and isinstance(value, str)
