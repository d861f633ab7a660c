# SPDX-License-Identifier: BSD-3-Clause
"""Start a process on a CPU of node 0 twice, with its memory bound to node 1 and not; print what is found of each."""

from __future__ import annotations

import json
import sys
import time

from planebench.host.process import Supervisor
from planebench.measure.conditions import PlacedOwner, misplaced, read_memory

FILL = "import time; filled = b'x' * (32 << 20); print('filled', flush=True); time.sleep(600)"


def main() -> int:
    """Return 0 if both processes filled their memory."""
    found = {}
    with Supervisor() as supervisor:
        for name, node in (("bound", 1), ("free", None)):
            with supervisor.memory_on(node):
                process = supervisor.spawn(name, [sys.executable, "-c", FILL], cpus=frozenset({0}))
            while "filled" not in process.log_tail():
                if not process.alive():
                    print(process.exit_report())
                    return 1
                time.sleep(0.1)
            parts = (PlacedOwner("vnf", name, (process.pid,), 1),)
            reasons = misplaced(parts, read_memory(parts, switch_memory=False))
            found[name] = [str(reason) for reason in reasons]
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
