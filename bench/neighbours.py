# SPDX-License-Identifier: BSD-3-Clause
"""What an honest pair of ports keeps of its rate beside each kind of hostile peer.

    .venv/bin/python bench/neighbours.py [--rounds 9] [--seconds 3] [KIND...]

A planed with one worker patches ports a and b, where the peer is, and c and d, where a second planed sends flat out.
In each round the peers take turns, the harmless one among them: it has the same ports and a process that never sleeps,
and keeps all rings of its ports full of 60 B frames, as fast as they are taken. Each turn has new ports. It takes so
many seconds, whatever the peer has come to: that it is found out, cut off and barred is part of what is measured
("refused" says how often, and why).

Prints the rate of the honest pair in kpps as the median of the rounds; the median, and the smallest, of the ratios to
the harmless peer of the same round; and the CPU time of the peer's process. Peers share a CPU with none of ours where
there are three. Exit code 1 if a median is below a third.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import socket
import statistics
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from planed_rig import CPU, CPUS, Planed, load, task, until
from vhost_driver import BUFFERS, GUEST_ADDRESS, MEMORY_BYTES, RECEIVEQ, RING_SIZE, TRANSMITQ, WRITABLE, VhostDriver
from vring_rig import FLAT_OUT, device, join, ports

from planebench.host import procfs
from planebench.host.process import Supervisor, sweep_stale

LEAST_SHARE = 1 / 3
LIMIT_MB = 256
"""Of what frames may make of the peer's memory: enough for a measurement of seconds, and no machine is harmed."""
LAYOUT = "packed_vq=0,mrg_rxbuf=1"
HERE = GUEST_ADDRESS + BUFFERS
PAGE, MB = 4096, 1 << 20
SHORT_BYTES, LONG_BYTES, ROOM_BYTES = 72, 16 * PAGE - 1024, 16 * PAGE
PEER_CPUS = frozenset(CPUS[1:-1] or CPUS[-1:])
SPARSE_BYTES, PUNCHED_BYTES = 1 << 32, 2 * MB


# --- Peers: a process each, at the ports a and b


def connected(path: Path) -> VhostDriver:
    """Return a driver that has set up its rings, or raise TimeoutError soon, if the port hears nobody."""
    driver = VhostDriver(path, set_up=False)
    driver.be_impatient()
    try:
        driver.begin(1)
    except OSError:
        driver.close()
        raise
    return driver


def fill(driver: VhostDriver, queue: int, places: Sequence[int], length: int) -> None:
    """Write the descriptors of a whole ring."""
    for slot, place in enumerate(places):
        driver.write_descriptor(queue, slot, place, length, WRITABLE if queue == RECEIVEQ else 0, 0)
        driver.write_entry(queue, slot, slot)


def go_on(driver: VhostDriver, queue: int) -> None:
    """Offer all buffers that came back again."""
    driver.set_index(queue, driver.used(queue) + RING_SIZE)


def flood(paths: Mapping[str, Path], length: int) -> None:
    """Keep all rings full of frames of this length."""
    with connected(paths["a"]) as a, connected(paths["b"]) as b:
        rings = [(driver, queue) for driver in (a, b) for queue in (RECEIVEQ, TRANSMITQ)]
        for driver, queue in rings:
            fill(driver, queue, [HERE] * RING_SIZE, ROOM_BYTES if queue == RECEIVEQ else length)
        while not a.is_gone():
            for driver, queue in rings:
                go_on(driver, queue)


def send_from(guest: VhostDriver, mate: VhostDriver, places: Iterator[int], after: Callable[[], None]) -> None:
    """Send long frames from these places, a ring of them at a time, until cut off."""
    fill(mate, RECEIVEQ, [HERE] * RING_SIZE, ROOM_BYTES)
    while batch := list(islice(places, RING_SIZE)):
        due = (guest.used(TRANSMITQ) + RING_SIZE) & 0xFFFF
        fill(guest, TRANSMITQ, batch, LONG_BYTES)
        guest.set_index(TRANSMITQ, due)
        while guest.used(TRANSMITQ) != due:
            go_on(mate, RECEIVEQ)
            if guest.is_gone():
                return
        after()


def memory(paths: Mapping[str, Path]) -> None:
    """Have planed touch ever more of a sparse file."""
    with connected(paths["a"]) as guest, connected(paths["b"]) as mate:
        os.ftruncate(guest.memory_file, SPARSE_BYTES)
        guest.share_memory(SPARSE_BYTES)
        places = range(GUEST_ADDRESS + MEMORY_BYTES, GUEST_ADDRESS + SPARSE_BYTES - ROOM_BYTES, ROOM_BYTES)
        send_from(guest, mate, iter(places), lambda: None)


def holes(paths: Mapping[str, Path]) -> None:
    """Take the memory that was read away again."""
    with connected(paths["a"]) as guest, connected(paths["b"]) as mate:
        os.ftruncate(guest.memory_file, PUNCHED_BYTES)
        guest.share_memory(PUNCHED_BYTES)
        first = GUEST_ADDRESS + MEMORY_BYTES
        with mmap.mmap(guest.memory_file, PUNCHED_BYTES) as whole:
            send_from(
                guest,
                mate,
                (place for _ in iter(int, 1) for place in range(first, first + RING_SIZE * ROOM_BYTES, ROOM_BYTES)),
                lambda: whole.madvise(mmap.MADV_REMOVE, MEMORY_BYTES, PUNCHED_BYTES - MEMORY_BYTES),
            )


def storm(paths: Mapping[str, Path]) -> None:
    """Connect, ask, and hang up."""
    for name in "ab":
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.setblocking(False)
            caller.connect(str(paths[name]))
            caller.send(struct.pack("<III", 1, 1, 0))


def takeover(paths: Mapping[str, Path]) -> None:
    """Set up the rings of a port of the honest pair."""
    with connected(paths["c"]) as thief:
        thief.fill_receiveq()
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            go_on(thief, RECEIVEQ)


HARMLESS, BEGUN = "harmless", "the peer begins"
KINDS: Mapping[str, Callable[[Mapping[str, Path]], None]] = {
    HARMLESS: lambda paths: flood(paths, SHORT_BYTES),
    "memory": memory,
    "storm": storm,
    "long": lambda paths: flood(paths, LONG_BYTES),
    "holes": holes,
    "takeover": takeover,
}


def be(kind: str, folder: Path) -> None:
    """Do it again and again, until killed."""
    paths = {name: folder / f"{name}.sock" for name in "abcd"}
    print(BEGUN, flush=True)
    while True:
        with contextlib.suppress(OSError, struct.error):
            KINDS[kind](paths)


# --- Measuring


@dataclass(frozen=True, slots=True)
class Seen:
    """One turn of a peer: the rate of the honest pair, the CPU time that the peer took, and what it was refused for."""

    rate_pps: float
    peer_share: float
    refused: Mapping[str, int]


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has taken; 0 if it is gone."""
    fields = procfs.stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def received(guest: Planed) -> int:
    """Return what both monitors have received."""
    tasks = guest.tasks()
    return sum(int(tasks[f"mon{end}"]["rx_packets"]) for end in (0, 1))


def turn(supervisor: Supervisor, switch: Planed, guest: Planed, kind: str, seconds: float, epoch: int) -> Seen:
    """Measure the honest pair beside one peer."""
    guest.apply()
    switch.apply()
    paths = {name: switch.workdir / f"{name}.sock" for name in "abcd"}
    theirs = [{**device(name, paths[name]), "max_charged_mb": LIMIT_MB} for name in "ab"]
    switch.wires = tuple(device(name, paths[name]) for name in "cd")
    tasks = [task("theirs", "patch", "a", "b"), task("beside", "patch", "c", "d")]
    switch.apply([*theirs, *switch.wires], tasks, cpu=CPU)
    join(switch, guest, LAYOUT)
    guest.start_traffic(*(load(f"gen{end}", **FLAT_OUT) for end in (0, 1)), epoch=epoch, duration_s=600.0)
    argv = [sys.executable, __file__, "--be", kind, "--folder", str(switch.workdir)]
    peer = supervisor.spawn(f"peer{epoch}", argv, cpus=PEER_CPUS)  # as urgent as ours: it must be able to harm
    try:
        until(lambda: BEGUN in peer.log_tail(), "the peer begins")
        began, before, cpu_before = time.monotonic(), received(guest), cpu_s(peer.pid)
        time.sleep(seconds)
        if not peer.alive():
            raise SystemExit(f"the peer {kind} has ended, and harms nobody: {peer.exit_report()}")
        count, took = received(guest) - before, time.monotonic() - began
        share = (cpu_s(peer.pid) - cpu_before) / took
        found = ports(switch)
    finally:
        peer.kill()
    guest.call("traffic.stop")
    refused = Counter[str]()
    for name in "abcd":
        refused.update(found[name]["refused_messages"])
    return Seen(count / took, share, refused)


def show(found: Mapping[str, Sequence[Seen]]) -> Iterator[tuple[str, float]]:
    """Return a line for each kind, and the median of its ratios to the harmless peer."""
    for kind, turns in found.items():
        pairs = zip(turns, found[HARMLESS], strict=True)
        ratios = [mine.rate_pps / other.rate_pps if other.rate_pps else 0.0 for mine, other in pairs]
        median = statistics.median(ratios)
        rate = statistics.median(turn.rate_pps for turn in turns)
        share = statistics.median(turn.peer_share for turn in turns)
        refused = sum((Counter(turn.refused) for turn in turns), Counter[str]())
        words = ", ".join(f"{count} {why}" for why, count in sorted(refused.items())) or "-"
        line = f"| {kind} | {rate / 1e3:.0f} | {median:.2f} | {min(ratios):.2f} | {share:.0%} | {words} |"
        yield line, median


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure in rounds, print the table; return 1 if an honest pair keeps less than a third."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"some of {', '.join(list(KINDS)[1:])}; default: all")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn (3)")
    parser.add_argument("--be", choices=list(KINDS), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.be:
        be(given.be, given.folder)
    if unknown := [kind for kind in given.kinds if kind not in KINDS]:
        parser.error(f"no kinds {', '.join(unknown)}. Valid: {', '.join(KINDS)}")
    kinds = list(dict.fromkeys([HARMLESS, *(given.kinds or KINDS)]))
    found: dict[str, list[Seen]] = {kind: [] for kind in kinds}
    sweep_stale()
    with Supervisor(Path("/tmp")) as supervisor:
        switch, guest = Planed(supervisor, "switch"), Planed(supervisor, "guest")
        for number in range(given.rounds):
            for kind in (*kinds[number % len(kinds) :], *kinds[: number % len(kinds)]):
                epoch = sum(map(len, found.values())) + 1
                found[kind].append(turn(supervisor, switch, guest, kind, given.seconds, epoch))
            print(f"round {number + 1} of {given.rounds}", file=sys.stderr, flush=True)
    print("| peer | honest kpps | ratio | smallest | CPU of the peer | refused, all rounds |")
    print("|---|---|---|---|---|---|")
    medians = []
    for line, median in show(found):
        print(line)
        medians.append(median)
    return int(min(medians) < LEAST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
