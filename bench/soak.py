# SPDX-License-Identifier: BSD-3-Clause
"""planed under everything at once, for an hour: nothing may be lost without a reason, leak or grow.

    .venv/bin/python bench/soak.py [--hours 1] [--rate PPS] [--seed 1] [--json]       make soak HOURS=0.05

A planed switches between its ports in four ways (bridge, l3fwd, nat44, fib_offload) at 0.9 of the PDR of all together
(0.5 %, measured first; ``--rate`` takes its place). Its guests are ports of a second planed. In rounds of five seconds:
traffic at all ports; meanwhile config.apply every second, with another document each time; RPC from a client of its
own; drivers that come and go; and a hostile driver. A round ends with its ledger: what was offered is what was
forwarded and what the switch's rings had no room for, exactly. Every fifth round all guests connect anew.

At the end a table, and exit code 1 if there is an unexplained frame, an mbuf, descriptor, mapping or thread more than
at the beginning, an RPC without answer, or memory that grows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from planed_rig import CPU, CPUS, OTHER_CPU, PATIENCE_S, Document, Planed, document, load, stream, task, until
from vhost_driver import BUFFERS, GUEST_ADDRESS, MEMORY_BYTES, RECEIVEQ, RING_SIZE, TRANSMITQ, WRITABLE, VhostDriver

from planebench.host.process import Process, Supervisor, sweep_stale
from planebench.model.errors import PlanebenchError
from planebench.planed.client import PlanedClient, RpcError

PAIRS = ("br", "l3", "nat", "fib")
VNF_MAC, MONITOR_MAC, ROUTES = "02:00:00:00:02:01", "02:00:00:00:03:01", 1000
FIB: Document = {
    "wires": ["fib0", "fib1"],
    "routes4": 4096,
    "pages": "4K",
    "vnfs": [{"vnf": 1, "port": "vnf", "mac": VNF_MAC, "wires": ["fib0", "fib1"], "quota_routes": ROUTES}],
}
LIARS = ("liar0", "liar1")
GUESTS = (*(f"{pair}{end}" for pair in PAIRS for end in (0, 1)), "vnf")
ROUND_S, APPLY_S, POLL_S, COME_AND_GO_S = 5.0, 1.0, 0.1, 0.3
ROUNDS_PER_RECONNECT = 5
HEARD_S = 60.0
"""A soak in which no hostile message was refused proves nothing: it goes on until one was, but not for longer."""
PDR_SHARE, PDR_LOSS, PDR_STEPS, PDR_TRIAL_S = 0.9, 0.005, 7, 0.3
RATE_MAX_PPS = 4_000_000
UPDATES_PER_S = 1000
MALLOC = "glibc.malloc.mmap_threshold=131072"
"""glibc gives tables that a config.apply replaces back to the system at once. It would keep some in its heap, and
more of them where old and new ones live together for longer: 20 MB, in steps that no leak makes."""
GROWTH_MAX_KB = 128
"""More than that in each of the last two quarters is a leak."""


# --- The hostile driver: a process of its own


def lie(driver: VhostDriver, chosen: random.Random) -> None:
    """Do one thing that no honest driver does."""
    here = GUEST_ADDRESS + BUFFERS
    match chosen.randrange(10):
        case 0:
            driver.send_bytes(chosen.randbytes(chosen.randrange(1, 60)))
        case 1:
            driver.send_message(chosen.randrange(48), chosen.randbytes(chosen.choice((0, 8, 40))))
        case 2:
            driver.send_message(chosen.randrange(48), bytes(8), driver.memory_file, driver.calls[0])
        case 3:
            driver.send_bytes(struct.pack("<III", 1, 1, 0) * chosen.randrange(1, 500))
        case 4:
            driver.write(GUEST_ADDRESS, chosen.randbytes(BUFFERS))
        case 5:
            for slot in range(RING_SIZE):
                driver.offer(
                    TRANSMITQ, slot, here, chosen.choice((0, 1, 72, 60000)), chosen.choice((0, 1, 4)), slot + 1
                )
        case 6:
            for slot in range(RING_SIZE):
                driver.offer(RECEIVEQ, slot, here, chosen.choice((0, 1, 12, 2048)), WRITABLE)
        case 7:
            driver.share_memory(chosen.choice((4096, MEMORY_BYTES // 2, MEMORY_BYTES, MEMORY_BYTES + 4096)))
        case 8:
            truncate(driver, chosen)
        case _:
            flood_for(driver, 0.05)


def truncate(driver: VhostDriver, chosen: random.Random) -> None:
    """Take away memory that planed is about to read. Raises ConnectionError: nobody may write there any more."""
    for slot in range(RING_SIZE):
        driver.offer(TRANSMITQ, slot, GUEST_ADDRESS + BUFFERS, 72)
    os.ftruncate(driver.memory_file, chosen.choice((0, 4096, BUFFERS)))
    time.sleep(0.02)
    raise ConnectionAbortedError


def flood_for(driver: VhostDriver, seconds: float) -> None:
    """Keep both rings full of frames for a while."""
    driver.fill_receiveq()
    for slot in range(RING_SIZE):
        driver.offer(TRANSMITQ, slot, GUEST_ADDRESS + BUFFERS, 72)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for queue in (RECEIVEQ, TRANSMITQ):
            driver.set_index(queue, driver.used(queue) + RING_SIZE)


def be_hostile(path: Path, seed: int) -> None:
    """Connect and lie, again and again, until killed."""
    chosen = random.Random(seed)
    while True:
        with contextlib.suppress(OSError, struct.error), VhostDriver(path) as driver:
            driver.be_impatient()
            for _ in range(chosen.randrange(1, 10)):
                lie(driver, chosen)
                time.sleep(chosen.choice((0, 0.001, 0.02)))
        time.sleep(0.05)


# --- The switch and its guests


def port(kind: str, name: str, folder: Path) -> Document:
    """Return a port of two queues: planed reports what each had no room for then, also from before a config.apply."""
    return {"name": name, "kind": kind, "path": str(folder / name), "queues": 2, "ring_size": 1024}


class Bench:
    """Two processes of planed and what flows between them."""

    def __init__(self, supervisor: Supervisor) -> None:
        memory = {"hugepages": False, "size_mb": 256, "mbuf_count": 16383, "mbuf_data_bytes": 2176}
        start = document("it", memory=memory)
        self.memory = {"memory": memory}
        self.switch = Planed(supervisor, "switch", {**start, "name": "switch"})
        self.guest = Planed(supervisor, "guest", {**start, "name": "guest"})
        self.applied = 0
        self.apply()
        self.connect()

    @property
    def folder(self) -> Path:
        """Return the folder of the sockets."""
        return self.switch.workdir

    def apply(self) -> None:
        """Load the switch's document, in which a port comes or goes each time."""
        self.applied += 1
        spare = ["spare"] * (self.applied % 2)
        ports = [port("vhost-user", name, self.folder) for name in (*GUESTS, *LIARS, "guest", *spare)]
        tasks = [
            task("br", "bridge", "br0", "br1"),
            task("l3", "l3fwd", "l30", "l31"),
            task("nat", "nat44", "nat0", "nat1"),
            task("fib", "fib_offload", "fib0", "fib1", "vnf", settings=FIB),
            task("liars", "patch", *LIARS),
            task("comers", "bridge", "guest", *spare) if spare else task("comers", "l2fwd", "guest"),
        ]
        self.switch.apply(ports, tasks, cpu=CPU, **self.memory)

    def at_rest(self) -> None:
        """Load the document without the spare port and its bridge, in which memory and descriptors are compared."""
        if self.applied % 2:
            self.apply()

    def connect(self) -> None:
        """Connect every guest; any that there were have gone before."""
        self.guest.apply([], [], **self.memory)
        wires = [port("virtio-user", name, self.folder) for name in GUESTS]
        wires[-1]["mac"] = VNF_MAC
        ends = [f"{pair}{end}" for pair in PAIRS for end in (0, 1)]
        tasks = [task(f"mon-{name}", "monitor", name) for name in ends]
        tasks += [task(f"gen-{way.sender}", "generator", way.sender, stream=way.stream, **way.more) for way in WAYS]
        tasks += [task("control", "fib_source", "vnf", settings={"routes": ROUTES, "wire": 1, "mac": MONITOR_MAC})]
        self.guest.apply(wires, tasks, cpu=OTHER_CPU, **self.memory)
        self.guest.links_up()
        until(lambda: self.control()["up"], "the session of the VNF is up")
        self.guest.call("fib_source.rate", {"task": "control", "updates_per_s": UPDATES_PER_S})
        until(lambda: self.control()["routes"] == ROUTES, "the VNF has announced its routes")

    def control(self) -> Document:
        """Return the counters of the control of the VNF."""
        return dict(self.guest.tasks()["control"]["fib_source"])

    def send(self, pps: float, seconds: float, epoch: int) -> None:
        """Start to send at a rate in each way, with counters at zero."""
        self.switch.call("stats.clear")
        loads = [load(f"gen-{way.sender}", rate_pps=pps) for way in WAYS]
        self.guest.start_traffic(*loads, epoch=epoch, duration_s=seconds)

    def ended(self) -> bool:
        """Return whether no generator sends."""
        return not self.guest.call("traffic.get")["running"]

    def ledgers(self) -> dict[str, Ledger]:
        """Return what became of the frames of each way, once none is under way."""
        until(self.ended, "the generators end")
        there = settled(self.guest)
        ports = {it["name"]: it for it in self.switch.call("stats.get")["ports"]}
        return {str(way): way.ledger(there, ports) for way in WAYS}


@dataclass
class Ledger:
    """Frames of a way."""

    offered: int = 0
    forwarded: int = 0
    no_room: int = 0
    damaged: int = 0

    @property
    def unexplained(self) -> int:
        """Return the frames that are neither there nor counted, and those that are not as they were sent."""
        return abs(self.offered - self.forwarded - self.no_room) + self.damaged

    def add(self, other: Ledger) -> None:
        """Add another ledger to this one."""
        for key, value in asdict(other).items():
            setattr(self, key, getattr(self, key) + value)


@dataclass(frozen=True)
class Way:
    """From a guest through the switch to another."""

    sender: str
    receiver: str
    stream: int
    more: Document = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return f"{self.sender}->{self.receiver}"

    def ledger(self, there: Document, ports: Document) -> Ledger:
        """Return the ledger, from the tasks of the guests and the ports of the switch."""
        seen = stream(there[f"mon-{self.receiver}"], self.stream)
        odd = sum(seen[key] for key in ("duplicate_packets", "reordered_packets", "corrupt_packets"))
        foreign = there[f"mon-{self.receiver}"]["monitor"]["foreign_packets"]
        no_room = sum(queue["tx_full"] for queue in ports[self.receiver]["queues"])
        return Ledger(there[f"gen-{self.sender}"]["tx_packets"], seen["forwarded_packets"], no_room, odd + foreign)


WAYS = (
    *(
        Way(f"{pair}{a}", f"{pair}{1 - a}", 2 * number + a)
        for number, pair in enumerate(("br", "l3", "nat"))
        for a in (0, 1)
    ),
    Way("fib0", "fib1", 6, {"dst_mac": VNF_MAC, "dst_ip": "10.0.0.7"}),
)


def settled(guest: Planed) -> Document:
    """Return the guest's tasks once no monitor receives any more: the VNF's control is never quiet."""
    seen: list[Any] = []

    def quiet() -> bool:
        seen.append(guest.tasks())
        guest.until_polled()
        time.sleep(0.05)
        now = guest.tasks()
        return all(now[name]["rx_packets"] == it["rx_packets"] for name, it in seen[-1].items() if name != "control")

    until(quiet, "the last frames arrive")
    return guest.tasks()


# --- What goes on beside


class Beside:
    """Clients and drivers in threads of their own, until the end; what they counted."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.calls = self.refused = self.unanswered = self.came = self.served = 0
        self.slowest_s = 0.0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=it, daemon=True) for it in (self._poll, self._come_and_go)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """End the threads."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _poll(self) -> None:
        methods = ("stats.get", "ports.get", "version")
        while not self._over.wait(POLL_S):
            begun = time.monotonic()
            try:
                with PlanedClient(self.bench.switch.rpc, timeout_s=PATIENCE_S) as client:
                    client.call(methods[self.calls % len(methods)])
            except RpcError:  # an answer that names what stands
                self.refused += 1
            except PlanebenchError:
                self.unanswered += 1
            self.calls += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)

    def _come_and_go(self) -> None:
        while not self._over.wait(COME_AND_GO_S):
            self.came += 1
            with contextlib.suppress(OSError), VhostDriver(self.bench.folder / "guest") as driver:
                for slot in range(RING_SIZE // 2):
                    driver.offer(TRANSMITQ, slot, GUEST_ADDRESS + BUFFERS, 72)
                end = time.monotonic() + PATIENCE_S
                while driver.used(TRANSMITQ) < RING_SIZE // 2 and time.monotonic() < end:
                    time.sleep(0.002)
                self.served += driver.used(TRANSMITQ) == RING_SIZE // 2


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    mbufs: int
    descriptors: int
    mappings: int
    threads: int

    @classmethod
    def of(cls, planed: Planed) -> Held:
        """Return what a planed holds now."""
        process = Path("/proc") / str(planed.process.pid)
        maps = (process / "maps").read_text().splitlines()
        return cls(
            planed.call("stats.get")["mbufs"]["in_use"],
            len(list((process / "fd").iterdir())),
            sum(line.split()[1][3] == "s" for line in maps),
            len(list((process / "task").iterdir())),
        )

    def __sub__(self, other: Held) -> Held:
        return Held(*(a - b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


def resident_kb(planed: Planed) -> int:
    """Return memory of its own; that of guests is shared."""
    lines = (Path("/proc") / str(planed.process.pid) / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


# --- The soak


def pdr_pps(bench: Bench) -> float:
    """Return the highest rate of each way, all at once, at which no way loses more than PDR_LOSS."""
    low, high = 0.0, float(RATE_MAX_PPS)
    for step in range(PDR_STEPS):
        rate = high if step == 0 else (low + high) / 2
        bench.send(rate, PDR_TRIAL_S, epoch=1 + step)
        found = bench.ledgers().values()
        sent = all(
            it.offered >= rate * PDR_TRIAL_S / 2 for it in found
        )  # less is the tester's limit, or a busy machine
        passed = sent and all(it.forwarded >= (1 - PDR_LOSS) * it.offered for it in found)
        low, high = (rate, high) if passed else (low, rate)
        if passed and step == 0:
            break
    return low or high / 2


@dataclass
class Outcome:
    """All that was counted."""

    seconds: float
    rate_pps: float
    rounds: int
    applied: int
    reconnected: int
    ways: dict[str, Ledger]
    leaked: Held
    guest_leaked: Held
    resident_kb: list[int]
    rpc_calls: int
    rpc_refused: int
    rpc_unanswered: int
    rpc_slowest_s: float
    drivers: int
    drivers_served: int
    hostile_messages: int
    updates_unanswered: int

    @property
    def growth_kb(self) -> float:
        """Return the growth of a quarter, the smaller of the last two: a step that comes once is no leak.

        0 for too few samples to tell.
        """
        quarter = len(self.resident_kb) // 4
        if not quarter:
            return 0.0
        parts = [self.resident_kb[at * quarter : (at + 1) * quarter] for at in (1, 2, 3)]
        second, third, last = map(statistics.median, parts)
        return float(min(third - second, last - third))

    def rows(self) -> list[tuple[str, object, bool]]:
        """Return what is checked: its name, its value, and whether it is right."""
        total = Ledger()
        for way in self.ways.values():
            total.add(way)
        leaks = [
            (f"leaked {key} of the {who}", value, value <= 0)
            for who, held in (("switch", self.leaked), ("guests", self.guest_leaked))
            for key, value in asdict(held).items()
        ]
        return [
            ("unexplained frames", total.unexplained, total.unexplained == 0 < total.forwarded),
            *leaks,
            (f"growth of memory, KB (to {GROWTH_MAX_KB})", self.growth_kb, self.growth_kb <= GROWTH_MAX_KB),
            ("RPC without answer", self.rpc_unanswered, self.rpc_unanswered == 0 < self.rpc_calls),
            (
                "honest drivers beside that were not served",
                self.drivers - self.drivers_served,
                self.drivers == self.drivers_served,
            ),
            ("hostile messages refused", self.hostile_messages, self.hostile_messages > 0),
            ("route updates without answer", self.updates_unanswered, self.updates_unanswered == 0),
        ]

    @property
    def passed(self) -> bool:
        """Return whether everything is right."""
        return all(right for _, _, right in self.rows())


def one_round(bench: Bench, rate: float, epoch: int) -> dict[str, Ledger]:
    """Send for ROUND_S with config.apply every APPLY_S; return the ledgers."""
    bench.send(rate, ROUND_S, epoch)
    following = time.monotonic() + APPLY_S
    while not bench.ended():
        time.sleep(0.02)
        if time.monotonic() >= following:
            bench.apply()
            following += APPLY_S
    return bench.ledgers()


@contextlib.contextmanager
def hostile_process(supervisor: Supervisor, bench: Bench, seed: int) -> Iterator[Process]:
    """Have a hostile driver at a port beside."""
    argv = [sys.executable, __file__, "--peer", str(bench.folder / LIARS[0]), "--seed", str(seed)]
    process = supervisor.spawn("peer", argv, cpus=frozenset(CPUS), high_priority=False)
    try:
        yield process
    finally:
        process.kill()


def refusals(planed: Planed) -> int:
    """Return how many messages its ports have refused."""
    ports = planed.call("stats.get")["ports"]
    return sum(sum(it.get("refused_messages", {}).values()) for it in ports)


def soak(supervisor: Supervisor, hours: float, rate: float | None, seed: int) -> Outcome:
    """Run all of it for so many hours."""
    bench = Bench(supervisor)
    rate = rate or PDR_SHARE * pdr_pps(bench)
    print(f"soak: {rate / 1e3:.0f} kpps in each of {len(WAYS)} ways", file=sys.stderr, flush=True)
    bench.apply()
    bench.at_rest()
    before, guest_before = Held.of(bench.switch), Held.of(bench.guest)
    ways = {str(way): Ledger() for way in WAYS}
    memory, rounds, reconnected, messages, begun = [], 0, 0, 0, time.monotonic()
    beside = Beside(bench)
    with hostile_process(supervisor, bench, seed) as peer:
        while (lasted_s := time.monotonic() - begun) < hours * 3600 or (not messages and lasted_s < HEARD_S):
            rounds += 1
            for name, found in one_round(bench, rate, 100 + rounds).items():
                ways[name].add(found)
                if found.unexplained:
                    print(f"soak: round {rounds}, {name}: {found}", file=sys.stderr, flush=True)
            messages += refusals(bench.switch)
            bench.at_rest()
            memory.append(resident_kb(bench.switch))
            if not peer.alive():
                raise SystemExit(f"the hostile driver has ended: {peer.exit_report()}")
            if rounds % ROUNDS_PER_RECONNECT == 0:
                bench.connect()
                reconnected += 1
    beside.end()
    bench.guest.call("fib_source.rate", {"task": "control", "updates_per_s": 0})
    bench.at_rest()
    until(
        lambda: not any(it["link_up"] for it in bench.switch.call("ports.get")["ports"] if it["name"] in LIARS), "gone"
    )
    with contextlib.suppress(AssertionError):  # then it is a leak, and the table says so
        until(lambda: Held.of(bench.switch) == before, "what it held before")
        until(lambda: bench.control()["sent"] == bench.control()["acknowledged"], "every update is answered")
    control = bench.control()
    return Outcome(
        time.monotonic() - begun,
        rate,
        rounds,
        bench.applied,
        reconnected,
        ways,
        Held.of(bench.switch) - before,
        Held.of(bench.guest) - guest_before,
        memory,
        beside.calls,
        beside.refused,
        beside.unanswered,
        beside.slowest_s,
        beside.came,
        beside.served,
        messages,
        control["sent"] - control["acknowledged"] - control["refused"],
    )


def show(found: Outcome) -> Iterator[str]:
    """The tables, as Markdown."""
    yield "| way | offered | forwarded | no room in its ring | unexplained |"
    yield "|---|---|---|---|---|"
    for name, way in found.ways.items():
        yield f"| {name} | {way.offered} | {way.forwarded} | {way.no_room} | {way.unexplained} |"
    counts = (
        f"{found.rounds} rounds",
        f"{found.applied} config.apply",
        f"{found.reconnected} times all guests anew",
        f"{found.drivers} other drivers",
        f"{found.hostile_messages} hostile messages refused",
        f"{found.rpc_calls} RPC, the slowest {found.rpc_slowest_s:.2f} s, {found.rpc_refused} answered with an error",
    )
    yield f"\n{found.seconds:.0f} s at {found.rate_pps / 1e3:.0f} kpps a way: {'; '.join(counts)}\n"
    yield "| checked | found | |"
    yield "|---|---|---|"
    for name, value, right in found.rows():
        yield f"| {name} | {value} | {'right' if right else 'WRONG'} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, soak, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--rate", type=float, help="packets per second of each way, instead of 0.9 of the PDR")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.peer:
        be_hostile(options.peer, options.seed)
    sweep_stale()
    os.environ["GLIBC_TUNABLES"] = MALLOC
    with Supervisor(Path("/tmp")) as supervisor:
        found = soak(supervisor, options.hours, options.rate, options.seed)
    checked = {name: value for name, value, _ in found.rows()}
    print(
        json.dumps({**asdict(found), "checked": checked, "passed": found.passed})
        if options.json
        else "\n".join(show(found))
    )
    return 0 if found.passed else 1


if __name__ == "__main__":
    sys.exit(main())
