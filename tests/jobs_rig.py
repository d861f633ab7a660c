# SPDX-License-Identifier: BSD-3-Clause
"""The machines of a lab on this one: network and UTS namespaces, with Slurm (Cluster).

The configuration of Slurm is the slurm.conf of the package with other names and folders, its prolog and epilog are
those of the package; ``doctor`` there is a program that finds a node unfit where the test says so. Root only.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import planebench.lab
from planebench.host import procfs
from planebench.host.planed_program import find_planed
from planebench.host.process import stretched
from planebench.host.procfs import command_line

SOURCE = Path(planebench.lab.__file__).parents[2]
NODE_FILES = Path(planebench.lab.__file__).parent / "slurm_node"
NETWORK = "10.213.9"

DOCTOR = """#!/bin/sh
[ "$1" = doctor ] || exit 0
[ ! -e {folder}/unfit-$SLURMD_NODENAME ] || [ "$2" != --quiet ] && exit 0
echo "planebench: problem: only CPU 0 is allowed -> give it 3" >&2
exit 1
"""


def missing(*programs: str) -> str:
    """Return what keeps machines with these programs from starting here; empty if nothing does."""
    if os.geteuid() != 0:
        return "network namespaces require root"
    gone = [name for name in ("ip", "nsenter", "unshare", *programs) if find(name) is None]
    return f"not installed: {', '.join(gone)}" if gone else ""


def find(name: str) -> str | None:
    """Return a program on PATH or among those of root."""
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def eventually(condition: Callable[[], object], within_s: float = 60.0) -> bool:
    """Wait until a condition is true; return whether it is."""
    end = time.monotonic() + stretched(within_s)
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    return bool(condition())


def run(*words: object) -> None:
    """Run a program that must not fail."""
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@dataclass
class Host:
    """A machine: number 0 has the commands of users, the others measure; ``serves`` is the command of its daemon."""

    number: int
    folder: Path
    environment: Mapping[str, str]
    serves: Sequence[str] = ()
    daemon: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        return f"rack{self.number}" if self.number else "head"

    @property
    def space(self) -> str:
        return f"pbj{self.number}"

    @property
    def address(self) -> str:
        return f"{NETWORK}.{self.number + 1}"

    @property
    def inside(self) -> list[str]:
        """Return the words before a command that is to run on this machine."""
        enter = f'hostname {self.name}; exec "$@"'
        # Not ip netns exec: its /sys has no cgroups, without which slurmd does not start.
        return ["nsenter", f"--net=/run/netns/{self.space}", "unshare", "--uts", "sh", "-c", enter, "sh"]

    def start(self) -> None:
        """Start its daemon."""
        with (self.folder / f"{self.name}.out").open("ab") as log:
            words = [*self.inside, *self.serves]
            self.daemon = subprocess.Popen(words, env=dict(self.environment), stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill its daemon alone, without notice."""
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()

    def crash(self) -> None:
        """Kill everything on it."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kill()

    def processes(self, *words: str) -> list[int]:
        """Return its processes whose command line has all the words."""
        own = Path(f"/run/netns/{self.space}").stat().st_ino
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and (entry / "ns/net").stat().st_ino == own:
                    found.append(int(entry.name))
        return [pid for pid in found if procfs.is_running(pid) and all(word in command_line(pid) for word in words)]

    def link(self, state: str) -> None:
        """Set the state of its cable to the switch of the network: up or down."""
        run("ip", "-n", "pbj0", "link", "set", self.name, state)


@dataclass
class Lab:
    """Machines, and a folder that all of them see."""

    folder: Path
    nodes: int = 3
    hosts: list[Host] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of users and daemons."""
        keep = {name: os.environ[name] for name in ("HOME", "LANG", "PLANEBENCH_PLANED") if name in os.environ}
        return {
            **keep,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}:/usr/sbin:/sbin",
            "PYTHONPATH": str(SOURCE),
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PLANEBENCH_JOBS": str(self.folder / "jobs"),
            "PLANEBENCH_SHARE_CPUS": "1",
            "PLANEBENCH_AGENT": str(self.folder / "bin/there"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "COLUMNS": "200",
        }

    def start(self) -> None:
        """Start all of it."""
        (self.folder / "bin").mkdir(parents=True)
        self.program(
            "there",
            f"export PYTHONPATH={SOURCE} PLANEBENCH_SHARE_CPUS=1 XDG_CACHE_HOME={self.folder}/cache\n"
            f"export PLANEBENCH_PLANED={find_planed() or ''}\n"
            f'exec {sys.executable} -P -m planebench "$@"',
        )
        self.hosts = [Host(number, self.folder, self.environment) for number in range(self.nodes + 1)]
        self._network()
        self.serve()

    def serve(self) -> None:
        """Start the daemons, and wait until they answer."""
        raise NotImplementedError

    def stop(self) -> None:
        """End all of it."""
        for host in self.hosts:
            with contextlib.suppress(OSError):
                host.crash()
            subprocess.run(["ip", "netns", "delete", host.space], capture_output=True, check=False)

    def program(self, name: str, script: str) -> None:
        """Make a program that all machines find first."""
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def _network(self) -> None:
        for host in self.hosts:
            run("ip", "netns", "add", host.space)
            run("ip", "-n", host.space, "link", "set", "lo", "up")
        run("ip", "-n", "pbj0", "link", "add", "switch", "type", "bridge")
        run("ip", "-n", "pbj0", "address", "add", f"{self.hosts[0].address}/24", "dev", "switch")
        run("ip", "-n", "pbj0", "link", "set", "switch", "up")
        for host in self.hosts[1:]:
            ends = ("type", "veth", "peer", "name", "eth0", "netns", host.space)
            run("ip", "-n", "pbj0", "link", "add", host.name, *ends)
            run("ip", "-n", "pbj0", "link", "set", host.name, "master", "switch", "up")
            run("ip", "-n", host.space, "address", "add", f"{host.address}/24", "dev", "eth0")
            run("ip", "-n", host.space, "link", "set", "eth0", "up")

    def let_in(self) -> None:
        """Make keys, and the program ``ssh`` with a configuration by which each machine reaches the others."""
        for name in ("key", "host_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name)
        host_key = " ".join((self.folder / "host_key.pub").read_text().split()[:2])
        known = "".join(f"{host.address} {host_key}\n" for host in self.hosts)
        (self.folder / "known").write_text(known)
        names = "".join(f"Host {host.name}\n  HostName {host.address}\n" for host in self.hosts)
        (self.folder / "ssh_config").write_text(
            f"{names}Host *\n  User {getpass.getuser()}\n  UserKnownHostsFile {self.folder}/known\n"
            f"  IdentitiesOnly yes\n  IdentityFile {self.folder}/key\n  ConnectTimeout 5\n  ServerAliveInterval 3\n"
        )
        self.program("ssh", f'exec {shutil.which("ssh")} -F {self.folder}/ssh_config "$@"')

    def sshd(self, host: Host) -> Sequence[str]:
        """Return the command of the sshd of a machine, on which the user has a home of its own."""
        Path("/run/sshd").mkdir(exist_ok=True)
        home = self.folder / f"home-{host.name}"
        home.mkdir()
        config = self.folder / f"sshd-{host.name}"
        config.write_text(
            f"ListenAddress {host.address}\nHostKey {self.folder}/host_key\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {self.folder}/key.pub\nPermitRootLogin yes\nPasswordAuthentication no\nUsePAM no\n"
            f'ForceCommand cd {home} && HOME={home} exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
        )
        return (find("sshd") or "sshd", "-D", "-e", "-f", str(config))

    def home(self, user: str) -> Path:
        """Make the home of another user than root, and return it."""
        folder = self.folder / user
        folder.mkdir()
        shutil.chown(folder, user)
        return folder

    def command(self, *words: object, user: str = "") -> list[str]:
        """Return a command of a user on the head; of root, unless it is another one's."""
        become = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups"] if user else []
        home = ["env", "-C", str(self.folder / user), f"HOME={self.folder / user}"] if user else []
        return [*self.hosts[0].inside, *become, *home, *(str(word) for word in words)]

    def planebench(self, *words: object, user: str = "") -> list[str]:
        """Return a command of planebench on the head."""
        return self.command(sys.executable, "-P", "-m", "planebench", *words, user=user)

    def run(self, command: Sequence[str], within_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run a command of a user to its end."""
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=stretched(within_s),
            check=False,
        )

    def words(self, *words: object) -> str:
        """Return all that a program on the head prints."""
        done = self.run(self.command(*words))
        return done.stdout + done.stderr


@dataclass
class Cluster(Lab):
    """Machines with Slurm."""

    munged: subprocess.Popen[bytes] | None = None

    def serve(self) -> None:
        """Start munged, slurmctld and each slurmd, and wait until every node takes jobs."""
        self.program("planebench-of-root", DOCTOR.format(folder=self.folder))
        (self.folder / "testbed").write_text(f"PLANEBENCH={self.folder}/bin/planebench-of-root\n")
        for name in ("prolog", "epilog"):
            self.program(name, f"export PLANEBENCH_TESTBED_FILE={self.folder}/testbed\nexec sh {NODE_FILES}/{name}.sh")
        (self.folder / "slurm.conf").write_text("\n".join(self._configuration()) + "\n")
        (self.folder / "gres.conf").write_text("NodeName=rack1 Name=nic Type=e810 Count=2\n")
        self._munge()
        for host in self.hosts:
            kind = "slurmd" if host.number else "slurmctld"
            host.serves = (find(kind) or kind, "-D", "-f", str(self.folder / "slurm.conf"))
            host.start()
        assert eventually(lambda: self.idle() == self.nodes), self.words("sinfo", "-N", "-l")

    def stop(self) -> None:
        """End all of it."""
        super().stop()
        if self.munged is not None:
            self.munged.kill()
            self.munged.wait()

    def _configuration(self) -> Iterator[str]:
        """Yield the slurm.conf of the package with what differs here."""
        own = {
            "SlurmctldHost": f"head({self.hosts[0].address})",
            "SlurmUser": "root",
            "AuthInfo": f"socket={self.folder}/munge.socket",
            "StateSaveLocation": f"{self.folder}/state",
            "SlurmdSpoolDir": f"{self.folder}/spool-%n",
            "SlurmctldPidFile": f"{self.folder}/slurmctld.pid",
            "SlurmdPidFile": f"{self.folder}/slurmd-%n.pid",
            "SlurmctldLogFile": f"{self.folder}/slurmctld.log",
            "SlurmdLogFile": f"{self.folder}/slurmd-%n.log",
            "ProctrackType": "proctrack/linuxproc",  # there is no cgroup v2 for it here
            "Prolog": f"{self.folder}/bin/prolog",
            "Epilog": f"{self.folder}/bin/epilog",
            "SlurmdTimeout": "10",
            "ReturnToService": "2",
            "KillWait": "10",
            "SchedulerParameters": "nohold_on_prolog_fail,bf_interval=2,sched_interval=2",
            "SlurmdParameters": "config_overrides",
            "MailProg": "/bin/true",
        }
        for line in (NODE_FILES / "slurm.conf").read_text().splitlines():
            key, _, value = line.partition("=")
            if key != "NodeName":
                yield f"{key}={own.pop(key, value)}" if value and not line.startswith("#") else line
        yield from (f"{key}={value}" for key, value in own.items())
        for host in self.hosts[1:]:
            more = "Gres=nic:e810:2 " if host.number == 1 else ""
            yield f"NodeName={host.name} NodeAddr={host.address} CPUs=2 Feature=all,{host.name} {more}State=UNKNOWN"

    def _munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        words = ["--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket"]
        words += [f"--{name}-file={self.folder}/munge.{name}" for name in ("pid", "log", "seed")]
        with (self.folder / "munged.out").open("wb") as log:
            self.munged = subprocess.Popen([find("munged") or "munged", *words], stdout=log, stderr=log)
        assert eventually((self.folder / "munge.socket").exists), (self.folder / "munged.out").read_text()

    def hasten(self) -> None:
        """Let jobs that were queued again start now; Slurm has them wait for two minutes."""
        for line in self.words("squeue", "--noheader", "--format=%A|%r").splitlines():
            number, _, reason = line.partition("|")
            if reason == "BeginTime":
                self.words("scontrol", "update", f"JobId={number}", "StartTime=now")

    def idle(self) -> int:
        """Return how many nodes take jobs and have none."""
        return self.words("sinfo", "--noheader", "-N", "--format=%T").split().count("idle")
