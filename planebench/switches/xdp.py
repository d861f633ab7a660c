# SPDX-License-Identifier: BSD-3-Clause
"""XDP: a program on each port that redirects every frame to the port it is connected to, through a devmap."""

from __future__ import annotations

from planebench.switches.adapter import Situation, Traits
from planebench.switches.kernel import KernelAdapter, has_core


class XdpAdapter(KernelAdapter):
    name = "xdp"
    title = "XDP redirect"
    start_s = 23.0  # the kernel takes 20 s to let go of interfaces that poll
    remedy = "it is part of Linux; it needs a kernel with BPF, and root"
    traits = Traits(
        "modular", "structured", ("interrupt",), "veth", "high", ("C", "BPF"), "programs in the kernel's drivers"
    )
    function = "patch: bpf_redirect_map() to a devmap"
    action = "redirect"

    def refusal(self, situation: Situation) -> str:
        if not has_core():
            return "xdp loads programs into the kernel, which requires root even in a user namespace; use sudo"
        return super().refusal(situation)


ADAPTER = XdpAdapter()
