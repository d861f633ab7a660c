# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's telemetry socket: how any DPDK program that says nothing of itself can be asked for its ports' counters.

The protocol is DPDK's guide to its telemetry library: a SOCK_SEQPACKET unix socket that greets with its limits, takes
``/command,argument`` and answers with one JSON object, ``{"/command": value}``, no longer than it said.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from planebench.host.deadlines import stretched
from planebench.model.errors import PlanebenchError

SOCKET_NAME = "dpdk_telemetry.v2"
GREETING_BYTES = 1024
"""What DPDK sends before it knows how much the other side takes."""
OUTPUT_BYTES_MAX = 1 << 20


def socket_path(runtime: Path, prefix: str) -> Path:
    """The socket of the process that was started with RUNTIME_DIRECTORY=``runtime`` and ``--file-prefix=prefix``."""
    return runtime / "dpdk" / prefix / SOCKET_NAME


def ask(path: Path, *commands: str, timeout_s: float = 5.0) -> list[Any]:
    """The answers to ``/ethdev/stats,0`` and the like, one for each; None for a command that it does not know, or a
    port that it has not got. Raises PlanebenchError where nobody listens, or what is said is not the protocol."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(stretched(timeout_s))
            connection.connect(str(path))
            size = _output_bytes(connection.recv(GREETING_BYTES))
            return [_answer(connection, command, size) for command in commands]
    except (OSError, ValueError) as error:
        raise PlanebenchError(f"DPDK telemetry on {path} does not answer {', '.join(commands)}: {error}") from error


def counters(answer: Any) -> dict[str, int]:
    """The whole numbers of an answer by name; what is none is left out."""
    if not isinstance(answer, dict):
        return {}
    return {name: value for name, value in answer.items() if type(value) is int and value >= 0}


def _output_bytes(greeting: bytes) -> int:
    """How long an answer may get."""
    said = json.loads(greeting)
    size = said.get("max_output_len") if isinstance(said, dict) else None
    if type(size) is not int or not 0 < size <= OUTPUT_BYTES_MAX:
        raise ValueError(f"it greets with {greeting[:80]!r}")
    return size


def _answer(connection: socket.socket, command: str, size: int) -> Any:
    connection.sendall(command.encode())
    answer = json.loads(connection.recv(size))
    name = command.partition(",")[0]
    if not isinstance(answer, dict) or name not in answer:
        raise ValueError(f"{command} was answered with {str(answer)[:80]}")
    return answer[name]
