# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's monitor (QMP): finds the threads of the guest's CPUs and pins them before the guest starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from qemu.qmp import ConnectError, QMPClient, QMPError

from planebench.host.deadlines import stretched
from planebench.host.process import Process, wait_ready
from planebench.model.errors import StartError

DEADLINE_S = 30.0
"""QEMU answers once its devices are there and the switch has taken their calls: a second where CPUs are shared."""
RETRY_S = 0.02

logging.getLogger("qemu.qmp").setLevel(logging.CRITICAL)  # what it could not do is told by its exceptions


def begin(process: Process, monitor: Path, cpus: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """Pin the CPUs of a waiting guest to ``cpus``, in their order, start the guest, and return their thread ids.

    Raises StartError, with the last log lines, if QEMU dies or does not answer.
    """
    wait_ready(process.name, monitor.is_socket, [process], DEADLINE_S)
    try:
        return asyncio.run(asyncio.wait_for(_begin(process, monitor, cpus), stretched(DEADLINE_S)))
    except (QMPError, OSError, TimeoutError, EOFError) as error:
        process.wait(0.2)
        raise StartError(f"{process.name} does not start: {error or 'no answer'}; {process.exit_report()}") from error


async def _begin(process: Process, monitor: Path, cpus: Sequence[frozenset[int]]) -> tuple[int, ...]:
    client = await _connect(process, monitor)
    try:
        found = cast(list[dict[str, Any]], await client.execute("query-cpus-fast"))
        tids = tuple(int(cpu["thread-id"]) for cpu in sorted(found, key=lambda cpu: int(cpu["cpu-index"])))
        for tid, where in zip(tids, cpus, strict=True):
            os.sched_setaffinity(tid, where)
        await client.execute("cont")
        return tids
    finally:
        with contextlib.suppress(QMPError, OSError, EOFError):
            await client.disconnect()


async def _connect(process: Process, monitor: Path) -> QMPClient:
    """Return a connection to the monitor. QEMU binds its socket a moment before it listens."""
    while True:
        client = QMPClient()
        try:
            await client.connect(str(monitor))
            return client
        except ConnectError as error:
            if not (isinstance(error.exc, ConnectionRefusedError) and process.alive()):
                raise
        await asyncio.sleep(RETRY_S)
