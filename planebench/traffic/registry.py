# SPDX-License-Identifier: BSD-3-Clause
"""Traffic profiles as a user names them: ``imix``, ``macs:count=63``, ``my-profile.yaml``,
``pcap:path=x.pcap:scale=2``.

The profiles of planebench are YAML files in ``profiles/``; a new profile is a new file there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from planebench.model.chain_name import split, unquote
from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.quantity import parse_number
from planebench.model.spec import LABEL_PATTERN, parse_options
from planebench.model.traffic import PLAIN, PLAIN_NAME, TrafficProfile
from planebench.model.yaml_text import is_yaml_file, parse_yaml, read_text
from planebench.traffic.schema import profile_from_document

_PROFILES = files("planebench.traffic") / "profiles"

OPTIONS: dict[str, str] = {
    "ip": "ip",
    "transport": "transport",
    "vlan": "vlan",
    "flows": "flows.count",
    "draw": "flows.draw",
    "exponent": "flows.exponent",
    "macs": "dst_macs.count",
    "ips": "dst_ips.file",
    "fib": "dst_ips.fib",
    "routes": "dst_ips.routes",
    "process": "arrival.process",
    "on_ns": "arrival.on_ns",
    "off_ns": "arrival.off_ns",
    "path": "pcap.path",
    "timing": "pcap.timing",
    "scale": "pcap.time_scale",
    "rate": "pcap.rate_pps",
    "seed": "seed",
    "updates": "updates",
    "control": "control_pps",
}
"""Option of a profile -> the key of its YAML that it replaces. ``count`` beside them: of what the profile varies."""
_COUNTED = ("fib", "macs", "flows")
_FILES = frozenset({"ips", "routes", "path"})


def list_profiles() -> tuple[str, ...]:
    """Return the names of planebench's profiles, sorted."""
    return tuple(sorted(Path(entry.name).stem for entry in _PROFILES.iterdir() if entry.name.endswith(".yaml")))


def parse_traffic(text: str) -> TrafficProfile:
    """Return a profile from the text of a user. Raises UsageError for an unknown profile, file, key or value."""
    first, *parts = split(text, ":")
    name = unquote(first)
    options = parse_options(f'traffic "{text}"', parts, "macs:count=63", _FILES)
    options = written = {option: unquote(value) for option, value in options.items()}
    if name == PLAIN_NAME:
        if options:
            raise UsageError(f'traffic "{text}": {PLAIN_NAME} has no options; leave them out')
        return PLAIN
    if macs := re.fullmatch(r"macs-([0-9]+)", name):
        options = {"count": macs[1]} | options
    document, source = _document("macs" if macs else name)
    label = options.get("name")
    given = {_option(option, document, text): value for option, value in options.items() if option != "name"}
    document = _changed(document, given)
    if label is None:
        base = name if macs else document.get("name") or Path(name).stem
        label = _label(str(base), written)
    elif not re.fullmatch(LABEL_PATTERN, label) or label == PLAIN_NAME:
        raise UsageError(f'traffic "{text}": name "{label}" is not valid. Valid: letters, digits, ".", "_", "-"')
    return profile_from_document(document, label, source if not given else f'traffic "{text}"')


def parse_all(texts: Iterable[str]) -> tuple[TrafficProfile, ...]:
    """Return several profiles without repetition. Raises UsageError if two different profiles have one name."""
    found: dict[str, TrafficProfile] = {}
    for text in texts:
        profile = parse_traffic(text)
        if found.setdefault(profile.name, profile) != profile:
            raise UsageError(f'two traffic profiles have the name "{profile.name}"; rename one: {text}:name=OTHER')
    return tuple(found.values())


def sample(name: str) -> TrafficProfile:
    """Return a profile of planebench for a list; a profile that needs a file is without it."""
    document, source = _document(name)
    return profile_from_document({k: v for k, v in document.items() if k != "pcap"}, name, source)


def _document(name: str) -> tuple[dict[str, Any], str]:
    """Return the YAML of a profile by name or path, and its name in messages."""
    if is_yaml_file(name):
        path = Path(name).expanduser()
        return _parse(read_text(path, f"traffic profile {path}", "give a readable YAML file"), name), name
    if name not in list_profiles():
        names = (PLAIN_NAME, *list_profiles())
        raise UsageError(f"{unknown('traffic', name, names)}; or give the path of your own profile, e.g. {name}.yaml")
    return _parse((_PROFILES / f"{name}.yaml").read_text(encoding="utf-8"), name), f"traffic {name}"


def _parse(text: str, source: str) -> dict[str, Any]:
    document = parse_yaml(text, source)
    if not isinstance(document, dict):
        raise UsageError(f"{source}: a traffic profile must be a mapping with keys such as sizes, flows, dst_macs")
    return document


def _option(option: str, document: dict[str, Any], text: str) -> str:
    """Return the option; for ``count`` the one that it means in this profile."""
    if option == "count":
        for counted in _COUNTED:
            section, _, key = OPTIONS[counted].partition(".")
            if key in (document.get(section) or {}):
                return counted
        raise UsageError(f'traffic "{text}": count does not apply. Valid: {", ".join(OPTIONS)}')
    if option not in OPTIONS:
        raise UsageError(f'traffic "{text}": {unknown("option", option, ("name", "count", *OPTIONS))}')
    return option


def _changed(document: dict[str, Any], options: dict[str, str]) -> dict[str, Any]:
    """Return a copy of the document with options in place of its keys."""
    changed = dict(document)
    for option, value in options.items():
        section, _, key = OPTIONS[option].partition(".")
        if key:
            old = changed.get(section)
            changed[section] = {**(old if isinstance(old, dict) else {}), key: _value(value)}
        else:
            changed[section] = _value(value)
    return changed


def _value(text: str) -> Any:
    """Return ``64``, ``1M`` and ``2.5`` as numbers; any other text as it is."""
    value = parse_number(text)
    if value is None:
        return text
    return int(value) if value.is_integer() else value


def _label(base: str, options: Mapping[str, str]) -> str:
    """Return the name with its options, with the last part of file paths, so that profiles have different names."""
    return ":".join(
        (base, *(f"{key}={Path(value).name if key in _FILES else value}" for key, value in options.items()))
    )
