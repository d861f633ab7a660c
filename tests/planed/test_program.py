# SPDX-License-Identifier: BSD-3-Clause
"""planed as a program: options, exit codes, its socket from birth to end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from planed_rig import CPUS, PATIENCE_S, Planed, document, ethdev, planed_binary, ring, task, until, vhost

from planebench.host.planed_program import STATIC_REMEDY, find_static_planed
from planebench.host.process import Supervisor
from planebench.planed.client import PlanedClient, RpcError

pytestmark = pytest.mark.dataplane


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    argv = [planed_binary(), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    tasks = [task("gen", "generator", "r0"), task("mon", "monitor", "r0")]
    path.write_text(json.dumps(document("program", [ring("r0")], tasks)))
    return path


def test_the_static_one_is_the_same_program_without_libraries(config: Path) -> None:
    static = find_static_planed(Path(planed_binary()))
    if static is None:
        pytest.skip(STATIC_REMEDY)
    loader = b"/ld-linux"  # beside the program headers of what needs one
    assert loader in Path(planed_binary()).read_bytes()[:4096] and loader not in static.read_bytes()[:4096]
    for arguments in (["--version"], ["--help"], ["--check", str(config)]):
        done = subprocess.run([static, *arguments], capture_output=True, text=True, timeout=60, env={})
        assert (done.returncode, done.stdout) == (0, run(*arguments).stdout)


def test_check_of_a_good_document(config: Path) -> None:
    done = run("--check", config)
    said = f"{config} is valid: ports 1, tasks 2, workers 1\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_who_could_not_be_ended_by_a_signal_does_not_start(config: Path, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler for a signalfd() that fails")
    source, library = tmp_path / "signalfd.c", tmp_path / "signalfd.so"
    source.write_text("#include <errno.h>\nint signalfd(void) { errno = EMFILE; return -1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    done = subprocess.run(
        ["env", f"LD_PRELOAD={library}", planed_binary(), "--config", config],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = "planed: error: signals cannot be read: Too many open files; raise ulimit -n\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


@pytest.mark.parametrize("option", ["--check", "--config"])
def test_a_document_for_another_machine_is_refused_with_what_is_missing(tmp_path: Path, option: str) -> None:
    path = tmp_path / "other.json"
    missing = tmp_path / "missing"
    for change, words in (
        ({"cpu": 1023}, f"worker w0 cannot run on cpu 1023: this machine has cpus 0 to {os.cpu_count() - 1}; give one"),
        (
            {"path": f"{missing}/v.sock"},
            f"port v0: folder {missing}/ of its path: No such file or directory; create it, or give another path",
        ),
        ({"path": f"{path}/v.sock"}, "Not a directory; give a path in a folder that planed may write"),
    ):
        made = document(
            "program", [vhost("v0", change.get("path", tmp_path / "v.sock"))], [task("mon", "monitor", "v0")]
        )
        made["workers"][0]["cpu"] = change.get("cpu", CPUS[0])
        path.write_text(json.dumps(made))
        done = run(option, path)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr and len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.sock"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1"),
        ("{", "line 1"),
        ('{\n"version": 1,\n"version": 1}', "line 3: duplicate object key"),
        ('{"version": 2, "name": "a"}', "2 is not supported"),
        ('{"version": 1, "name": "a", "prots": []}', 'unknown key "prots"; valid keys: version name'),
        ("[1]", "expected an object"),
    ],
)
def test_check_of_a_bad_document_says_why_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    for option in ("--check", "--config"):
        done = run(option, path)
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (5, "tasks[0].fault: expected an object"),
        (None, "tasks[0].fault: expected an object"),
        ([{"drop_one_in": 5}], "tasks[0].fault: expected an object"),
        ({}, 'tasks[0].fault: key "drop_one_in" is missing'),
        (
            {"drop_one_in": 0},
            "tasks[0].fault.drop_one_in: 0 is not valid: expected a whole number from 1 to 4294967295",
        ),
        ({"drop_one_in": -1}, "tasks[0].fault.drop_one_in: -1"),
        ({"drop_one_in": 2**32}, "tasks[0].fault.drop_one_in: 4294967296"),
        ({"drop_one_in": 1.5}, "tasks[0].fault.drop_one_in: 1.5"),
        ({"drop_one_in": "5"}, 'tasks[0].fault.drop_one_in: "5"'),
        ({"drop_one_in": True}, "tasks[0].fault.drop_one_in: true"),
        ({"drop_one_in": {"drop_one_in": 5}}, "tasks[0].fault.drop_one_in: {"),
        ({"drop_one_in": 5, "x" * 5000: 1}, 'tasks[0].fault: unknown key "xxx'),
    ],
)
def test_check_of_a_fault_of_a_bad_shape_names_its_path(tmp_path: Path, fault: object, words: str) -> None:
    path = tmp_path / "bad.json"
    ports = [ethdev("e0", "net_null0"), ethdev("e1", "net_null1")]
    path.write_text(json.dumps(document("program", ports, [task("sw", "patch", "e0", "e1", fault=fault)])))
    done = run("--check", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["generator", "monitor", "l2fwd"])
def test_check_of_a_fault_in_a_task_that_has_none(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "bad.json"
    tasks = [task("it", kind, "e0", fault={"drop_one_in": 5})]
    path.write_text(json.dumps(document("program", [ethdev("e0", "net_null0")], tasks)))
    done = run("--check", path)
    assert done.returncode == 2
    assert f'kind {kind} has no "fault"; leave it out' in done.stderr


def test_check_of_a_good_fault(tmp_path: Path) -> None:
    path = tmp_path / "good.json"
    ports = [ethdev("e0", "net_null0"), ethdev("e1", "net_null1")]
    for count in (1, 2**32 - 1):
        tasks = [task("sw", "patch", "e0", "e1", fault={"drop_one_in": count})]
        path.write_text(json.dumps(document("program", ports, tasks)))
        assert run("--check", path).returncode == 0


def test_a_document_that_is_not_there(tmp_path: Path) -> None:
    done = run("--check", tmp_path / "nothing.json")
    assert done.returncode == 2
    assert "nothing.json" in done.stderr and "No such file" in done.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["--nonsense"], ["--config"], ["extra"], ["--rpc", "/tmp/x"], ["--check", "/dev/null", "extra"]]
)
def test_a_bad_command_line_shows_the_usage(arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: planed --config FILE" in done.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("planed 0.")
    assert run("--help").returncode == 0


@pytest.mark.parametrize("cpus", ["", "0", "0,0", "0,x", "0,1,2", "0,1023"])
def test_core_distance_of_cpus_that_cannot_be(cpus: str) -> None:
    done = run("--core-distance", cpus)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--core-distance" in done.stderr


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_core_distance() -> None:
    for _ in range(5):  # it gives up after two seconds if another poller has one of the CPUs
        done = run("--core-distance", f"{CPUS[0]},{CPUS[-1]}")
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["a"], told["b"]) == (CPUS[0], CPUS[-1])
    assert 0 < told["min_ns"] <= told["median_ns"]
    assert all(0.1 < speed < 16 for speed in told["additions_per_cycle"])
    assert len(told["additions_per_cycle"]) == 2


@pytest.mark.parametrize("words", ["", "0", "0,0", "0,x", "0,1,2", "1023,10"])
def test_a_dry_poll_that_cannot_be(words: str) -> None:
    done = run("--dry-poll", words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--dry-poll" in done.stderr


def test_a_dry_poll_counts_its_gaps() -> None:
    told = json.loads(run("--dry-poll", f"{CPUS[0]},20").stdout)
    assert told["cpu"] == CPUS[0]
    assert told["duration_ns"] >= 20_000_000 and told["polls"] > 1000
    assert told["tsc_hz"] == 0 or told["tsc_hz"] > 10**8
    assert all(least_ns >= 1024 and count > 0 for least_ns, count in told["gaps"])
    longest_ns, among = told["longest_gap_ns"], [least_ns for least_ns, _ in told["gaps"]]
    assert not among or among[-1] <= longest_ns < 2 * among[-1]


@pytest.mark.parametrize("nics", ["", ",", "0000:ff:1f.7,,"])
def test_ring_limits_of_what_is_no_list_of_nics(nics: str) -> None:
    done = run("--ring-limits", nics)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--ring-limits" in done.stderr


def test_ring_limits_of_a_nic_that_is_not_there() -> None:
    done = run("--ring-limits", "0000:ff:1f.7")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_device_that_cannot_be_opened_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document("program", [ethdev("e0", "net_pcap0,rx_pcap=/no/such.pcap")])))
    done = run("--config", path, "--rpc", tmp_path / "rpc")
    assert done.returncode == 1
    assert "port e0 cannot be opened" in done.stderr
    assert not (tmp_path / "rpc").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(supervisor: Supervisor, number: signal.Signals) -> None:
    planed = Planed(supervisor, f"ends-{number.name.lower()}")
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    planed.start_traffic({"task": "gen", "frame_size_bytes": 64, "flat_out": True}, duration_s=60)
    name = planed.call("config.get")["name"]
    assert (runtime := supervisor.root / "dpdk" / name).is_dir()
    planed.process._signal(number)
    assert planed.process.wait(PATIENCE_S) == 0
    assert not planed.rpc.exists() and not runtime.exists()


def test_shutdown_is_answered_and_ends_it(supervisor: Supervisor) -> None:
    planed = Planed(supervisor, "shuts-down")
    assert planed.call("shutdown") == {}
    assert planed.process.wait(PATIENCE_S) == 0
    assert not planed.rpc.exists()


def test_a_stale_socket_is_replaced_and_one_in_use_is_not(supervisor: Supervisor) -> None:
    first = Planed(supervisor, "first")
    config = first.workdir / "config.json"
    refused = run("--config", config, "--rpc", first.rpc)
    assert refused.returncode == 1
    assert f"cannot listen on {first.rpc}: another process listens there" in refused.stderr
    assert first.call("version")["pid"] == first.process.pid

    first.process._signal(signal.SIGKILL)
    first.process.wait(PATIENCE_S)
    assert first.rpc.is_socket(), "left behind by the kill"
    second = supervisor.spawn(
        "second", [planed_binary(), "--config", str(config), "--rpc", str(first.rpc)], cpus=frozenset(CPUS)
    )
    until(lambda: _answers(first.rpc), "the second planed answers")
    with PlanedClient(first.rpc) as client:
        assert client.call("version")["pid"] == second.pid


def test_a_file_in_the_place_of_the_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(document("program")))
    before = path.read_text()
    refused = run("--config", path, "--rpc", path)
    assert refused.returncode == 1
    assert "cannot listen on" in refused.stderr
    assert path.read_text() == before


def test_a_vhost_port_says_what_is_in_the_place_of_its_socket(supervisor: Supervisor, tmp_path: Path) -> None:
    path = tmp_path / "v.sock"
    port = {"name": "v", "kind": "vhost-user", "path": str(path)}
    first, second = Planed(supervisor, "listens"), Planed(supervisor, "listens-too")
    path.write_text("precious")
    with pytest.raises(RpcError, match="port v cannot be opened"):
        first.apply([port])
    assert "there is a file that is no socket" in first.process.log_tail() and path.read_text() == "precious"
    path.unlink()
    first.apply([port])
    with pytest.raises(RpcError, match="port v cannot be opened"):
        second.apply([port])
    assert f"cannot listen on {path}: another process listens there" in second.process.log_tail()


def test_a_path_too_long_for_a_socket_is_refused(config: Path, tmp_path: Path) -> None:
    refused = run("--config", config, "--rpc", tmp_path / ("x" * 120))
    assert refused.returncode == 1
    assert "File name too long" in refused.stderr


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True
