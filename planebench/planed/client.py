# SPDX-License-Identifier: BSD-3-Clause
"""The JSON-RPC socket of a planed process (docs/design/planed-protocol.md), and its methods as functions with types.

A method is asked through ``call``: of a connection, a process, several processes that answer as one, or a stand-in of a
test.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from planebench.host.link import Lines
from planebench.host.process import stretched
from planebench.model.errors import PlanebenchError, StartError
from planebench.planed.document import Document, Json
from planebench.planed.statistics import PortState, PortStates, Stamps, Statistics, TrafficState, decoded

ANSWER_MAX_BYTES = 1 << 26
"""Ten times the largest that planed has: a page of 65536 stations or stamps."""
WORDS_MAX = 1000
UNHEARD = (errno.EPIPE, errno.ECONNRESET)
"""planed has closed the connection before it read the request (unix(7)): it makes room for others where one is idle."""
_UCRED = struct.Struct("3i")
"""unix(7): process, user and group id."""


Call = Callable[..., Json]
"""Method, parameters if any, and ``timeout_s`` if not the usual -> result. Raises RpcError; DiedError or RpcClosedError
where nobody answers."""
Profile = Json
"""A traffic profile as planed takes it (docs/traffic.md), which planebench.testbed.traffic_files writes."""


class RpcError(PlanebenchError):
    """planed answered with an error; ``code`` and ``message`` are its own words, ``method`` is what was asked."""

    def __init__(self, method: str, code: int, message: str) -> None:
        super().__init__(f"planed refused {method}: {message} ({code})")
        self.method = method
        self.code = code
        self.message = message


class RpcClosedError(PlanebenchError):
    """The connection to planed broke or an answer did not come in time. The process may have died: look at its log."""


class PlanedClient(AbstractContextManager["PlanedClient"]):
    """One connection to the socket of a planed process. Not thread-safe; a context manager.

    The other end may be a guest, which can send anything: an answer that is invalid, too long or never ends raises
    RpcClosedError.

    Connecting retries until ``deadline_s``, because the socket appears only when planed is ready; ``give_up`` is called
    between tries and may raise (the process died). Raises StartError when the deadline passes. A connection that planed
    has closed because it was idle is made anew by the next call.
    """

    def __init__(
        self,
        path: Path,
        *,
        deadline_s: float = 20.0,
        timeout_s: float = 10.0,
        give_up: Callable[[], None] | None = None,
    ) -> None:
        self.path = path
        self.timeout_s = timeout_s
        self.peer_uid: int | None = None
        """The user of the process that listens: the same for each connection."""
        self._ids = itertools.count(1)
        deadline, pause_s = time.monotonic() + stretched(deadline_s), 0.001
        while True:
            try:
                self._connect(deadline)
                break
            except OSError as error:
                with contextlib.suppress(AttributeError):  # of a process without descriptors there is none yet
                    self._lines.close()
                if give_up is not None:
                    give_up()
                if time.monotonic() >= deadline:
                    raise StartError(f"no planed on {path}: {error}; on a busy host: PLANEBENCH_PATIENCE=10") from error
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.02)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; planed runs on."""
        self._lines.close()

    def call(self, method: str, params: Json | None = None, *, timeout_s: float | None = None) -> Json:
        """Return the result of a method. Raises RpcError if planed refuses, RpcClosedError if it is gone or silent."""
        number = next(self._ids)
        request: Json = {"jsonrpc": "2.0", "id": number, "method": method}
        if params is not None:
            request["params"] = params
        deadline = time.monotonic() + stretched(self.timeout_s if timeout_s is None else timeout_s)
        line = json.dumps(request).encode()
        try:
            try:
                self._lines.send(line, deadline)
                first = self._lines.receive(deadline)
            except OSError as error:
                if error.errno not in UNHEARD:
                    raise
                self._lines.close()
                self._connect(deadline)
                self._lines.send(line, deadline)
                first = self._lines.receive(deadline)
            answer = json.loads(first)  # ValueError, RecursionError: it is no answer
            while not (isinstance(answer, dict) and answer.get("id") in (number, None)):
                self._lines.wait_until(deadline)  # late answers to calls that timed out do not extend it
                answer = json.loads(self._lines.receive(deadline))
        except OSError as error:
            raise RpcClosedError(f"no answer from planed to {method} on {self.path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise RpcClosedError(f"invalid answer to {method} on {self.path}: {error}") from error
        if "error" in answer:
            said = answer["error"] if isinstance(answer["error"], dict) else {"message": answer["error"]}
            code = said.get("code")
            raise RpcError(method, code if isinstance(code, int) else 0, str(said.get("message", ""))[:WORDS_MAX])
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    def _connect(self, deadline: float) -> None:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lines = Lines(client, ANSWER_MAX_BYTES)
        client.settimeout(max(deadline - time.monotonic(), 0.001))
        client.connect(str(self.path))
        uid = _UCRED.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))[1]
        if self.peer_uid not in (None, uid):
            raise PermissionError(f"user {uid} listens where user {self.peer_uid} did")
        self.peer_uid = uid


def get_statistics(call: Call) -> Statistics:
    """Return every counter of a process. Its workers are parked meanwhile."""
    return decoded(Statistics, "stats.get", call("stats.get"))


def get_ports(call: Call) -> tuple[PortState, ...]:
    """Return the state of every port of a process."""
    return decoded(PortStates, "ports.get", call("ports.get")).ports


def get_stamps(call: Call, task: str, start: int, limit: int) -> Stamps:
    """Return a page of the stamps of a task, beginning with number ``start``."""
    return decoded(Stamps, "stamps.get", call("stamps.get", {"task": task, "from": start, "limit": limit}))


def is_sending(call: Call) -> bool:
    return decoded(TrafficState, "traffic.get", call("traffic.get")).running


def apply(call: Call, document: Document, timeout_s: float | None = None) -> None:
    """Have a process run another document; memory and name are those that it was started with."""
    more = {} if timeout_s is None else {"timeout_s": timeout_s}
    call("config.apply", document.to_json(), **more)


@dataclass(frozen=True, slots=True)
class GeneratorLoad:
    """The load of one generator.

    ``rate_pps`` None: as much as it can; with recorded times of a capture (``recorded``) there is no rate.
    ``frame_size_bytes`` None: the profile has sizes of its own.
    """

    task: str
    rate_pps: float | None
    frame_size_bytes: int | None = None
    probe_rate_pps: float = 0
    profile: Profile | None = None
    recorded: bool = False
    stamp_all: bool = False
    """Every frame has a time stamp, not the probes alone."""

    def to_json(self) -> Json:
        found: Json = {"task": self.task}
        if self.profile is not None:
            found["profile"] = self.profile
        if self.frame_size_bytes is not None:
            found["frame_size_bytes"] = self.frame_size_bytes
        if not self.recorded:
            found |= {"flat_out": True} if self.rate_pps is None else {"rate_pps": self.rate_pps}
        found |= {"stamp_all": True} if self.stamp_all else {}
        return {**found, "probe_rate_pps": self.probe_rate_pps}


def start_traffic(
    call: Call,
    epoch: int,
    duration_s: float,
    loads: Sequence[GeneratorLoad] = (),
    *,
    stamps: bool = False,
    clocks: bool = False,
    nonce: int = 0,
    sampled: bool = False,
) -> None:
    """Clear every counter and begin to send for ``duration_s``. Without loads only counters and ``stamps`` begin.

    ``stamps``: every task notes its probes; ``clocks``: only generators and monitors do, by the clocks of
    their ports too.
    ``nonce``: a secret number in every frame, by which monitors recognize frames of these loads; 0 for none.
    ``sampled``: monitors look into some bursts only; no load may have probes then.
    """
    flags = {"stamps": stamps, "clocks": clocks, "nonce": nonce, "sampled": sampled}
    call(
        "traffic.start",
        {
            "epoch": epoch,
            "duration_ns": int(duration_s * 1e9),
            "generators": [load.to_json() for load in loads],
            **{key: value for key, value in flags.items() if value},
        },
    )
