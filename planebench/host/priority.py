# SPDX-License-Identifier: BSD-3-Clause
"""The priority of the harness itself, while pollers run beside it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from planebench.host import launch
from planebench.host.procfs import read_text

_AUTOGROUP = Path("/proc/self/autogroup")


@contextlib.contextmanager
def high_priority() -> Iterator[bool]:
    """Run a block at nice -20, thread and scheduling autogroup, and restore both. Yields whether the system allowed it.

    Pollers at nice -20 leave a program at nice 0 about one percent of the core: on two cores, reading a counter would
    take half a second instead of some milliseconds. The harness works between trials and waits during them. The
    autogroup is that of the login session, so it must be restored.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    autogroup = read_text(_AUTOGROUP)  # "/autogroup-12 nice 0"
    launch.raise_priority()
    try:
        yield os.getpriority(os.PRIO_PROCESS, 0) == launch.HIGH_PRIORITY
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)
        if autogroup:
            with contextlib.suppress(OSError):
                _AUTOGROUP.write_text(autogroup.split()[-1])
