# SPDX-License-Identifier: BSD-3-Clause
"""RPC at a character device, as planed in a guest has it: one client, who may go and come back."""

from __future__ import annotations

import json
import os
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from planed_rig import CPUS, PATIENCE_S, document, planed_binary, until

from planebench.host.process import Process, Supervisor

pytestmark = pytest.mark.dataplane

PARSE_ERROR, UNKNOWN_METHOD = -32700, -32601
VERSION = b'{"jsonrpc": "2.0", "id": 7, "method": "version"}\n'


class Line:
    """A serial line whose far end, ``path``, is planed's. Another one may be put in its place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.near = -1
        self.plug()

    def plug(self) -> None:
        """Hang up, and be there again."""
        self.hang_up()
        self.near, far = os.openpty()
        new = self.path.with_suffix(".new")
        new.symlink_to(os.ttyname(far))
        self.far = far  # held, or the near end would have hung up before planed is there
        new.replace(self.path)

    def hang_up(self) -> None:
        if self.near >= 0:
            os.close(self.far)
            os.close(self.near)
            self.near = -1

    def ask(self, data: bytes) -> dict[str, object]:
        """The one line that comes back, and no echo of what was sent."""
        until(lambda: not termios.tcgetattr(self.far)[3] & termios.ECHO, "planed has made it raw")
        while data:
            data = data[os.write(self.near, data) :]
        with open(self.near, "rb", closefd=False, buffering=0) as reader:
            answer = json.loads(reader.readline())
        assert answer["jsonrpc"] == "2.0"
        return dict(answer)


@pytest.fixture
def line(supervisor: Supervisor) -> Iterator[Line]:
    it = Line(supervisor.workdir("device") / "line")
    yield it
    it.hang_up()


@pytest.fixture
def planed_at(line: Line, supervisor: Supervisor) -> Process:
    config = line.path.with_name("config.json")
    config.write_text(json.dumps(document("device")))
    argv = [planed_binary(), "--config", str(config), "--rpc", str(line.path)]
    return supervisor.spawn("device", argv, cpus=frozenset(CPUS), workdir=line.path.parent)


def test_a_device_is_a_client_that_comes_back(line: Line, planed_at: Process) -> None:
    assert line.ask(VERSION)["result"]["pid"] == planed_at.pid  # type: ignore[index]
    letters = bytes(range(1, 32)).replace(b"\n", b"")  # end of file, interrupt, stop: bytes like others here
    error = line.ask(b"hello" + letters + b"\n")["error"]
    assert error["code"] == PARSE_ERROR  # type: ignore[index]
    error = line.ask(b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * 100_000 + b'"}\n')["error"]
    assert error["code"] == UNKNOWN_METHOD  # type: ignore[index]

    os.write(line.near, b'{"jsonrpc": "2.0", "id": 99, "meth')
    line.plug()
    assert line.ask(VERSION)["id"] == 7, "half a request is forgotten with the one who made it"
    assert line.ask(b'{"jsonrpc": "2.0", "id": 8, "method": "shutdown"}\n')["result"] == {}
    assert planed_at.wait(PATIENCE_S) == 0
    assert line.path.is_symlink(), "a device is nothing that planed made"
