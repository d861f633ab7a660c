# SPDX-License-Identifier: BSD-3-Clause
"""Tester and switch on two hosts: two network namespaces with an sshd each, whose cables are veth pairs.

The command line is on a third one, which only reaches both by ssh. ``ssh`` and ``sshd`` are OpenSSH's; the client has a
configuration of its own, in place of the user's.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import planebench
from planebench.analysis.ledger import ledger
from planebench.host import procfs
from planebench.host.leftovers import command_line
from planebench.host.planed_program import find_planed
from planebench.host.process import stretched
from planebench.model.errors import INCONCLUSIVE
from planebench.model.header import Run
from planebench.model.text import seconds_since_epoch
from planebench.store import read_run

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
pytestmark = [
    pytest.mark.dataplane,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces require root"),
    pytest.mark.skipif(not Path(SSHD).exists(), reason="OpenSSH's server is not installed"),
    pytest.mark.skipif(find_planed() is None, reason="planed is not built"),
]

CABLES = "veth:pbn0=pbn0,pbn1=pbn1"
"""The same names on both hosts, as on two machines of one model."""
PLAN = """# SPDX-License-Identifier: BSD-3-Clause
version: 1
name: hosts
switches: [planed]
scenarios: [p2p]
directions: [bidirectional]
frame_sizes_bytes: [64]
throughput: {duration_s: 1.5, repetitions: 1}
latency: {loads: [], duration_s: 0.1}
"""
"""Trials that were disturbed are not repeated: it is their counts that matter."""
SHORT = ("hosts.yaml", "--max-rate", "10k", "--no-report")
WITHIN_S = 90.0
BEFORE_SENDING_S = 3.0
"""A trial asks the other host for its counters and evidence first; then nobody says anything until its end."""

ACKNOWLEDGED_S = 0.2
"""The kernel acknowledges the last message so much later at most (Linux, include/net/tcp.h: TCP_DELACK_MAX)."""


def run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@dataclass
class Machine:
    """A network namespace with an sshd, and one CPU."""

    name: str
    address: str
    folder: Path
    cpu: int
    sshd: subprocess.Popen[bytes] = field(init=False)

    @property
    def inside(self) -> list[str]:
        return ["ip", "netns", "exec", f"pb{self.name}", "taskset", "-c", str(self.cpu)]

    @property
    def runtime(self) -> Path:
        return self.folder / self.name

    def serve(self) -> None:
        self.runtime.mkdir()
        config = self.folder / f"sshd_{self.name}"
        config.write_text(
            f"ListenAddress {self.address}\nHostKey {self.folder}/host_key\nPidFile none\nStrictModes no\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/key.pub\nPermitRootLogin yes\nPasswordAuthentication no\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        self.sshd = subprocess.Popen([*self.inside, SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL)

    def processes(self) -> list[int]:
        """Return the processes in its network namespace but its sshd and what belongs to that."""
        own = Path(f"/proc/{self.sshd.pid}/ns/net").stat().st_ino
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "ns/net").stat().st_ino == own:
                    found.append(int(entry.name))
        return [pid for pid in found if procfs.is_running(pid) and "sshd" not in command_line(pid)]

    def management_bytes(self) -> int:
        """Return the bytes that its management interface has sent and received."""
        folder = Path(f"/sys/class/net/pbm{self.name}/statistics")
        return sum(int((folder / name).read_text()) for name in ("rx_bytes", "tx_bytes"))


@dataclass
class Lab:
    """Two machines with two cables, and the folder of the one with the command line."""

    folder: Path
    a: Machine
    b: Machine

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PLANEBENCH_RUNS": f"{self.folder}/runs",
            "PLANEBENCH_AGENT": f"{self.folder}/bin/agent",
            "XDG_RUNTIME_DIR": str(self.folder),
        }

    def start(self, *arguments: str, inside: Sequence[str] = (), **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*inside, sys.executable, "-m", "planebench", *arguments],
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def run(self, *arguments: str, inside: Sequence[str] = (), **environment: str) -> tuple[int, str]:
        """Run the command to its end; return its exit code and its standard error."""
        with self.start(*arguments, inside=inside, **environment) as process:
            _, said = process.communicate(timeout=stretched(WITHIN_S))
            return process.returncode, said

    def newest(self) -> Run:
        """Return the newest run."""
        return read_run(max((self.folder / "runs").iterdir(), key=lambda path: path.stat().st_mtime))

    def is_clean(self) -> bool:
        """Return whether nothing of planebench is left on both machines."""
        return all(not machine.processes() and not list(machine.runtime.glob("pb-*")) for machine in (self.a, self.b))


def eventually(condition: Callable[[], bool], within_s: float = 30.0) -> bool:
    end = time.monotonic() + stretched(within_s)
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    folder = Path(tempfile.mkdtemp(prefix="pbh", dir="/tmp"))
    cpus = sorted(os.sched_getaffinity(0))
    machines = Machine("a", "10.213.1.2", folder, cpus[0]), Machine("b", "10.213.2.2", folder, cpus[-1])
    made = Lab(folder, *machines)
    (folder / "bin").mkdir()
    (folder / "hosts.yaml").write_text(PLAN)
    try:
        _keys(made)
        for number, machine in enumerate(machines, start=1):
            _namespace(machine, f"10.213.{number}.1")
        for cable in ("pbn0", "pbn1"):
            run("ip", "link", "add", cable, "netns", "pba", "type", "veth", "peer", "name", cable, "netns", "pbb")
            for machine in machines:
                run("ip", "-n", f"pb{machine.name}", "link", "set", cable, "addrgenmode", "none", "up")
        _direct_way(*machines)
        for machine in machines:
            machine.serve()
        assert eventually(lambda: subprocess.run([f"{folder}/bin/ssh", "b", "true"], check=False).returncode == 0)
        assert eventually(lambda: subprocess.run([f"{folder}/bin/ssh", "a", "true"], check=False).returncode == 0)
        yield made
    finally:
        for machine in machines:
            with contextlib.suppress(AttributeError):
                machine.sshd.kill()
                machine.sshd.wait()
            subprocess.run(["ip", "netns", "delete", f"pb{machine.name}"], check=False, capture_output=True)
            subprocess.run(["ip", "link", "delete", f"pbm{machine.name}"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _keys(lab: Lab) -> None:
    """Make the keys, and the programs ``ssh``, with a configuration of its own, and ``agent``, for the other hosts."""
    for name in ("key", "host_key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{lab.folder}/{name}")
    host_key = " ".join((lab.folder / "host_key.pub").read_text().split()[:2])
    known = "".join(f"{machine.address} {host_key}\n" for machine in (lab.a, lab.b))
    (lab.folder / "known").write_text(known)
    (lab.folder / "config").write_text(
        "".join(f"Host {machine.name}\n  HostName {machine.address}\n" for machine in (lab.a, lab.b))
        + f"Host unknown\n  HostName {lab.b.address}\n  UserKnownHostsFile /dev/null\n"
        + f"Host a b unknown\n  IdentityFile {lab.folder}/key\n"
        + f"Host *\n  UserKnownHostsFile {lab.folder}/known\n  IdentitiesOnly yes\n"
        + f"  User {getpass.getuser()}\n  StrictHostKeyChecking yes\n"
    )
    source = Path(planebench.__file__).parents[1]
    _program(lab, "ssh", f'exec {shutil.which("ssh")} -F {lab.folder}/config "$@"')
    _program(
        lab,
        "agent",
        f"export PYTHONPATH={source} PLANEBENCH_PLANED={find_planed()} PLANEBENCH_RUNS={lab.folder}/runs_there\n"
        f"export XDG_CACHE_HOME={lab.folder}/cache PLANEBENCH_PATIENCE={os.environ.get('PLANEBENCH_PATIENCE', '1')}\n"
        f'case "$SSH_CONNECTION" in *{lab.a.address}*) export XDG_RUNTIME_DIR={lab.a.runtime};; '
        f"*) export XDG_RUNTIME_DIR={lab.b.runtime};; esac\n"
        f'exec {sys.executable} -m planebench "$@"',
    )


def _program(lab: Lab, name: str, script: str) -> None:
    path = lab.folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _namespace(machine: Machine, ours: str) -> None:
    space, end = f"pb{machine.name}", f"pbm{machine.name}"
    run("ip", "netns", "add", space)
    run("ip", "-n", space, "link", "set", "lo", "up")
    run("ip", "link", "add", end, "type", "veth", "peer", "name", "mgmt", "netns", space)
    run("ip", "address", "add", f"{ours}/24", "dev", end)
    run("ip", "link", "set", end, "addrgenmode", "none", "up")  # IPv6 asks for routers now and then
    run("ip", "-n", space, "address", "add", f"{machine.address}/24", "dev", "mgmt")
    run("ip", "-n", space, "link", "set", "mgmt", "addrgenmode", "none", "up")
    _permanent_neighbour(["ip"], end, machine.address, ["ip", "-n", space], "mgmt")
    _permanent_neighbour(["ip", "-n", space], "mgmt", ours, ["ip"], end)


def _permanent_neighbour(here: Sequence[str], link: str, address: str, there: Sequence[str], end: str) -> None:
    """Tell the MAC address of the other end: else the kernel asks for it again at any time, in a silence too."""
    (description,) = json.loads(run(*there, "-json", "link", "show", end))
    run(*here, "neigh", "replace", address, "lladdr", description["address"], "dev", link, "nud", "permanent")


def _direct_way(a: Machine, b: Machine) -> None:
    """Let host a reach host b without the one of the command line."""
    run("ip", "link", "add", "direct", "netns", "pba", "type", "veth", "peer", "name", "direct", "netns", "pbb")
    for machine, address in ((a, "10.213.3.1/24"), (b, "10.213.3.2/24")):
        run("ip", "-n", f"pb{machine.name}", "address", "add", address, "dev", "direct")
        run("ip", "-n", f"pb{machine.name}", "link", "set", "direct", "up")
    run("ip", "-n", "pba", "route", "add", b.address, "via", "10.213.3.2")


def run_both(lab: Lab, switches: str, *more: str) -> tuple[int, str]:
    hosts = ("--tester-host", "a", "--switch-host", "b")
    return lab.run("run", *SHORT, "--switch", switches, "--wire", CABLES, *hosts, *more)


def test_counts_are_exact_and_nothing_is_sent_while_measuring(lab: Lab) -> None:
    silences: list[tuple[float, float]] = []
    done = threading.Event()

    def watch() -> None:
        """Keep all silences of the cables of the command, each at most two readings too long, never too short."""
        bytes_before, silent_since, read_at = (0, 0), time.time(), time.time()
        while not done.wait(0.02):
            bytes_now, now = (lab.a.management_bytes(), lab.b.management_bytes()), time.time()
            if bytes_now != bytes_before:
                silences.append((silent_since, now))
                bytes_before, silent_since = bytes_now, read_at
            read_at = now

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        code, said = run_both(lab, "planed,testpmd")
    finally:
        done.set()
        watcher.join()
    assert code in (0, INCONCLUSIVE), said
    found = lab.newest()
    assert {trial.point.switch for trial in found.trials} == {"planed", "testpmd"}
    for trial in found.trials:
        sent = sum(direction.offered_packets for direction in trial.directions)
        account = ledger(trial)
        assert sent and account.counted and not account.unexplained_packets, trial.verdict
        assert trial.switch.packets and trial.switch.busy_cycles
        assert {thread.owner for thread in trial.evidence.threads} == {"tester", "switch"}
    there = found.header.switch_host
    assert there is not None and there.name == "b" and there.host["kernel"] == found.header.host["kernel"]
    assert abs(there.clock.offset_ns) <= there.clock.error_ns + 1_000_000
    for trial in found.trials:
        begun, sending_s = seconds_since_epoch(trial.started_at), trial.intended_duration_ns / 1e9
        spans = [(since, until) for since, until in silences if until - since >= sending_s - ACKNOWLEDGED_S]
        assert any(abs(since - begun) < stretched(BEFORE_SENDING_S) for since, _ in spans), (begun, spans)
    assert eventually(lab.is_clean)


def test_the_command_may_be_on_the_host_of_the_tester(lab: Lab) -> None:
    arguments = ("run", *SHORT, "--switch", "planed", "--wire", CABLES, "--duration", "0.3", "--switch-host", "b")
    code, said = lab.run(*arguments, inside=lab.a.inside, XDG_RUNTIME_DIR=str(lab.a.runtime))
    assert code in (0, INCONCLUSIVE), said
    (trial,) = lab.newest().trials
    account = ledger(trial)
    assert trial.directions[0].offered_packets and account.counted and not account.unexplained_packets
    assert eventually(lab.is_clean)


def pid_of(machine: Machine, *words: str) -> int:
    return next((pid for pid in machine.processes() if all(word in command_line(pid) for word in words)), 0)


@pytest.mark.parametrize(
    "victim",
    [
        "ssh",
        *(pytest.param(it, marks=pytest.mark.lab) for it in ("agent of the switch", "agent of the tester", "command")),
    ],
)
def test_whoever_is_killed_nothing_is_left_on_either_host(lab: Lab, victim: str) -> None:
    arguments = ("run", *SHORT, "--switch", "planed", "--wire", CABLES, "--duration", "60", "--repeat", "2")
    with lab.start(*arguments, "--tester-host", "a", "--switch-host", "b") as process:
        try:
            assert eventually(lambda: pid_of(lab.a, "tester.json") > 0 and pid_of(lab.b, "planed-switch.json") > 0)
            time.sleep(1.0)
            os.kill(victim_pid(lab, victim, process), signal.SIGKILL)
            if victim == "agent of the switch":  # the run goes on with another one
                assert eventually(lambda: pid_of(lab.a, "tester.json") > 0)
                process.send_signal(signal.SIGINT)
            assert eventually(lab.is_clean)
        finally:
            process.kill()
        process.communicate()


def victim_pid(lab: Lab, victim: str, command: subprocess.Popen[str]) -> int:
    if victim == "ssh":
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        return next(int(pid) for pid in children if "-T" in command_line(int(pid)).split())  # the first is to host a
    machine = {"agent of the switch": lab.b, "agent of the tester": lab.a}.get(victim)
    return command.pid if machine is None else pid_of(machine, "planebench", "machine", "agent")


def test_a_host_that_cannot_be_reached_is_one_sentence(lab: Lab) -> None:
    """Other reasons, and their sentences: tests/measure/test_agent.py."""
    code, said = lab.run("run", *SHORT, "--switch", "planed", "--wire", CABLES, "--switch-host", "unknown")
    (line,) = said.splitlines()
    assert code == 4 and "host unknown: its host key is not known here, or has changed" in line
