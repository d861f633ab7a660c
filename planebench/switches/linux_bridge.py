# SPDX-License-Identifier: BSD-3-Clause
"""The Linux bridge: one for each cross-connect, as the kernel has it, without STP, snooping and netfilter."""

from __future__ import annotations

from planebench.switches.adapter import Traits
from planebench.switches.kernel import KernelAdapter


class LinuxBridgeAdapter(KernelAdapter):
    name = "linux-bridge"
    title = "Linux bridge"
    start_s = 23.0  # the kernel takes 20 s to let go of interfaces that poll
    remedy = "it is part of Linux: load it with `modprobe bridge`"
    traits = Traits("self-contained", "structured", ("interrupt",), "veth", "low", ("C",), "the kernel's own bridge")
    function = "learning: one bridge of two ports for each cross-connect"
    action = "bridge"


ADAPTER = LinuxBridgeAdapter()
