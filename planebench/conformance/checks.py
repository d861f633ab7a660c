# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a switch that runs undisturbed.

In this order: what the adapter says, where the switch runs, what happens to frames, what its counters say of them, and
what becomes of every frame at maximum offered load.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass, field

from planebench.analysis.ledger import ATTEMPTS, counts_drops, reason_of
from planebench.conformance.model import Check, Failure, NotSupported, Remarks
from planebench.conformance.rig import FrameCounts, PcapExchange, Rig, exchange_good, most, read_until, send_exact, sent
from planebench.host import procfs
from planebench.host.evidence import read_counts
from planebench.host.programs import NotFound
from planebench.measure.counts import Sending, tester_counts
from planebench.measure.trial import cycles_of_trial
from planebench.model.conditions import FEATURE_KEYS, MANIFEST_KEYS, UNKNOWN, parse_claim
from planebench.model.cpus import cpu_text
from planebench.model.errors import UsageError
from planebench.model.records import SwitchCycles
from planebench.model.traffic import PLAIN
from planebench.planed.client import get_statistics
from planebench.planed.statistics import Statistics
from planebench.switches.adapter import Adapter
from planebench.testbed.traffic import parse_traffic
from planebench.testbed.wires.base import is_kernel_interface, wire_kind

NO_SUCH_OPTION = "no-such-option"
ROUNDS = 6
COUNTED_ROUNDS = 3
TRIES = 3
SIZES = (64, 65, 511, 1518)
PROFILES = ("imix", "vlan:vlan=100", "tcp", "ipv6")
PROFILE_SIZE = 101
ORDER_S = 0.05
OVERLOAD_S = 0.1
SETTLE_S = 1.0
"""Frames still in a ring, and counters that some switches bring up to date only now and then."""
WITHOUT_RAW = ("ports have several queues, so raw frames were left out",)


def is_found(adapter: Adapter) -> Remarks:
    found = adapter.find()
    if isinstance(found, NotFound):
        raise Failure("the switch", f"not found: {found.remedy}")
    if not found.version.strip():
        raise Failure("a version", f"none, of {found.binary}")
    return ()


def refuses_options(adapter: Adapter) -> Remarks:
    try:
        adapter.with_options({NO_SUCH_OPTION: "1"})
    except UsageError as error:
        missing = [option.name for option in adapter.options if option.name not in str(error)]
        if NO_SUCH_OPTION not in str(error) or missing:
            raise Failure(f"a sentence with {NO_SUCH_OPTION} and all valid options", str(error)) from error
        return ()
    raise Failure(f"UsageError for option {NO_SUCH_OPTION}", "an adapter")


def states_manifest(rig: Rig) -> Remarks:
    settings = rig.adapter.settings(rig.live.request)
    missing = [key for key in MANIFEST_KEYS if not settings.get(key, "").strip()]
    if missing:
        raise Failure(f"a value for each of {', '.join(MANIFEST_KEYS)}", f"none for {', '.join(missing)}")
    unreadable = [f"{key}: {settings[key]}" for key in FEATURE_KEYS if parse_claim(settings[key]) is None]
    if unreadable:
        raise Failure("claims such as `wires on, VNFs off` (planebench.model.conditions)", "; ".join(unreadable))
    unknown = [key for key in MANIFEST_KEYS if settings[key] == UNKNOWN]
    return (f"manifest has unknown: {', '.join(unknown)}",) if unknown else ()


def runs_on_its_core(rig: Rig) -> Remarks:
    """Fail unless forwarding threads are pinned to the requested cores, and no other thread may run there.

    Where the switch shares its only CPU, others may.
    """
    polling = rig.live.switch.polling_threads()
    if not polling:
        if "interrupt" in rig.adapter.traits.models:
            raise NotSupported("it has no thread of its own: the kernel forwards in softirqs")
        raise Failure("threads that forward", "none")
    send_exact(rig, rig.ways)
    cpus, pids = set(rig.live.request.cpus), rig.live.switch.pids()
    wrong = []
    for thread in polling:
        try:
            allowed = os.sched_getaffinity(thread.tid)
        except OSError:
            wrong.append(f"thread {thread.name} ({thread.tid}) is not there")
            continue
        if len(allowed) != 1 or not allowed <= cpus:
            wrong.append(f"thread {thread.name} may run on CPUs {cpu_text(allowed)}")
        counts = read_counts(thread.pid, thread.tid)
        if counts is not None and counts.cpu not in cpus:
            wrong.append(f"thread {thread.name} ran on CPU {counts.cpu}")
        if thread.pid not in pids and not procfs.is_kernel_thread(thread.pid):
            wrong.append(f"thread {thread.name} is of process {thread.pid}, which pids() leaves out")
    if wrong:
        raise Failure(f"every forwarding thread pinned to one of CPUs {cpu_text(cpus)}", "; ".join(wrong))
    others = []
    tids = {thread.tid for thread in polling}
    for pid in () if rig.placement.shared else pids:
        for tid, name in procfs.threads(pid).items():
            with contextlib.suppress(OSError):
                allowed = os.sched_getaffinity(tid)
                if tid not in tids and allowed & cpus:
                    others.append(f"thread {name} ({tid}) of process {pid} may run on CPUs {cpu_text(allowed)}")
    if others:
        raise Failure(f"nothing else of the switch on CPUs {cpu_text(cpus)}", "; ".join(others))
    return ()


def forwards(rig: Rig) -> Remarks:
    there, back = rig.ways
    rig.live.wait_until_forwarding()
    for flows, rounds in (((there,), 1), ((back,), 1), ((there, back), ROUNDS)):
        counts = send_exact(rig, flows, rounds=rounds)
        if counts.lost:
            counts = send_exact(rig, flows, rounds=2 * rounds)  # once more: a count that persists is wrong
        if counts.lost:
            rig.lossless = False
            names = " and ".join(flow.name for flow in flows)
            raise Failure(f"{names}: all {counts.offered} frames", f"{counts.arrived} ({counts.words()})")
    return ()


def keeps_to_its_ports(rig: Rig) -> Remarks:
    counts = send_exact(rig, rig.ways, rounds=2)
    if counts.misdirected or counts.foreign:
        raise Failure("no frame at a port where it does not belong", counts.words())
    found = _exchanged(rig)
    if found is None:
        return WITHOUT_RAW
    if found.astray:
        pairs = ", ".join(f"{a} <-> {b}" for a, b in rig.topology.cross_connects)
        raise Failure(f"frames to go {pairs}, and nowhere else", most(found.astray))
    return ()


def changes_nothing(rig: Rig) -> Remarks:
    kinds = [(f"{size} B", size, PLAIN) for size in SIZES]
    kinds += [(f"traffic {text}", PROFILE_SIZE, parse_traffic(text)) for text in PROFILES]
    for kind, size, profile in kinds:
        counts = send_exact(rig, rig.ways, size, profile)
        if counts.corrupt:
            raise Failure(f"frames of {kind} whole", f"{counts.corrupt} of {counts.offered} damaged")
    found = _exchanged(rig)
    if found is None:
        return WITHOUT_RAW
    if found.changed:
        raise Failure("every frame as it was sent, byte by byte", most(found.changed))
    if missing := found.lost_kinds(plain=True):
        raise Failure(f"frames of all sizes within {found.tries} tries", f"never came: {', '.join(missing)}")
    lost = found.lost_kinds(plain=False)
    return (f"does not carry: {', '.join(lost)}",) if lost else ()


def keeps_order(rig: Rig) -> Remarks:
    counts = FrameCounts()
    stats = sent(rig, rig.ways, ORDER_S, lambda it: rig.live.send(Sending(rig.ways, 64, it, None)))
    counts.add(tester_counts(stats, rig.ways))
    if counts.reordered or counts.duplicate:
        raise Failure("frames in the order in which they were sent, each once", counts.words())
    found = _exchanged(rig)
    if found is None:
        return WITHOUT_RAW
    overtaken, twice = most(found.disorder), most(found.doubled)
    if overtaken or twice:
        words = f"overtaken: {overtaken or 'none'}; twice: {twice or 'none'}"
        raise Failure("frames in the order in which they were sent, each once", words)
    return ()


def _exchanged(rig: Rig) -> PcapExchange | None:
    """Return the exchange of raw frames that three checks share; None where ports have several queues."""
    links = rig.live.links
    if links.queues > 1 or wire_kind(links.wire).receive_queue(links):
        return None
    if rig.exchange is None:
        rig.exchange = exchange_good(rig)
    return rig.exchange


def counts_frames(rig: Rig) -> Remarks:
    wrong: list[str] = []
    for _ in range(TRIES):
        rig.calm()
        before = rig.live.switch.counters()
        tally = send_exact(rig, rig.ways, rounds=COUNTED_ROUNDS)
        least, largest = rig.hops * tally.arrived, rig.hops * tally.offered
        counters = _counted(rig, before, least)
        # What cannot be: where no frame is lost, every count is exact.
        wrong = outside(counters, least, largest)
        drops = {key: n for key, n in counters.drops.items() if n and reason_of(key) not in ATTEMPTS}
        if counters.drops and sum(drops.values()) != tally.lost:
            wrong.append(f"dropped {', '.join(f'{n} {key}' for key, n in drops.items()) or 'none'}")
        if counters.busy_cycles is not None and counters.busy_cycles <= 0:
            wrong.append(f"{counters.busy_cycles} busy cycles")
        if counters.bursts is not None and not 0 < counters.bursts <= largest:
            wrong.append(f"{counters.bursts} bursts")
        if not wrong:
            break
    if wrong:
        words = f"{rig.hops} x {tally.offered} frames received and sent, {tally.lost} dropped"
        raise Failure(words, "; ".join(wrong))
    named = {
        "received": counters.packets,
        "sent": counters.forwarded_packets,
        "busy cycles": counters.busy_cycles,
        "batch size": counters.bursts,
        "drops": counters.drops or None,
    }
    unknown = [name for name, value in named.items() if value is None]
    return (f"does not count: {', '.join(unknown)}",) if unknown else ()


def _counted(rig: Rig, before: SwitchCycles, wanted: int) -> SwitchCycles:
    """Return what the switch counted since ``before``, once that is as many as ``wanted``, or SETTLE_S later."""
    return read_until(
        lambda: cycles_of_trial(before, rig.live.switch.counters()),
        lambda found: all(n is None or n >= wanted for n in (found.packets, found.forwarded_packets)),
        SETTLE_S,
    )


def outside(counters: SwitchCycles, least: int, most: int) -> list[str]:
    """Return a sentence for each counter of passes through the switch that is not within ``least`` to ``most``."""
    named = (("received", counters.packets), ("sent", counters.forwarded_packets))
    return [
        f"{name} {number}, which is not {most if least == most else f'within {least} to {most}'}"
        for name, number in named
        if number is not None and not least <= number <= most
    ]


@dataclass(frozen=True, slots=True)
class DropAccount:
    """The frames of one sending at maximum load, and where they went. ``hops``: how often a frame passes the switch."""

    offered: int
    came: int
    """Damaged ones included; they are for another check."""
    hops: int
    switch: SwitchCycles
    tester_drops: dict[str, int] = field(default_factory=dict)

    @property
    def drops(self) -> dict[str, int]:
        """Return the drops of switch and tester, by name; only what is not 0."""
        found = Counter(self.switch.drops)
        found.update(self.tester_drops)
        return {key: packets for key, packets in found.items() if packets and reason_of(key) not in ATTEMPTS}

    @property
    def unexplained(self) -> int:
        """Return the lost frames that no counter explains; negative where counters claim too many."""
        return self.offered - self.came - sum(self.drops.values())

    def wrong(self, *, exact: bool) -> list[str]:
        """Return what cannot be. Not ``exact``: there may be losses that nobody can count."""
        # Each frame that came passed every cross-connect, and none passed one more often than it was sent.
        found = outside(self.switch, self.hops * self.came, self.hops * self.offered)
        rest = self.unexplained
        if rest < 0 or (exact and counts_drops(self.switch) and rest):
            parts = [f"{packets} {key}" for key, packets in self.drops.items()]
            parts.append(f"{rest} unexplained" if rest >= 0 else f"{-rest} too many")
            found.append(f"{self.came} of {self.offered} came, {', '.join(parts)}")
        return found


def accounts_for_drops(rig: Rig) -> Remarks:
    kernel = any(is_kernel_interface(port, rig.live.links) for port in rig.topology.ports)
    before = SwitchCycles()

    def flood(duration_s: float) -> Statistics:
        nonlocal before
        rig.calm()
        before = rig.live.switch.counters()
        return rig.live.send(Sending(rig.ways, 64, duration_s, None))

    def account() -> DropAccount:
        counts = tester_counts(get_statistics(rig.live.call), rig.ways)
        came = sum(way.forwarded_packets + way.corrupt_packets for way in counts.directions)
        offered = sum(way.offered_packets for way in counts.directions)
        switch = cycles_of_trial(before, rig.live.switch.counters())
        return DropAccount(offered, came, rig.hops, switch, counts.tester_drops)

    sent(rig, rig.ways, OVERLOAD_S, flood)
    rig.calm()
    found = read_until(account, lambda it: not it.wrong(exact=not kernel), SETTLE_S)
    wrong = found.wrong(exact=not kernel) if found.offered else ["nothing was taken flat out"]
    if wrong:
        raise Failure("offered = forwarded + drops by named reasons", "; ".join(wrong))
    if not found.unexplained:
        return ()
    if kernel and counts_drops(found.switch):
        return ("frames are lost in kernel interfaces, where nobody counts them",)
    return ("frames are lost, and it does not count drops",)


ITSELF_CHECKS = (
    Check("found", "The adapter finds the switch, and tells its version.", is_found),
    Check("options", "An option that it has not got is refused with those that it has.", refuses_options),
)
CHECKS = (
    Check("settings", "Every key of the fairness manifest is stated.", states_manifest),
    Check(
        "cores",
        "Forwarding threads are pinned to the cores asked for, and nothing else of it is there.",
        runs_on_its_core,
    ),
    Check("forwards", "Every frame sent at a low rate arrives: there, back, and both ways at once.", forwards),
    Check("wiring", "Nothing comes out at a port that is not the other end of the cross-connect.", keeps_to_its_ports),
    Check("intact", "Frames of all sizes come out byte by byte as they went in, MAC addresses too.", changes_nothing),
    Check("order", "No frame overtakes another and none comes twice, flat out too.", keeps_order),
    Check("counters", "At a low rate, received and sent equal the tester's counts, and no drop.", counts_frames),
    Check("overload", "Flat out, offered = forwarded + drops by named reasons.", accounts_for_drops),
)
"""In the order in which they run."""
