# SPDX-License-Identifier: BSD-3-Clause
"""Traffic profiles as a user names them: ``imix``, ``macs:count=63``, ``my.yaml``, ``pcap:path=x.pcap:scale=2``.

The profiles of planebench are YAML files in ``profiles/``; a new profile is a new file there. A profile is checked
against the other parameters before anything starts. The models below validate its YAML into frozen records; unknown
keys are errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from planebench.model import traffic as records
from planebench.model.chain_name import split, unquote
from planebench.model.closed import ClosedModel
from planebench.model.errors import UsageError, unknown
from planebench.model.header import TrafficInfo
from planebench.model.scenarios import FRAME_SIZE_JUMBO_BYTES, FRAME_SIZE_MAX_BYTES, parse_frame_size
from planebench.model.switch import LABEL_PATTERN, parse_options
from planebench.model.text import fault_words, is_yaml_file, parse_number, parse_yaml, read_text, user_path
from planebench.model.traffic import PLAIN, PLAIN_NAME, TrafficProfile
from planebench.model.wire import wire_named

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
    if profile.pcap is not None:
        return min(profile.pcap.max_frame_bytes, FRAME_SIZE_JUMBO_BYTES)
    return max([size for size, _ in profile.sizes] or frame_sizes_bytes, default=0)


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
    document = dict(document)
    for option, value in given.items():
        section, _, key = OPTIONS[option].partition(".")
        number = parse_number(value)
        put = value if number is None else int(number) if number.is_integer() else number
        if key:
            old = document.get(section)
            document[section] = {**(old if isinstance(old, dict) else {}), key: put}
        else:
            document[section] = put
    if label is None:
        # With the options and the last part of file paths, so that profiles have different names.
        base = name if macs else document.get("name") or Path(name).stem
        told = [f"{key}={Path(value).name if key in _FILES else value}" for key, value in written.items()]
        label = ":".join((str(base), *told))
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


def _document(name: str) -> tuple[dict[str, Any], str]:
    """Return the YAML of a profile by name or path, and its name in messages."""
    if is_yaml_file(name):
        path = user_path(name)
        text, source = read_text(path, f"traffic profile {path}", "give a readable YAML file"), name
    elif name in list_profiles():
        text, source = (_PROFILES / f"{name}.yaml").read_text(encoding="utf-8"), f"traffic {name}"
    else:
        names = (PLAIN_NAME, *list_profiles())
        raise UsageError(f"{unknown('traffic', name, names)}; or give the path of your own profile, e.g. {name}.yaml")
    document = parse_yaml(text, name)
    if not isinstance(document, dict):
        raise UsageError(f"{name}: a traffic profile must be a mapping with keys such as sizes, flows, dst_macs")
    return document, source


def _option(option: str, document: dict[str, Any], text: str) -> str:
    """Return the option; for ``count`` the one that it means in this profile."""
    if option == "count":
        for counted in _COUNTED:
            section, _, key = OPTIONS[counted].partition(".")
            if isinstance(document.get(section), dict) and key in document[section]:
                return counted
        raise UsageError(f'traffic "{text}": count does not apply. Valid: {", ".join(OPTIONS)}')
    if option not in OPTIONS:
        raise UsageError(f'traffic "{text}": {unknown("option", option, ("name", "count", *OPTIONS))}')
    return option


def traffic_rows() -> list[dict[str, Any]]:
    """Return a row for each profile of planebench."""
    profiles = {PLAIN_NAME: PLAIN}
    for name in list_profiles():
        document, source = _document(name)
        document.pop("pcap", None)  # a profile that needs a file is without it
        profiles[name] = profile_from_document(document, name, source)
    rows = []
    for name, it in profiles.items():
        size = "each frame size" if it.mean_frame_bytes is None else f"{it.mean_frame_bytes:.1f} B"
        mean = "of the file" if name == "pcap" else size
        rows.append({"traffic": name, "mean frame": mean, "varies": ", ".join(varies(it)), "what": it.summary})
    return rows


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
        if it.name
    )


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


def _whole_weight(value: Any) -> Any:
    """Return the weight; refuse a share, as 58.33 or 58.33%, with what it is in whole numbers."""
    share = parse_number(str(value).removesuffix("%").strip())
    if share is None or (share.is_integer() and not str(value).endswith("%")):
        return value
    raise ValueError(
        "weights are whole numbers of frames, not percentages: give the ratio, as 7, 4 and 1 for 58.33, 33.33 and "
        f"8.33 %, or hundredths of a percent, {round(share * 100)}"
    )


Weight = Annotated[int, BeforeValidator(_whole_weight), Field(ge=1, le=records.WEIGHT_MAX)]
Nanoseconds = Annotated[int, Field(ge=100, le=3_600_000_000_000)]
Size = Annotated[int, BeforeValidator(parse_frame_size)]
Sizes = Annotated[
    tuple[tuple[Size, Weight], ...],
    BeforeValidator(lambda value: list(value.items()) if isinstance(value, dict) else value),
    Field(min_length=1, max_length=records.SIZES_MAX),
]
Mac = Annotated[str, Field(pattern=r"^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$")]
"""A unicast address: the lowest bit of its first byte is 0."""
File = Annotated[str, Field(min_length=1)]


class FlowsModel(ClosedModel):
    """The section ``flows``."""

    count: Annotated[int, Field(ge=1, le=records.FLOWS_MAX)]
    draw: records.Draw = "round_robin"
    exponent: Annotated[float, Field(ge=0.1, le=4, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> FlowsModel:
        if self.exponent is not None and self.draw != "zipf":
            raise ValueError(f"exponent applies only to draw zipf, not to {self.draw}; remove it")
        return self


class MacsModel(ClosedModel):
    """The section ``dst_macs``: a number of addresses, or a list."""

    count: Annotated[int, Field(ge=1, le=records.MACS_MAX)] | None = None
    list: Annotated[tuple[Mac, ...], Field(min_length=1, max_length=records.MACS_MAX)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> MacsModel:
        if (self.count is None) == (self.list is None):
            raise ValueError("give either count or list")
        return self


class DestinationsModel(ClosedModel):
    """The section ``dst_ips``: a file of addresses, or a number of addresses drawn from a table of routes."""

    file: File | None = None
    fib: Annotated[int, Field(ge=1, le=records.ENTRIES_MAX)] | Literal["all"] | None = None
    routes: File | None = None

    @model_validator(mode="after")
    def _fits(self) -> DestinationsModel:
        if (self.file is None) == (self.fib is None):
            raise ValueError("give either file (one address per line) or fib (number of addresses drawn from routes)")
        if self.routes is not None and self.fib is None:
            raise ValueError("routes needs fib, the number of addresses drawn from them")
        return self


class ArrivalModel(ClosedModel):
    """The section ``arrival``."""

    process: records.ArrivalProcess
    on_ns: Nanoseconds | None = None
    off_ns: Nanoseconds | None = None

    @model_validator(mode="after")
    def _fits(self) -> ArrivalModel:
        if (self.process == "on_off") != (self.on_ns is not None and self.off_ns is not None):
            raise ValueError("process on_off needs on_ns and off_ns")
        if self.process != "on_off" and (self.on_ns or self.off_ns):
            raise ValueError(f"on_ns and off_ns apply only to process on_off, not to {self.process}")
        return self


class PcapModel(ClosedModel):
    """The section ``pcap``. Frames have recorded times with a ``time_scale``, or with a mean ``rate_pps``."""

    path: File
    timing: records.Timing | None = None
    time_scale: Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)] | None = None
    rate_pps: Annotated[float, Field(ge=0.01, le=1e9, allow_inf_nan=False)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> PcapModel:
        if self.time_scale is not None and self.rate_pps is not None:
            raise ValueError("time_scale and rate_pps are mutually exclusive")
        if self.timing == "rate" and (self.time_scale is not None or self.rate_pps is not None):
            raise ValueError("time_scale and rate_pps scale recorded times; remove timing: rate")
        return self


ALIKE = ("summary", "ip", "transport", "vlan", "seed", "updates", "control_pps", "closed_loop")
"""Keys of a profile that its record has as they are."""


class ProfileModel(ClosedModel):
    """A profile file."""

    name: Annotated[str, Field(pattern=f"^{LABEL_PATTERN}$")] | None = None
    summary: str = ""
    sizes: Sizes | None = None
    ip: Literal[4, 6] = 4
    transport: records.Transport = "udp"
    vlan: Annotated[int, Field(ge=1, le=4094)] | None = None
    flows: FlowsModel | None = None
    dst_macs: MacsModel | None = None
    dst_ips: DestinationsModel | None = None
    arrival: ArrivalModel | None = None
    pcap: PcapModel | None = None
    seed: Annotated[int, Field(ge=0, lt=2**53)] = 1
    updates: Annotated[float, Field(gt=0, le=1e9)] | Literal["flat_out"] | None = None
    control_pps: Annotated[float, Field(ge=0.01, le=records.CONTROL_MAX_PPS)] | None = None
    closed_loop: bool = False

    @model_validator(mode="after")
    def _fits(self) -> ProfileModel:
        if self.updates is not None and self.control_pps is not None:
            raise ValueError("updates and control_pps are mutually exclusive: each control packet causes an update")
        if self.closed_loop and (more := self.model_fields_set - {"name", "summary", "closed_loop"}):
            raise ValueError(f"closed_loop is for plain frames; remove {min(more)}")
        if self.pcap is None:
            return self
        own = ("sizes", "ip", "transport", "vlan", "flows", "dst_macs", "dst_ips")
        taken = [key for key in own if key in self.model_fields_set]
        if taken:
            raise ValueError(f"{taken[0]} cannot be combined with pcap; remove one of them")
        return self

    def record(self, name: str) -> TrafficProfile:
        """Return the frozen record with this name. Raises UsageError for a missing or wrong file."""
        ips = pcap = None
        if self.dst_ips:
            path = self.dst_ips.file or self.dst_ips.routes
            ips = records.Destinations(str(existing(path)) if path else "", self.dst_ips.fib)
        if given := self.pcap:  # the file is read for a wire only
            scaled = given.time_scale is not None or given.rate_pps is not None
            timing = "recorded" if scaled else given.timing or "rate"
            path = str(existing(given.path))
            pcap = records.Pcap(path, timing, given.time_scale or 1.0, rate_pps=given.rate_pps)
        macs = self.dst_macs or MacsModel.model_construct()
        made = TrafficProfile(
            name=name,
            sizes=self.sizes or (),
            flows=records.Flows(**self.flows.model_dump(exclude_none=True)) if self.flows else None,
            dst_macs=tuple(mac.lower() for mac in macs.list or ()),
            dst_mac_count=macs.count,
            dst_ips=ips,
            arrival=records.Arrival(**self.arrival.model_dump(exclude_none=True)) if self.arrival else None,
            pcap=pcap,
            **{key: getattr(self, key) for key in ALIKE},
        )
        if made.recorded and made.arrival is not None:
            raise UsageError("arrival cannot be combined with recorded times; remove one of them")
        return made


def existing(path: str) -> Path:
    """Return the absolute path of an existing file. Raises UsageError otherwise."""
    found = user_path(path).absolute()
    if not found.is_file():
        raise UsageError(f"file {found} does not exist")
    return found


def profile_from_document(document: dict[str, Any], name: str, source: str) -> TrafficProfile:
    """Return a profile from parsed YAML. Raises UsageError with ``source``, the key, its value, and what is valid."""
    try:
        return ProfileModel.model_validate(document).record(name)
    except ValidationError as error:
        details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        raise _usage_error(details[0], source) from None
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


_SECTIONS: dict[str, type[ClosedModel]] = {
    "flows": FlowsModel,
    "dst_macs": MacsModel,
    "dst_ips": DestinationsModel,
    "arrival": ArrivalModel,
    "pcap": PcapModel,
}


def _usage_error(detail: ErrorDetails, source: str) -> UsageError:
    """Return the first error of pydantic in one sentence."""
    location = [str(part) for part in detail["loc"]]
    path = ".".join(location)
    if detail["type"] == "extra_forbidden":
        within = location[:-1]  # of the profile itself where it is empty
        model = _SECTIONS.get(within[0], ProfileModel) if within else ProfileModel
        valid = ["".join(f"{part}." for part in within) + key for key in model.model_fields]
        return UsageError(f"{source}: {unknown('key', path, valid)}")
    return UsageError(f"{source}: {fault_words(detail)}")
