# SPDX-License-Identifier: BSD-3-Clause
"""The JSON-RPC client against a socket that answers well, badly, late or not at all."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from planed_answers import whole

from planebench.host.planed_program import find_planed
from planebench.host.process import stretched
from planebench.model.errors import DiedError, StartError
from planebench.planed.client import PlanedClient, RpcClosedError, RpcError, get_statistics

Answer = Callable[[dict[str, Any]], bytes | None]


class Server:
    """Answers each line of a client with what ``answer`` says; None closes the connection. Then the next is served."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            self.client, _ = self.listener.accept()
            with self.client, self.client.makefile("rb") as lines, contextlib.suppress(OSError):
                for line in lines:
                    reply = self.answer(json.loads(line))
                    if reply is None:
                        break
                    self.client.sendall(reply)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    folder = Path("/tmp") / f"rpc-{abs(hash(tmp_path)) % 10**8}"
    folder.mkdir()
    yield folder / "s"
    (folder / "s").unlink(missing_ok=True)
    folder.rmdir()


def reply(request: dict[str, Any], **body: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}).encode() + b"\n"


def test_call_returns_the_result_of_its_own_request(path: Path) -> None:
    Server(path, lambda it: reply(it, result={"method": it["method"], "params": it.get("params")}))
    with PlanedClient(path) as client:
        assert client.call("version") == {"method": "version", "params": None}
        assert client.call("traffic.start", {"epoch": 1}) == {"method": "traffic.start", "params": {"epoch": 1}}


def test_large_answers_come_in_pieces(path: Path) -> None:
    big = "x" * 500_000
    Server(path, lambda it: reply(it, result={"text": big}))
    with PlanedClient(path) as client:
        assert client.call("config.get")["text"] == big


def test_errors_carry_the_words_of_the_server(path: Path) -> None:
    Server(path, lambda it: reply(it, error={"code": -32602, "message": "tasks[0].kind: 'x' is none of patch"}))
    with (
        PlanedClient(path) as client,
        pytest.raises(RpcError, match=r"refused config.apply: .*none of patch") as caught,
    ):
        client.call("config.apply", {})
    assert (caught.value.code, caught.value.method, caught.value.exit_code) == (-32602, "config.apply", 4)


def test_a_closed_connection_and_silence_are_told_apart_from_refusal(path: Path) -> None:
    Server(path, lambda it: None)
    with PlanedClient(path) as client, pytest.raises(RpcClosedError, match=r"no answer .* to stats.get .*closed"):
        client.call("stats.get")


def test_a_connection_that_was_closed_while_it_was_idle_is_made_anew(path: Path) -> None:
    server = Server(path, lambda it: reply(it, result={"method": it["method"]}))
    with PlanedClient(path) as client:
        for method in ("version", "stats.get"):
            assert client.call(method) == {"method": method}
            server.client.shutdown(socket.SHUT_RDWR)


def test_a_request_that_may_have_been_heard_is_not_repeated(path: Path) -> None:
    heard: list[str] = []
    Server(path, lambda it: heard.append(it["method"]))
    with PlanedClient(path) as client, pytest.raises(RpcClosedError, match="closed by the other end"):
        client.call("traffic.start")
    assert heard == ["traffic.start"]


@pytest.mark.parametrize(
    "said",
    [b"hello\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"x" * 70_000, b'{"id": 1\n', b"1" * 5000 + b"\n"],
)
def test_what_is_no_answer_is_told_as_such(path: Path, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planebench.planed.client.ANSWER_MAX_BYTES", 60_000)
    Server(path, lambda it: said)
    with PlanedClient(path) as client, pytest.raises(RpcClosedError, match=r"to stats.get on"):
        client.call("stats.get", timeout_s=5)


def test_one_who_never_stops_talking_is_late(path: Path) -> None:
    def talk(request: dict[str, Any]) -> bytes:
        end = time.monotonic() + stretched(5)
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                server.client.sendall(b'{"id": 0}\n' * 1000)
        return reply(request, result={})

    server = Server(path, talk)
    with PlanedClient(path) as client, pytest.raises(RpcClosedError, match="timed out"):
        client.call("stats.get", timeout_s=0.2)


@pytest.mark.parametrize("error", ["no", None, [1], {}, {"code": "x", "message": [2]}])
def test_an_error_of_any_shape_is_a_refusal(path: Path, error: object) -> None:
    Server(path, lambda it: reply(it, error=error))
    with PlanedClient(path) as client, pytest.raises(RpcError, match="refused version"):
        client.call("version")


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_one(path: Path) -> None:
    def slow(request: dict[str, Any]) -> bytes:
        if request["method"] == "slow":
            time.sleep(0.3)
        return reply(request, result={"method": request["method"]})

    Server(path, slow)
    with PlanedClient(path) as client:
        with pytest.raises(RpcClosedError, match="slow"):
            client.call("slow", timeout_s=0.1)
        assert client.call("fast") == {"method": "fast"}


def test_connecting_waits_for_the_socket(path: Path) -> None:
    threading.Timer(0.2, lambda: Server(path, lambda it: reply(it, result={}))).start()
    with PlanedClient(path, deadline_s=5) as client:
        assert client.call("version") == {}


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ({"busy_cycles": -1}, r"tasks\.0\.busy_cycles: input should be greater than or equal to 0"),
        ({"busy_cycles": "7"}, r"tasks\.0\.busy_cycles: input should be a valid integer"),
        ({"busy_cycles": None}, r"tasks\.0\.busy_cycles: input should be a valid integer"),
        ({"drops": {"runt": 1e9}}, r"tasks\.0\.drops\.runt: input should be a valid integer"),
        ({"monitor": {}}, r"tasks\.0\.monitor\.received_packets: field required"),
    ],
)
def test_a_wrong_field_of_an_answer_is_named(task: dict[str, Any], why: str) -> None:
    good = whole({"tasks": [{"name": "t", "kind": "patch", "of_tomorrow": 3}]})
    assert [it.name for it in get_statistics(lambda _: good).tasks] == ["t"]
    bad = {**good, "tasks": [{**good["tasks"][0], **task}]}
    with pytest.raises(DiedError, match=f"^planed does not answer stats.get as it should: {why}$"):
        get_statistics(lambda _: bad)


def test_connecting_gives_up_at_the_deadline_or_when_told(path: Path) -> None:
    with pytest.raises(StartError, match=r"no planed on .* PLANEBENCH_PATIENCE"):
        PlanedClient(path, deadline_s=0.1)

    def dead() -> None:
        raise DiedError("it died")

    with pytest.raises(DiedError, match="it died"):
        PlanedClient(path, deadline_s=5, give_up=dead)


def test_planed_is_found_by_environment_beside_python_and_on_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder in ("env", "venv", "path"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "planed").write_text("#!/bin/sh\n")
        (tmp_path / folder / "planed").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr("sys.executable", str(tmp_path / "venv" / "python"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setenv("PLANEBENCH_PLANED", str(tmp_path / "env" / "planed"))
    assert find_planed() == tmp_path / "env" / "planed"
    monkeypatch.setenv("PLANEBENCH_PLANED", str(tmp_path / "env" / "wrong"))
    assert find_planed() is None, "a wrong setting never means another binary"
    monkeypatch.delenv("PLANEBENCH_PLANED")
    assert find_planed() == tmp_path / "venv" / "planed"
    (tmp_path / "venv" / "planed").unlink()
    assert find_planed() == tmp_path / "path" / "planed"
