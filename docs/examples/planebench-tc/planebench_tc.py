# SPDX-License-Identifier: BSD-3-Clause
"""Linux tc as a switch: a filter on each interface redirects every frame to the other (docs/adding-a-switch.md)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from planebench.switches import common, kernel
from planebench.switches.base import (
    PATH_OPTION,
    Adapter,
    Found,
    NotFound,
    Option,
    Situation,
    Supervisor,
    SwitchRequest,
    Traits,
    VnfInterface,
)
from planebench.switches.common import manifest

FILTERS = {"u32": "u32 match u32 0 0", "matchall": "matchall"}


class TcAdapter(Adapter):
    """``tc-redirect``."""

    name = "tc-redirect"
    title = "Linux tc redirect"
    remedy = "install iproute2: `apt-get install iproute2`"
    wires = frozenset({"veth"})
    vnf_interface: VnfInterface = "veth"
    traits = Traits("modular", "match/action", ("interrupt",), "veth", "medium", ("C",), "the kernel's traffic control")
    options: tuple[Option, ...] = (
        PATH_OPTION,
        Option("filter", "text", "classifier that matches all", "u32", choices=tuple(FILTERS)),
    )

    def find(self) -> Found | NotFound:
        """Look for ``tc`` and its version."""
        binary = self.installation().program("tc")
        if binary is None:
            return NotFound(self.remedy)
        done = subprocess.run([str(binary), "-V"], capture_output=True, text=True, timeout=10)
        return Found(done.stdout.strip().removeprefix("tc utility, "), binary)

    def refusal(self, situation: Situation) -> str:
        """Return why it cannot be measured: it needs root, and kernel interfaces."""
        if not kernel.has_core():
            return "tc-redirect gives its forwarding a core of its own, which requires root; use sudo"
        return super().refusal(situation)

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        """Return the test conditions for the report."""
        return manifest(
            request,
            function=f"match/action: {self.value('filter', 'u32')} and mirred redirect",
            burst=str(kernel.NAPI_WEIGHT),
            **kernel.TERMS,
        )

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> kernel.RunningKernel:
        """Give the forwarding its core, then set the filters. Raises StartError, UsageError or NotInstalledError."""
        found, pairs = common.prepared(self, request)
        ports = {port.name: port.interface for port in pairs}
        switch = kernel.RunningKernel(self.title, ports, request, supervisor)
        try:
            switch.place()
            batch = self._batch(request, ports)
            kernel.in_namespace("tc", [str(found.binary), "-batch", str(batch)], request, supervisor)
        except BaseException:
            switch.stop()
            raise
        return switch

    def _batch(self, request: SwitchRequest, ports: dict[str, str]) -> Path:
        """Write the commands to a file in the switch's working folder."""
        ways = [(ports[a], ports[b]) for pair in request.cross_connects for a, b in (pair, pair[::-1])]
        match = FILTERS[self.value("filter", "u32")]
        lines = [f"qdisc add dev {source} clsact" for source, _ in ways]
        lines += [
            f"filter add dev {source} ingress protocol all {match} action mirred egress redirect dev {target}"
            for source, target in ways
        ]
        batch = request.workdir / "tc.batch"
        batch.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return batch


ADAPTER = TcAdapter()
