# SPDX-License-Identifier: BSD-3-Clause
"""The control socket against clients that do not know, do not care, or mean harm. planed answers the next one."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planed_rig import PATIENCE_S, Planed, ethdev, load, ring, task, until

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
LINE_MAX_BYTES = 1 << 20
CLIENTS_MAX = 16
VERSION = b'{"jsonrpc": "2.0", "id": 7, "method": "version"}\n'


class Raw:
    """A client that sends whatever bytes it likes."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))  # waits while many others do; one with a time limit would fail at once
        self.socket.settimeout(PATIENCE_S)
        self._reader = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> dict[str, Any]:
        line = self._reader.readline()
        assert line.endswith(b"\n"), "planed closed the connection"
        answer = json.loads(line)
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        return dict(answer)

    def is_closed(self) -> bool:
        """Whether planed has closed the connection (waits for that)."""
        try:
            return self._reader.read(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def raw(planed: Planed) -> Iterator[Raw]:
    with Raw(planed.rpc) as it:
        yield it


def request(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode() + b"\n"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (b"hello", PARSE_ERROR, "not JSON"),
        (b"", PARSE_ERROR, "not JSON"),
        (b"\x00\xff\xfe", PARSE_ERROR, "not JSON"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "version"', PARSE_ERROR, "not JSON"),
        (b"[" * 100_000, PARSE_ERROR, "not JSON"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, PARSE_ERROR, "not JSON"),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "version"}', PARSE_ERROR, "duplicate"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "vers\xc3"}', PARSE_ERROR, "not JSON"),
        (b'{"jsonrpc": "2.0", "id": 1e999, "method": "version"}', PARSE_ERROR, "not JSON"),
        (b"[]", INVALID_REQUEST, '"method"'),
        (b"[" + VERSION.strip() + b"]", INVALID_REQUEST, '"method"'),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "version"}', INVALID_REQUEST, '"2.0"'),
        (b'{"id": 1, "method": "version"}', INVALID_REQUEST, '"2.0"'),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', INVALID_REQUEST, '"method"'),
        (b'{"jsonrpc": "2.0", "id": 1}', INVALID_REQUEST, '"method"'),
        (request(method="reboot"), UNKNOWN_METHOD, 'no method "reboot"; valid: version config.get config.apply'),
        (request(method=""), UNKNOWN_METHOD, 'no method ""'),
        (request(method="version", params={"verbose": True}), INVALID_PARAMS, "version takes no params"),
        (request(method="stats.get", params=[1]), INVALID_PARAMS, "stats.get takes no params"),
        (request(method="config.apply"), INVALID_PARAMS, "expected an object"),
        (request(method="config.apply", params=[]), INVALID_PARAMS, "expected an object"),
        (request(method="traffic.start"), INVALID_PARAMS, "params: expected an object"),
        (request(method="traffic.start", params={"epoch": 1}), INVALID_PARAMS, '"duration_ns" is missing'),
    ],
)
def test_every_bad_line_gets_its_error_and_the_next_its_answer(raw: Raw, line: bytes, code: int, words: str) -> None:
    raw.send(line.rstrip(b"\n") + b"\n" + VERSION)
    error = raw.answer()["error"]
    assert (error["code"], words in error["message"]) == (code, True), error
    answer = raw.answer()
    assert (answer["id"], answer["result"]["protocol"]) == (7, 1)


@pytest.mark.parametrize("shift", range(4))
def test_a_message_cut_inside_a_character_is_still_an_error(raw: Raw, planed: Planed, shift: int) -> None:
    """Messages quote the first bytes of what was sent: the cut may come anywhere in a character of 2, 3, 4 bytes."""
    for letter in ("é", "€", "\U0001f600"):
        word = "a" * shift + letter * 100
        for params in ({word: 1}, {"version": 1, "name": word}, {"version": 1, "name": "a", "ports": [{"name": word}]}):
            raw.send(request(method="config.apply", params=params))
            assert raw.answer()["error"]["code"] == INVALID_PARAMS
        raw.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": word}, ensure_ascii=False).encode() + b"\n")
        assert raw.answer()["error"]["code"] == UNKNOWN_METHOD


@pytest.mark.parametrize("number", [0, -5, "seven", 2**53, None, {"a": [1]}])
def test_the_id_comes_back_as_it_was(raw: Raw, number: object) -> None:
    raw.send(request(id=number, method="traffic.get"))
    assert raw.answer() == {"jsonrpc": "2.0", "id": number, "result": {"running": False}}


def test_a_notification_gets_no_answer(raw: Raw) -> None:
    for method in (b"stats.clear", b"there.is.none"):
        raw.send(b'{"jsonrpc": "2.0", "method": "' + method + b'"}\n' + VERSION)
        assert raw.answer()["id"] == 7


def test_several_requests_in_one_piece_are_answered_in_order(raw: Raw) -> None:
    raw.send(b"".join(request(id=number, method="traffic.get") for number in range(500)))
    assert [raw.answer()["id"] for _ in range(500)] == list(range(500))


def test_one_request_in_many_pieces(raw: Raw, planed: Planed) -> None:
    for at in range(len(VERSION)):
        raw.send(VERSION[at : at + 1])
        if at == len(VERSION) // 2:
            assert planed.call("version")["protocol"] == 1, "others are served while one is slow"
    assert raw.answer()["id"] == 7


def test_a_line_as_long_as_allowed_is_read(raw: Raw) -> None:
    line = request(method="no." + "x" * (LINE_MAX_BYTES - 100))
    raw.send(line)
    assert raw.answer()["error"]["code"] == UNKNOWN_METHOD


def test_a_line_without_end_is_cut_off(raw: Raw, planed: Planed) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        raw.send(b"x" * (LINE_MAX_BYTES + 1))
    assert raw.is_closed()
    assert planed.call("version")["protocol"] == 1


@pytest.mark.parametrize("ask", [b"x", VERSION, VERSION * 1000, VERSION[:-1]])
def test_a_client_that_goes_away_at_any_moment(planed: Planed, ask: bytes) -> None:
    for _ in range(20):
        with Raw(planed.rpc) as client:
            client.send(ask)
    assert planed.call("version")["protocol"] == 1


def test_a_client_that_never_reads_is_dropped(planed: Planed) -> None:
    """Answers pile up in the socket; the send has a time limit, then the client is gone and others are served."""
    planed.apply([ring("r0")], [task("gen", "generator", "r0")])
    with Raw(planed.rpc) as client:
        client.socket.setblocking(False)
        ask = request(method="stats.get") * 100
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            for _ in range(10_000):
                client.socket.send(ask)
        assert planed.call("version")["protocol"] == 1


def test_clients_that_are_idle_make_room(planed: Planed) -> None:
    """Who comes is served, for as many as are idle: the one that was so longest goes. Ours, too, which comes back."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Raw(planed.rpc)) for _ in range(20)]
        for client in clients[-CLIENTS_MAX + 1 :]:
            client.send(VERSION)
            assert client.answer()["id"] == 7
        assert planed.call("version")["protocol"] == 1
        assert all(client.is_closed() for client in clients[: -CLIENTS_MAX + 1])


@pytest.mark.all
def test_clients_with_half_a_request_have_their_time(planed: Planed) -> None:
    """While all places are theirs the others are turned away; each falls to its deadline."""
    with contextlib.ExitStack() as stack:
        for _ in range(CLIENTS_MAX):
            stack.enter_context(Raw(planed.rpc)).send(b'{"json')

        def answers() -> bool:
            with contextlib.suppress(OSError, AssertionError), Raw(planed.rpc) as client:
                client.send(VERSION)
                return client.answer()["id"] == 7
            return False

        until(answers, "half requests are dropped")


def test_the_socket_is_for_its_owner_only(planed: Planed) -> None:
    mode = planed.rpc.stat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600
    assert planed.rpc.stat().st_uid == os.geteuid()


def test_version(planed: Planed) -> None:
    version = planed.call("version")
    assert set(version) == {"planed", "dpdk", "protocol", "tsc_hz", "tsc_nominal_hz", "pid"}
    assert version["pid"] == planed.process.pid
    assert version["dpdk"].startswith("DPDK ")
    assert version["tsc_hz"] > 10**8


def test_extended_statistics_are_those_that_count(planed: Planed) -> None:
    """A null device counts what it sends; rings of our own have none."""
    planed.apply([ring("r0"), ethdev("e0", "net_null0,no-rx=1")], [task("gen", "generator", "e0")])
    mine, device = planed.call("ports.get")["ports"]
    assert (mine["xstats"], device["xstats"]) == ({}, {})
    sent = planed.send(load("gen", rate_pps=100_000))["gen"]["generator"]["offered_packets"]
    found = planed.call("ports.get")["ports"][1]["xstats"]
    assert found["tx_good_packets"] == sent > 0
    assert "tx_errors" not in found


def test_stats_have_the_documented_keys(planed: Planed) -> None:
    tasks = [task("gen", "generator", "r0"), task("mon", "monitor", "r0"), task("sw", "patch", "e0", "e1")]
    sinks = [ethdev(f"e{number}", f"net_null{number},no-rx=1") for number in (0, 1)]
    planed.apply([ring("r0"), *sinks], tasks)
    stats = planed.call("stats.get")
    assert set(stats) == {"tsc_hz", "tsc_nominal_hz", "now_tsc", "mbufs", "ports", "workers", "tasks"}
    counted = {"rx_packets", "tx_packets", "rx_missed", "rx_errors", "tx_errors", "rx_nombuf", "broken_rings"}
    assert [set(port) for port in stats["ports"]] == [{"name", "link_up", *counted}] * 3
    cycles = {"busy_cycles", "idle_cycles"}
    gaps = {"gap_threshold_ns", "gaps", "gap_sum_ns", "gap_max_ns"}
    assert [set(worker) for worker in stats["workers"]] == [{"name", "cpu", "tid", "loops", "sleeps", *cycles, *gaps}]
    common = {"name", "kind", "worker", "polls", "busy_polls", *cycles, "rx_packets", "tx_packets"}
    common |= {"drops", "drops_by_port"}
    assert [set(it) - common for it in stats["tasks"]] == [{"generator"}, {"monitor"}, {"rx_bursts", "rx_full_bursts"}]
    assert all(common <= set(it) for it in stats["tasks"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epoch": 65536}, "epoch: 65536"),
        ({"epoch": -1}, "epoch: -1"),
        ({"duration_ns": 0}, "duration_ns: 0"),
        ({"duration_ns": 999}, "duration_ns: 999"),
        (
            {"speed": 1},
            'unknown key "speed"; valid keys: epoch duration_ns nonce delay_ns keep stamps clocks sampled generators',
        ),
        ({"generators": {}}, "expected an array"),
        ({"generators": [{"task": "mon", "frame_size_bytes": 64, "flat_out": True}]}, 'no generator "mon"'),
        ({"generators": [{"task": "gen", "frame_size_bytes": 63, "flat_out": True}]}, "frame_size_bytes: 63"),
        ({"generators": [{"task": "gen", "frame_size_bytes": 9019, "flat_out": True}]}, "frame_size_bytes: 9019"),
        ({"generators": [{"task": "gen", "frame_size_bytes": 9000, "flat_out": True}]}, "cannot send this load"),
        ({"generators": [{"task": "gen", "frame_size_bytes": 64}]}, "exactly one of rate_pps, line_share"),
        ({"generators": [{"task": "gen", "frame_size_bytes": 64, "flat_out": True, "rate_pps": 1}]}, "exactly one of"),
        ({"generators": [{"task": "gen", "frame_size_bytes": 64, "line_share": 1.5}]}, "line_share: 1.5"),
        ({"generators": [{"task": "gen", "frame_size_bytes": 64, "rate_pps": 0}]}, "rate_pps: 0"),
        ({"sampled": True, "stamps": True}, "not all probes would be seen; leave out stamps"),
        ({"sampled": True, "generators": [load("gen") | {"probe_rate_pps": 1}]}, "cannot send this load"),
        ({"sampled": True, "generators": [load("gen") | {"stamp_all": True}]}, "cannot send this load"),
    ],
)
def test_a_load_that_cannot_be_is_refused_and_nothing_sends(planed: Planed, change: dict[str, Any], words: str) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    with pytest.raises(RpcError) as refusal:
        planed.call("traffic.start", {"epoch": 1, "duration_ns": 10_000_000, "generators": [], **change})
    assert words in refusal.value.message
    assert planed.call("traffic.get") == {"running": False}
    assert planed.settled()["gen"]["tx_packets"] == 0
