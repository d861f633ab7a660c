# SPDX-License-Identifier: BSD-3-Clause
"""A planed process with its socket: started with a document, asked, and reported on when it is gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from planebench.host.process import Process, Supervisor, on_failure
from planebench.model.errors import DiedError, StartError
from planebench.planed.client import PlanedClient, RpcClosedError
from planebench.planed.document import Document, Json

DYING_S = 0.2
"""A process closes its socket a moment before it is dead."""
CALL_DEADLINE_S = 15.0
CONNECT_DEADLINE_S = 20.0


class PlanedProcess:
    """A process with planed in it that has come up. Not thread-safe.

    ``title`` names it in errors ("the tester"). ``report``: how it ended and its last words, where more is known than
    its process tells. ``timeout_s`` and ``dying_s``: how long it may take to answer, and to die.
    """

    def __init__(
        self,
        process: Process,
        socket: Path,
        title: str,
        *,
        report: Callable[[], str] | None = None,
        connect_s: float = CONNECT_DEADLINE_S,
        timeout_s: float = CALL_DEADLINE_S,
        dying_s: float = DYING_S,
    ) -> None:
        self.process = process
        self.title = title
        self._report = report or process.exit_report
        self._timeout_s, self._dying_s = timeout_s, dying_s
        with on_failure(process.terminate):
            self.client = PlanedClient(socket, deadline_s=connect_s, give_up=self._give_up)

    @classmethod
    def start(
        cls,
        document: Document,
        supervisor: Supervisor,
        *,
        planed: Path,
        name: str,
        title: str,
        workdir: Path,
        cpus: frozenset[int],
        netns_pid: int | None = None,
        arguments: Sequence[str] = (),
        connect_s: float = CONNECT_DEADLINE_S,
    ) -> Self:
        """Start planed with a document and connect to it. Raise StartError, with its last log lines.

        Its document and socket are ``name.json`` and ``name.rpc`` in ``workdir``. ``connect_s``: how long it may take
        to fill its tables.
        """
        config, socket = workdir / f"{name}.json", workdir / f"{name}.rpc"
        document.write(config)
        argv = [str(planed), "--config", str(config), "--rpc", str(socket), *arguments]
        process = supervisor.spawn(name, argv, cpus=cpus, workdir=workdir, netns_pid=netns_pid)
        return cls(process, socket, title, connect_s=connect_s)

    def call(self, method: str, params: Json | None = None, timeout_s: float | None = None) -> Json:
        """Ask planed. Raise RpcError where it refuses, DiedError with its last log lines where it does not answer."""
        try:
            return self.client.call(method, params, timeout_s=self._timeout_s if timeout_s is None else timeout_s)
        except RpcClosedError as error:
            self.process.wait(self._dying_s)
            self.check()
            raise DiedError(f"{self.title} does not answer: {error}\n{self.process.log_tail()}") from error

    def check(self) -> None:
        """Raise DiedError, with its last log lines, if it is gone."""
        if not self.process.alive():
            raise DiedError(f"{self.title} died: {self._report()}")

    def close(self) -> None:
        """Close the connection; the process runs on. Safe to call twice."""
        self.client.close()

    def stop(self) -> None:
        self.close()
        self.process.terminate()

    def kill(self) -> None:
        """SIGKILL, as when it crashes. Never raises."""
        self.close()
        self.process.kill()

    def _give_up(self) -> None:
        if not self.process.alive():
            raise StartError(f"{self.title} did not start: {self._report()}")
