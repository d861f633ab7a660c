# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's telemetry socket, which reports the port counters of any DPDK program.

The protocol is described in the guide of DPDK's telemetry library: a SOCK_SEQPACKET unix socket greets with its limits,
takes ``/command,argument`` and answers with one JSON object, ``{"/command": value}``.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from planebench.host.process import stretched
from planebench.model.errors import PlanebenchError

SOCKET_NAME = "dpdk_telemetry.v2"
GREETING_BYTES = 1024
"""The maximum length of DPDK's greeting."""
OUTPUT_BYTES_MAX = 1 << 20


def socket_path(runtime: Path, prefix: str) -> Path:
    """Return the socket of a process that was started with RUNTIME_DIRECTORY=``runtime`` and
    ``--file-prefix=prefix``."""
    return runtime / "dpdk" / prefix / SOCKET_NAME


def ask(path: Path, *commands: str, timeout_s: float = 5.0) -> list[Any]:
    """Return the answer to each command, such as ``/ethdev/stats,0``; None for an unknown command or port.

    Raises PlanebenchError if nobody listens or the answers do not follow the protocol.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(stretched(timeout_s))
            connection.connect(str(path))
            size = _output_bytes(connection.recv(GREETING_BYTES))
            return [_answer(connection, command, size) for command in commands]
    except (OSError, ValueError) as error:
        raise PlanebenchError(f"DPDK telemetry on {path} does not answer {', '.join(commands)}: {error}") from error


def counters(answer: Any) -> dict[str, int]:
    """Return the counters of an answer by name, without values that are not whole numbers."""
    if not isinstance(answer, dict):
        return {}
    return {name: value for name, value in answer.items() if type(value) is int and value >= 0}


def _output_bytes(greeting: bytes) -> int:
    """Return the maximum length of an answer."""
    said = json.loads(greeting)
    size = said.get("max_output_len") if isinstance(said, dict) else None
    if type(size) is not int or not 0 < size <= OUTPUT_BYTES_MAX:
        raise ValueError(f"unexpected greeting {greeting[:80]!r}")
    return size


def _answer(connection: socket.socket, command: str, size: int) -> Any:
    connection.sendall(command.encode())
    answer = json.loads(connection.recv(size))
    name = command.partition(",")[0]
    if not isinstance(answer, dict) or name not in answer:
        raise ValueError(f"unexpected answer to {command}: {str(answer)[:80]}")
    return answer[name]
