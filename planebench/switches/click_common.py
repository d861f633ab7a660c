# SPDX-License-Identifier: BSD-3-Clause
"""The parts that Click and FastClick share: finding the program, the control socket, and cross-connects of elements.

Three programs have the name ``click``: Click, FastClick, and a package tool of Debian. The first line of ``--version``
says which one it is: ``click (FastClick) 2.1``.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from planebench.host.deadlines import stretched
from planebench.host.process import Process, wait_ready
from planebench.host.programs import Installation, program_output
from planebench.model.errors import PlanebenchError, StartError, UsageError
from planebench.switches import common
from planebench.wiring.adapter import ThreadRef
from planebench.wiring.request import SwitchRequest

CONTROL_TIMEOUT_S = 5.0
COMPLAINTS = 12
_COMPLAINT = re.compile(r"rror|ail|annot|nvalid|nknown")
_GREETING = re.compile(rb"Click::ControlSocket/\d+\.\d+\r\n")
_LINE = re.compile(rb"(\d{3})([ -])([^\r\n]*)\r\n")
_DATA = re.compile(rb"DATA (\d+)\r\n")
_VERSION = re.compile(r"^click \((\w+)\) (\S+)$", re.MULTILINE)


def find_click(where: Installation, product: str, places: Sequence[str]) -> tuple[Path, str] | None:
    """Return program and version of ``product`` (``FastClick``, ``Click``). UsageError if the user names another
    one."""
    for binary in where.programs("click", places):
        # FastClick aborts after --version, with its output still in its buffer.
        match = _VERSION.search(program_output(binary, "--version", env=where.env, line_buffered=True).stdout)
        if match and match[1] == product:
            return binary, match[2]
        if where.path is not None:
            says = match[0] if match else "no version of Click"
            raise UsageError(f'{where.said_by} "{binary}" is not {product}: --version says {says}; name another one')
    return None


def element_classes(binary: Path, env: Mapping[str, str]) -> frozenset[str]:
    """Return the element classes of a click program; none if it does not list them."""
    said = program_output(binary, "-q", "-e", "Idle", "-h", "classes", env=env, line_buffered=True)
    return frozenset(said.stdout.split())


def cross_connects(request: SwitchRequest, between: str = "->") -> list[str]:
    """Return ``n0_in -> v0_out;`` for both directions of every pair; ``between`` may have elements, {} is the
    output."""
    ways = [way for pair in request.cross_connects for way in (pair, pair[::-1])]
    return [f"{source}_in {between.format(sink)} {sink}_out;" for source, sink in ways]


class RunningClick(common.ProcessGroup):
    """A click program with one router thread and a control socket."""

    def __init__(self, title: str, process: Process, control: Path) -> None:
        super().__init__(title, [process])
        self.control = control

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        """Return the router thread, which is the first of the process."""
        return common.main_thread(self.process)

    def wait_ready(self) -> None:
        """Wait until the router runs. Otherwise stop it and raise StartError with its error messages."""
        try:
            wait_ready(self.title, self._answers, self.processes)
        except StartError as error:
            self.stop()
            log = self.process.log_path.read_text(errors="replace").splitlines()
            lines = [line.rstrip() for line in log if _COMPLAINT.search(line)][:COMPLAINTS]
            raise StartError(f"{error}\nIts error messages:\n" + "\n".join(lines)) from error
        except BaseException:
            self.stop()
            raise

    def _answers(self) -> bool:
        """Return whether the control socket is served, which begins when the router runs."""
        try:
            return bool(ask(self.control, ["version"], timeout_s=1.0))
        except PlanebenchError:
            return False

    def read(self, handlers: Iterable[str], threads: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
        """Return the values of read handlers that exist and are numbers. Raises DiedError.

        Of a handler in ``threads``, which has a number for each of so many threads, it is their sum.
        """
        self.check()
        try:
            texts = ask(self.control, list(handlers))
        except PlanebenchError as error:
            raise self.died(error) from error
        numbers = {name: sum_of(text, threads.get(name, 1)) for name, text in texts.items()}
        return {name: number for name, number in numbers.items() if number is not None}


def sum_of(text: str, count: int) -> int | None:
    """Return the sum of the numbers in a text; None unless there are ``count`` of them and nothing else."""
    words = text.split()
    whole = len(words) == count and all(re.fullmatch(r"[0-9]+", word) for word in words)
    return sum(map(int, words)) if whole else None


def ask(path: Path, handlers: Sequence[str], timeout_s: float = CONTROL_TIMEOUT_S) -> dict[str, str]:
    """Return the answers of read handlers by name, without handlers that the router does not have.

    All handlers are read between two bursts, so the counters are of one moment. Raises PlanebenchError without an
    answer.
    """
    request = "".join(f"READ {name}\r\n" for name in handlers) + "QUIT\r\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(stretched(timeout_s))
            connection.connect(str(path))
            connection.sendall(request.encode())
            received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    except OSError as error:
        raise PlanebenchError(f"the control socket {path} does not answer: {error}") from error
    return parse_answers(received, handlers)


def parse_answers(received: bytes, handlers: Sequence[str]) -> dict[str, str]:
    """Return the answers of a control socket to READs of ``handlers``, in this order, up to the first that is
    incomplete or unexpected."""
    answers: dict[str, str] = {}
    greeting = _GREETING.match(received)
    at = greeting.end() if greeting else len(received)
    for name in handlers:
        while (line := _LINE.match(received, at)) and line[2] == b"-":
            at = line.end()
        if line is None:
            break
        at = line.end()
        if line[1] != b"200":
            continue
        data = _DATA.match(received, at)
        if line[3] != f"Read handler '{name}' OK".encode() or data is None or data.end() + int(data[1]) > len(received):
            break
        at = data.end() + int(data[1])
        answers[name] = received[data.end() : at].decode(errors="replace").strip()
    return answers


def total(numbers: Mapping[str, int], handlers: Iterable[str]) -> int | None:
    """Return the sum of some handlers; None if one of them is unknown."""
    return common.total(map(numbers.get, handlers))
