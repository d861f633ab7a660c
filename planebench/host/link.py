# SPDX-License-Identifier: BSD-3-Clause
"""A connection to planebench on another host: ``planebench machine agent`` behind ``ssh -T``, on its stdin and stdout.

OpenSSH's own client makes the connection, so the user's configuration, keys and jump hosts hold. Nothing listens on a
port and no daemon stays: the agent ends with the connection. Only calls and their answers are sent, one line of JSON
each; nothing is sent while nobody calls.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import secrets
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from planebench import __version__
from planebench.host.process import stretched
from planebench.model import errors
from planebench.model.errors import DiedError, PlanebenchError, StartError, UsageError

PACKAGE = Path(__file__).parents[1]
PROGRAM_VARIABLE = "PLANEBENCH_AGENT"
"""The command that is planebench on the other host, if it is not ``planebench`` on the PATH of its login."""
GREETING = b"planebench machine agent"
"""The first line of an agent; what a login shell prints before it is skipped."""
GREETING_DEADLINE_S = 60.0
CALL_DEADLINE_S = 60.0
LINE_MAX_BYTES = 1 << 24
ENDED_S = 2.0
"""How long ssh may take to end, and to say why, when its connection is gone."""

_REASONS = {
    r"Host key verification failed": "its host key is not known here, or has changed; log in once by hand: ssh {host}",
    r"Permission denied": "it accepts none of your keys; `ssh {host} true` has to work without a password",
    r"Could not resolve hostname": "its name cannot be resolved",
    r"not found|No such file": "planebench is not installed there; put it on the PATH of a login without a terminal, "
    f"or name it in {PROGRAM_VARIABLE}",
}
"""What ssh or the login shell says, and what it means."""


class Lines:
    """Sends and receives lines of text over a stream socket, which it owns. Not thread-safe.

    The other end may send anything: a line of more than ``most_bytes`` raises ValueError. Every method raises OSError
    when the deadline passes (a time of ``time.monotonic``) or the other end closes.
    """

    def __init__(self, sock: socket.socket, most_bytes: int) -> None:
        self._socket = sock
        self._most_bytes = most_bytes
        self._received = bytearray()

    def close(self) -> None:
        """Close the socket. Safe to call twice."""
        self._socket.close()

    def send(self, line: bytes, deadline: float) -> None:
        """Send one line, given without its newline."""
        self._socket.settimeout(max(deadline - time.monotonic(), 0.001))
        self._socket.sendall(line + b"\n")

    def receive(self, deadline: float) -> bytes:
        """Return the next line without its newline. A line that is there already is returned after the deadline too."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > self._most_bytes:
                raise ValueError(f"answer exceeds {self._most_bytes} bytes")
            self.wait_until(deadline)
            chunk = self._socket.recv(1 << 16)
            if not chunk:
                raise ConnectionResetError("connection closed by the other end")
            self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def wait_until(self, deadline: float) -> None:
        """Have the next receive wait at most until ``deadline``. Raises TimeoutError if it has passed."""
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left_s)


def program_there() -> str:
    """Return the command that is planebench on other hosts."""
    return os.environ.get(PROGRAM_VARIABLE) or "planebench"


def ssh_command(host: str, command: str | None = None) -> list[str]:
    """Return what has a shell run ``command`` on ``host``: by default an agent, which ends one started by it before.

    ``host`` is ``HOST``, ``USER@HOST``, or a name of ~/.ssh/config. Raises UsageError for what cannot be one.
    """
    if not host or host.startswith("-") or any(character.isspace() for character in host):
        raise UsageError(f'host "{host}" is not valid; give a name as for ssh, e.g. user@host')
    agent = f"exec {program_there()} machine agent --run {secrets.token_hex(8)}"
    return ["ssh", "-T", "-o", "BatchMode=yes", "--", host, command or agent]


class Connection:
    """A started program whose stdin and stdout are one end of ``sock``. Ends with :meth:`close`."""

    def __init__(self, command: Sequence[str]) -> None:
        self.sock, theirs = socket.socketpair()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        with theirs:
            try:
                # A session of its own: Ctrl-C is for us, who end the agent in order.
                self._popen = subprocess.Popen(
                    command,
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=self._said,
                    start_new_session=True,
                )
            except OSError as error:
                self.sock.close()
                self._said.close()
                raise StartError(f"{command[0]} cannot be started: {error.strerror}") from error

    def last_words(self) -> str:
        """Return what it said on standard error, the last lines."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(ENDED_S)
        said = os.pread(self._said.fileno(), LINE_MAX_BYTES, 0).decode(errors="replace")
        return "\n".join([line.strip() for line in said.splitlines() if line.strip()][-20:])

    def close(self) -> None:
        """Close its stdin, by which the agent ends, and wait for that; a program that stays is killed."""
        with contextlib.suppress(OSError):  # also for those who still read from it
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        try:
            self._popen.wait(stretched(10.0))
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._said.close()


class Link:
    """An agent on another host. One call at a time; safe to use from several threads.

    ``command`` starts it; ``name`` is the host, for messages. A connection that is lost raises DiedError from then on,
    until :meth:`open` makes another one.
    """

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._command = command
        self._connection: Connection | None = None
        self._lines: Lines | None = None
        self._ids = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def alive(self) -> bool:
        """Return whether the connection has not been found lost."""
        return self._lines is not None

    def open(self) -> None:
        """Connect, and wait for the agent. Raises StartError with the reason in one sentence."""
        self.close()
        self._connection = Connection(self._command)
        deadline = time.monotonic() + stretched(GREETING_DEADLINE_S)
        lines = Lines(self._connection.sock, LINE_MAX_BYTES)
        try:
            while lines.receive(deadline) != GREETING:
                pass
        except TimeoutError:
            self.close()
            raise StartError(f"host {self.name}: planebench did not answer in {GREETING_DEADLINE_S:g} s") from None
        except (OSError, ValueError) as error:
            words = self._connection.last_words()
            self.close()
            raise StartError(f"host {self.name}: {explained(words, self.name)}") from error
        self._lines = lines

    def call(self, method: str, params: Mapping[str, Any] | None = None, timeout_s: float = CALL_DEADLINE_S) -> Any:
        """Return the result of a method of the agent.

        Raises what the agent raised, as the same class of PlanebenchError; DiedError where the connection is lost or
        no answer comes in ``timeout_s``.
        """
        with self._lock:
            lines = self._lines
            if lines is None:
                raise DiedError(f"host {self.name}: the connection is lost")
            number, deadline = next(self._ids), time.monotonic() + stretched(timeout_s)
            try:
                lines.send(json.dumps({"id": number, "method": method, "params": params or {}}).encode(), deadline)
                answer = json.loads(lines.receive(deadline))
                while not isinstance(answer, dict) or answer.get("id") != number:
                    answer = json.loads(lines.receive(deadline))
            except TimeoutError:
                self._lost()
                raise DiedError(f"host {self.name}: no answer to {method} in {timeout_s:g} s") from None
            except (OSError, ValueError, RecursionError) as error:
                words = self._connection.last_words() if self._connection is not None else ""
                self._lost()
                raise DiedError(f"host {self.name}: the connection was lost: {words or error}") from error
        if "error" in answer:
            raise raised(self.name, answer["error"])
        return answer.get("result")

    def close(self) -> None:
        """End the agent and with it all that it started. Never raises; safe to call twice."""
        self._lost()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lost(self) -> None:
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def explained(words: str, host: str) -> str:
    """Return what the last words of ssh or of a login shell mean, in one sentence."""
    for pattern, meaning in _REASONS.items():
        if re.search(pattern, words):
            return meaning.format(host=host)
    return words.splitlines()[-1] if words else "the connection was closed"


def raised(host: str, told: Any) -> PlanebenchError:
    """Return the error that an agent answered, as the same class; the host is named in its text."""
    told = told if isinstance(told, dict) else {"text": told}
    kind = getattr(errors, str(told.get("kind")), DiedError)
    if not (isinstance(kind, type) and issubclass(kind, PlanebenchError)):
        kind = DiedError
    return kind(f"host {host}: {told.get('text', '')}")


@cache
def own_version() -> str:
    """Return version and digest of the Python code, ``0.1.0+1f2e3d4c``: two hosts talk if they have the same."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:8]}"
