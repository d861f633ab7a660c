# SPDX-License-Identifier: BSD-3-Clause
"""What an operator sees of a forwarder: the table, the same as JSON and as metrics, and the alerts on them."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planebench_fib import command, status

ALERTS = Path(status.__file__).parent / "system" / "alerts.yml"
MOST = 2**64 - 1
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus")


def vnf(number: int, **more: Any) -> dict[str, Any]:
    """A VNF as stats.get has it."""
    return {
        **{"vnf": number, "port": f"vnf{number}", "offload": True},
        **{"forwarded": 10, "punted": 5, "punt_limited": 2, "no_route": 3, "sent": 1},
        **{"routes4": 200_012, "routes6": 30, "stale": 0, "next_hops": 12},
        **{"quota_routes": 500_000, "quota_next_hops": 256},
        "session": {"state": "up", "update_age_s": 12, "answers": {"ok": 9, "quota": 0, "full": 0}},
        **more,
    }


def task(*vnfs: dict[str, Any], name: str = "sw0", fib: str = "sw0") -> dict[str, Any]:
    table = {"entries": 400_042, "room": 1_000_000, "bytes": 8_600_000, "pages": "thp"}
    report = {"fib": fib, "table4": table, "table6": table | {"entries": 0}, "sweeping": False, "vnfs": list(vnfs)}
    return {"name": name, "kind": "fib_offload", "fib_offload": report}


SILENT = vnf(2, stale=200_042, session={"state": "stale", "update_age_s": 100, "answers": {"quota": 4}})
STATISTICS = {"tasks": [{"name": "p", "kind": "patch"}, task(vnf(1), SILENT)]}
EXTREME = vnf(
    4095,
    port="a-port-with-a-long-name",
    session={"state": "stale", "update_age_s": 10**9, "answers": {}},
    **dict.fromkeys(("punted", "punt_limited", "no_route", "routes4", "routes6", "stale"), MOST),
    **dict.fromkeys(("quota_routes", "next_hops", "quota_next_hops"), MOST),
)
CONVENTIONAL = {key: it for key, it in vnf(3, offload=False).items() if key in ("vnf", "port", "offload")}
CONVENTIONAL |= dict.fromkeys(("forwarded", "punted", "punt_limited", "no_route", "sent"), 7)


@contextlib.contextmanager
def forwarder(path: Path, answer: bytes) -> Iterator[list[bytes]]:
    """Answer each request on a socket, and keep the requests."""
    asked: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.makefile("rb").readline())
                    connection.sendall(answer)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        yield asked
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def as_answer(statistics: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": statistics}).encode() + b"\n"


def test_a_person_reads_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with forwarder(tmp_path / "rpc", as_answer(STATISTICS)) as asked:
        command.run(["status", "--rpc", str(tmp_path / "rpc")], "planebench-fib")
    assert [json.loads(line)["method"] for line in asked] == ["stats.get"]
    assert capsys.readouterr().out.splitlines() == [
        "sw0: 400,042 of 1,000,000 IPv4 entries, 0 of 1,000,000 IPv6 entries",
        "VNF  port     state IPv4 IPv6 quota hops quota stale punted limited noroute  age",
        "1    vnf1     up    200k   30   40%   12    4%     0      5       2       3  12s",
        "2    vnf2     stale 200k   30   40%   12    4%  200k      5       2       3 100s",
        "VNF 2: its agent is silent; its routes are removed at the end of grace_s",
        "VNF 2: 4 updates refused: quota",
    ]


def test_the_table_has_80_columns() -> None:
    fibs = status.fibs_of({"tasks": [task(vnf(1), EXTREME, CONVENTIONAL, vnf(4, quota_routes=0))]})
    lines = list(status.lines(fibs))
    assert max(map(len, lines)) == 80
    assert lines[3] == "4095 a-port-w stale  18E  18E  200%  18E  100%   18E    18E     18E     18E 999d"
    assert lines[4] == "3    vnf3     -        -    -     -    -     -     -      7       -       -    -"
    assert "VNF 4095: its routes are nearly used up: quota_routes" in lines


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (9999, "9999"),
        (10_000, "10k"),
        (999_999, "999k"),
        (1_999_999, "1.9M"),
        (12_345_678, "12M"),
        (MOST, "18E"),
    ],
)
def test_numbers_are_short_and_rounded_down(number: int, text: str) -> None:
    assert status._short(number) == text


def test_json_has_exact_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with forwarder(tmp_path / "rpc", as_answer(STATISTICS)):
        command.run(["status", "--rpc", str(tmp_path / "rpc"), "--json"], "planebench-fib")
    (fib,) = json.loads(capsys.readouterr().out)["fibs"]
    assert (fib["fib"], fib["tasks"], fib["tables"][0]["room"]) == ("sw0", ["sw0"], 1_000_000)
    assert [(it["vnf"], it["state"], it["routes4"], it["stale"]) for it in fib["vnfs"]] == [
        (1, "up", 200_012, 0),
        (2, "stale", 200_012, 200_042),
    ]


def test_tasks_that_share_a_fib_are_one() -> None:
    fibs = status.fibs_of({"tasks": [task(vnf(1)), task(vnf(1), name="sw1"), task(vnf(1), name="b", fib="b")]})
    assert [(it.fib, it.tasks, it.vnfs[0].forwarded, it.vnfs[0].routes4) for it in fibs] == [
        ("sw0", ("sw0", "sw1"), 20, 200_012),
        ("b", ("b",), 10, 200_012),
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "no answer to stats.get as planed gives it"),
        (b"{}\n", "no answer to stats.get"),
        (b"[]\n", "no answer to stats.get"),
        (b"[" * 100_000 + b"\n", "no answer to stats.get"),
        (as_answer({"tasks": [{"kind": "fib_offload"}]}), "no answer to stats.get"),
        (b'{"error": {"code": -1, "message": "a worker does not park"}}\n', "a worker does not park"),
    ],
)
def test_another_answer_is_an_error(tmp_path: Path, answer: bytes, words: str) -> None:
    with forwarder(tmp_path / "rpc", answer), pytest.raises(status.ForwarderError, match=words):
        status.ask(tmp_path / "rpc")


def test_a_forwarder_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "planebench_fib", "status", "--rpc", str(tmp_path / "rpc")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        f"planebench-fib: {tmp_path}/rpc: No such file or directory; is planed running with --rpc {tmp_path}/rpc?\n"
    )


def test_another_switch_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "rpc")
    with (
        forwarder(tmp_path / "rpc", as_answer({"tasks": []})),
        pytest.raises(command.UsageError, match="no task fib_off"),
    ):
        command.run(["status", "--rpc", path], "planebench-fib")


def samples(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")}


def test_metrics_have_what_the_table_has() -> None:
    found = samples(status.metrics(status.fibs_of({"tasks": [task(vnf(1), SILENT, CONVENTIONAL)]})))
    assert found["planed_fib_up"] == 1
    assert [found[f'planed_fib_session_up{{fib="sw0",vnf="{n}",port="vnf{n}"}}'] for n in (1, 2)] == [1, 0]
    assert found['planed_fib_routes{fib="sw0",vnf="1",port="vnf1",family="6"}'] == 30
    assert found['planed_fib_stale_routes{fib="sw0",vnf="2",port="vnf2"}'] == 200_042
    assert found['planed_fib_last_update_age_seconds{fib="sw0",vnf="1",port="vnf1"}'] == 12
    assert found['planed_fib_answers_total{fib="sw0",vnf="2",code="quota"}'] == 4
    assert found['planed_fib_table_room{fib="sw0",table="table4"}'] == 1_000_000
    assert not [name for name in found if 'vnf="3"' in name]


def test_prometheus_scrapes_it_with_and_without_a_forwarder(tmp_path: Path) -> None:
    import http.client

    argv = [sys.executable, "-m", "planebench_fib", "metrics", "--rpc", str(tmp_path / "rpc"), "--listen"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*argv, f"127.0.0.1:{port}"])
    try:

        def scraped() -> dict[str, float]:
            for _ in range(600):
                with contextlib.suppress(ConnectionRefusedError):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    connection.request("GET", "/metrics")
                    return samples(connection.getresponse().read().decode())
                process.poll() is None or pytest.fail("it has ended")
                threading.Event().wait(0.1)
            raise AssertionError("nobody listens")

        assert scraped() == {"planed_fib_up": 0}
        with forwarder(tmp_path / "rpc", as_answer(STATISTICS)):
            assert scraped()["planed_fib_up"] == 1
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("address", ["9871", "localhost:", ":9871", "127.0.0.1:65536", "127.0.0.1:x"])
def test_a_bad_address_is_named(address: str) -> None:
    with pytest.raises(command.UsageError, match="give HOST:PORT"):
        command.run(["metrics", "--rpc", "rpc", "--listen", address], "planebench-fib")


@needs_promtool
def test_promtool_finds_nothing_wrong_with_the_metrics() -> None:
    text = status.metrics(status.fibs_of({"tasks": [task(vnf(1, port='a "port"\\'), SILENT)]}))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_promtool
def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    """On series with the names and labels that metrics() gives: those that are missing there would never fire."""
    healthy = samples(status.metrics(status.fibs_of({"tasks": [task(vnf(1))]})))
    of_vnf = '{fib="sw0",vnf="1",port="vnf1"}'
    troubles = {
        "FibForwarderDown": {"planed_fib_up": "0x20"},
        "FibAgentDown": {f"planed_fib_session_up{of_vnf}": "0x20"},
        "FibRoutesStale": {f"planed_fib_stale_routes{of_vnf}": "5x20"},
        "FibQuotaNearlyUsed": {f"planed_fib_routes_quota{of_vnf}": "200100x20"},
        "FibTableNearlyFull": {'planed_fib_table_room{fib="sw0",table="table4"}': "400100x20"},
        "FibUpdatesRefused": {'planed_fib_answers_total{fib="sw0",vnf="1",code="quota"}': "0+1x20"},
        "FibPuntsLimited": {f"planed_fib_punt_limited_packets_total{of_vnf}": "0+60x20"},
    }
    groups = []
    for fires, trouble in ({"": {}} | troubles).items():
        series = {name: f"{value}x20" for name, value in healthy.items()}
        assert set(trouble) <= set(series)
        tests = [{"eval_time": "15m", "alertname": name, "exp_alerts": []} for name in troubles if name != fires]
        values = [{"series": name, "values": value} for name, value in (series | trouble).items()]
        groups.append({"interval": "1m", "input_series": values, "alert_rule_test": tests})
        if fires:
            query = f'count(ALERTS{{alertname="{fires}",alertstate="firing"}})'
            groups[-1]["promql_expr_test"] = [
                {"expr": query, "eval_time": "15m", "exp_samples": [{"labels": "{}", "value": 1}]}
            ]
    (tmp_path / "test.yml").write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": groups}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yml")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
