# SPDX-License-Identifier: BSD-3-Clause
"""Which paths of a plan take a setting up. One that a path ignores, or that none takes up, is an error of the plan.

Only what somebody said is asked for: the keys of a document, the options of a command. Defaults may lie idle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace

from planebench.model.errors import UsageError
from planebench.model.plan import Plan, SearchPlan, has_line
from planebench.model.records import Point
from planebench.model.scenario import Scenario, scenario_named
from planebench.model.traffic import TrafficProfile
from planebench.model.wire import wire_named
from planebench.plan.expand import points_of
from planebench.testbed.chain import parse_chain


@dataclass(frozen=True, slots=True)
class PlanPath:
    """A point of a plan, as the rules ask for it."""

    plan: Plan
    point: Point

    @property
    def known(self) -> Scenario:
        """Return its scenario."""
        return scenario_named(self.point.scenario)

    @property
    def vnf_ports(self) -> bool:
        """Return whether the switch has ports of VNFs."""
        return bool((self.known.has_vnfs and not self.known.bare) or self.known.ends_in_vnfs)

    @property
    def profile(self) -> TrafficProfile:
        """Return its traffic."""
        return self.plan.profile(self.point.traffic)

    @property
    def on_line(self) -> bool:
        """Return whether it has a wire whose speed is known."""
        nics = not wire_named(self.plan.wire).replaces_nics
        known = self.plan.throughput.line_bps is not None or nics
        return known and has_line(self.point.scenario, self.profile)

    @property
    def asks_the_plan(self) -> bool:
        """Return whether the plan says how one of its VNFs collects frames: one of planed, whose text does not."""
        if self.plan.latency.wanted and self.point.echoes("latency"):
            return True
        if not self.known.has_vnfs:
            return False
        functions = parse_chain(self.point.chain) if self.point.chain else ()
        return not functions or any(not it.own and not it.sending() for it in functions)


TakenUp = bool | str
"""Whether a path takes a setting up; False where it is not about that path; a text says why it is ignored there."""
Rule = Callable[[PlanPath], TakenUp]


def _ring_size(path: PlanPath) -> TakenUp:
    own = wire_named(path.plan.wire).own_rings
    return path.vnf_ports or (path.known.wired and path.plan.wire_ring_size is None and not own)


def _wire_ring_size(path: PlanPath) -> TakenUp:
    wire = wire_named(path.plan.wire)
    if path.known.wired and wire.own_rings:
        return f"wire {wire.name} has rings of its own"
    return path.known.wired


def _traffic(path: PlanPath) -> TakenUp:
    lines = path.plan.throughput.line_bps is not None or not wire_named(path.plan.wire).replaces_nics
    return lines or not path.profile.closed_loop or "plain frames are a closed loop where links have no speed (--line)"


def _line(path: PlanPath) -> TakenUp:
    if path.plan.throughput.max_rate_pps is not None:
        return "--max-rate and --line both say how much saturating trials send; leave out one"
    return has_line(path.point.scenario, path.profile)


def _open_loop(path: PlanPath) -> TakenUp:
    throughput = path.plan.throughput
    if not throughput.open_loop:
        return "a maximum rate is an open loop" if throughput.max_rate_pps is not None else True
    if throughput.max_rate_pps is not None or path.on_line:
        return True
    if not has_line(path.point.scenario, path.profile):
        return False
    return f"--open-loop needs a rate, and wire {path.plan.wire} has no line rate: add --line, e.g. 10G, or --max-rate"


RULES: Mapping[str, Rule] = {
    "ring_size": _ring_size,
    "wire_ring_size": _wire_ring_size,
    "send_burst": lambda path: path.asks_the_plan,
    "drain_us": lambda path: path.asks_the_plan and (path.plan.send_burst > 0 or "no VNF waits without send_burst"),
    "hosting": lambda path: bool(path.known.has_vnfs or path.known.ends_in_vnfs),
    "placements": lambda path: path.known.has_vnfs,
    "traffic": _traffic,
    "throughput.line_bps": _line,
    "throughput.open_loop": _open_loop,
    "latency.v2v_pps": lambda path: bool(path.plan.latency.loads) and path.known.latency_by_echo,
    "latency.anatomy": lambda path: path.plan.latency.wanted,
    **{
        f"search.{field.name}": lambda path: bool(path.plan.search.methods)
        for field in fields(SearchPlan)
        if field.name != "methods"
    },
}
"""Setting, as a document has it -> whether a path takes it up."""


def check_taken(plan: Plan, said: Iterable[str], names: Mapping[str, str] | None = None) -> None:
    """Raise UsageError for a setting of ``said`` that a path of the plan ignores, or that none of them takes up.

    ``names``: what the user called it, an option of the command.
    """
    paths = [
        PlanPath(section, point)
        for section in plan.sections
        for point in points_of(replace(section, switches=("planed",), only=()))
    ]
    if not paths:  # expand says why
        return
    for key in said:
        rule, name = RULES.get(key), (names or {}).get(key, key)
        if rule is None:
            continue
        answers = [rule(path) for path in paths]
        for path, answer in zip(paths, answers, strict=True):
            if isinstance(answer, str):
                raise UsageError(f"{name}: {path.point.scenario_label} ignores it: {answer}")
        if not any(answers):
            where = ", ".join(dict.fromkeys(path.point.scenario_label for path in paths))
            raise UsageError(f"{name}: nothing of {where} takes it up; leave it out")
