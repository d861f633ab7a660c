# SPDX-License-Identifier: BSD-3-Clause
"""The embedded switch of a NIC: each VNF side by side has a virtual function, and the NIC finds it by its MAC address.

No process forwards. Frames come back by the cable on which they went out: a NIC does not switch between its ports.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from planebench.host import pci, pci_binding
from planebench.host.device_settings import IP_TIMEOUT_S, device_journal, device_path
from planebench.host.journal import Journal
from planebench.host.process import Supervisor, on_failure
from planebench.host.programs import Found, NotFound, find_program, run_tool
from planebench.model.conditions import FeatureClaim
from planebench.model.errors import DiedError, PlanebenchError
from planebench.model.records import SwitchCycles
from planebench.switches.adapter import Adapter, RunningSwitch, Situation, Traits
from planebench.switches.common import manifest
from planebench.testbed.request import SwitchRequest, VnfInterface


class SriovAdapter(Adapter):
    """``sriov``: the NIC at the switch's end of the first cable."""

    name = "sriov"
    title = "embedded switch of a NIC (SR-IOV)"
    remedy = "it needs a NIC whose driver makes virtual functions (`cat /sys/class/net/*/device/sriov_totalvfs`)"
    wires = frozenset({"pci"})
    vnf_interface: VnfInterface = "vf"
    options = ()
    is_program = False
    stations = True
    start_s = 15.0  # the drivers of the NIC are changed twice, and its link comes up
    traits = Traits(
        "self-contained", "match/action", (), "virtual functions", "low", ("hardware",), "the switch inside of a NIC"
    )

    def find(self) -> Found | NotFound:
        program = find_program("ip")
        if program is None:
            return NotFound("install iproute2, whose `ip` configures virtual functions")
        if not any(nic.vfs_possible for nic in pci.nics()):
            return NotFound(self.remedy)
        return Found(f"Linux {platform.release()}", program)

    def refusal(self, situation: Situation) -> str:
        if not situation.layout.side_by_side:
            return f"{self.name} connects VNFs side by side, not ports with each other; use scenario parallel"
        return super().refusal(situation)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        return manifest(
            request,
            function="virtual functions by their MAC addresses, in the NIC",
            cores="none",
            nic_driver="the kernel's (physical function)",
            vnf_interface="a virtual function each, driven by the VNF",
            burst="none",
            checksum_offload=FeatureClaim(None, None),
            segmentation_offload=FeatureClaim(None, None),
            mergeable_buffers=FeatureClaim(None, None),
            memory="none",
            buffers="the NIC's",
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningNic:
        nic = next(port.address for port in request.ports if port.kind == "pci")
        return RunningNic(nic, {station.port: station.mac for station in request.stations}, device_journal())


class RunningNic(RunningSwitch):
    """A NIC with its kernel driver and a virtual function for each of ``ports``, whose addresses they have.

    Raises UsageError, StartError.
    """

    def __init__(self, nic: str, ports: Mapping[str, str], journal: Journal) -> None:
        self.nic, self.ports = nic, tuple(ports)
        self._journal = journal
        self._was_bound = pci.nic(nic, journal.root).driver == pci.VFIO
        journal.undo_own({device_path(nic, "driver")})  # if this process bound it
        self._before = journal.owned()
        self._stopped = False
        with on_failure(self.stop):
            pci_binding.make_vfs(nic, len(ports), journal, macs=list(ports.values()))
            self._interface = pci.nic(nic, journal.root).interfaces[0]

    def counters(self) -> SwitchCycles:
        """Return what the NIC gave to virtual functions, took from them, and dropped; None where its driver does not
        tell."""
        functions = functions_of(self._interface)
        received = [it["rx"].get("packets") for it in functions.values() if "rx" in it]
        sent = [it["tx"].get("packets") for it in functions.values() if "tx" in it]
        return SwitchCycles(
            packets=sum(received) if received and None not in received else None,
            forwarded_packets=sum(sent) if sent and None not in sent else None,
            drops={
                f"{port}:nic_dropped": functions[number]["rx"]["dropped"]
                for number, port in enumerate(self.ports)
                if "dropped" in functions.get(number, {}).get("rx", {})
            },
        )

    def check(self) -> None:
        there = len(pci_binding.virtual_functions(self.nic, self._journal.root))
        if there < len(self.ports):
            raise DiedError(f"NIC {self.nic} has {there} of {len(self.ports)} virtual functions; `dmesg` may say why")

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        self._journal.undo_own(self._journal.owned() - self._before)
        if self._was_bound:
            with suppress(PlanebenchError):  # the run gives it back in any case
                pci_binding.bind([self.nic], self._journal)


def functions_of(interface: str) -> Mapping[int, Mapping[str, Any]]:
    """Return the counters ``rx`` and ``tx`` of each virtual function by number, as ``ip`` tells; empty without any."""
    output = run_tool(["ip", "-j", "-s", "-d", "link", "show", "dev", interface], IP_TIMEOUT_S).stdout
    try:
        (found,) = json.loads(output)
        return {function["vf"]: function.get("stats", {}) for function in found.get("vfinfo_list", [])}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


ADAPTER = SriovAdapter()
