# SPDX-License-Identifier: BSD-3-Clause
"""Tester and switch on two hosts: two network namespaces whose cables are veth pairs.

The command line is on the host of the tester, a. ``ssh`` and ``sshd`` are OpenSSH's; the client has a configuration of
its own, in place of the user's.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import planebench
from planebench.analysis.ledger import ledger
from planebench.host import procfs
from planebench.host.planed_program import find_planed
from planebench.host.process import stretched
from planebench.host.procfs import command_line
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
    """A network namespace, and one CPU."""

    name: str
    address: str
    folder: Path
    cpu: int

    @property
    def inside(self) -> list[str]:
        return ["ip", "netns", "exec", f"pb{self.name}", "taskset", "-c", str(self.cpu)]

    @property
    def runtime(self) -> Path:
        return self.folder / self.name

    def processes(self) -> list[int]:
        """Return the processes in its network namespace but sshd and what belongs to that."""
        own = Path(f"/run/netns/pb{self.name}").stat().st_ino
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "ns/net").stat().st_ino == own:
                    found.append(int(entry.name))
        return [pid for pid in found if procfs.is_running(pid) and "sshd" not in command_line(pid)]


@dataclass
class Lab:
    """Two machines with two cables; the command line is on a, and sshd on b."""

    folder: Path
    a: Machine
    b: Machine
    sshd: subprocess.Popen[bytes] = field(init=False)

    def serve(self) -> None:
        config = self.folder / "sshd_config"
        config.write_text(
            f"ListenAddress {self.b.address}\nHostKey {self.folder}/host_key\nPidFile none\nStrictModes no\nUsePAM no\n"
            f"AuthorizedKeysFile {self.folder}/key.pub\nPermitRootLogin yes\nPasswordAuthentication no\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        self.sshd = subprocess.Popen([*self.b.inside, SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL)

    def management_bytes(self) -> int:
        """Return the bytes that the interface of b's sshd has sent and received."""
        lines = Path(f"/proc/{self.sshd.pid}/net/dev").read_text().splitlines()
        counts = next(line for line in lines if line.strip().startswith("mgmt:")).split()[1:]
        return int(counts[0]) + int(counts[8])

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PLANEBENCH_RUNS": f"{self.folder}/runs",
            "PLANEBENCH_AGENT": f"{self.folder}/bin/agent",
            "XDG_RUNTIME_DIR": str(self.a.runtime),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.a.inside, sys.executable, "-m", "planebench", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run the command to its end; return its exit code and its standard error."""
        with self.start(*arguments) as process:
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
    machines = Machine("a", "10.213.1.1", folder, cpus[0]), Machine("b", "10.213.1.2", folder, cpus[-1])
    made = Lab(folder, *machines)
    (folder / "bin").mkdir()
    (folder / "hosts.yaml").write_text(PLAN)
    try:
        _keys(made)
        for machine in machines:
            machine.runtime.mkdir()
            run("ip", "netns", "add", f"pb{machine.name}")
            run("ip", "-n", f"pb{machine.name}", "link", "set", "lo", "up")
        for cable in ("mgmt", "pbn0", "pbn1"):
            run("ip", "link", "add", cable, "netns", "pba", "type", "veth", "peer", "name", cable, "netns", "pbb")
            for machine in machines:  # without addresses of IPv6, which asks for routers now and then
                run("ip", "-n", f"pb{machine.name}", "link", "set", cable, "addrgenmode", "none", "up")
        for machine in machines:
            run("ip", "-n", f"pb{machine.name}", "address", "add", f"{machine.address}/24", "dev", "mgmt")
        for here, there in (machines, machines[::-1]):
            _permanent_neighbour(here, there)
        made.serve()
        ssh = [*machines[0].inside, f"{folder}/bin/ssh", "b", "true"]
        assert eventually(lambda: subprocess.run(ssh, check=False).returncode == 0)
        yield made
    finally:
        with contextlib.suppress(AttributeError):
            made.sshd.kill()
            made.sshd.wait()
        for machine in machines:
            subprocess.run(["ip", "netns", "delete", f"pb{machine.name}"], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _keys(lab: Lab) -> None:
    """Make the keys, and the programs ``ssh``, with a configuration of its own, and ``agent``, for the other host."""
    for name in ("key", "host_key"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{lab.folder}/{name}")
    host_key = " ".join((lab.folder / "host_key.pub").read_text().split()[:2])
    (lab.folder / "known").write_text(f"{lab.b.address} {host_key}\n")
    (lab.folder / "config").write_text(
        f"Host b\n  HostName {lab.b.address}\n"
        + f"Host unknown\n  HostName {lab.b.address}\n  UserKnownHostsFile /dev/null\n"
        + f"Host b unknown\n  IdentityFile {lab.folder}/key\n"
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
        f"export XDG_RUNTIME_DIR={lab.b.runtime}\n"
        f'exec {sys.executable} -m planebench "$@"',
    )


def _program(lab: Lab, name: str, script: str) -> None:
    path = lab.folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _permanent_neighbour(here: Machine, there: Machine) -> None:
    """Tell the MAC address of the other end: else the kernel asks for it again at any time, in a silence too."""
    (description,) = json.loads(run("ip", "-n", f"pb{there.name}", "-json", "link", "show", "mgmt"))
    entry = (there.address, "lladdr", description["address"], "dev", "mgmt", "nud", "permanent")
    run("ip", "-n", f"pb{here.name}", "neigh", "replace", *entry)


@pytest.mark.all
def test_counts_are_exact_and_nothing_is_sent_while_measuring(lab: Lab) -> None:
    silences: list[tuple[float, float]] = []
    done = threading.Event()

    def watch() -> None:
        """Keep all silences of the way to the agent, each at most two readings too long, never too short."""
        bytes_before, silent_since, read_at = 0, time.time(), time.time()
        while not done.wait(0.02):
            bytes_now, now = lab.management_bytes(), time.time()
            if bytes_now != bytes_before:
                silences.append((silent_since, now))
                bytes_before, silent_since = bytes_now, read_at
            read_at = now

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        hosts = ("--wire", CABLES, "--switch-host", "b")
        code, said = lab.run("run", *SHORT, "--switch", "planed,testpmd", *hosts)
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


def pid_of(machine: Machine, *words: str) -> int:
    return next((pid for pid in machine.processes() if all(word in command_line(pid) for word in words)), 0)


@pytest.mark.parametrize("victim", ["ssh", *(pytest.param(it, marks=pytest.mark.lab) for it in ("agent", "command"))])
def test_whoever_is_killed_nothing_is_left_on_either_host(lab: Lab, victim: str) -> None:
    arguments = ("run", *SHORT, "--switch", "planed", "--wire", CABLES, "--duration", "60", "--repeat", "2")
    with lab.start(*arguments, "--switch-host", "b") as process:
        try:
            assert eventually(lambda: pid_of(lab.a, "tester.json") > 0 and pid_of(lab.b, "planed-switch.json") > 0)
            time.sleep(1.0)
            victims = {"ssh": pid_of(lab.a, "ssh", "-T"), "agent": pid_of(lab.b, "planebench", "machine", "agent")}
            os.kill(victims.get(victim, process.pid), signal.SIGKILL)
            if victim != "command":  # the run goes on with another agent
                assert eventually(lambda: pid_of(lab.a, "tester.json") > 0)
                process.send_signal(signal.SIGINT)
            assert eventually(lab.is_clean)
        finally:
            process.kill()
        process.communicate()


def test_a_host_that_cannot_be_reached_is_one_sentence(lab: Lab) -> None:
    """Other reasons, and their sentences: tests/measure/test_agent.py."""
    code, said = lab.run("run", *SHORT, "--switch", "planed", "--wire", CABLES, "--switch-host", "unknown")
    (line,) = said.splitlines()
    assert code == 4 and "host unknown: its host key is not known here, or has changed" in line
