# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: kill -9 a process at N moments while it binds NICs, and restore their drivers each time.

    kill_binding.py N NIC ...

The first half of the moments is followed by the next start of a run, the second by what doctor --undo does. Prints a
line of JSON per moment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

from planebench.host import pci
from planebench.host.device_settings import device_journal
from planebench.host.pci_binding import bind


def drivers(nics: list[str]) -> list[str | None]:
    return [pci.nic(nic).driver for nic in nics]


def main(moments: int, nics: list[str]) -> None:
    journal = device_journal()
    before = drivers(nics)
    begin = time.monotonic()
    bind(nics, journal)
    taken_s = time.monotonic() - begin
    assert drivers(nics) == ["vfio-pci"] * len(nics)
    journal.undo_own()
    assert drivers(nics) == before
    for moment in range(moments):
        pid = os.fork()
        if pid == 0:
            bind(nics)
            device_journal().undo_own()
            os._exit(0)
        time.sleep(taken_s * 1.5 * (moment + 0.5) / moments)
        os.kill(pid, signal.SIGKILL)
        killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        left = drivers(nics)
        if moment < moments / 2:
            journal.undo_abandoned()
        else:
            journal.undo()
        restored = drivers(nics) == before and not journal.state.exists()
        print(json.dumps({"killed": killed, "left": left, "restored": restored}), flush=True)


main(int(sys.argv[1]), sys.argv[2:])
