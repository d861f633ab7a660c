# SPDX-License-Identifier: BSD-3-Clause
"""Findings on programs that were looked for: switches, and VNF hostings."""

from __future__ import annotations

import os

from planebench.doctor.finding import Finding
from planebench.host.planed_program import BROKEN_REMEDY, replaced_planed
from planebench.host.programs import Found, NotFound

KVM = "/dev/kvm"


def switch_finding(name: str, what: Found | NotFound) -> Finding:
    """Return the finding on a switch. planed is also the tester: nothing runs without it."""
    if isinstance(what, Found):
        text = f"{name} {what.version} ({what.binary})"
        if name == "planed" and (replaced := replaced_planed(what.binary)):
            planed, complaint = replaced
            text += f" stands in for {planed}, which does not start: {complaint}. It has no drivers of NICs and AF_XDP"
            return Finding(f"switch-{name}", "warning", text, BROKEN_REMEDY)
        return Finding(f"switch-{name}", "ok", text)
    if name == "planed":
        text = f"planed {what.problem}; it is also the traffic generator, so nothing can be measured"
        return Finding(f"switch-{name}", "problem", text, what.remedy)
    text = f"{name} {what.problem}; it will be skipped"
    return Finding(f"switch-{name}", "warning", text, what.remedy)


def hosting_finding(name: str, what: Found | NotFound) -> Finding:
    """Return the finding on a VNF hosting. Without it VNFs still run as tasks of the tester."""
    if isinstance(what, Found):
        return Finding(f"hosting-{name}", "ok", f'VNF hosting "{name}" available: {what.version}')
    return Finding(f"hosting-{name}", "warning", f'VNF hosting "{name}" not available', what.remedy)


def kvm_finding() -> Finding:
    """Return whether KVM can be opened. Before the first VM a guest is booted, and the run reports the outcome."""
    if os.access(KVM, os.R_OK | os.W_OK):
        return Finding("kvm", "ok", f"{KVM} is accessible: VMs use KVM if the probe guest boots")
    return Finding(
        "kvm",
        "warning",
        f"{KVM} cannot be opened: VMs are emulated, so only their packet counts are valid, not rates or latencies",
        "enable virtualization in the firmware, and run as root or as a member of group kvm",
    )
