# SPDX-License-Identifier: BSD-3-Clause
"""VALE: the learning switch of netmap's kernel module, one for each cross-connect.

conext19 has VALE with ptnet, which gives a virtual machine the rings of a port of VALE; that takes a patched hypervisor
and is not here. Here VNFs, and the tester on the wire ``netmap``, open such a port themselves. VALE has no thread: a
frame is forwarded by the system call of its sender.

On the wire ``veth`` netmap takes each frame where the Linux bridge would (its emulated mode), or in the driver of a NIC
that knows netmap. So a kernel thread on the switch's core forwards it, as of the other switches in the kernel
(``kernel.py``).
"""

from __future__ import annotations

import platform
import sys
from functools import partial
from pathlib import Path

from planebench.host import netns, procfs
from planebench.host.process import Process, Supervisor, on_failure, wait_ready
from planebench.host.programs import PATH_OPTION, Found, NotFound, required
from planebench.model.errors import StartError
from planebench.switches import common, vale_guard
from planebench.switches.adapter import RunningSwitch, Situation, Traits
from planebench.switches.kernel import VETH_RING_SIZE, KernelAdapter, PortPairs, has_core
from planebench.testbed.request import SwitchRequest, VnfInterface
from planebench.testbed.wires.netmap import vale_name

DEVICE = Path("/dev/netmap")
MODULE = Path("/sys/module/netmap")
PLACES = ("/usr/local/bin/vale-ctl", "/opt/netmap/build-apps/vale-ctl/vale-ctl")
MITIGATED_NS = 32768
"""From this value on netmap's emulated mode forwards in a timer, in hard interrupt context (netmap_generic.c)."""
ATTACH_DEADLINE_S = 30.0
"""The first attachment takes netmap's memory: up to 1.6 GB with the module's defaults."""
LOAD = "`insmod netmap.ko buf_num=98304 generic_mit=0 max_bridges=64`"
"""Buffers for 16 interfaces of the module's other defaults, of which each takes about 5500; and a switch for each
cross-connect of scenarios that are up at the same time: 8 are too few."""


class ValeAdapter(KernelAdapter):
    name = "vale"
    title = "VALE (netmap)"
    remedy = (
        f"build github.com/luigirizzo/netmap with its vale-ctl, and load it: {LOAD}; PLANEBENCH_VALE=/path/to/netmap"
    )
    traits = Traits(
        "self-contained",
        "structured",
        ("interrupt",),
        "ptnet in conext19, netmap here",
        "low",
        ("C",),
        "virtual L2 Ethernet",
    )
    wires = frozenset({"netmap", "veth"})
    vnf_interface: VnfInterface = "netmap"
    takes_nics = True
    options = (PATH_OPTION,)
    function = "learning: one VALE switch of two ports for each cross-connect"

    def find(self) -> Found | NotFound:
        """Look for ``vale-ctl`` and the module's device. The module has a version only if it was built with one."""
        program = self.installation().program("vale-ctl", PLACES)
        if program is None:
            return NotFound(self.remedy)
        if not DEVICE.exists():
            return NotFound(f"vale-ctl is here, but netmap is not loaded (no {DEVICE}): {LOAD}")
        version = procfs.read_text(MODULE / "version") or "unknown version"
        return Found(f"{version} (Linux {platform.release()})", program)

    def refusal(self, situation: Situation) -> str:
        if not has_core():
            return f"vale is reached through {DEVICE}, which requires root; use sudo"
        return super().refusal(situation)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """Return the settings of a kernel switch with netmap's rings and buffers.

        What an interface receives in netmap's emulated mode is forwarded frame by frame.
        """
        clients = {port.ring_size for port in request.ports if port.kind == "netmap"}
        attached = len(clients) == 0 or any(port.kind != "netmap" for port in request.ports)
        shown = {name: parameter(name) for name in ("generic_ringsize", "buf_num", "buf_size", "generic_mit")}
        rings, buffers, size, delay = ("unknown" if it is None else str(it) for it in shown.values())
        own = super().settings(request)
        nics = attached and request.netns_pid is None
        forwarding = ["those of the NICs' interrupts" if nics else own["cores"]] * attached
        forwarding += ["those of tester and VNFs, for what they send"] * bool(clients)
        ring_sizes = ["the NIC's" if nics else f"{VETH_RING_SIZE} (veth's, fixed), {rings} (netmap's)"] * attached
        return {
            **own,
            "cores": "; ".join(forwarding),
            "nic_driver": ("the kernel's, of the NIC" if nics else own["nic_driver"]) if attached else "netmap",
            "vnf_interface": "netmap (a port of VALE)",
            "burst": "; ".join(["1"] * attached + ["the sender's"] * bool(clients)),
            "ring_size": "; ".join([*ring_sizes, *(f"{size} (of a port of VALE)" for size in sorted(clients))]),
            "memory": "the kernel's (netmap allocates it)",
            "buffers": f"{buffers} of {size} bytes",
            "generic_mit_ns": delay,
        }

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        """Attach the interfaces. A port of VALE needs nothing: whoever opens it makes it."""
        check_parameters()
        if all(port.kind == "netmap" for port in common.prepared(self, request)[1]):
            return RunningSwitch()
        return super().start(request, supervisor)

    def connect(self, request: SwitchRequest, supervisor: Supervisor, pairs: PortPairs) -> Process:
        """Attach the interfaces of each pair to a VALE switch; the guard detaches them when its standard input ends."""
        argv = [sys.executable, "-I", "-S", vale_guard.__file__, str(required(self.title, self.find()).binary)]
        guard = supervisor.spawn(
            "vale-guard",
            [*argv, *attachments(pairs)],
            cpus=request.control_cpus,
            workdir=request.workdir,
            pipe_stdin=True,
            netns_pid=request.netns_pid,
            high_priority=False,
        )
        try:
            with on_failure(partial(guard.terminate, ATTACH_DEADLINE_S)):
                wait_ready(self.title, lambda: guard.log_tail(1) == "ready", [guard], ATTACH_DEADLINE_S)
        except StartError as error:
            more = f"`dmesg` shows netmap's reason; for want of memory reload it: {LOAD}"
            raise StartError(f"{error}\n{more}") from error
        return guard


def attachments(pairs: PortPairs) -> list[str]:
    """Return SWITCH:INTERFACE for each interface in the pairs; the other port of a pair may be one of VALE."""
    found = []
    for pair in pairs:
        switch = next((port.partition(":")[0] for port in pair if ":" in port), None) or vale_name()
        found += [f"{switch}:{port}" for port in pair if ":" not in port]
    return found


def check_parameters() -> None:
    """Raise StartError if netmap's buffers are too small for our frames, or if its emulated mode would wait for a
    timer.

    A parameter that cannot be read is not checked.
    """
    size, delay_ns = parameter("buf_size"), parameter("generic_mit")
    if size is not None and size < netns.MTU_BYTES:
        raise StartError(
            f"netmap's buf_size is {size} bytes, less than the MTU of {netns.MTU_BYTES} of the veth wire, and netmap "
            f"refuses such an interface; reload it: `rmmod netmap`, {LOAD}"
        )
    if delay_ns is not None and delay_ns >= MITIGATED_NS:
        raise StartError(
            f"netmap's generic_mit is {delay_ns} ns: it would forward in a timer interrupt, on any core, and the "
            f"kernel warns about it; `echo 0 > {MODULE}/parameters/generic_mit`"
        )


def parameter(name: str) -> int | None:
    """Return a parameter of the loaded module; None if it does not exist or is not a number."""
    text = (procfs.read_text(MODULE / "parameters" / name) or "").strip()
    return int(text) if text.isascii() and text.isdecimal() else None


ADAPTER = ValeAdapter()
