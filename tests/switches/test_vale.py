# SPDX-License-Identifier: BSD-3-Clause
"""VALE without netmap: what the adapter refuses and says, and the guard with a ``vale-ctl`` that only writes down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from planebench.host import netns, procfs
from planebench.host.process import Supervisor, stretched, wait_ready
from planebench.host.programs import Found, NotFound
from planebench.model.conditions import MANIFEST_KEYS
from planebench.model.errors import DiedError, NotInstalledError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.switches import kernel, vale, vale_guard
from planebench.switches.adapter import Situation
from planebench.switches.registry import get_adapter
from planebench.testbed.request import SwitchPort, SwitchRequest
from planebench.testbed.wires.netmap import vale_name, vale_ports

CPUS = frozenset({min(os.sched_getaffinity(0))})
PAIRS = (("n0-switch", "vale7x0:v0"), ("vale7x1:v1", "n1-switch"), ("n2-switch", "n3-switch"))
PORTS = ("vale7x0:n0-switch", "vale7x1:n1-switch", "vale7x2:n2-switch", "vale7x2:n3-switch")
FAKE = """#!/bin/sh
# Refuses $FAKE_REFUSES; detaching takes a moment, so that it would not be done by a process that is killed.
[ "$1" = -d ] && sleep 0.05
case "$1 $2" in *"${FAKE_REFUSES:-nothing}") echo "failed: $2: Invalid argument" >&2; exit 1;; esac
echo "$1 $2" >> "$FAKE_LOG"
"""
HARNESS = """
import os, sys, time
from pathlib import Path
from planebench.host.process import Supervisor, wait_ready
with Supervisor(Path(sys.argv[1])) as supervisor:
    guard = supervisor.spawn("guard", sys.argv[2:], cpus=frozenset({min(os.sched_getaffinity(0))}), pipe_stdin=True)
    wait_ready("guard", lambda: guard.log_tail(1) == "ready", [guard])
    print(guard.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the ``vale-ctl`` that is on PATH was told, a line each."""
    program = tmp_path / "bin" / "vale-ctl"
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "told"))
    (tmp_path / "told").touch()
    return tmp_path / "told"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parameters of a module that looks loaded; nothing of it works."""
    monkeypatch.setattr(vale, "MODULE", tmp_path / "netmap")
    monkeypatch.setattr(vale, "DEVICE", tmp_path / "device")
    monkeypatch.setattr(kernel, "has_core", lambda: True)
    (tmp_path / "device").touch()
    folder = tmp_path / "netmap" / "parameters"
    folder.mkdir(parents=True)
    for name, value in {"buf_size": 10240, "buf_num": 32768, "generic_mit": 0, "generic_ringsize": 1024}.items():
        (folder / name).write_text(f"{value}\n")
    return folder


ARGV = [sys.executable, "-I", "-S", vale_guard.__file__, "vale-ctl", *PORTS]


def lines(told: Path) -> list[str]:
    return told.read_text().splitlines()


def both_ways(*names: str) -> list[str]:
    names = names or PORTS
    return [*(f"-a {name}" for name in names), *(f"-d {name}" for name in reversed(names))]


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + stretched(10)
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def request(workdir: Path) -> SwitchRequest:
    return SwitchRequest(
        ports=tuple(SwitchPort(name, "af_packet", interface=f"{name}-switch") for name in ("n0", "n1")),
        cross_connects=(("n0", "n1"),),
        cpu=max(os.sched_getaffinity(0)),
        control_cpus=CPUS,
        workdir=workdir,
        hugepages=False,
        netns_pid=os.getpid(),
    )


# The guard


def test_attaches_in_order_and_detaches_at_the_end_of_input(told: Path) -> None:
    with subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as guard:
        assert guard.stdin is not None and guard.stdout is not None
        assert guard.stdout.readline() == b"ready\n"
        assert lines(told) == both_ways()[:4]
        guard.stdin.write(b"more\n")
        guard.stdin.flush()
        assert guard.poll() is None
        guard.stdin.close()
        assert guard.wait(60) == 0
    assert lines(told) == both_ways()


def test_signals_but_kill_do_not_end_it(supervisor: Supervisor, told: Path) -> None:
    guard = supervisor.spawn("guard", ARGV, cpus=CPUS, pipe_stdin=True)
    wait_ready("guard", lambda: guard.log_tail(1) == "ready", [guard])
    for number in vale_guard.IGNORED:
        os.killpg(guard.pid, number)
    time.sleep(0.05)
    assert guard.alive() and len(lines(told)) == 4
    guard.terminate()
    assert guard.returncode == 0
    assert lines(told) == both_ways()


def test_kill_of_its_process_group_does_not_reach_the_one_that_detaches(supervisor: Supervisor, told: Path) -> None:
    guard = supervisor.spawn("guard", ARGV, cpus=CPUS, pipe_stdin=True)
    wait_ready("guard", lambda: guard.log_tail(1) == "ready", [guard])
    os.killpg(guard.pid, signal.SIGKILL)
    until(lambda: guard.returncode is not None)  # the end of its input has to be told all the same
    guard.terminate()
    until(lambda: lines(told) == both_ways())


def test_detaches_when_the_harness_is_killed(told: Path) -> None:
    harness = [sys.executable, "-c", HARNESS, "/tmp", *ARGV]
    with subprocess.Popen(harness, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert lines(told) == both_ways()[:4]
        process.kill()
    until(lambda: lines(told) == both_ways())
    until(lambda: not procfs.is_running(pid))


def test_what_was_attached_is_detached_when_the_next_is_refused(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_REFUSES", "n2-switch")
    with subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as guard:
        output, errors = guard.communicate(timeout=60)
    assert (guard.returncode, output) == (1, b"")
    assert b"Invalid argument" in errors
    assert lines(told) == both_ways(*PORTS[:2])


def test_one_that_cannot_be_detached_leaves_the_others_no_worse(told: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as guard:
        assert guard.stdout is not None and guard.stdout.readline() == b"ready\n"
        told.with_name("bin").joinpath("vale-ctl").write_text(FAKE.replace("${FAKE_REFUSES:-nothing}", "n2-switch"))
        _, errors = guard.communicate(timeout=60)
    assert guard.returncode == 1 and b"n2-switch failed (1)" in errors
    assert [text for text in lines(told) if text.startswith("-d")] == [
        f"-d {name}" for name in reversed(PORTS) if "n2" not in name
    ]


# The adapter


def test_a_port_of_a_program_is_not_attached_and_names_the_switch() -> None:
    found = vale.attachments(PAIRS)
    assert tuple(found[:2]) == PORTS[:2]
    assert len({port.partition(":")[0] for port in found}) == 3
    assert vale.attachments((("vale7x0:v0", "vale7x0:v1"),)) == []


def test_ports_of_programs_need_nothing(tmp_path: Path, told: Path, module: Path) -> None:
    ends = vale_ports([("n0", "n1")])
    assert ends["n0"].tester == ends["n0"].switch and ends["n0"].tester.partition(":")[2] == "n0"
    assert ends["n0"].tester.partition(":")[0] == ends["n1"].tester.partition(":")[0]
    ports = tuple(SwitchPort(name, "netmap", interface=end.switch) for name, end in ends.items())
    it = replace(request(tmp_path), ports=ports)
    switch = vale.ADAPTER.start(it, None)  # type: ignore[arg-type]
    assert (switch.polling_threads(), switch.counters(), lines(told)) == ((), SwitchCycles(), [])
    settings = vale.ADAPTER.settings(it)
    assert (settings["ring_size"], settings["nic_driver"]) == ("256 (of a port of VALE)", "netmap")
    assert settings["cores"] == "those of tester and VNFs, for what they send"


def test_names_of_switches_are_such_as_netmap_takes() -> None:
    names = [vale_name() for _ in range(300)]
    assert len(set(names)) == 300
    assert all(len(name) < 16 and name.isalnum() for name in names)


def test_guard_is_ready_then_check_tells_its_death(supervisor: Supervisor, told: Path, module: Path) -> None:
    it = request(supervisor.workdir("s"))
    guard = vale.ADAPTER.connect(it, supervisor, (("n0-switch", "n1-switch"),))
    first, second = lines(told)
    assert (first[:7], first[-9:], second) == ("-a vale", "n0-switch", first.replace("n0", "n1"))
    switch = kernel.RunningKernel("VALE", {}, it, supervisor)
    switch.keeper = guard
    switch.check()
    guard.terminate()
    with pytest.raises(DiedError, match=r"vale-guard \(pid \d+\) ended with exit code 0; its last log lines:\nready"):
        switch.check()


def test_stop_detaches(supervisor: Supervisor, told: Path, module: Path) -> None:
    it = request(supervisor.workdir("s"))
    nics = replace(it, netns_pid=None)
    switch = vale.ADAPTER.start(nics, supervisor)
    switch.check()
    assert switch.counters() == SwitchCycles()
    assert vale.ADAPTER.settings(nics)["cores"] == "those of the NICs' interrupts"
    switch.stop()
    switch.stop()
    assert [text[:7] + text[-9:] for text in lines(told)[2:]] == ["-d valen1-switch", "-d valen0-switch"]


def test_refused_attachment_is_a_start_error(
    supervisor: Supervisor, told: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_REFUSES", "n1-switch")
    with pytest.raises(StartError, match=r"(?s)n1-switch: Invalid argument.*`dmesg` shows netmap's reason"):
        vale.ADAPTER.connect(request(supervisor.workdir("s")), supervisor, (("n0-switch", "n1-switch"),))
    assert told.read_text().splitlines()[-1].startswith("-d ")


def test_found_with_program_and_device(told: Path, module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = vale.ADAPTER.find()
    assert isinstance(found, Found)
    assert found.version.startswith("unknown version (Linux ")
    assert found.binary == told.parent / "bin" / "vale-ctl"
    (module.parent / "version").write_text("14\n")
    assert vale.ADAPTER.find().version.startswith("14 (Linux ")  # type: ignore[union-attr]
    vale.DEVICE.unlink()
    missing = vale.ADAPTER.find()
    assert isinstance(missing, NotFound) and "netmap is not loaded" in missing.remedy
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(vale, "PLACES", ())
    assert vale.ADAPTER.find() == NotFound(vale.ADAPTER.remedy)
    with pytest.raises(NotInstalledError):
        vale.ADAPTER.start(request(told.parent), None)  # type: ignore[arg-type]


def test_found_in_the_folder_that_netmap_was_built_in(tmp_path: Path, module: Path) -> None:
    program = tmp_path / "netmap-build" / "build-apps" / "vale-ctl" / "vale-ctl"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE)
    program.chmod(0o755)
    found = get_adapter(f"vale:path={tmp_path / 'netmap-build'}").find()
    assert isinstance(found, Found) and found.binary == program
    with pytest.raises(UsageError, match="does not exist"):
        get_adapter("vale:path=/nowhere").find()


def test_parameters_that_do_not_do(told: Path, module: Path) -> None:
    vale.check_parameters()
    (module / "generic_mit").write_text("100000\n")
    with pytest.raises(StartError, match=r"generic_mit is 100000 ns.*echo 0 > "):
        vale.ADAPTER.start(request(told.parent), None)  # type: ignore[arg-type]
    (module / "buf_size").write_text("1024\n")
    with pytest.raises(StartError, match=rf"buf_size is 1024 .* MTU of {netns.MTU_BYTES} .*buf_num=98304"):
        vale.ADAPTER.start(request(told.parent), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "x\n", "-1\n", "1.5\n", "0x800\n", "²\n"])
def test_a_parameter_that_is_no_number_is_unknown(module: Path, text: str) -> None:
    (module / "buf_size").write_text(text)
    (module / "generic_mit").unlink()
    assert (vale.parameter("buf_size"), vale.parameter("generic_mit")) == (None, None)
    vale.check_parameters()
    settings = vale.ADAPTER.settings(request(module))
    assert (settings["buffers"], settings["generic_mit_ns"]) == ("32768 of unknown bytes", "unknown")


def test_manifest(module: Path) -> None:
    settings = vale.ADAPTER.settings(request(module))
    assert list(settings)[: len(MANIFEST_KEYS)] == list(MANIFEST_KEYS)
    assert "unknown" not in settings.values()
    assert settings["cores"] == str(max(os.sched_getaffinity(0)))
    assert (settings["burst"], settings["ring_size"]) == ("1", "256 (veth's, fixed), 1024 (netmap's)")
    assert (settings["buffers"], settings["generic_mit_ns"]) == ("32768 of 10240 bytes", "0")


def test_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vale, "has_core", lambda: True)
    assert vale.ADAPTER.refusal(Situation("p2p", "veth")) == ""
    assert "--wire veth" in vale.ADAPTER.refusal(Situation("p2p", "virtio"))
    monkeypatch.setattr(vale, "has_core", lambda: False)
    assert "requires root" in vale.ADAPTER.refusal(Situation("p2p", "veth"))
