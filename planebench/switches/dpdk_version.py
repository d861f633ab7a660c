# SPDX-License-Identifier: BSD-3-Clause
"""The DPDK version of a program without ``--version``: EAL prints it at the start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from planebench.host.programs import program_output

ASK = ("-v", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m8", "--", "--help")
"""EAL prints its version and the program stops at its help text: no port, no memory to speak of."""


def dpdk_version(binary: Path, env: Mapping[str, str] = MappingProxyType({}), says: str = "") -> str | None:
    """Return e.g. ``DPDK 22.11.11``; None if the program does not start or its output does not contain ``says``."""
    output = program_output(binary, *ASK, env=env)
    words = output.stdout + output.stderr
    found = re.search(r"RTE Version: '(.+?)'", words)
    return found[1] if found and says in words else None
