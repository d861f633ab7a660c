# SPDX-License-Identifier: BSD-3-Clause
"""The check of drops: at maximum offered load, every frame that does not arrive is in a named drop counter."""

from __future__ import annotations

from dataclasses import dataclass, field

from planebench.analysis.ledger import ATTEMPTS, counts_drops, reason_of
from planebench.conformance.accounts import outside
from planebench.conformance.model import Check, Failure, Remarks
from planebench.conformance.rig import Rig, read_until, sent
from planebench.measure.counts import TesterCounts, tester_counts
from planebench.measure.trial import cycles_of_trial
from planebench.model.records import SwitchCycles
from planebench.planed.client import get_statistics
from planebench.planed.statistics import Statistics
from planebench.switches.adapter import counters_of
from planebench.testbed.wires.base import is_kernel_interface

OVERLOAD_S = 0.1
SETTLE_S = 1.0
"""Frames still in a ring, and counters that are brought up to date now and then."""


@dataclass(frozen=True, slots=True)
class DropAccount:
    """The frames of one sending at maximum load, and where they went. ``hops``: how often a frame passes the switch."""

    offered: int
    came: int
    """Damaged ones included; they are for another check."""
    hops: int
    switch: SwitchCycles
    tester_drops: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: TesterCounts, switch: SwitchCycles, hops: int) -> DropAccount:
        """Return the account of what tester and switch counted."""
        came = sum(way.forwarded_packets + way.corrupt_packets for way in counts.directions)
        offered = sum(way.offered_packets for way in counts.directions)
        return cls(offered, came, hops, switch, counts.tester_drops)

    @property
    def counted(self) -> bool:
        """Return whether the switch counts drops at all."""
        return counts_drops(self.switch)

    @property
    def drops(self) -> dict[str, int]:
        """Return the drops of switch and tester, by name; only what is not 0."""
        every = [*self.switch.drops.items(), *self.tester_drops.items()]
        found: dict[str, int] = {}
        for key, packets in every:
            if packets and reason_of(key) not in ATTEMPTS:
                found[key] = found.get(key, 0) + packets
        return found

    @property
    def unexplained(self) -> int:
        """Return the lost frames that no counter explains; negative where counters claim too many."""
        return self.offered - self.came - sum(self.drops.values())

    @property
    def words(self) -> str:
        """Return text such as ``900 of 1000 came, 60 v0:tx_full, 40 unexplained``."""
        parts = [f"{packets} {key}" for key, packets in self.drops.items()]
        parts.append(f"{self.unexplained} unexplained" if self.unexplained >= 0 else f"{-self.unexplained} too many")
        return f"{self.came} of {self.offered} came, {', '.join(parts)}"

    def wrong(self, *, exact: bool) -> list[str]:
        """Return what cannot be. Not ``exact``: there may be losses that nobody can count."""
        # Each frame that came passed every cross-connect, and none passed one more often than it was sent.
        found = outside(self.switch, self.hops * self.came, self.hops * self.offered)
        if self.unexplained < 0 or (exact and self.counted and self.unexplained):
            found.append(self.words)
        return found


def accounts_for_drops(rig: Rig) -> Remarks:
    """Fail unless, at maximum offered load, every frame came through or is in a named drop counter."""
    kernel = any(is_kernel_interface(port, rig.live.links) for port in rig.topology.ports)
    account = _flood(rig, exact=not kernel)
    wrong = account.wrong(exact=not kernel) if account.offered else ["nothing was taken flat out"]
    if wrong:
        raise Failure("offered = forwarded + drops by named reasons", "; ".join(wrong))
    return (_uncounted(account, kernel),) if account.unexplained else ()


def _flood(rig: Rig, *, exact: bool) -> DropAccount:
    """Return the account of one sending at maximum offered load, once it adds up, or SETTLE_S later."""
    before = SwitchCycles()

    def flood(duration_s: float) -> Statistics:
        nonlocal before
        rig.calm()
        before = counters_of(rig.switch)
        return rig.live.send(rig.ways, 64, duration_s, None)

    def account() -> DropAccount:
        counts = tester_counts(get_statistics(rig.live.call), rig.ways)
        return DropAccount.of(counts, cycles_of_trial(before, counters_of(rig.switch), 0), rig.hops)

    sent(rig, rig.ways, OVERLOAD_S, flood)
    rig.calm()
    return read_until(account, lambda found: not found.wrong(exact=exact), SETTLE_S)


def _uncounted(account: DropAccount, kernel: bool) -> str:
    if kernel and account.counted:
        return "frames are lost in kernel interfaces, where nobody counts them"
    return "frames are lost, and it does not count drops"


CHECKS = (Check("overload", "Flat out, offered = forwarded + drops by named reasons.", accounts_for_drops),)
