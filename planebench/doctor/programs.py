# SPDX-License-Identifier: BSD-3-Clause
"""Describe what doctor says of programs that were looked for: switches, and what VNFs run in."""

from __future__ import annotations

import os

from planebench.doctor.finding import Finding
from planebench.host.programs import Found, NotFound

KVM = "/dev/kvm"


def switch_finding(name: str, what: Found | NotFound) -> Finding:
    """planed is the tester too: nothing runs without it. Any other switch that is missing stays out of comparisons."""
    if isinstance(what, Found):
        return Finding(f"switch-{name}", "ok", f"{name} {what.version} ({what.binary})")
    if name == "planed":
        text = f"planed {what.problem}; it is also the traffic generator, so nothing can be measured"
        return Finding(f"switch-{name}", "problem", text, what.remedy)
    text = f"{name} {what.problem}; it will be skipped"
    return Finding(f"switch-{name}", "warning", text, what.remedy)


def hosting_finding(name: str, what: Found | NotFound) -> Finding:
    """Without it VNFs still run as tasks of the tester."""
    if isinstance(what, Found):
        return Finding(f"hosting-{name}", "ok", f'VNF hosting "{name}" available: {what.version}')
    return Finding(f"hosting-{name}", "warning", f'VNF hosting "{name}" not available', what.remedy)


def kvm_finding() -> Finding:
    """Report whether KVM can be opened. A guest is booted before the first VM, and the run says what came of it."""
    if os.access(KVM, os.R_OK | os.W_OK):
        return Finding("kvm", "ok", f"{KVM} is accessible: VMs use KVM if the probe guest boots")
    return Finding(
        "kvm",
        "warning",
        f"{KVM} cannot be opened: VMs are emulated, so only their packet counts are valid, not rates or latencies",
        "enable virtualization in the firmware, and run as root or as a member of group kvm",
    )
