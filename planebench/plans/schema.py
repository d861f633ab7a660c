# SPDX-License-Identifier: BSD-3-Clause
"""The border: a plan document (parsed YAML) is checked here, whole, and becomes a :class:`Plan`. Keys are closed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from planebench.model.chain_name import HOSTINGS, OWN, vnf_texts
from planebench.model.choices import unknown
from planebench.model.errors import UsageError
from planebench.model.header import Skipped
from planebench.model.hosting import Hosting
from planebench.model.plan import (
    Band,
    LatencyPlan,
    MissingSwitches,
    Plan,
    RingSize,
    SearchPlan,
    SwitchCores,
    ThroughputPlan,
)
from planebench.model.records import Direction, ScenarioName, WireName
from planebench.model.scenario import scenario_named, scenarios_with
from planebench.model.traffic import PLAIN_NAME
from planebench.plans.parts import with_parts
from planebench.scenarios import (
    parse_chain_length,
    parse_direction,
    parse_frame_size,
    parse_scenario,
    parse_vnf_count,
)
from planebench.search import METHODS
from planebench.traffic.rates import parse_rate
from planebench.traffic.registry import parse_all
from planebench.vnfs import resolve_chain

T = TypeVar("T")
M = TypeVar("M", bound="_Closed")
OneOrMore = Annotated[tuple[T, ...], Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1000)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Rate = Annotated[int, Field(ge=1, le=1_000_000_000)]
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME_PATTERN)]

SWITCH_CORES: tuple[SwitchCores, ...] = get_args(SwitchCores)
OF_THE_WHOLE = ("name", "description", "papers", "left_out", "time_budget_s")
"""Keys of a plan that its parts do not take over."""

WIRES: tuple[WireName, ...] = get_args(WireName)
RING_SIZES: tuple[RingSize, ...] = get_args(RingSize)


def check_switch_cores(value: Any) -> SwitchCores:
    """How many cores the switch gets; anything else is a UsageError."""
    for valid in SWITCH_CORES:
        if value == valid and not isinstance(value, bool):
            return valid
    raise UsageError(f'switch_cores "{value}" is not valid. Valid: {", ".join(map(str, SWITCH_CORES))}')


def check_ring_size(value: Any) -> RingSize:
    """Descriptors of a ring: a power of two that every wire can have; anything else is a UsageError."""
    for valid in RING_SIZES:
        if value == valid and not isinstance(value, bool):
            return valid
    raise UsageError(f'ring_size "{value}" is not valid. Valid: {", ".join(map(str, RING_SIZES))}')


def check_restarts(restarts: int, repetitions: int) -> int:
    """Restarts happen between repetitions; UsageError where there are more of them than gaps."""
    if 0 <= restarts < repetitions:
        return restarts
    raise UsageError(f'restarts "{restarts}" is not valid for {repetitions} repetitions. Valid: 0..{repetitions - 1}')


def parse_hosting(text: str) -> Hosting:
    """What all VNFs of a chain may run in; UsageError for another, as for a VNF of the user's own, which is a chain."""
    for name in HOSTINGS:
        if text == name and name not in OWN:
            return name
    raise unknown("hosting", text, [name for name in HOSTINGS if name not in OWN])


def parse_wire(text: str) -> WireName:
    """Return the port type of that name. Raises UsageError for another."""
    for name in WIRES:
        if text == name:
            return name
    raise unknown("wire", text, WIRES)


def parse_search(text: str) -> str:
    """The name of a search method; UsageError for another."""
    if text in METHODS:
        return text
    raise unknown("search", text, METHODS)


class _Closed(BaseModel):
    """Unknown keys are errors, and so is a string where a number belongs."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ThroughputModel(_Closed):
    """``throughput:`` of a plan."""

    duration_s: Seconds
    warmup_s: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = 0.0
    repetitions: Count
    retries: Annotated[int, Field(ge=0, le=100)] = 2
    restarts: Annotated[int, Field(ge=0, le=999)] = 0
    max_rate_pps: Annotated[float, Field(gt=0, le=1e10, allow_inf_nan=False)] | None = None

    def record(self) -> ThroughputPlan:
        """The frozen record. UsageError for more restarts than there are gaps between repetitions."""
        check_restarts(self.restarts, self.repetitions)
        return ThroughputPlan(
            self.duration_s, self.warmup_s, self.repetitions, self.retries, self.restarts, self.max_rate_pps
        )


class SearchModel(_Closed):
    """``search:`` of a plan."""

    methods: tuple[Annotated[str, BeforeValidator(lambda value: parse_search(str(value)))], ...] = ()
    duration_s: Seconds | None = None
    duration_sum_s: Seconds | None = None
    relative_width: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] | None = None
    pdr_loss_ratio: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.005
    max_r: Annotated[int, Field(ge=1, le=100)] = 2
    burst_repetitions: Count = 3

    def record(self) -> SearchPlan:
        """The frozen record. R+ is always taken and not listed."""
        methods = tuple(method for method in _once(self.methods) if method != "r_plus")
        return SearchPlan(**{**self.model_dump(), "methods": methods})


class LatencyModel(_Closed):
    """``latency:`` of a plan."""

    loads: tuple[Share, ...]
    duration_s: Seconds
    repetitions: Count = 1
    probe_rate_pps: Rate = 1000
    v2v_pps: Rate = 1_000_000
    rates_pps: tuple[Annotated[float, BeforeValidator(lambda value: parse_rate(str(value)))], ...] = ()
    anatomy: bool = False

    def record(self) -> LatencyPlan:
        """The frozen record."""
        return LatencyPlan(
            _once(self.loads),
            self.duration_s,
            self.repetitions,
            self.probe_rate_pps,
            self.v2v_pps,
            _once(self.rates_pps),
            self.anatomy,
        )


class LeftOutModel(_Closed):
    """An entry of ``left_out:`` of a plan: a table or figure of a paper that it does not reproduce."""

    what: Annotated[str, Field(min_length=1)]
    reason: Annotated[str, Field(min_length=1)]

    def record(self) -> Skipped:
        """The frozen record."""
        return Skipped(self.what, self.reason)


class PartModel(_Closed):
    """An entry of ``parts:`` of a plan: its name, what it is for, and what differs from the keys of the plan."""

    name: Name
    purpose: Annotated[str, Field(alias="for")] = ""
    scenarios: Any = None
    directions: Any = None
    frame_sizes_bytes: Any = None
    chain_lengths: Any = None
    vnf_counts: Any = None
    chains: Any = None
    hosting: Any = None
    traffic: Any = None
    latency: dict[str, Any] = {}

    def document(self, common: dict[str, Any]) -> dict[str, Any]:
        """A plan of this part alone; its values are checked there. Its latency keys go over those of the plan."""
        own = self.model_dump(exclude_none=True, exclude={"purpose", "latency"})
        latency = common.get("latency", {})
        return {**common, **own, "latency": {**latency, **self.latency} if isinstance(latency, dict) else latency}


class PlanModel(_Closed):
    """A plan file, or one part of it with the keys that all have in common."""

    version: Literal[1]
    name: Name
    description: str = ""
    switches: OneOrMore[Annotated[str, Field(min_length=1)]]
    scenarios: OneOrMore[Annotated[ScenarioName, BeforeValidator(lambda value: parse_scenario(str(value)))]]
    directions: OneOrMore[Annotated[Direction, BeforeValidator(lambda value: parse_direction(str(value)))]] = (
        "unidirectional",
        "bidirectional",
    )
    frame_sizes_bytes: OneOrMore[Annotated[int, BeforeValidator(lambda value: parse_frame_size(_plain(value)))]]
    chain_lengths: OneOrMore[Annotated[int, BeforeValidator(lambda value: parse_chain_length(_plain(value)))]] = (1,)
    vnf_counts: OneOrMore[Annotated[int, BeforeValidator(lambda value: parse_vnf_count(_plain(value)))]] = (1,)
    chains: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    wire: WireName = "virtio"
    hosting: OneOrMore[Annotated[Hosting, BeforeValidator(lambda value: parse_hosting(str(value)))]] = ("process",)
    ring_size: Annotated[RingSize, BeforeValidator(check_ring_size)] = 256
    switch_cores: Annotated[SwitchCores, BeforeValidator(check_switch_cores)] = 1
    missing_switches: MissingSwitches = "error"
    throughput: ThroughputModel
    latency: LatencyModel
    search: SearchModel = SearchModel()
    band: Band | None = None
    traffic: OneOrMore[Annotated[str, Field(min_length=1)]] = (PLAIN_NAME,)
    seed: Annotated[int, Field(ge=0)] = 1
    time_budget_s: Annotated[float, Field(gt=0)] | None = None
    papers: tuple[Name, ...] = ()
    left_out: tuple[LeftOutModel, ...] = ()

    @field_validator("hosting", mode="before")
    @classmethod
    def _one_hosting(cls, value: object) -> object:
        """``hosting: vm`` is a list of one."""
        return (value,) if isinstance(value, str) else value

    def record(self) -> Plan:
        """The frozen record; a value named twice counts once, except for a switch."""
        return Plan(
            name=self.name,
            description=self.description,
            switches=self.switches,
            scenarios=_once(self.scenarios),
            directions=_once(self.directions),
            frame_sizes_bytes=_once(self.frame_sizes_bytes),
            chain_lengths=self._lengths(),
            vnf_counts=_once(self.vnf_counts),
            throughput=self.throughput.record(),
            latency=self.latency.record(),
            seed=self.seed,
            wire=self.wire,
            hosting=self.hosting[0],
            more_hostings=_once(self.hosting)[1:],
            ring_size=self.ring_size,
            switch_cores=self.switch_cores,
            missing_switches=self.missing_switches,
            time_budget_s=self.time_budget_s,
            search=self.search.record(),
            band=self.band,
            chains=_once(self.chains),
            traffic=parse_all(self.traffic),
            papers=_once(self.papers),
            left_out=tuple(entry.record() for entry in self.left_out),
        )

    def _lengths(self) -> tuple[int, ...]:
        """Chains of l2fwd: where chains are named, only those that are asked for."""
        return () if self.chains and "chain_lengths" not in self.model_fields_set else _once(self.chain_lengths)


def plan_from_document(document: object, source: str, folder: Path | None = None) -> Plan:
    """A Plan from parsed YAML. UsageError: ``source``, the key, its value, and what is valid.

    ``folder`` is where relative paths of chains begin: that of the plan's file (default: the working directory).
    """
    if not isinstance(document, dict):
        raise UsageError(f"{source}: a plan is a mapping of keys: version, name, switches, ...")
    made = _of_parts if "parts" in document else _flat
    return made(document, source, folder or Path.cwd())


def _of_parts(document: dict[str, Any], source: str, folder: Path) -> Plan:
    """A plan of several matrices: each part is checked as a plan of its own, of its keys and those of the plan."""
    given = document["parts"]
    if not (isinstance(given, list) and given):
        raise UsageError(f"{source}: parts is a list of mappings: name, for, and what differs from the plan's keys")
    models = [_validated(PartModel, entry, f"{source}: parts.{n}") for n, entry in enumerate(given)]
    whole = {key: document.get(key) for key in ("name", *document) if key != "parts"}
    common = {key: value for key, value in whole.items() if key not in OF_THE_WHOLE}
    first = _flat({**models[0].document(common), **_only(whole, OF_THE_WHOLE)}, source, folder)
    parts = [
        replace(_flat(model.document(common), f"{source}: part {model.name}", folder), purpose=model.purpose)
        for model in models
    ]
    try:
        return with_parts(first, parts)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def _flat(document: dict[str, Any], source: str, folder: Path) -> Plan:
    """A plan of one matrix."""
    if document.get("chains") and "scenarios" not in document:
        document = {**document, "scenarios": [*scenarios_with("chain")[:1]]}
    model = _validated(PlanModel, document, source)
    try:
        return with_chains(model.record(), folder)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def _validated(kind: type[M], document: object, source: str) -> M:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        # An unknown key first: where one is misspelt, the right one is missing too, and that is the lesser news.
        details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        raise _usage_error(details[0], source, kind) from None
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def _only(document: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key in keys}


def with_chains(plan: Plan, folder: Path) -> Plan:
    """The plan with absolute paths in its chains. UsageError for a chain that is not valid, or has no place."""
    if plan.chains and not any(scenario_named(scenario).has_vnfs for scenario in plan.scenarios):
        names = " and ".join(scenarios_with("chain"))
        raise UsageError(f'chain "{plan.chains[0]}": only {names} has a chain; add {names} to the scenarios')
    several = [chain for chain in plan.chains if len(vnf_texts(chain, 0)) > 1]
    if several and not scenarios_with("chain", plan.scenarios):
        raise UsageError(f'chain "{several[0]}": VNFs side by side are of one function each; name one of it')
    return replace(plan, chains=_once(tuple(resolve_chain(chain, folder) for chain in plan.chains)))


def _usage_error(detail: ErrorDetails, source: str, kind: type[_Closed]) -> UsageError:
    """One sentence for the first thing that pydantic found."""
    path = ".".join(map(str, detail["loc"]))
    if detail["type"] == "extra_forbidden":
        model = _model_at(detail["loc"][:-1], kind)
        return UsageError(f"{source}: {unknown('key', path, [*_full_keys(model, detail['loc'][:-1])])}")
    if detail["type"] == "missing":
        return UsageError(f"{source}: key {path} is missing; add it")
    return UsageError(f'{source}: {path}: "{detail["input"]}" is not valid: {detail["msg"]}')


def _model_at(location: tuple[int | str, ...], kind: type[_Closed]) -> type[_Closed]:
    sections: dict[tuple[int | str, ...], type[_Closed]] = {
        ("throughput",): ThroughputModel,
        ("latency",): LatencyModel,
        ("search",): SearchModel,
    }
    return sections.get(location, kind)


def _full_keys(model: type[_Closed], location: tuple[int | str, ...]) -> list[str]:
    prefix = "".join(f"{part}." for part in location)
    return [prefix + (field.alias or key) for key, field in model.model_fields.items()]


def _once(values: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _plain(value: Any) -> str | int:
    """What the parsers of sizes take; a float or a bool goes in as its text and is refused there by name."""
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)
