# SPDX-License-Identifier: BSD-3-Clause
"""The control socket of Open vSwitch's daemons: the protocol of ``ovs-appctl``, JSON-RPC 1.0 with one call per
connection.

Starting ovs-appctl instead takes 10 ms of CPU time on the core that the tester polls on: 0.8 s of waiting.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from planebench.host.deadlines import stretched
from planebench.model.errors import PlanebenchError

TIMEOUT_S = 5.0


def unixctl(path: Path, method: str, *arguments: str) -> str:
    """Return the output of ``ovs-appctl -t PATH METHOD ARGUMENTS``. Raises PlanebenchError on refusal or silence."""
    request = json.dumps({"id": 0, "method": method, "params": arguments}).encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(stretched(TIMEOUT_S))
            connection.connect(str(path))
            connection.sendall(request)
            answer = _receive_object(connection)
    except OSError as error:
        raise PlanebenchError(f"Open vSwitch does not answer {method} on {path}: {error}") from error
    if answer.get("error") is not None:
        raise PlanebenchError(f"Open vSwitch refused {method} {' '.join(arguments)}: {str(answer['error']).strip()}")
    return str(answer.get("result", ""))


def _receive_object(connection: socket.socket) -> dict[str, Any]:
    """Receive one JSON object, whose end only its brackets mark."""
    received = b""
    while chunk := connection.recv(1 << 16):
        received += chunk
        try:
            answer, _ = json.JSONDecoder().raw_decode(received.decode())
        except ValueError:
            continue
        if isinstance(answer, dict):
            return answer
    raise ConnectionResetError(f"the connection was closed after {len(received)} bytes")
