# SPDX-License-Identifier: BSD-3-Clause
"""``planebench capacity``: how many VNFs a server carries, by ic16's model and by what a run measured."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.node_capacity import (
    Carried,
    OverProvisioned,
    PathCost,
    Server,
    carried,
    node_capacity,
    over_provisioned,
    path_costs,
)
from planebench.cli.options import complain, print_json, print_table
from planebench.host.facts import collect
from planebench.model.errors import INCONCLUSIVE, UsageError
from planebench.model.words import (
    NOTHING,
    estimate,
    listed,
    load_words,
    mpps,
    percent,
    point_words,
    printable,
    several,
)
from planebench.report.setup import switch_cores
from planebench.store import find_run, read_run
from planebench.testbed.rates import parse_rate, rate_label

VFS_OF_A_PORT = 63
"""Virtual functions of a port of ic16's NIC (82599), where the host has no NIC that tells."""


def capacity(
    run: str | None,
    runs: Path | None,
    *,
    ports: int | None,
    vfs: int | None,
    lcores: int | None,
    sockets: int | None,
    reserved: int,
    rate: str,
    json: bool,
) -> int:
    """Print the capacity of a server, of this host where an option is not given. Raises UsageError for bad numbers.

    Return the exit code: INCONCLUSIVE where ``run`` has no figure to compute with.
    """
    server, assumed = _server(ports, vfs, lcores, sockets, reserved)
    found, pps = node_capacity(server), parse_rate(rate)
    costs: tuple[PathCost, ...] = ()
    most: tuple[Carried, ...] = ()
    over: tuple[OverProvisioned, ...] = ()
    measured_on = ""
    if run is not None:
        stored = read_run(find_run(runs, run))
        derived = Derived(stored)
        costs = path_costs(derived, lambda label: switch_cores(stored, label))
        most = carried(derived.results)
        over = over_provisioned(derived, stored.header.plan.ring_size)
        there = stored.header.switch_host
        measured_on = str((there.host if there else stored.header.host).get("cpu_model") or "an unknown CPU")
    if json:
        print_json(
            {
                "server": asdict(server),
                "assumed": list(assumed),
                "capacity": asdict(found),
                "pps_per_vnf": pps,
                "measured_on": measured_on,
                "paths": [
                    {
                        "switch": it.point.switch,
                        "path": point_words(it.point),
                        "point": cell_id(it.point),
                        "pps_per_core": it.pps_per_core,
                        "low_pps_per_core": it.low,
                        "high_pps_per_core": it.high,
                        "is_bound": it.is_bound,
                        "capacity_pps_per_core": it.capacity,
                        "gbps_per_core": it.gbps_per_core,
                        "cycles_per_frame": it.cycles_per_frame,
                        "vnfs_of_one_core": it.vnfs(1, pps),
                        "vnfs_of_all_cores": it.vnfs(server.vnf_cores, pps),
                    }
                    for it in costs
                ],
                "carried": [asdict(it) for it in most],
                "over_provisioned": [asdict(it) | {"point": it.point.point_id} for it in over],
            }
        )
    else:
        kept = f", {server.reserved} of them reserved" if server.reserved else ""
        functions = f"{several(server.ports, 'port')} x {several(server.vfs_per_port, 'virtual function')}"
        print(f"{functions}, {several(server.lcores, 'logical core')}{kept}, {several(server.sockets, 'socket')}")
        print(f"  in all      {found.vnfs} VNFs, each with a core of its own; limit: {found.limit}")
        print(f"  per port    {found.per_port}")
        print(f"  per socket  {found.per_socket}: near the NIC of that socket")
        if assumed:
            print(f"assumed, because no NIC tells: {listed(assumed)}")
        if costs:
            _print_costs(costs, server, pps, measured_on)
        for carrier in most:
            print(
                f"measured: {printable(carrier.switch)} carried {carrier.vnfs} x {printable(carrier.chain)} "
                f"at {load_words(carrier.load)}, {carrier.frame_size_bytes} B"
            )
        for it in over:
            where = f"{printable(it.point.switch)} {point_words(it.point)} on {several(it.cores, 'core')}"
            print(f"over-provisioned: {where} lost {percent(it.loss)}, by time slices {percent(it.expected)}")
    if run is not None and not (costs or most):
        complain(f"run {run} has no throughput, so the cost of a frame is not known")
        return INCONCLUSIVE
    return 0


def _server(
    ports: int | None, vfs: int | None, lcores: int | None, sockets: int | None, reserved: int
) -> tuple[Server, tuple[str, ...]]:
    """Return the server of the options; what they lack is that of this host, or is assumed, in words."""
    facts = collect()
    physical = [nic for nic in facts.nics if nic.physical is None]
    possible = [nic.vfs_possible for nic in physical if nic.vfs_possible]
    assumptions = (
        ("1 port", ports is None and not physical),
        (f"{VFS_OF_A_PORT} virtual functions a port (ic16)", vfs is None and not possible),
    )
    server = Server(
        len(physical) or 1 if ports is None else ports,
        min(possible, default=VFS_OF_A_PORT) if vfs is None else vfs,
        len(facts.cpus_allowed) if lcores is None else lcores,
        max(len(facts.nodes(facts.cpus_online)), 1) if sockets is None else sockets,
        reserved,
    )
    if server.reserved >= server.lcores:
        raise UsageError(
            f"--reserved: {reserved} of {server.lcores} logical cores leave none for VNFs; give fewer, or --lcores"
        )
    return server, tuple(words for words, is_assumed in assumptions if is_assumed)


def _print_costs(costs: tuple[PathCost, ...], server: Server, pps: float, measured_on: str) -> None:
    where = f"by the cores of the switch, measured on {printable(measured_on)}"
    print(f"\nVNFs (or chains of them) that receive {rate_label(pps)} each, {where}:")
    rows = []
    for it in costs:
        known = it.capacity and estimate(math.sqrt(it.capacity[0] * it.capacity[1]), *it.capacity)
        error = f"±{math.sqrt(it.high / it.low) - 1:.0%}" if it.low and it.high else ""
        rate = " ".join(filter(None, (("≥" if it.is_bound else "") + mpps(it.pps_per_core), known or error)))
        carried = (_vnfs(it.vnfs(cores, pps)) for cores in (1, server.vnf_cores))
        rows.append((point_words(it.point), it.point.switch, rate, f"{it.gbps_per_core:.1f}", *carried))
    print_table(("path", "switch", "Mpps/core", "Gb/s", "VNFs/core", f"{server.vnf_cores} cores"), rows)


def _vnfs(ends: tuple[int, int | None] | None) -> str:
    if ends is None:
        return NOTHING
    least, most = ends
    return f"≥{least}" if most is None else f"{least}" if most == least else f"{least} to {most}"
