# SPDX-License-Identifier: BSD-3-Clause
"""Traffic profiles as a user names them: ``imix``, ``macs:count=63``, ``my-profile.yaml``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from planebench.model.chain_name import split, unquote
from planebench.model.errors import UsageError, unknown
from planebench.model.header import TrafficInfo
from planebench.model.scenarios import FRAME_SIZE_JUMBO_BYTES, FRAME_SIZE_MAX_BYTES
from planebench.model.switch import LABEL_PATTERN, parse_options
from planebench.model.text import is_yaml_file, parse_number, parse_yaml, read_text
from planebench.model.traffic import PLAIN, PLAIN_NAME, TrafficProfile
from planebench.model.wire import wire_named
from planebench.testbed.traffic_schema import profile_from_document

# Checks that a profile fits the other parameters, before anything starts.


def check_sizes(profile: TrafficProfile, frame_sizes_bytes: Sequence[int]) -> None:
    """Raise UsageError if the headers of a profile do not fit its own sizes, or those of its points.

    Short frames of a capture are enlarged, long ones skipped, and both are counted.
    """
    if profile.pcap is not None:
        return
    sizes = [size for size, _ in profile.sizes] or list(frame_sizes_bytes)
    least = profile.smallest_frame_bytes
    short = [size for size in sizes if size < least]
    if short:
        where = "sizes" if profile.sizes else "--frame-size"
        raise UsageError(
            f"traffic {profile.name or 'plain'}: frames of {short[0]} B are too short for {profile.headers} headers "
            f"and the tester's 18 bytes. Use {least} B or more for {where}"
        )


def check_wire(wire: str, profile: TrafficProfile, frame_sizes_bytes: Sequence[int]) -> None:
    """Raise UsageError for frames that DPDK's driver of a wire refuses. Those of a capture are skipped and counted."""
    kind = wire_named(wire)
    if not kind.standard_frames_driver:
        return
    largest = largest_frame_bytes(profile, frame_sizes_bytes)
    if profile.pcap is None and largest > FRAME_SIZE_MAX_BYTES:
        what = f"traffic {profile.name}: " if profile.name else ""
        raise UsageError(
            f"{what}frames of {largest} B do not fit the {kind.name} wire, which carries at most "
            f"{FRAME_SIZE_MAX_BYTES} (DPDK's {kind.standard_frames_driver} driver): use "
            "--wire virtio, or smaller frames"
        )


def check_methods(profile: TrafficProfile, searches: Sequence[str], loads: Sequence[float], rate_set: bool) -> None:
    """Raise UsageError if a method needs to set a load, but the frames of a capture have recorded times."""
    if not profile.recorded:
        return
    asked = "a search" if searches else "latency at loads" if loads else "a highest rate" if rate_set else ""
    if asked:
        raise UsageError(
            f"traffic {profile.name}: its frames have recorded times, so no load can be set for {asked}; remove "
            "scale, rate and timing, or use --loads none without --search, --max-rate and --line"
        )


def largest_frame_bytes(profile: TrafficProfile, frame_sizes_bytes: Sequence[int]) -> int:
    """Return the largest frame for ports; of a capture at most a jumbo frame: the generator skips larger ones."""
    sizes = [size for given in frame_sizes_bytes or (0,) for size in profile.sizes_at(given)]
    return min(max(sizes), FRAME_SIZE_JUMBO_BYTES)


# Traffic profiles as a user names them: ``imix``, ``macs:count=63``, ``my-profile.yaml``,
# ``pcap:path=x.pcap:scale=2``.
#
# The profiles of planebench are YAML files in ``profiles/``; a new profile is a new file there.

_PROFILES = files("planebench.testbed") / "profiles"

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


# ``planebench list traffic``: the profiles, their mean frame size, and what varies in them.


def traffic_rows() -> list[dict[str, Any]]:
    """Return a row for each profile of planebench."""
    profiles = {PLAIN_NAME: PLAIN} | {name: sample(name) for name in list_profiles()}
    return [
        {"traffic": name, "mean frame": mean_words(name, it), "varies": ", ".join(varies(it)), "what": it.summary}
        for name, it in profiles.items()
    ]


def traffic_infos(profiles: Iterable[TrafficProfile]) -> tuple[TrafficInfo, ...]:
    """Return the profiles of a plan for the run header, without settings that are as in plain frames."""
    usual = asdict(PLAIN)
    return tuple(
        TrafficInfo(
            it.name,
            it.summary,
            it.mean_frame_bytes,
            {
                key: json.dumps(value)
                for key, value in asdict(it).items()
                if key not in ("name", "summary") and value != usual[key]
            },
        )
        for it in profiles
        if not it.plain
    )


def mean_words(name: str, profile: TrafficProfile) -> str:
    """Return e.g. ``361.8 B``, or words for frames with the size of the point or of a file."""
    if name == "pcap":
        return "of the file"
    mean = profile.mean_frame_bytes
    return "each frame size" if mean is None else f"{mean:.1f} B"


def varies(profile: TrafficProfile) -> list[str]:
    """Return what differs from frame to frame, and from plain frames."""
    words = ["frame size"] if profile.sizes else []
    if profile.flows is not None:
        words.append(f"{profile.flows.count} flows ({profile.flows.draw.replace('_', ' ')})")
    macs = len(profile.dst_macs) or profile.dst_mac_count
    if macs:
        words.append(f"{macs} destination MACs")
    if profile.dst_ips is not None:
        number = f"{profile.dst_ips.fib} " if profile.dst_ips.fib else ""
        words.append(f"{number}destination IPs")
    if profile.headers != PLAIN.headers:
        words.append(profile.headers)
    if profile.arrival is not None:
        words.append(f"arrival: {profile.arrival.process.replace('_', ' ')}")
    if profile.updates is not None:
        rate = "flat out" if profile.updates == "flat_out" else f"{profile.updates:g}/s"
        words.append(f"FIB updates: {rate}")
    if profile.control_pps is not None:
        words.append(f"control packets: {profile.control_pps:g}/s")
    return words
