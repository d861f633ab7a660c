# SPDX-License-Identifier: BSD-3-Clause
"""A run whose tester, switch, or both are on other hosts (docs/two-hosts.md).

The harness runs where the tester is. If that is not here, the agent there runs the plan, and what it says to the agent
of the switch goes through here: neither host has to reach the other but by the cables under test.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from planebench.host.link import GREETING, Connection, Link, explained, own_version, raised, ssh_command
from planebench.measure.agent import CLOSE, OPEN, RELAYED, STOP
from planebench.model.errors import DiedError, StartError
from planebench.model.plan import Plan
from planebench.store import default_runs_dir, make_runs_dir
from planebench.switches.remote import Hello, SwitchHost

Connect = Callable[[Plan], SwitchHost]


@contextlib.contextmanager
def connecting(name: str, connect: Callable[[], Connection]) -> Iterator[Connect]:
    """Yield what connects to the host of the switch; its agent ends with the block."""
    link = Link(name, connect)
    try:
        yield lambda plan: SwitchHost.connect(link, Hello(own_version(), plan.switch_cores, plan.wire))
    finally:
        link.close()


@contextlib.contextmanager
def switch_on(host: str | None) -> Iterator[Connect | None]:
    """Yield what connects to the host of the switch; None if that is this one."""
    if host is None:
        yield None
        return
    command = ssh_command(host)
    with connecting(host, lambda: Connection(command)) as connect:
        yield connect


def agent_command(host: str | None) -> list[str]:
    """Return the command that starts an agent on a host, or on this one for None."""
    return [sys.executable, "-m", "planebench", "machine", "agent"] if host is None else ssh_command(host)


class TesterHost:
    """The agent on the host of the tester, which runs a plan; the agent of the switch is connected through here.

    ``tell`` is given each line that it says to people.
    """

    def __init__(self, tester: str, switch: str | None, tell: Callable[[str], None]) -> None:
        self.name = tester
        self._switch_command = agent_command(switch)
        self._tell = tell
        self._lock = threading.RLock()  # a signal handler sends, too
        self._stopped = False
        self._switch: Connection | None = None
        self._connection = Connection(ssh_command(tester), tell)
        self._lines = self._connection.sock.makefile("rb")

    def run(self, params: Mapping[str, Any], runs: Path | None) -> tuple[Path, str]:
        """Run a plan there; return the folder of the run here, and how it ended. Ctrl-C ends it in order.

        Raises what is raised there, as the same class of PlanebenchError, and DiedError if the connection is lost: then
        what was measured is on that host, and ``--resume`` goes on with it.
        """
        for line in self._lines:
            if line.rstrip() == GREETING:
                break
        else:
            raise StartError(f"host {self.name}: {explained(self._connection.last_words(), self.name)}")
        self._send(json.dumps({"id": 1, "method": "run", "params": dict(params)}).encode())
        files: dict[str, bytes] = {}
        with self._stopping():
            while not (answer := self._next(files)):
                pass
        if "error" in answer:
            raise raised(self.name, answer["error"])
        folder = (runs or default_runs_dir()) / Path(answer["result"]["run_id"]).name
        make_runs_dir(folder)
        for name, data in files.items():
            (folder / Path(name).name).write_bytes(data)
        return folder, answer["result"]["status"]

    @contextlib.contextmanager
    def _stopping(self) -> Iterator[None]:
        """Have the first Ctrl-C, SIGTERM or SIGHUP end the run in order; the next one is as before."""

        def stop(number: int, frame: FrameType | None) -> None:
            self._stopped = True
            for each, handler in old.items():
                signal.signal(each, handler)
            self._send(STOP)

        old = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def _next(self, files: dict[str, bytes]) -> dict[str, Any]:
        """Handle the next line; return it if it is the end of the run, else an empty dict."""
        line = self._lines.readline().rstrip(b"\n")
        if not line and self._stopped:
            raise KeyboardInterrupt  # before there was a run to end
        if not line:
            raise DiedError(f"host {self.name}: the connection was lost: {self._connection.last_words()}")
        if line == OPEN:
            self._close_switch()
            try:
                self._switch = Connection(self._switch_command, self._tell)
            except StartError as error:
                self._send(CLOSE + str(error).encode())
            else:
                threading.Thread(target=self._pump, args=(self._switch,), name="relay", daemon=True).start()
        elif line == CLOSE:
            self._close_switch()
        elif line.startswith(RELAYED):
            with contextlib.suppress(OSError):
                if self._switch is not None:
                    self._switch.sock.sendall(line.removeprefix(RELAYED) + b"\n")
        else:
            told = json.loads(line)
            if "file" not in told:
                return dict(told)
            files[str(told["file"])] = base64.b64decode(told["data"])
        return {}

    def _pump(self, switch: Connection) -> None:
        with contextlib.suppress(OSError, ValueError), switch.sock.makefile("rb") as lines:
            for line in lines:
                self._send(RELAYED + line.rstrip(b"\n"))
        words = " ".join(switch.last_words().split())
        if self._switch is switch:
            self._send(CLOSE + words.encode())

    def _send(self, line: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.sock.sendall(line + b"\n")

    def _close_switch(self) -> None:
        switch, self._switch = self._switch, None
        if switch is not None:
            switch.close()

    def close(self) -> None:
        """End both agents. Never raises."""
        self._connection.close()
        self._close_switch()


def file_lines(folder: Path) -> Iterator[bytes]:
    """Yield the files of a run folder as lines for :meth:`TesterHost.run`."""
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield json.dumps({"file": path.name, "data": base64.b64encode(path.read_bytes()).decode()}).encode()
