# SPDX-License-Identifier: BSD-3-Clause
"""Refuse, before anything starts, what a plan cannot ask of an external tester."""

from __future__ import annotations

from planebench.measure.runner import SelfMeasured
from planebench.model.cpu_clock import mhz_of
from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.model.scenario import scenario_named
from planebench.model.tester import is_external, is_tester_port
from planebench.model.wire import wire_arguments
from planebench.testers import get_tester
from planebench.wiring.adapter import Adapter
from planebench.wiring.wires.base import wire_kind

_CABLES = "pci:@PORT=NIC,@PORT=NIC, or veth:@PORT=INTERFACE,@PORT=INTERFACE"


def check_tester(plan: Plan) -> None:
    """Raise UsageError for a plan whose tester and wire do not fit, or that asks an external tester for what it cannot
    do."""
    kind = wire_kind(plan.wire)
    ports = [is_tester_port(cable.tester) for cable in kind.cables(wire_arguments(plan.wire))]
    if not is_external(plan.tester):
        if any(ports):
            raise UsageError(f'wire "{plan.wire}" names ports of an external tester: add --tester, e.g. otg:URL')
        return
    if not (kind.between_hosts and ports and all(ports)):
        raise UsageError(f'wire "{plan.wire}" has no end at tester {plan.tester}; give --wire {_CABLES}')
    names = [cable.tester for cable in kind.cables(wire_arguments(plan.wire))]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f'wire "{plan.wire}": {twice} is named twice; each end of a cable is a port of its own')
    rates = plan.throughput.max_rate_pps, plan.throughput.line_bps, get_tester(plan.tester).line_bps
    if rates == (None, None, None):
        raise UsageError(
            f"an external tester sends at a rate: give the speed of its links, --tester {plan.tester},line=10G or "
            "--line 10G, or --max-rate, e.g. 14.88M"
        )
    if any(part.latency.anatomy for part in plan.sections):
        raise UsageError("--anatomy needs the stamps of planed; leave out --tester")
    if plan.clock != "auto":
        raise UsageError(f"--clock {plan.clock} is for planed; an external tester has its own clock")


def external_refusal(plan: Plan, point: Point, adapter: Adapter) -> str:
    """Return why a point cannot be measured with an external tester; empty if it can."""
    if isinstance(adapter, SelfMeasured):
        return f"{adapter.name} simulates its tester, too"
    scenario = scenario_named(point.scenario)
    if scenario.has_vnfs or scenario.ends_in_vnfs or scenario.bare:
        return "planed drives the VNFs, and the tester is an external one, which measures p2p"
    if adapter.vnf_interface != "vhost-user":
        return f"{adapter.name} works on interfaces that planebench makes; an external tester has cables"
    if not plan.profile(point.traffic).plain:
        return f"an external tester sends plain frames, not traffic {point.traffic}"
    if mhz_of(point.cpu_clock) is not None:
        return "CPU clocks are set for planed's trials only; leave out --cpu-mhz"
    return ""
