# SPDX-License-Identifier: BSD-3-Clause
"""The example of docs/fib-agent.md with its files, in namespaces that end with their holders: BIRD at the peer, BIRD
or FRR in the VNF, planed between them, the agents, and datagrams that are counted one by one. What others need for a
network of their own is in Lab."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from planed_rig import CPU, PATIENCE_S, until

import planebench
from planebench.host import procfs
from planebench.host.planed_program import find_planed
from planebench.host.process import Process, Supervisor
from planebench.model.errors import StartError
from planebench.planed.client import PlanedClient

EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "examples" / "fib-agent"
NAMES = ("peer", "other", "vnf", "switch", "host")
NEEDED = ("bird", "birdc", "ethtool", "ip", "nsenter", "sysctl")
FRR = Path("/usr/lib/frr")
PORT = 9999
MARK = b"fib-agent "
CHUNK = 50
"""Datagrams on their way at once: fewer than any queue of theirs has room for."""
_CLONE_NEWNET = 0x40000000
_ETH_P_ALL = 3
_libc = ctypes.CDLL(None, use_errno=True)


def missing(*, frr: bool = False) -> str:
    """Why the example cannot run here, with FRR in the VNF; nothing if it can."""
    if os.geteuid() != 0:
        return "needs root: network namespaces, packet sockets"
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if frr and not (FRR / "zebra").exists():
        absent.append("frr")
    return f"{', '.join(absent)} not here: scripts/setup.sh bird2 ethtool frr" if absent else ""


def no_vlans() -> str:
    """Why there can be no VLAN interface; nothing if there can. The command lacks a VLAN: it makes none."""
    command = ["ip", "link", "add", "link", "lo", "name", "probe", "type", "vlan"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S).stderr
    return "this kernel has no VLAN interfaces (8021q)" if "Unknown device type" in said else ""


@contextlib.contextmanager
def inside(pid: int) -> Iterator[None]:
    """In the network namespace of that process; sockets that are made here stay there."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    try:
        assert _libc.setns(there, _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert _libc.setns(home, _CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        os.close(home)
        os.close(there)


class Sniffer:
    """Counts our datagrams on an interface, whichever way they go, by the address that their frames are for."""

    def __init__(self, pid: int, interface: str) -> None:
        with inside(pid):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
            self._socket.bind((interface, _ETH_P_ALL))
        self._socket.setblocking(False)

    def seen(self) -> dict[str, int]:
        """Since the last call."""
        counts: dict[str, int] = {}
        with contextlib.suppress(BlockingIOError):
            while True:
                frame = self._socket.recv(2048)
                if MARK in frame:
                    to = frame[:6].hex(":")
                    counts[to] = counts.get(to, 0) + 1
        return counts

    def close(self) -> None:
        self._socket.close()


class Lab:
    """Namespaces, of which one is "switch", and what runs in them: planed, daemons, agents. The supervisor ends it."""

    def __init__(self, supervisor: Supervisor, names: Iterable[str], document: dict[str, Any]) -> None:
        """``document``: of the switch."""
        self.supervisor = supervisor
        self.document = document
        self.folder = supervisor.workdir("example")
        self._frr: dict[str, str] = {}
        self._switches = itertools.count()
        self._holders = {name: self._namespace(name) for name in names}

    def pid(self, namespace: str) -> int:
        return self._holders[namespace].pid

    def _namespace(self, name: str) -> Process:
        holder = self.supervisor.spawn(
            f"netns-{name}", ["sleep", "infinity"], cpus=frozenset({CPU}), new_netns=True, high_priority=False
        )
        until(lambda: procfs.read_text(f"/proc/{holder.pid}/comm") == "sleep", f"namespace {name} is there")
        return holder

    def start(
        self, name: str, namespace: str, *argv: str, env: dict[str, str] | None = None, high_priority: bool = False
    ) -> Process:
        return self.supervisor.spawn(
            name,
            argv,
            cpus=frozenset(os.sched_getaffinity(0)),
            workdir=self.folder,
            netns_pid=self.pid(namespace),
            env=env,
            high_priority=high_priority,
        )

    # The switch

    def start_switch(self) -> None:
        self._run_switch()
        self._connect()

    def take_over(self) -> None:
        """Another planed of the same document takes over from the one that runs."""
        old = self.switch
        self._run_switch("--take-over", str(self.folder / "rpc"))
        until(lambda: not (old.alive() and self.switch.alive()), "the old one ends")
        assert old.returncode == 0, self.switch.exit_report()
        self._connect()

    def _run_switch(self, *options: str) -> None:
        config, rpc = self.folder / "switch.json", self.folder / "rpc"
        config.write_text(json.dumps(self.document))
        argv = (str(find_planed()), "--config", str(config), "--rpc", str(rpc), *options)
        # Its rings hold 2.5 s of what the tests send: beside busy programs it would wait for longer, and lose frames.
        self.switch = self.start(f"switch{next(self._switches)}", "switch", *argv, high_priority=True)

    def _connect(self) -> None:
        self.client = PlanedClient(self.folder / "rpc", give_up=self._give_up, timeout_s=PATIENCE_S)

    def _give_up(self) -> None:
        if not self.switch.alive():
            raise StartError(self.switch.exit_report())

    def vnf(self, number: int) -> dict[str, Any]:
        """What ``stats.get`` has of a VNF."""
        return next(vnf for vnf in self.counted()["fib_offload"]["vnfs"] if vnf["vnf"] == number)

    def counted(self) -> dict[str, Any]:
        """What ``stats.get`` has of the task."""
        answer: dict[str, Any] = self.client.call("stats.get")
        (task,) = answer["tasks"]
        return dict(task)

    def hop(self, vnf: int, address: str) -> str:
        """What the switch does with packets to an address: "wire0 02:00:00:00:01:01", "local", "none"."""
        params = {"task": "sw0", "vnf": vnf, "address": address}
        answer: dict[str, Any] = self.client.call("fib_offload.lookup", params)
        hop = answer["hop"]
        vlan = f" vlan {hop['vlan']}" if "vlan" in hop else ""
        return f"{hop['wire']} {hop['mac']}{vlan}" if hop["kind"] == "forward" else str(hop["kind"])

    def until_hop(self, vnf: int, address: str, hop: str) -> None:
        until(lambda: self.hop(vnf, address) == hop, f"packets of VNF {vnf} to {address} go {hop}")

    # The daemons and the agents

    def start_bird(self, namespace: str, *options: str, config: Path | None = None) -> Process:
        control, config = str(self.folder / f"{namespace}.ctl"), config or EXAMPLE / f"{namespace}.conf"
        return self.start(f"bird-{namespace}", namespace, "bird", "-f", *options, "-c", str(config), "-s", control)

    def start_frr(self, namespace: str = "vnf", *, fpm: bool = False, bgpd: str = "") -> list[Process]:
        """zebra and bgpd of a VNF; ``bgpd``: its configuration, if not the example's. With ``-K``, zebra keeps for so
        long what it finds in the kernel."""
        here = tempfile.mkdtemp(prefix="fib-frr-", dir="/tmp")  # they change their user, who cannot reach our folder
        self.supervisor.track_path(Path(here))
        shutil.chown(here, "frr", "frr")
        self._frr[namespace] = here
        Path(here, "bgpd.conf").write_text(bgpd or (EXAMPLE / "bgpd.conf").read_text())
        common = ("-z", f"{here}/zserv.api", "--vty_socket", here, "-P", "0")
        module = ("-M", "dplane_fpm_nl", "-f", str(EXAMPLE / "zebra.conf")) if fpm else ("-f", "/dev/null")
        zebra = (f"{FRR}/zebra", *common, "-i", f"{here}/zebra.pid", "-K", "20", *module)
        started = [self.start(f"zebra-{namespace}", namespace, *zebra)]
        until(lambda: Path(here, "zserv.api").exists(), "zebra serves")  # bgpd looks for it again only 10 s later
        bgp = (f"{FRR}/bgpd", *common, "-i", f"{here}/bgpd.pid", "-f", f"{here}/bgpd.conf")
        started.append(self.start(f"bgpd-{namespace}", namespace, *bgp))
        return started

    def birdc(self, namespace: str, *command: str) -> str:
        argv = ["birdc", "-s", str(self.folder / f"{namespace}.ctl"), *command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S).stdout

    def vtysh(self, namespace: str, command: str) -> str:
        argv = ["vtysh", "--vty_socket", self._frr[namespace], "-c", command]
        return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S).stdout

    def ip(self, namespace: str, *arguments: str) -> str:
        command = ["nsenter", f"--net=/proc/{self.pid(namespace)}/ns/net", "ip", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S).stdout

    def start_agent(self, namespace: str, interface: str, *options: str) -> Process:
        """As root of the VNF would."""
        agent = (sys.executable, "-m", "planebench_fib", "agent", "--interface", interface, *options, "--json")
        env = {"PYTHONPATH": str(Path(planebench.__file__).parents[1])}
        return self.start(f"agent-{namespace}-{interface}", namespace, *agent, env=env)

    def kill(self, *processes: Process) -> None:
        """As a crash would."""
        for process in processes:
            process.pause()
            os.killpg(process.pid, 9)
            until(lambda it=process: not it.alive(), "a killed process is gone")  # type: ignore[misc]


class Example(Lab):
    """All of the example, running."""

    def __init__(self, supervisor: Supervisor, **settings: Any) -> None:
        """``settings``: of the switch, beside those of the example."""
        document = json.loads((EXAMPLE / "switch.json").read_text())
        document["workers"][0]["cpu"] = CPU
        document["tasks"][0]["settings"] |= settings
        super().__init__(supervisor, NAMES, document)
        self.agents: list[Process] = []
        paths = [f"/proc/{self.pid(name)}/ns/net" for name in NAMES]
        done = subprocess.run([EXAMPLE / "network.sh", "configure", *paths], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        self.sniffers = {
            name: Sniffer(self.pid(where), interface)
            for name, where, interface in (("vnf0", "vnf", "vnf0"), ("vnf1", "vnf", "vnf1"), ("peer", "peer", "eth0"))
        }
        self.start_switch()

    def close(self) -> None:
        for sniffer in self.sniffers.values():
            sniffer.close()

    def start_agents(self, *, fpm: bool = False) -> None:
        """One for each port of the VNF; with ``fpm`` the second has its routes from zebra."""
        wires = ("--wire", "vnf0=0", "--wire", "vnf1=1")
        from_zebra = ("--fpm", "127.0.0.1:2620") if fpm else ()
        self.agents = [
            self.start_agent("vnf", "vnf0", *wires),
            self.start_agent("vnf", "vnf1", *wires, *from_zebra),
        ]

    def until_established(self) -> None:
        """And the peer knows the way back: the VNF announces its networks."""
        until(lambda: "Established" in self.birdc("peer", "show", "protocols", "vnf"), "BGP is established")
        for address in ("10.0.9.2", "2001:db8:9::2"):
            until(lambda to=address: "bird" in self.route_of_peer(to), "the peer has learned")  # type: ignore[misc]

    def route_of_peer(self, address: str) -> str:
        """The kernel's, with the daemon that it is of."""
        return self.ip("peer", "route", "get", "fibmatch", address)

    # Datagrams

    def exchange(self, to: str, count: int, where: str = "peer") -> tuple[int, int]:
        """Datagrams from the host to an address there, each answered. How many arrived, and how many came back."""
        family = socket.AF_INET6 if ":" in to else socket.AF_INET
        with inside(self.pid("host")):
            host = socket.socket(family, socket.SOCK_DGRAM)
        with inside(self.pid(where)):
            peer = socket.socket(family, socket.SOCK_DGRAM)
        with host, peer:
            peer.bind((to, PORT))
            host.connect((to, PORT))
            there = back = 0
            for first in range(0, count, CHUNK):
                numbers = range(first, min(first + CHUNK, count))
                sent = {MARK + str(number).encode() for number in numbers}
                for data in sent:
                    host.send(data)
                arrived = _collect(peer, sent)
                there += len(arrived)
                for data, sender in arrived:
                    peer.sendto(data, sender)
                back += len(_collect(host, {data for data, _ in arrived}))
            return there, back

    def send_only(self, to: str, count: int, where: str = "host") -> None:
        """Datagrams to an address where nobody is."""
        with inside(self.pid(where)):
            host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with host:
            for number in range(count):
                host.sendto(MARK + str(number).encode(), (to, PORT))


class Flow:
    """Numbered datagrams from the host to an address of the peer, at a low rate, until closed."""

    def __init__(self, example: Example, to: str, rate_pps: float) -> None:
        with inside(example.pid("host")):
            self._host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with inside(example.pid("peer")):
            self._peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._peer.bind((to, PORT))
        self._peer.settimeout(0.1)
        self._host.connect((to, PORT))
        self._sent_s: list[float] = []
        self._came: Counter[int] = Counter()
        self._gap_s, self._ending = 1 / rate_pps, threading.Event()
        self._threads = [threading.Thread(target=run) for run in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        while not self._ending.wait(self._gap_s):
            self._sent_s.append(time.monotonic())
            self._host.send(MARK + str(len(self._sent_s) - 1).encode())

    def _receive(self) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(TimeoutError):
                self._came[int(self._peer.recv(2048).removeprefix(MARK))] += 1

    def mark(self) -> int:
        """Wait until one that is sent from now on has come: those before it have, or are lost. Return its number."""
        first = len(self._sent_s)
        until(
            lambda: any(number >= first for number in range(first, len(self._sent_s)) if self._came[number]),
            "one comes",
        )
        return next(number for number in range(first, len(self._sent_s)) if self._came[number])

    def lost(self, first: int, end: int) -> tuple[int, float]:
        """How many of these did not come; and the longest time in which none did."""
        lost = [number for number in range(first, end) if not self._came[number]]
        there = [number for number in range(first, end + 1) if self._came[number]]
        gaps = (self._sent_s[b] - self._sent_s[a] for a, b in itertools.pairwise(there) if b - a > 1)
        return len(lost), max(gaps, default=0.0)

    def twice(self, first: int, end: int) -> int:
        """How many of these came more than once."""
        return sum(self._came[number] > 1 for number in range(first, end))

    def close(self) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()
        self._host.close()
        self._peer.close()


def _collect(receiver: socket.socket, expected: set[bytes]) -> list[tuple[bytes, Any]]:
    """Until all are there; those that come twice, or that nobody expects, are there too."""
    got: list[tuple[bytes, Any]] = []
    end = time.monotonic() + PATIENCE_S
    while expected - {data for data, _ in got}:
        receiver.settimeout(max(0.001, end - time.monotonic()))
        got.append(receiver.recvfrom(2048))
    receiver.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            got.append(receiver.recvfrom(2048))
    return got
