# SPDX-License-Identifier: BSD-3-Clause
"""Open vSwitch in userspace without DPDK: all ports are kernel interfaces (planebench.switches.ovs has the rest).

``io=afxdp``: AF_XDP sockets that a PMD thread polls. ``io=system``: packet sockets, which no PMD thread takes; the main
thread forwards, woken by the kernel, and runs on ``request.cpu``.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace

from planebench.host import procfs
from planebench.host.process import Process
from planebench.host.programs import PATH_OPTION
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches import common, ovs
from planebench.switches.adapter import Traits
from planebench.switches.common import manifest
from planebench.switches.ovs_counters import main_thread_cycles
from planebench.testbed.request import SwitchPort, SwitchRequest, VnfInterface

XDP_MODE = "generic"
"""The one that takes any MTU: native mode wants the other end of a veth pair below 3500 bytes, and OvS's best-effort
does not get to generic from there (the queue is still busy)."""
AFXDP_RING = "2048"
"""XSK_RING_*__DEFAULT_NUM_DESCS; OvS has no option for it."""


class OvsNetdevAdapter(ovs.OvsAdapter):
    """``ovs-netdev``: ``ovs-vswitchd``, userspace datapath, ports of type system or afxdp."""

    name = "ovs-netdev"
    title = "Open vSwitch in userspace, without DPDK"
    remedy = "install Open vSwitch: `apt-get install openvswitch-switch` (Debian, Ubuntu)"
    # Debian's build without DPDK first; a build with DPDK does not start DPDK unless configured.
    programs = (("ovs-vswitchd", "/usr/lib/openvswitch-switch/ovs-vswitchd", "/usr/local/sbin/ovs-vswitchd"),)
    wires = frozenset({"veth", "af_xdp"})
    kernel_ports = True
    vnf_interface: VnfInterface = "veth"
    options: tuple[Option, ...] = (
        PATH_OPTION,
        Option("io", "text", "packet sockets of the kernel, or AF_XDP", "system", ("system", "afxdp")),
    )
    traits = Traits("self-contained", "match/action", ("rtc",), "veth", "medium", ("C",), "SDN switch")

    def xdp_mode(self, request: SwitchRequest) -> str:
        """Return the mode of its AF_XDP sockets, by the option or on the wire af_xdp; empty with packet sockets."""
        wire = any(port.kind == "af_xdp" for port in request.ports)
        if not wire and self.value("io", "system") == "system":
            return ""
        return "native" if wire else XDP_MODE

    def interface(self, port: SwitchPort) -> str:
        return common.interface_name(port)

    def version(self, lines: tuple[str, ...]) -> str | None:
        return lines[0].rpartition(" ")[2] if lines and "Open vSwitch" in lines[0] else None

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        afxdp = self.xdp_mode(request)
        driver = f"AF_XDP ({afxdp})" if afxdp else "kernel interface, packet sockets (type system)"
        return manifest(
            request,
            function="match/action: one in_port flow each way, userspace datapath (netdev)",
            nic_driver=driver,
            vnf_interface=driver,
            burst=str(ovs.BURST),
            ring_size=AFXDP_RING if afxdp else "socket buffer, default size",
            buffers="one memory area per queue (umem)" if afxdp else "the kernel's",
            **common.offloads(request, mergeable_wires=False),
            caches=ovs.CACHES,
            idle_cycles="counted by the PMD thread" if afxdp else "elapsed time minus CPU time of the main thread",
            thread="a PMD thread, polling" if afxdp else "the main thread, woken by the kernel",
        )

    def running(
        self, vswitchd: Process, database: Process, paths: ovs.OvsPaths, request: SwitchRequest
    ) -> ovs.RunningOvs:
        if self.xdp_mode(request):
            return super().running(vswitchd, database, paths, request)
        return RunningOnMain(vswitchd, database, paths, request)

    def port_settings(self, number: int, port: SwitchPort, request: SwitchRequest) -> list[str]:
        mode = self.xdp_mode(request)
        return ["type=afxdp", f"options:xdp-mode={mode}"] if mode else []


class RunningOnMain(ovs.RunningOvs):
    """Packet sockets that the main thread serves, which sleeps without traffic."""

    thread_marks = ()

    def __init__(self, vswitchd: Process, database: Process, paths: ovs.OvsPaths, request: SwitchRequest) -> None:
        super().__init__(vswitchd, database, paths, request, kernel_ports=True)
        self._time = common.CpuTime([vswitchd.pid], request.tsc_hz)
        for tid in procfs.threads(vswitchd.pid):
            with contextlib.suppress(OSError):  # a helper that has just ended
                os.sched_setaffinity(tid, {request.cpu} if tid == vswitchd.pid else request.control_cpus)

    def counters(self) -> SwitchCycles:
        """Return counters of the main thread.

        OvS counts no cycles of this thread: busy cycles are its CPU time. They are unknown without the frequency of the
        TSC in the request.
        """
        counted = main_thread_cycles(self.ask("dpif-netdev/pmd-stats-show"), self.ports())
        busy, idle = self._time.cycles()
        return replace(counted, busy_cycles=busy, idle_cycles=idle)


ADAPTER = OvsNetdevAdapter()
