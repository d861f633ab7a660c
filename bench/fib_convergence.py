# SPDX-License-Identifier: BSD-3-Clause
"""A full table through a routing daemon into the kernel and into a forwarder: when the last prefix is in each.

    sudo .venv/bin/python bench/fib_convergence.py [--routes 1200000] [--seed 1] [--only NAME]

BIRD announces a table of a million IPv4 and 200,000 IPv6 prefixes (five to one with --routes) by BGP to a VNF in a
network namespace. The VNF runs

    bird, frr       BIRD, or zebra and bgpd of FRR: its kernel, and nothing else
    bird-agent      the same with `planebench-fib agent` and a planed whose task fib_offload holds the routes
    frr-agent
    frr-fpm         the same, but the agent has the routes from zebra over FPM (zebra writes the kernel as well)

and alone, as fast as each takes them:

    kernel          prepared netlink messages, without answers
    client-c        fib_client_bench: the client in C, to the forwarder
    client-python   planebench_fib.client, to the forwarder

Times begin when the peer is enabled. A sample of one prefix in 256 tells when the kernel has them, planed's counter
when the forwarder has. Bars: the last prefix is in the forwarder at most 10 % or 1 s later than in the kernel; the
forwarder takes from client-c at least twice the routes a second that the kernel takes. Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fib_example import FRR, inside
from full_table import Route, full_table, packed, text

import planebench
from planebench.host.planed_program import find_planed
from planebench.host.process import Process, Supervisor
from planebench.planed.client import PlanedClient
from planebench_fib.client import FibClient
from planebench_fib.messages import Prefix
from planebench_fib.transport import PacketTransport

ROOT = Path(__file__).resolve().parent.parent
LATER_SHARE, LATER_S, TIMES_KERNEL = 0.10, 1.0, 2.0
PATIENCE_S = 900.0
POLL_S = 0.02
SAMPLE = 77
"""Routes with this third (IPv6: sixth) byte are the sample: one in 256 of those that are that long."""
FIXED4, FIXED6 = 24, 48
_SO_ATTACH_FILTER = 26
_DESTINATION_AT = 40  # in a message of the kernel: behind two headers and the table

PEER = """
log stderr all; router id 10.0.0.1;
protocol device {{ scan time 60; }}
protocol static s4 {{
	ipv4;
	include "{folder}/routes4";
}}
protocol static s6 {{
	ipv6;
	include "{folder}/routes6";
}}
protocol bgp vnf {{
	disabled; local 10.0.0.1 as 65001; neighbor 10.0.0.2 as 65002; connect delay time 1; connect retry time 1;
	ipv4 {{ import none; export where source = RTS_STATIC; }};
	ipv6 {{ import none; export where source = RTS_STATIC; next hop address 2001:db8::1; }};
}}
"""
BIRD = """
log stderr all; router id 10.0.0.2;
protocol device { scan time 60; }
protocol kernel { scan time 3600; ipv4 { import none; export where source = RTS_BGP; }; }
protocol kernel { scan time 3600; ipv6 { import none; export where source = RTS_BGP; }; }
protocol bgp peer {
	local 10.0.0.2 as 65002; neighbor 10.0.0.1 as 65001; connect delay time 1; connect retry time 1;
	ipv4 { import all; export none; }; ipv6 { import all; export none; };
}
"""
ZEBRA = "fpm address 127.0.0.1 port 2620\nno fpm use-next-hop-groups\n"
BGPD = """
router bgp 65002
 bgp router-id 10.0.0.2
 no bgp ebgp-requires-policy
 neighbor 10.0.0.1 remote-as 65001
 neighbor 10.0.0.1 timers connect 1
 address-family ipv6 unicast
  neighbor 10.0.0.1 activate
"""
NETWORK = """
link set lo up
link add up0 type veth peer name eth0 netns {peer}
link add vnf0 type veth peer name port0 netns {switch}
link set up0 up
link set vnf0 address 02:00:00:00:02:01
link set vnf0 up
address add 10.0.0.2/24 dev up0
address add 2001:db8::2/64 dev up0 nodad
address add 10.0.9.1/24 dev vnf0
"""
PEER_NETWORK = """
link set lo up
link set eth0 up
address add 10.0.0.1/24 dev eth0
address add 2001:db8::1/64 dev eth0 nodad
"""
SWITCH = {
    "version": 1,
    "name": "convergence",
    "memory": {"hugepages": False, "size_mb": 256, "mbuf_count": 8191, "mbuf_data_bytes": 2176},
    "ports": [
        {"name": "wire0", "kind": "ethdev", "device": "net_null0,no-rx=1"},
        {
            "name": "vnf0",
            "kind": "ethdev",
            "device": "net_af_packet0,iface=port0,blocksz=16384,framesz=2048,framecnt=512",
        },
    ],
}


@dataclass(frozen=True, slots=True)
class Converged:
    """When the last prefix was there; 0: nobody looked. ``cpu_s``: of the agent, or of who gives the routes."""

    name: str
    routes: int
    kernel_s: float = 0.0
    forwarder_s: float = 0.0
    cpu_s: float = 0.0

    def __str__(self) -> str:
        parts = [f"{self.name:14} {self.routes:9,} routes"]
        for place, seconds in (("kernel", self.kernel_s), ("forwarder", self.forwarder_s)):
            rate = f"{seconds:8.2f} s {self.routes / seconds:11,.0f}/s" if seconds else f"{'-':>24}"
            parts.append(f"{place} {rate}")
        if self.cpu_s:
            parts.append(f"CPU {self.cpu_s / self.routes * 1e6:.1f} us/route")
        return "   ".join(parts)

    @property
    def later_s(self) -> float:
        """The forwarder's last prefix after the kernel's."""
        return self.forwarder_s - self.kernel_s

    @property
    def bar_s(self) -> float:
        """How much later it may be."""
        return max(LATER_SHARE * self.kernel_s, LATER_S)


class KernelWatch:
    """Sees a sample of the routes that come into the kernel of a namespace, and when the last one of it came."""

    def __init__(self, pid: int, table: list[Route]) -> None:
        self._missing = {route for route in table if _is_sampled(*route)}
        if not self._missing:
            raise SystemExit("the table is too small for a sample: give more --routes")
        with inside(pid):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
            self._socket.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
            _attach(self._socket)
            self._socket.bind((0, 0x40 | 0x400))  # RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_ROUTE
        self.last = 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while self._missing:
            data = self._socket.recv(1 << 16)
            size = 4 if data[16] == socket.AF_INET else 16
            self._missing.discard((data[_DESTINATION_AT : _DESTINATION_AT + size], data[17]))
        self.last = time.monotonic()

    def done(self) -> bool:
        """Whether all of the sample is there."""
        return bool(self.last)


def _is_sampled(address: bytes, length: int) -> bool:
    if len(address) == 4:
        return length >= FIXED4 and address[2] == SAMPLE
    return length >= FIXED6 and address[5] == SAMPLE


def _attach(events: socket.socket) -> None:
    """Let only new routes of the sample through (socket(7), BPF)."""
    load_half, load_byte, equal, keep = 0x28, 0x30, 0x15, 0x06
    program = (
        (load_half, 0, 0, 4), (equal, 0, 7, socket.htons(24)),
        (load_byte, 0, 0, 16), (equal, 0, 2, socket.AF_INET),
        (load_byte, 0, 0, _DESTINATION_AT + 2), (equal, 2, 3, SAMPLE),
        (load_byte, 0, 0, _DESTINATION_AT + 5), (equal, 0, 1, SAMPLE),
        (keep, 0, 0, 0xFFFFFFFF), (keep, 0, 0, 0),
    )  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    events.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(program), ctypes.addressof(code)))


class Rig:
    """Namespaces of peer, VNF and switch, and what runs in them. All of it ends with the supervisor."""

    def __init__(self, supervisor: Supervisor, table: list[Route]) -> None:
        self.table = table
        self._supervisor = supervisor
        self.folder = supervisor.workdir("convergence")
        self._frr = Path(tempfile.mkdtemp(prefix="fib-frr-", dir="/tmp"))
        supervisor.track_path(self._frr)
        cpus = sorted(os.sched_getaffinity(0))
        self._cpu = cpus[-1]
        self._others = frozenset(cpus[:-1]) or frozenset(cpus)
        self._pids = {name: self._namespace(name) for name in ("peer", "vnf", "switch")}
        self._ip("vnf", NETWORK.format(peer=self._pids["peer"], switch=self._pids["switch"]))
        self._ip("peer", PEER_NETWORK)
        self._ip("switch", "link set port0 up\n")

    def pid(self, name: str) -> int:
        """Of the holder of a namespace."""
        return self._pids[name]

    def _namespace(self, name: str) -> int:
        holder = self._supervisor.spawn(
            f"netns-{name}", ["sleep", "infinity"], cpus=self._others, new_netns=True, high_priority=False
        )
        until(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n", f"namespace {name}")
        return holder.pid

    def _ip(self, name: str, commands: str) -> None:
        command = ["nsenter", f"--net=/proc/{self._pids[name]}/ns/net", "ip", "-batch", "-"]
        subprocess.run(command, input=commands, text=True, check=True)

    def start(self, name: str, where: str, *argv: str, cpus: frozenset[int] | None = None) -> Process:
        """Start a program in a namespace; with priority on a core of its own."""
        return self._supervisor.spawn(
            name,
            argv,
            cpus=cpus or self._others,
            workdir=self.folder,
            netns_pid=self._pids[where],
            env={"PYTHONPATH": str(Path(planebench.__file__).parents[1])},
            high_priority=cpus is not None,
        )

    def start_switch(self) -> PlanedClient:
        """Start planed with an empty FIB on a core of its own."""
        vnf = {"vnf": 1, "port": "vnf0", "mac": "02:00:00:00:02:01", "wires": ["wire0"]}
        counts = {"routes4": len(self.table) + 1000, "routes6": len(self.table) // 3 + 1000}
        settings = {"wires": ["wire0"], "pages": "thp", "vnfs": [vnf]} | counts
        document = SWITCH | {
            "tasks": [{"name": "sw0", "kind": "fib_offload", "ports": ["wire0", "vnf0"], "settings": settings}],
            "workers": [{"name": "w0", "cpu": self._cpu, "tasks": ["sw0"]}],
        }
        config, rpc = self.folder / "switch.json", self.folder / "rpc"
        config.write_text(json.dumps(document), encoding="utf-8")
        argv = (str(find_planed()), "--config", str(config), "--rpc", str(rpc))
        self.switch = self.start("switch", "switch", *argv, cpus=frozenset((self._cpu,)))
        return PlanedClient(rpc, give_up=self._give_up, timeout_s=60)

    def _give_up(self) -> None:
        if not self.switch.alive():
            raise SystemExit(self.switch.exit_report())

    def start_peer(self) -> Process:
        """Start the BIRD that announces, with its session disabled; wait until it has read the table."""
        for name, size in (("routes4", 4), ("routes6", 16)):
            lines = (f"route {text(route)} blackhole;\n" for route in self.table if len(route[0]) == size)
            (self.folder / name).write_text("".join(lines), encoding="utf-8")
        (self.folder / "peer.conf").write_text(PEER.format(folder=self.folder), encoding="utf-8")
        peer = self._start_bird("peer")
        until(lambda: f"{len(self.table)} of {len(self.table)} routes" in self._birdc("show route count"), "the table")
        return peer

    def _start_bird(self, where: str) -> Process:
        control, config = str(self.folder / f"{where}.ctl"), str(self.folder / f"{where}.conf")
        return self.start(f"bird-{where}", where, "bird", "-f", "-c", config, "-s", control)

    def _birdc(self, command: str) -> str:
        argv = ["birdc", "-s", str(self.folder / "peer.ctl"), *command.split()]
        said = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout
        return said.split("Total: ")[-1]

    def announce(self) -> float:
        """Enable the peer; return when."""
        now = time.monotonic()
        self._birdc("enable vnf")
        return now

    def silence(self) -> None:
        """Disable the peer."""
        self._birdc("disable vnf")

    def start_daemon(self, name: str, *, fpm: bool) -> list[Process]:
        """Start the daemon of the VNF."""
        if name == "bird":
            (self.folder / "vnf.conf").write_text(BIRD, encoding="utf-8")
            return [self._start_bird("vnf")]
        shutil.rmtree(self._frr)
        self._frr.mkdir()
        shutil.chown(self._frr, "frr", "frr")
        for file, content in (("zebra.conf", ZEBRA if fpm else ""), ("bgpd.conf", BGPD)):
            (self._frr / file).write_text(content, encoding="utf-8")
        common = ("-z", f"{self._frr}/zserv.api", "--vty_socket", str(self._frr), "-P", "0")
        module = ("-M", "dplane_fpm_nl") if fpm else ()
        ids = (f"{self._frr}/zebra.pid", f"{self._frr}/bgpd.pid")
        config = (f"{self._frr}/zebra.conf", f"{self._frr}/bgpd.conf")
        zebra = self.start("zebra", "vnf", f"{FRR}/zebra", *common, *module, "-i", ids[0], "-f", config[0])
        until(lambda: (self._frr / "zserv.api").exists(), "zebra")
        return [zebra, self.start("bgpd", "vnf", f"{FRR}/bgpd", *common, "-i", ids[1], "-f", config[1])]

    def start_agent(self, *, fpm: bool) -> Process:
        """Start the agent and wait until the forwarder has what is there."""
        agent = self.start(
            "agent",
            "vnf",
            *(sys.executable, "-m", "planebench_fib", "agent", "--interface", "vnf0", "--wire", "up0=0", "--json"),
            *(("--fpm", "127.0.0.1:2620") if fpm else ()),
        )
        until(lambda: '"event": "end_of_rib"' in agent.log_tail() or not agent.alive(), "the agent's first END_OF_RIB")
        if not agent.alive():
            raise SystemExit(agent.exit_report())
        return agent

    def flush_kernel(self) -> None:
        """Remove what a daemon left: with its interface all routes go at once."""
        self._ip("vnf", "link set up0 down\nlink set up0 up\naddress replace 2001:db8::2/64 dev up0 nodad\n")


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for it."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what}: not within {PATIENCE_S:.0f} s")
        time.sleep(POLL_S)


def count(client: PlanedClient) -> int:
    """Return how many routes the forwarder has of the VNF."""
    (task,) = client.call("stats.get")["tasks"]
    (vnf,) = task["fib_offload"]["vnfs"]
    return int(vnf["routes4"] + vnf["routes6"])


def cpu_s(process: Process) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def converge(rig: Rig, name: str) -> Converged:
    """Load the table through a daemon: ``bird``, ``frr``, with ``-agent`` or ``-fpm``."""
    daemon, _, way = name.partition("-")
    client = rig.start_switch() if way else None
    processes = rig.start_daemon(daemon, fpm=way == "fpm")
    agent = rig.start_agent(fpm=way == "fpm") if way else None
    before = count(client) if client else 0
    used_s = cpu_s(agent) if agent else 0.0
    watch = KernelWatch(rig.pid("vnf"), rig.table)
    start = rig.announce()
    forwarder_s = 0.0
    if client:
        until(lambda: count(client) >= before + len(rig.table), "the last prefix is in the forwarder")
        forwarder_s = time.monotonic() - start
    until(watch.done, "the last prefix is in the kernel")
    result = Converged(name, len(rig.table), watch.last - start, forwarder_s, cpu_s(agent) - used_s if agent else 0.0)
    for process in (*processes, *((agent, rig.switch) if agent else ())):
        process.terminate()
    rig.silence()
    rig.flush_kernel()
    return result


def kernel_alone(rig: Rig) -> Converged:
    """Give the kernel prepared messages, as many at once as it reads from one call."""
    with inside(rig.pid("vnf")):
        index = socket.if_nametoindex("up0")
        kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    messages = [_netlink_route(route, index) for route in rig.table]
    batches = [b"".join(messages[at : at + 256]) for at in range(0, len(messages), 256)]
    with kernel:
        start, used_s = time.monotonic(), time.process_time()
        for batch in batches:
            kernel.send(batch)
        seconds, used_s = time.monotonic() - start, time.process_time() - used_s
    rig.flush_kernel()
    return Converged("kernel", len(rig.table), seconds, cpu_s=used_s)


def _netlink_route(route: Route, interface: int) -> bytes:
    address, length = route
    family, gateway = (
        (2, bytes([10, 0, 0, 1])) if len(address) == 4 else (10, bytes.fromhex("20010db8") + bytes(11) + b"\1")
    )
    body = struct.pack("8BI", family, length, 0, 0, 254, 4, 0, 1, 0)
    for kind, value in ((1, address), (5, gateway), (4, struct.pack("i", interface))):
        body += struct.pack("HH", 4 + len(value), kind) + value
    return struct.pack("IHHII", 16 + len(body), 24, 0x401, 0, 0) + body


def client_c(rig: Rig) -> Converged:
    """Announce with the client in C."""
    rig.start_switch()
    program = ROOT / "build" / "dataplane" / "fib_client_bench"
    if not program.exists():
        raise SystemExit(f"{program} is not built: make unit-tests")
    command = ["nsenter", f"--net=/proc/{rig.pid('vnf')}/ns/net", str(program), "vnf0"]
    done = subprocess.run(command, input=b"".join(map(packed, rig.table)), stdout=subprocess.PIPE, check=True)
    rig.switch.terminate()
    line = json.loads(done.stdout)
    if line["routes"] != len(rig.table):
        raise SystemExit(f"client-c: the forwarder has {line['routes']} of {len(rig.table)} routes: {line}")
    return Converged("client-c", len(rig.table), forwarder_s=line["seconds"], cpu_s=line["cpu_seconds"])


def client_python(rig: Rig) -> Converged:
    """Announce with the client in Python."""
    rig.start_switch()
    prefixes = [Prefix(*route) for route in rig.table]
    with inside(rig.pid("vnf")):
        transport = PacketTransport("vnf0")
    with FibClient(transport, timeout_s=60) as client:
        start, used_s = time.monotonic(), time.process_time()
        client.hop_blackhole(1)
        client.replace_all((prefix, 1) for prefix in prefixes)
        client.end_of_rib()
        client.drain()
        seconds, used_s = time.monotonic() - start, time.process_time() - used_s
        routes = client.routes
    rig.switch.terminate()
    if routes != len(prefixes):
        raise SystemExit(f"client-python: the forwarder has {routes} of {len(prefixes)} routes")
    return Converged("client-python", len(prefixes), forwarder_s=seconds, cpu_s=used_s)


DAEMONS = ("bird", "frr", "bird-agent", "frr-agent", "frr-fpm")
ALONE = {"kernel": kernel_alone, "client-c": client_c, "client-python": client_python}


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routes", type=int, default=1_200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", choices=(*ALONE, *DAEMONS), help="may be repeated")
    given = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("bird") is None or not (FRR / "zebra").exists() or find_planed() is None:
        raise SystemExit("this needs root, planed (`make setup`), and BIRD and FRR: scripts/setup.sh bird2 frr")
    names = given.only or [*ALONE, *DAEMONS]
    found = list(measured(full_table(given.routes - given.routes // 6, given.routes // 6, given.seed), names))
    return 0 if all([judged(one) for one in found] + [alone_is_good({one.name: one for one in found})]) else 1


def measured(table: list[Route], names: list[str]) -> Iterator[Converged]:
    """Measure the cases in turn, and print each."""
    with contextlib.ExitStack() as stack:
        rig = Rig(stack.enter_context(Supervisor(Path("/tmp"))), table)
        if set(names) & set(DAEMONS):
            rig.start_peer()
        for name in names:
            result = ALONE[name](rig) if name in ALONE else converge(rig, name)
            print(result, flush=True)
            yield result


def judged(one: Converged) -> bool:
    """Print whether the forwarder had the table in time, where both had it."""
    if not (one.kernel_s and one.forwarder_s):
        return True
    good = one.later_s <= one.bar_s
    state = "cleared" if good else "MISSED "
    print(f"{state}  {one.name}: {one.later_s:.2f} s later than the kernel, at most {one.bar_s:.2f}")
    return good


def alone_is_good(found: dict[str, Converged]) -> bool:
    """Print whether the forwarder takes routes fast enough."""
    if not {"kernel", "client-c"} <= found.keys():
        return True
    kernel_s = min(found["kernel"].kernel_s, found["kernel"].cpu_s)  # beside other programs it takes longer
    times = kernel_s / found["client-c"].forwarder_s
    good = times >= TIMES_KERNEL
    state = "cleared" if good else "MISSED "
    print(f"{state}  client-c: {times:.2f} times the kernel's routes a second, at least {TIMES_KERNEL}")
    return good


if __name__ == "__main__":
    sys.exit(main())
