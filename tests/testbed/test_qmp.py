# SPDX-License-Identifier: BSD-3-Clause
"""The monitor of a guest whose QEMU is slow: a real one cannot be stopped between bind() and listen()."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host.process import Process, Supervisor
from planebench.model.errors import StartError
from planebench.testbed.hosting import qemu

GREETING = {"QMP": {"version": {"qemu": {"major": 7, "minor": 2, "micro": 0}, "package": ""}, "capabilities": []}}


@pytest.fixture
def bound(tmp_path: Path) -> socket.socket:
    monitor = socket.socket(socket.AF_UNIX)
    monitor.bind(str(tmp_path / "qmp"))
    return monitor


@pytest.fixture
def process() -> Iterator[Process]:
    with Supervisor() as supervisor:
        yield supervisor.spawn("vnf1", ["sleep", "60"], cpus=frozenset(os.sched_getaffinity(0)))


def answer(monitor: socket.socket, tid: int) -> None:
    """Listen, late, and answer as QEMU does with one CPU, which is the thread ``tid``."""
    time.sleep(0.2)
    monitor.listen()
    connection, _ = monitor.accept()
    with connection:
        connection.sendall(json.dumps(GREETING).encode() + b"\n")
        while data := connection.recv(65536):  # one request each: the client waits for every answer
            asked = json.loads(data)
            cpus = [{"cpu-index": 0, "thread-id": tid}]
            result = cpus if asked["execute"] == "query-cpus-fast" else {}
            numbered = {"id": asked["id"]} if "id" in asked else {}  # not while capabilities are negotiated
            connection.sendall(json.dumps({"return": result, **numbered}).encode() + b"\n")


def test_a_monitor_that_is_bound_and_does_not_listen_yet_is_waited_for(
    bound: socket.socket, process: Process, tmp_path: Path
) -> None:
    guest = threading.Thread(target=answer, args=(bound, process.pid), daemon=True)
    guest.start()
    threads = qemu.begin(process, tmp_path / "qmp", [frozenset(os.sched_getaffinity(0))])
    assert threads == ((process.pid, process.pid),)


def test_a_thread_that_is_none_of_qemu_is_not_pinned(bound: socket.socket, process: Process, tmp_path: Path) -> None:
    threading.Thread(target=answer, args=(bound, os.getpid()), daemon=True).start()
    with pytest.raises(StartError, match="vnf1 does not start"):
        qemu.begin(process, tmp_path / "qmp", [frozenset(os.sched_getaffinity(0))])


def test_a_guest_that_dies_before_its_monitor_listens_says_so(
    bound: socket.socket, process: Process, tmp_path: Path
) -> None:
    threading.Timer(0.2, os.kill, (process.pid, 9)).start()
    with pytest.raises(StartError, match=r"vnf1 does not start: .*killed"):
        qemu.begin(process, tmp_path / "qmp", [frozenset({0})])
