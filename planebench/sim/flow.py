# SPDX-License-Identifier: BSD-3-Clause
"""The packet ledger of a simulated trial: pure arithmetic, every lost frame has one cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from planebench.model.records import DirectionCounts
from planebench.scenarios.flows import Flow
from planebench.sim.draw import Draw
from planebench.sim.foreign import Standing, standing
from planebench.sim.spec import SimSpec

FLAT_OUT_FACTOR = 1.5
"""A generator without a limit offers this much more than the switch can take."""
HELD_PACKETS = 256
"""Frames of one flow that wait in rings while the switch stands; what comes after them is lost."""
LATE_NS = 50_000
"""A paced generator sends what was due within this time before; what is later is not sent."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One trial: what each direction counts, what the switch dropped by ``port:reason``, how long it took, and when the
    pollers stood meanwhile."""

    directions: tuple[DirectionCounts, ...]
    drops: dict[str, int]
    standing: Standing

    @property
    def duration_ns(self) -> int:
        """Return how long the sending took."""
        return self.standing.duration_ns

    @property
    def offered_packets(self) -> int:
        """Return the offered packets of all directions."""
        return sum(d.offered_packets for d in self.directions)


def account(spec: SimSpec, luck: Draw, flows: tuple[Flow, ...], pps: float | None, duration_s: float) -> Ledger:
    """Run the frames of one trial. ``pps`` is for each flow; None is flat out."""
    duration_s = int(duration_s * 1e9) / 1e9  # planed counts in whole ns
    duration_ns = round(duration_s * (1.0 if pps is None else spec.stretch) * 1e9)
    host = standing(spec.foreign, spec.root, luck.disturbed, luck.host, duration_ns)
    had_by_tenth, had = host.had_by_tenth, host.had
    capacity = int(luck.capacity_pps / len(flows) * had * duration_ns / 1e9 + 1e-6)
    directions: list[DirectionCounts] = []
    drops: dict[str, int] = {}
    for i, flow in enumerate(flows):
        intended, offered = _sent(spec, luck, len(flows), pps, duration_s, host)
        taken = min(offered - _met_nobody(offered, host, had), capacity + spec.ring // len(flows))
        causes = {
            f"{flow.sender_port}:rx_missed": offered - taken,
            "fault": taken // spec.drop_one_in if spec.drop_one_in else 0,
            "loss": int(taken * spec.loss),
            "stall": spec.stall_packets if luck.stalls and i == 0 else 0,
        }
        left = offered
        for cause, count in causes.items():
            lost = min(count, left)
            left -= lost
            drops[cause] = drops.get(cause, 0) + lost  # 0 too: a counter that was read
        directions.append(
            DirectionCounts(
                flow.name,
                intended_packets=intended,
                offered_packets=offered,
                forwarded_packets=left,
                forwarded_by_tenth=_by_tenth(min(left, capacity), had_by_tenth),
                unsent_late_packets=intended - offered,
                attempted_packets=offered,
            )
        )
    return Ledger(tuple(directions), drops, host)


def _sent(
    spec: SimSpec, luck: Draw, flows: int, pps: float | None, duration_s: float, host: Standing
) -> tuple[int, int]:
    """Return intended and offered packets of one flow. Slots are those that begin within the trial, as in planed."""
    most = spec.max_rate / flows
    if pps is None:
        rate = min(FLAT_OUT_FACTOR * luck.capacity_pps / flows, most)
        offered = int(rate * (duration_s - host.tester_ns / 1e9))
        return offered, offered
    intended = int(pps * duration_s + 1e-6)
    late_ns = sum(max(0, end - begin - LATE_NS) for begin, end in host.tester)
    sent = intended - min(intended, int(pps * late_ns / 1e9))
    return intended, sent if pps <= most else min(sent, int(most * duration_s))


def _met_nobody(offered: int, host: Standing, had: float) -> int:
    """Return the frames of one flow that came while the switch stood, and that its rings did not hold."""
    sending_ns = host.duration_ns - host.tester_ns
    if not host.switch or sending_ns <= 0:
        return 0
    came = int(offered * max(0.0, 1 - had * host.duration_ns / sending_ns))
    return max(0, came - HELD_PACKETS * len(host.switch))


def _by_tenth(packets: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Return the packets by tenth, in proportion to the weights."""
    total, marks = max(sum(weights), 1), [0, *accumulate(weights)]
    return tuple(packets * end // total - packets * begin // total for begin, end in pairwise(marks))
