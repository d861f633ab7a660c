# SPDX-License-Identifier: BSD-3-Clause
"""The DPDK version of a program without ``--version``: EAL prints it at the start."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from planebench.host.deadlines import stretched

ASK = ("-v", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m8", "--", "--help")
"""EAL prints its version and the program stops at its help text: no port, no memory to speak of."""
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def dpdk_version(binary: Path, env: Mapping[str, str] = NO_VARIABLES, says: str = "") -> str | None:
    """Return e.g. ``DPDK 22.11.11``; None if the program does not start or its output does not contain ``says``.

    ``env`` is added to an otherwise empty environment. The result is cached for each version of the file.
    """
    try:
        mtime_ns = binary.stat().st_mtime_ns
    except OSError:
        return None
    words = _words(binary, mtime_ns, tuple(sorted(env.items())))
    found = re.search(r"RTE Version: '(.+?)'", words)
    return found[1] if found and says in words else None


@lru_cache(maxsize=8)
def _words(binary: Path, mtime_ns: int, env: tuple[tuple[str, str], ...]) -> str:
    with tempfile.TemporaryDirectory(prefix="planebench-") as runtime:
        try:
            done = subprocess.run(
                [str(binary), *ASK],
                capture_output=True,
                text=True,
                timeout=stretched(10),
                env={**dict(env), "RUNTIME_DIRECTORY": runtime, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
    return done.stdout + done.stderr
