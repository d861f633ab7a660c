# SPDX-License-Identifier: BSD-3-Clause
"""The conditions under which a switch runs, read from a live topology: planed's ports.get, the scheduler, cpufreq."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planebench.host.scheduling import thread_conditions
from planebench.model.conditions import Conditions, PortConditions, Side, ThreadConditions
from planebench.model.errors import PlanebenchError
from planebench.model.hosting import HostingFacts
from planebench.model.quantity import utc_now
from planebench.model.topology import Topology
from planebench.model.wire import wire_name, wire_named
from planebench.planed.statistics import PortState
from planebench.wiring.adapter import RunningSwitch
from planebench.wiring.remote import RemoteSwitch


def read_conditions(
    topology: Topology,
    wire: str,
    switch: RunningSwitch,
    ports: Callable[[], Sequence[PortState]],
    hosting: tuple[HostingFacts, ...] = (),
    xdp_mode: Callable[[], str] = str,
) -> Conditions:
    """Return the present conditions of a running, not paused switch.

    ``ports`` asks the tester (``ports.get``). ``hosting`` are the facts of the hosted VNFs. ``xdp_mode`` asks the
    kernel for the mode of AF_XDP sockets.

    Never raises: what cannot be read is unknown, with the reason in ``problem``. The caller fills in label and start.
    """
    problems: list[str] = []
    found: tuple[PortConditions, ...] = ()
    threads: tuple[ThreadConditions, ...] | None = None
    try:
        found = port_conditions(ports(), topology, nics=not wire_named(wire).replaces_nics)
    except (PlanebenchError, KeyError, TypeError, ValueError) as error:
        problems.append(f"ports of the tester: {error!r}")
    try:
        threads = switch.thread_conditions() if isinstance(switch, RemoteSwitch) else threads_of(switch)
    except PlanebenchError as error:
        problems.append(f"threads of the switch: {error}")
    mode = ""
    try:
        mode = xdp_mode()
    except (PlanebenchError, OSError, ValueError) as error:
        problems.append(f"mode of the AF_XDP sockets: {error}")
    return Conditions(
        switch="",
        scenario=topology.scenario,
        chain_length=topology.chain_length,
        wire=wire_name(wire),
        start=0,
        measured_at=utc_now(),
        chain=topology.chain,
        ports=found,
        threads=threads,
        hosting=hosting,
        af_xdp=mode,
        problem="; ".join(problems),
    )


def threads_of(switch: RunningSwitch) -> tuple[ThreadConditions, ...]:
    """Return how this host schedules the polling threads of a switch. Raises DiedError."""
    read = [thread_conditions(thread.pid, thread.tid, thread.name) for thread in switch.polling_threads()]
    return tuple(thread for thread in read if thread is not None)


def port_conditions(
    ports: Sequence[PortState], topology: Topology, *, nics: bool = False
) -> tuple[PortConditions, ...]:
    """Return the ports of ``ports.get`` of the tester, in the order of the topology. Unknown values are None.

    ``nics``: the wires are NICs, so that the speeds of their links are real."""
    told = {port["name"]: port for port in ports}
    return tuple(
        _port(port.side, told[port.name], nics and port.side == "wire") for port in topology.ports if port.name in told
    )


def _port(side: Side, told: PortState, nic: bool) -> PortConditions:
    virtio = told.get("virtio")
    return PortConditions(
        name=told["name"],
        side=side,
        kind=_kind(told),
        driver=told.get("driver", ""),
        queues=told.get("queues"),
        ring_sizes=None if virtio is None else tuple(size for size in virtio["ring_sizes"] if size),
        features=None if virtio is None else tuple(virtio["features"]),
        speed_mbps=told.get("speed_mbps") if nic else None,
    )


def _kind(told: PortState) -> str:
    """Return ``vhost-user`` or ``virtio-user``; for a DPDK device its driver: ``net_memif``, ``net_af_packet``."""
    return str(told.get("driver") or "ethdev") if told["kind"] == "ethdev" else str(told["kind"])
