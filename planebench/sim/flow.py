# SPDX-License-Identifier: BSD-3-Clause
"""The packet ledger of a simulated trial: pure arithmetic, every lost frame has one cause."""

from __future__ import annotations

from dataclasses import dataclass

from planebench.model.records import TENTHS, DirectionCounts
from planebench.scenarios.flows import Flow
from planebench.sim.draw import Draw
from planebench.sim.spec import SimSpec

FLAT_OUT_FACTOR = 1.5
"""A generator without a limit offers this much more than the switch can take."""
DISTURBED_SHARE = 0.05
"""Share of a disturbed trial for which a poller has no CPU."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """One trial: what each direction counts, what the switch dropped by ``port:reason``, how long it took."""

    directions: tuple[DirectionCounts, ...]
    drops: dict[str, int]
    duration_ns: int

    @property
    def offered_packets(self) -> int:
        """Return the offered packets of all directions."""
        return sum(d.offered_packets for d in self.directions)


def account(spec: SimSpec, luck: Draw, flows: tuple[Flow, ...], pps: float | None, duration_s: float) -> Ledger:
    """Run the frames of one trial. ``pps`` is for each flow; None is flat out."""
    duration_s = int(duration_s * 1e9) / 1e9  # planed counts in whole ns
    duration = duration_s * (1.0 if pps is None else spec.stretch)
    directions: list[DirectionCounts] = []
    drops: dict[str, int] = {}
    for i, flow in enumerate(flows):
        intended, offered = _sent(spec, luck, len(flows), pps, duration_s)
        taken = offered - _over(spec, luck, len(flows), offered, duration)
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
                forwarded_by_tenth=_by_tenth(min(left, _capacity(luck, len(flows), duration))),
                unsent_late_packets=intended - offered,
                attempted_packets=offered,
            )
        )
    return Ledger(tuple(directions), drops, round(duration * 1e9))


def _sent(spec: SimSpec, luck: Draw, flows: int, pps: float | None, duration_s: float) -> tuple[int, int]:
    """Return intended and offered packets of one flow. Slots are those that begin within the trial, as in planed."""
    most = spec.max_rate / flows
    if pps is None:
        offered = int(min(FLAT_OUT_FACTOR * luck.capacity_pps / flows, most) * duration_s)
        return offered, offered
    intended = int(pps * duration_s + 1e-6)
    return intended, intended if pps <= most else min(intended, int(most * duration_s))


def _over(spec: SimSpec, luck: Draw, flows: int, offered: int, duration_s: float) -> int:
    """Return the frames of one flow beyond what the switch forwards in time and the ring holds."""
    return max(0, offered - _capacity(luck, flows, duration_s) - spec.ring // flows)


def _capacity(luck: Draw, flows: int, duration_s: float) -> int:
    """Return the frames of one flow that the switch forwards in time."""
    return int(luck.capacity_pps / flows * (1 - DISTURBED_SHARE if luck.disturbed else 1.0) * duration_s + 1e-6)


def _by_tenth(packets: int) -> tuple[int, ...]:
    return tuple(packets * (i + 1) // TENTHS - packets * i // TENTHS for i in range(TENTHS))
