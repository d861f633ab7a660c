# SPDX-License-Identifier: BSD-3-Clause
"""The validation of a traffic profile from YAML into a frozen record. Unknown keys are errors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from planebench.model import traffic as records
from planebench.model.closed import ClosedModel
from planebench.model.errors import UsageError, unknown
from planebench.model.scenarios import parse_frame_size
from planebench.model.switch import LABEL_PATTERN
from planebench.model.text import parse_number, type_remedy


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
ValueCount = Annotated[int, Field(ge=1, le=records.ADDRESSES_MAX)]
Nanoseconds = Annotated[int, Field(ge=100, le=3_600_000_000_000)]
Size = Annotated[int, BeforeValidator(lambda value: parse_frame_size(value if isinstance(value, int) else str(value)))]
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

    def record(self) -> records.Flows:
        """Return the frozen record."""
        return records.Flows(self.count, self.draw, 1.0 if self.exponent is None else self.exponent)


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
    fib: ValueCount | None = None
    routes: File | None = None

    @model_validator(mode="after")
    def _fits(self) -> DestinationsModel:
        if (self.file is None) == (self.fib is None):
            raise ValueError("give either file (one address per line) or fib (number of addresses drawn from routes)")
        if self.routes is not None and self.fib is None:
            raise ValueError("routes needs fib, the number of addresses drawn from them")
        return self

    def record(self) -> records.Destinations:
        """Return the frozen record, with an absolute path to an existing file."""
        path = self.file or self.routes
        return records.Destinations(str(existing(path)) if path else "", self.fib)


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

    def record(self) -> records.Arrival:
        """Return the frozen record."""
        return records.Arrival(self.process, self.on_ns or 0, self.off_ns or 0)


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

    def record(self) -> records.Pcap:
        """Return the frozen record, with an absolute path to an existing file, which is read for a wire only."""
        timing = self.timing or "rate"
        if self.time_scale is not None or self.rate_pps is not None:
            timing = "recorded"
        return records.Pcap(str(existing(self.path)), timing, self.time_scale or 1.0, rate_pps=self.rate_pps)


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

    @model_validator(mode="after")
    def _fits(self) -> ProfileModel:
        if self.updates is not None and self.control_pps is not None:
            raise ValueError("updates and control_pps are mutually exclusive: each control packet causes an update")
        if self.pcap is None:
            return self
        own = ("sizes", "ip", "transport", "vlan", "flows", "dst_macs", "dst_ips")
        taken = [key for key in own if key in self.model_fields_set]
        if taken:
            raise ValueError(f"{taken[0]} cannot be combined with pcap; remove one of them")
        return self

    def record(self, name: str) -> records.TrafficProfile:
        """Return the frozen record with this name. Raises UsageError for a missing or wrong file."""
        macs = self.dst_macs or MacsModel.model_construct()
        made = records.TrafficProfile(
            name=name,
            summary=self.summary,
            sizes=self.sizes or (),
            ip=self.ip,
            transport=self.transport,
            vlan=self.vlan,
            flows=self.flows.record() if self.flows else None,
            dst_macs=tuple(mac.lower() for mac in macs.list or ()),
            dst_mac_count=macs.count,
            dst_ips=self.dst_ips.record() if self.dst_ips else None,
            arrival=self.arrival.record() if self.arrival else None,
            pcap=self.pcap.record() if self.pcap else None,
            seed=self.seed,
            updates=self.updates,
            control_pps=self.control_pps,
        )
        if made.recorded and made.arrival is not None:
            raise UsageError("arrival cannot be combined with recorded times; remove one of them")
        return made


def existing(path: str) -> Path:
    """Return the absolute path of an existing file. Raises UsageError otherwise."""
    found = Path(path).expanduser().absolute()
    if not found.is_file():
        raise UsageError(f"file {found} does not exist")
    return found


def profile_from_document(document: object, name: str, source: str) -> records.TrafficProfile:
    """Return a profile from parsed YAML. Raises UsageError with ``source``, the key, its value, and what is valid."""
    if not isinstance(document, dict):
        raise UsageError(
            f"{source}: a traffic profile must be a mapping with the keys {', '.join(ProfileModel.model_fields)}"
        )
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
        return UsageError(f"{source}: {unknown('key', path, valid_keys(location[:-1]))}")
    if detail["type"] == "missing":
        return UsageError(f"{source}: key {path} is missing; add it")
    where = f"{path}: " if path else ""
    if detail["type"] == "value_error":
        return UsageError(f"{source}: {where}{detail['msg'].removeprefix('Value error, ')}")
    why = f"{detail['msg'][:1].lower()}{detail['msg'][1:]}{type_remedy(detail)}"
    return UsageError(f'{source}: {where}"{_short(detail["input"])}" is not valid: {why}')


def valid_keys(location: list[str]) -> list[str]:
    """Return the full paths of the keys of a section; of the profile itself for an empty location."""
    model = _SECTIONS.get(location[0], ProfileModel) if location else ProfileModel
    return ["".join(f"{part}." for part in location) + key for key in model.model_fields]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
