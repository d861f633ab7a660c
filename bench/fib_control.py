# SPDX-License-Identifier: BSD-3-Clause
"""Routing daemons of many VNFs behind one forwarder: sessions, control packets and updates, while it forwards.

    .venv/bin/python bench/fib_control.py [-n 16] [--daemon bird|frr] [--seconds 30] [--rate 2000] [--seed 1]

As root, with BIRD. One planed with fib_offload; each VNF is a network namespace with its interface at its port (from 31
VNFs on by way of other planeds: a process of DPDK has 32 devices), BIRD or FRR, and planebench-fib as docs/fib-agent.md
has it. A BIRD upstream has a session with each through the wire, and a table for each: all have the same prefixes, but
not at the same time, nor by the same one of two gateways.

Numbered datagrams come by a second wire, for all VNFs in turn, and leave by a route that no update touches. Meanwhile
each VNF in turn has one prefix announced, moved or withdrawn; then all have all of theirs changed at once; and so on.
An update takes from the command to BIRD until fib_offload.lookup has it. After each, lookups and daemons are compared
with a model, and datagrams go by the routes. During each, another VNF (in the end all) gets a ping, an ARP request, and
a packet with TTL 1. Exit code 1 if a session fell, a route was wrong, a packet lost, or one of these unanswered.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fib_example import MARK, Lab, inside, missing
from planed_rig import CPU, MEMORY, OTHER_CPU, Document, Planed, document, ethdev, task, vhost, virtio

from planebench.host.process import Supervisor, stretched

UPSTREAM, OTHER, SOURCE = "02:00:00:00:01:01", "02:00:00:00:01:03", "02:00:00:00:09:02"
GATEWAYS = {"10.0.0.1": UPSTREAM, "10.0.0.250": OTHER}
WAYS = (None, *GATEWAYS)
STEADY, BACK = "192.0.2.0/24", "10.0.9.0/24"
PREFIXES = [f"20.0.{k}.0/24" for k in range(8)]
Route = tuple[int, str]
"""VNF and prefix."""
KINDS = ("ping", "ARP", "TTL 1")
DIRECT, CARD = 30, 32
"""VNFs whose interfaces planed itself can have beside two wires; and those that another planed can have."""
START_S, PATIENCE_S, ANSWER_S, TICK_S = stretched(300.0), stretched(60.0), stretched(20.0), 0.002

BIRD = "log stderr all;\nrouter id {id};\nprotocol device {{ scan time 10; }}\n"
SESSION = "connect delay time 1; connect retry time 1; error wait time 1, 2; hold time 9;"
VNF = f"""protocol kernel {{{{ ipv4 {{{{ import none; export where source = RTS_BGP; }}}}; }}}}
protocol bgp upstream {{{{
	local {{id}} as 65001; neighbor 10.0.0.1 as 65000; {SESSION}
	ipv4 {{{{ import all; export none; }}}};
}}}}
"""
TO_VNF = f"""ipv4 table t{{n}};
protocol static s{{n}} {{{{
	ipv4 {{{{ table t{{n}}; }}}};
	include "{{folder}}/s{{n}}.routes";
}}}}
protocol bgp to_vnf{{n}} {{{{
	local 10.0.0.1 as 65000; neighbor {{id}} as 65001; {SESSION}
	ipv4 {{{{ table t{{n}}; import none; export all; }}}};
}}}}
"""
BGPD = """router bgp 65001
 bgp router-id {id}
 no bgp ebgp-requires-policy
 neighbor 10.0.0.1 remote-as 65000
 neighbor 10.0.0.1 timers 3 9
 neighbor 10.0.0.1 timers connect 1
"""
PAIR = "ip link add {port} type veth peer name eth0 address {mac} netns {pid}; ip link set {port} up"
MACVLAN = "ip link add link eth0 name eth1 address {mac} netns {pid} type macvlan mode bridge"
SET_UP = """sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv4.conf.all.arp_ignore=1 net.ipv4.icmp_ratelimit=0
ip link set lo up; ip link set {interface} up; ethtool -K {interface} tx off >/dev/null
ip address add {address}/24 dev {interface}
"""
ROUTER = "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.eth0.send_redirects=0"


def address(n: int) -> str:
    """VNF n's."""
    return f"10.0.0.{n + 1}"


def mac(n: int) -> str:
    """VNF n's."""
    return f"02:00:00:00:02:{n:02x}"


def host(prefix: str) -> str:
    """An address in it."""
    return prefix.replace("0/24", "1")


def waited(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it came true in that time."""
    end = time.monotonic() + seconds
    while not (true := condition()) and time.monotonic() < end:
        time.sleep(TICK_S)
    return true


def ethernet(to: str, by: str, kind: int) -> bytes:
    """Return the head of a frame."""
    return bytes.fromhex((to + by).replace(":", "")) + kind.to_bytes(2, "big")


def packet(to: str, by: str, source: str, target: str, protocol: int, body: bytes, ttl: int = 64) -> bytes:
    """Return an IPv4 packet in a frame."""
    head = struct.pack("!BBHIBBH", 0x45, 0, 20 + len(body), 0, ttl, protocol, 0)
    head += socket.inet_aton(source) + socket.inet_aton(target)
    return ethernet(to, by, 0x0800) + head[:10] + checksum(head) + head[12:] + body


def checksum(data: bytes) -> bytes:
    """Of IPv4 and ICMP; the length is even."""
    total = sum(number for (number,) in struct.iter_unpack("!H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF)


class Wires:
    """Datagrams to all VNFs by wire1, until closed; control packets; and all that comes out of wire0."""

    def __init__(self, control: Control, rate_pps: float) -> None:
        self._source, self._sink = _packets(control.pid("source")), _packets(control.pid("upstream"))
        self._numbers, self._rate_pps = {mac(n): n for n in control.vnfs}, rate_pps
        self._lock, self._ending, self._silent = threading.Lock(), threading.Event(), threading.Event()
        self._expected: list[tuple[str, str] | None] = []
        """Of each datagram the addresses of the frame in which it comes: of its VNF and a gateway; None: nowhere."""
        self._came: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        self._asked: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        self._told: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        self._threads = [threading.Thread(target=run) for run in (self._send, self._receive)]
        for thread in self._threads:
            thread.start()

    def datagram(self, n: int, prefix: str, gateway: str | None) -> int:
        """Send one by a route of a VNF. Return its number."""
        with self._lock:
            number = len(self._expected)
            self._expected.append((mac(n), GATEWAYS[gateway]) if gateway else None)
        body = struct.pack("!4H", 9999, 9999, 8 + len(MARK) + 8, 0) + MARK + b"%08d" % number
        self._source.send(packet(mac(n), SOURCE, "10.0.9.2", host(prefix), 17, body))
        return number

    def probe(self, n: int, ways: dict[str, str | None]) -> None:
        """Send one by each of these routes, and wait until they have come: one behind them has."""
        for prefix, gateway in ways.items():
            self.datagram(n, prefix, gateway)
        last = self.datagram(n, STEADY, "10.0.0.1")
        waited(lambda: last in self._came, ANSWER_S)

    def _send(self) -> None:
        first_s, sent = time.monotonic(), 0
        while not self._silent.wait(TICK_S):
            for _ in range(min(int((time.monotonic() - first_s) * self._rate_pps) - sent, 64)):
                self.datagram(sent % len(self._numbers) + 1, STEADY, "10.0.0.1")
                sent += 1

    def ask(self, n: int) -> None:
        """Send a VNF all three: from the other router, and a packet of the source whose TTL ends there."""
        echo = struct.pack("!4H", 0x0800, 0, n, 1)
        ping = packet(mac(n), OTHER, "10.0.0.250", address(n), 1, echo[:2] + checksum(echo) + echo[4:])
        arp = ethernet("ff:ff:ff:ff:ff:ff", OTHER, 0x0806) + struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
        arp += ethernet(OTHER, "", 0)[:6] + socket.inet_aton("10.0.0.250") + bytes(6) + socket.inet_aton(address(n))
        ends = packet(mac(n), SOURCE, "10.0.9.2", host(STEADY), 17, struct.pack("!4H", 9, 9, 8, 0), ttl=1)
        for kind, by, data in zip(KINDS, (self._sink, self._sink, self._source), (ping, arp, ends), strict=True):
            self._asked[kind, n].append(time.monotonic())
            by.send(data)

    def answered(self, n: int) -> bool:
        """Whether a VNF has answered all."""
        return all(len(self._told[kind, n]) >= len(self._asked[kind, n]) for kind in KINDS)

    def answers(self, kind: str) -> tuple[int, list[float]]:
        """How many packets of a kind were sent, and how long each answer took."""
        pairs = [(self._asked[key], self._told[key]) for key in list(self._asked) if key[0] == kind]
        times = [b - a for asked, told in pairs for a, b in zip(asked, told, strict=False)]
        return sum(len(asked) for asked, _ in pairs), times

    def _receive(self) -> None:
        self._sink.settimeout(0.1)
        while not self._ending.is_set():
            try:
                data = self._sink.recv(2048)
            except TimeoutError:
                continue
            to, by, kind = data[:6].hex(":"), data[6:12].hex(":"), data[12:14]
            if (n := self._numbers.get(by)) is None:
                continue  # what we, or the routers, sent
            if kind == b"\x08\x06" and data[20:22] == b"\0\2" and to == OTHER:
                self._tell("ARP", n, data[28:32])
            elif kind == b"\x08\0" and data[23] == 1 and data[34] in (0, 11):
                self._tell("TTL 1" if data[34] else "ping", n, data[26:30])
            elif data[42:].startswith(MARK):
                self._came[int(data[42 + len(MARK) :][:8])].append((by, to))

    def _tell(self, kind: str, n: int, sender: bytes) -> None:
        if sender == socket.inet_aton(address(n)):
            self._told[kind, n].append(time.monotonic())

    def close(self) -> tuple[int, int, int]:
        """Stop. How many datagrams there were; how many were lost; and how many came elsewhere or twice."""
        self._silent.set()
        self._threads[0].join()
        expected = [(pair, number) for number, pair in enumerate(self._expected)]
        waited(lambda: all(number in self._came for pair, number in expected if pair), ANSWER_S)
        self._ending.set()
        self._threads[1].join()
        _, missed = struct.unpack("II", self._sink.getsockopt(263, 6, 8))  # SOL_PACKET, PACKET_STATISTICS
        if missed:
            print(f"our own socket lost {missed} packets", file=sys.stderr)
        self._source.close()
        self._sink.close()
        lost = sum(pair is not None and number not in self._came for pair, number in expected)
        return len(expected), lost, sum(self._came.get(number, [pair]) != [pair] for pair, number in expected)


def _packets(pid: int) -> socket.socket:
    with inside(pid):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        made.bind(("eth0", 3))
    made.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    return made


class Control(Lab):
    """All of it, running."""

    def __init__(self, supervisor: Supervisor, count: int, daemon: str, seed: int) -> None:
        self.vnfs, folder = {n: f"vnf{n}" for n in range(1, count + 1)}, supervisor.workdir("example")
        cards = _cards(folder, count)
        names = ("switch", *cards, "upstream", "other", "source", *self.vnfs.values())
        super().__init__(supervisor, names, _switch(folder, count))
        self._daemon, self.random, self.checked, self.wrong = daemon, random.Random(seed), 0, 0
        self.model = {(n, prefix): self.random.choice(WAYS) for n in self.vnfs for prefix in PREFIXES}
        self._network(list(cards))
        self.start_switch()
        for name, card in cards.items():
            Planed(supervisor, name, card, netns_pid=self.pid(name))
        self._start_upstream()
        for n in self.vnfs:
            self._start_vnf(n)

    def _run(self, namespace: str, *commands: str) -> None:
        argv = ("nsenter", f"--net=/proc/{self.pid(namespace)}/ns/net", "sh", "-e")
        subprocess.run(argv, input="\n".join(commands), text=True, check=True, timeout=PATIENCE_S)

    def _network(self, cards: list[str]) -> None:
        ends = [
            ("switch", "wire0", "upstream", UPSTREAM, "10.0.0.1"),
            ("switch", "wire1", "source", SOURCE, "10.0.9.2"),
        ]
        for n, name in self.vnfs.items():
            ends.append((cards[(n - 1) // CARD] if cards else "switch", name, name, mac(n), address(n)))
        for where in ("switch", *cards):
            self._run(where, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        for where, port, name, its, ip in ends:
            self._run(where, PAIR.format(port=port, mac=its, pid=self.pid(name)))
            self._run(name, SET_UP.format(interface="eth0", address=ip), *((ROUTER,) if port == name else ()))
        self._run("upstream", MACVLAN.format(mac=OTHER, pid=self.pid("other")))
        self._run("other", SET_UP.format(interface="eth1", address="10.0.0.250"))

    def _start_upstream(self) -> None:
        config = self.folder / "upstream.conf"
        sessions = [TO_VNF.format(n=n, id=address(n), folder=self.folder) for n in self.vnfs]
        config.write_text(BIRD.format(id="10.0.0.1") + "".join(sessions))
        for n in self.vnfs:
            self._write(n)
        self.start_bird("upstream", config=config)

    def _start_vnf(self, n: int) -> None:
        if self._daemon == "bird":
            config = self.folder / f"vnf{n}.conf"
            config.write_text((BIRD + VNF).format(id=address(n)))
            self.start_bird(self.vnfs[n], config=config)
        else:
            self.start_frr(self.vnfs[n], bgpd=BGPD.format(id=address(n)))
        self.start_agent(self.vnfs[n], "eth0", "--wire", "eth0=0")

    def sessions(self) -> dict[str, str]:
        """Each that is up: BGP's with the time since when, the agents' with its number."""
        said = self.birdc("upstream", "show", "protocols")
        bgp = dict(re.findall(r"^(to_vnf\d+) +BGP .* up +(\S+) +Established", said, re.MULTILINE))
        vnfs = self.counted()["fib_offload"]["vnfs"]
        return bgp | {v["port"]: str(v["session"]["number"]) for v in vnfs if v["session"]["state"] == "up"}

    def settled(self) -> bool:
        """Whether all sessions are up, and all routes as the model has them. Raises SystemExit if a process ended."""
        for process in self.supervisor.processes:
            if not process.alive():
                raise SystemExit(process.exit_report())
        return (
            len(self.sessions()) == 2 * len(self.vnfs)
            and all(self.hop(n, host(STEADY)) == f"wire0 {UPSTREAM}" for n in self.vnfs)
            and all(map(self.is_right, self.model))
        )

    def is_right(self, route: Route) -> bool:
        """Whether the forwarder has this route as the model."""
        way = self.model[route]
        return self.hop(route[0], host(route[1])) == (f"wire0 {GATEWAYS[way]}" if way else "none")

    def change(self, *routes: Route) -> float:
        """Announce, move or withdraw each. Return after how many seconds all of them are in the forwarder."""
        for route in routes:
            self.model[route] = self.random.choice([way for way in WAYS if way != self.model[route]])
        for n in {n for n, _ in routes}:
            self._write(n)
        begin_s, left = time.monotonic(), list(routes)

        def there() -> bool:
            left[:] = [route for route in left if not self.is_right(route)]
            return not left

        self.birdc("upstream", "configure")
        waited(there, PATIENCE_S)
        return time.monotonic() - begin_s

    def _write(self, n: int) -> None:
        """What is announced to a VNF: with the upstream router itself as next hop, or the other one."""
        ways = {STEADY: "10.0.0.1", BACK: "10.0.0.1"} | {prefix: self.model[n, prefix] for prefix in PREFIXES}
        by = {"10.0.0.1": "blackhole", "10.0.0.250": "via 10.0.0.250"}
        lines = [f"route {prefix} {by[way]};\n" for prefix, way in ways.items() if way]
        (self.folder / f"s{n}.routes").write_text("".join(lines))

    def compare(self, prefixes: Iterable[str], vnfs: Iterable[int]) -> None:
        """Ask the forwarder for these of all VNFs, and the daemons of these VNFs for all."""
        right = {f"{self.vnfs[n]}: {prefix}": self.is_right((n, prefix)) for n in self.vnfs for prefix in prefixes}
        for n in vnfs:
            model = {prefix: way for (it, prefix), way in self.model.items() if it == n and way}
            right[f"the daemon of {self.vnfs[n]}"] = self._told(n) == model | dict.fromkeys((STEADY, BACK), "10.0.0.1")
        self.checked += len(right)
        for what in (what for what, good in right.items() if not good):
            self.wrong += 1
            print(f"not as in the model: {what}", file=sys.stderr)

    def _told(self, n: int) -> dict[str, str]:
        """By the daemon: its routes and their gateways."""
        if self._daemon == "bird":
            said = self.birdc(self.vnfs[n], "show", "route", "protocol", "upstream")
            return dict(re.findall(r"^(\S+/\d+) +unicast .*\n\tvia (\S+) on", said, re.MULTILINE))
        routes = json.loads(self.vtysh(self.vnfs[n], "show ip route bgp json"))
        return {prefix: entries[0]["nexthops"][0]["ip"] for prefix, entries in routes.items()}


def _switch(folder: Path, count: int) -> Document:
    """One planed with all ports; the interfaces of the VNFs are its own, or other planeds are between."""
    names = [f"vnf{n}" for n in range(1, count + 1)]
    ports = [_interface(name, 4096) for name in ("wire0", "wire1")]
    ports += [_interface(name) if count <= DIRECT else vhost(name, folder / name) for name in names]
    vnfs = [{"vnf": n, "port": name, "mac": mac(n), "out": "wire0"} for n, name in enumerate(names, 1)]
    punt = {"rate_pps": 1000, "burst": 256, "also": [{"protocol": "tcp", "port": 179}]}
    settings = {"wires": ["wire0", "wire1"], "routes4": 100_000, "punt": punt, "vnfs": vnfs}
    tasks = [task("sw0", "fib_offload", "wire0", "wire1", *names, settings=settings)]
    return _document("switch", ports, tasks, CPU, "sleep")


def _cards(folder: Path, count: int) -> dict[str, Document]:
    """Other planeds, with the interfaces. They leave the cores to the daemons, up to 5 ms at a time. Each has its own
    namespace: net_af_packet makes a fanout group of pid and interface, which may be that of another process."""
    cards: dict[str, Document] = {}
    for first in range(1, count + 1, CARD) if count > DIRECT else ():
        names = [f"vnf{n}" for n in range(first, min(first + CARD, count + 1))]
        ports = [virtio(f"{name}-port", folder / name) for name in names] + [_interface(name) for name in names]
        tasks = [task(f"{name}-patch", "patch", f"{name}-port", name) for name in names]
        name = f"card{len(cards)}"
        cards[name] = _document(name, ports, tasks, OTHER_CPU, "nap") | {"nice": 0}
    return cards


def _interface(name: str, frames: int = 512) -> Document:
    return ethdev(name, f"net_af_packet_{name},iface={name},blocksz=16384,framesz=2048,framecnt={frames}")


def _document(name: str, ports: list[Document], tasks: list[Document], cpu: int, idle: str) -> Document:
    workers = [{"name": "w0", "cpu": cpu, "idle": idle, "tasks": [task["name"] for task in tasks]}]
    return document(name, ports, tasks, memory=MEMORY | {"mbuf_count": 16383}, workers=workers)


def measure(control: Control, wires: Wires, seconds: float) -> tuple[list[float], list[float]]:
    """Rounds for so long, or until an update does not come. The times of single updates, and of all at once."""
    numbers, end_s = list(control.vnfs), time.monotonic() + seconds
    single: list[float] = []
    together: list[float] = []
    while time.monotonic() < end_s and not _late(together):
        for n in numbers:
            prefix, asked = control.random.choice(PREFIXES), numbers[n - len(numbers) // 2 - 1]
            wires.ask(asked)
            single.append(control.change((n, prefix)))
            control.compare([prefix], [n])
            wires.probe(n, {prefix: control.model[n, prefix]})
            waited(lambda asked=asked: wires.answered(asked), ANSWER_S)  # type: ignore[misc]
            if _late(single):
                return single, together
        for n in numbers:
            wires.ask(n)
        together.append(control.change(*control.model))
        control.compare(PREFIXES, numbers)
        for n in numbers:
            wires.probe(n, {prefix: control.model[n, prefix] for prefix in PREFIXES})
        waited(lambda: all(map(wires.answered, numbers)), ANSWER_S)
    return single, together


def main() -> int:
    """Parse, start, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=16, help="VNFs, 1 to 63")
    parser.add_argument("--daemon", choices=("bird", "frr"), default="bird")
    parser.add_argument("--seconds", type=float, default=30, help="then the round ends; sessions have a hold time of 9")
    parser.add_argument("--rate", type=float, default=2000, help="datagrams a second, of all VNFs together")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if reason := missing(frr=options.daemon == "frr"):
        print(reason, file=sys.stderr)
        return 2
    begin_s = time.monotonic()
    with Supervisor(Path("/tmp")) as supervisor:
        control = Control(supervisor, options.n, options.daemon, options.seed)
        if not waited(control.settled, START_S):
            print(f"routes are missing, or sessions; these are up: {sorted(control.sessions())}", file=sys.stderr)
            return 1
        up_s, before = time.monotonic() - begin_s, control.sessions()
        wires = Wires(control, options.rate)
        try:
            single, together = measure(control, wires, options.seconds)
        finally:
            sent, lost, astray = wires.close()
        rate = sent / (time.monotonic() - begin_s - up_s)
        fell = sum(control.sessions().get(name) != since for name, since in before.items())
    rows: list[tuple[str, int, int, list[float]]] = [
        ("sessions of BGP and agents", len(before), fell, []),
        ("update of a route", len(single), _late(single), single),
        (f"update of {len(control.model)} routes at once", len(together), _late(together), together),
        ("comparisons with the model", control.checked, control.wrong, []),
    ]
    for kind in KINDS:
        asked, times = wires.answers(kind)
        rows.append((f"answer to {kind}", asked, asked - len(times), times))
    rows += [("datagrams, lost", sent, lost, []), ("datagrams, elsewhere or twice", sent, astray, [])]
    print(f"{options.n} VNFs with {options.daemon}: up after {up_s:.1f} s; {rate:.0f} datagrams a second\n")
    print("| | count | failed | median, ms | longest, ms |\n|---|---|---|---|---|")
    for what, count, failed, times in rows:
        median, longest = (f"{1e3 * of(times):.1f}" if times else "" for of in (statistics.median, max))
        print(f"| {what} | {count:,} | {failed:,} | {median} | {longest} |")
    return 1 if any(failed for _, _, failed, _ in rows) else 0


def _late(times_s: list[float]) -> int:
    """How many never came."""
    return sum(time_s >= PATIENCE_S for time_s in times_s)


if __name__ == "__main__":
    sys.exit(main())
