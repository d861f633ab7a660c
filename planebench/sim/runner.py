# SPDX-License-Identifier: BSD-3-Clause
"""Runs trials on a simulated switch, as fast as it can count; every trial is judged as a real one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from planebench.measure.trial import TrialRequest, unmeasured, with_verdict
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import (
    CoreDistance,
    Evidence,
    SwitchCycles,
    ThreadEvidence,
    Trial,
    Verdict,
    VerdictKind,
)
from planebench.sim.draw import Band, Draw, draw
from planebench.sim.flow import HELD_PACKETS, Ledger, account
from planebench.sim.foreign import IRQS_PER_BURST, Span, length_ns
from planebench.sim.latency import latency_record
from planebench.sim.spec import SimSpec
from planebench.traffic.rates import line_rate_pps

DISTANCE_NS: dict[Band, float] = {"near": 62.0, "far": 261.0}
ADDITIONS_PER_CYCLE = 3.75
"""The additions per cycle of a core that no other hyperthread uses."""
SWITCH_CPU, TESTER_CPU = 0, 1
GAP_NS = 100_000
"""A tester that did not poll for longer counts a gap."""


class SimRunner:
    """A simulated switch that is up. Same spec, seed, past and start: same trials, but for the time of day.

    ``past`` are the earlier trials of this switch: numbering continues from them, so no random values repeat. They
    depend on the number of the start too, so a resumed run, which starts the switch again, differs from one that never
    stopped. ``now`` returns the time of day, for tests.
    """

    conditions = None

    def __init__(
        self, spec: SimSpec, seed: int = 1, past: Sequence[Trial] = (), now: Callable[[], str] | None = None
    ) -> None:
        self.spec = spec
        self._seed = seed
        self._starts = 0
        self._alive = True
        self._done = Counter(t.point.point_id for t in past)
        self._now = now

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial. Never raises; a switch that dies makes an invalid trial."""
        line_pps = line_rate_pps(request.mean_frame_bytes, self.spec.line) if self.spec.line else None
        request = request.on_line(line_pps)
        start = max(request.start, self._starts)
        number = self._done[request.point.point_id]
        luck = draw(self.spec, self._seed, request.point, start, number, request.repetition)
        self._done[request.point.point_id] += 1
        self._alive = not luck.dies
        if luck.dies:
            died = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, f"{self.spec.name} died (simulated)"),))
            return dataclasses.replace(self._blank(request, died), start=start)
        flows = request.flows()
        ledger = account(self.spec, luck, flows, request.load.pps_per_direction, request.duration_s)
        return with_verdict(dataclasses.replace(self._trial(request, luck, ledger), start=start))

    def restart(self) -> None:
        """Start the switch anew: it may fall into its other mode."""
        self._starts += 1

    def alive(self) -> bool:
        """Return whether the last trial found it alive."""
        return self._alive

    def stop(self) -> None:
        """Do nothing: nothing was started."""

    def _trial(self, request: TrialRequest, luck: Draw, ledger: Ledger) -> Trial:
        probes = round(request.probe_rate_pps * request.duration_s * len(ledger.directions))
        load_pps = ledger.offered_packets * 1e9 / ledger.duration_ns
        held_ns = HELD_PACKETS * len(ledger.directions) * 1e9 / max(load_pps, 1.0)
        return dataclasses.replace(
            self._blank(request, Verdict(VerdictKind.VALID)),
            offered_duration_ns=ledger.duration_ns,
            directions=ledger.directions,
            evidence=_evidence(self.spec, luck, ledger),
            switch=self._cycles(luck, ledger),
            latency=latency_record(
                self.spec, luck, probes, load_pps, ledger.standing, held_ns, stamp_all=request.stamp_all
            )
            if probes and self.spec.latency_us
            else None,
        )

    def _blank(self, request: TrialRequest, verdict: Verdict) -> Trial:
        """Return a trial without counts that starts now."""
        trial = unmeasured(request, verdict)
        return trial if self._now is None else dataclasses.replace(trial, started_at=self._now())

    def _cycles(self, luck: Draw, ledger: Ledger) -> SwitchCycles:
        """Return the counters of the switch: always busy at its capacity, more cycles per packet with far cores.

        A poll takes the frames that came during the one before: a part of its cycles is its own, and the fewer it
        finds, the more a frame costs. Its clock goes on while it stands: cycles of the poll that was interrupted,
        which is idle while the tester stands, too.
        """
        spec, slower = self.spec, self.spec.capacity / luck.capacity_pps
        if not spec.cycles:
            return SwitchCycles(drops=ledger.drops)
        total = round(spec.capacity * spec.cycles * ledger.duration_ns / 1e9)
        taken = ledger.offered_packets - sum(n for cause, n in ledger.drops.items() if cause.endswith(":rx_missed"))
        of_frame, host = spec.cycles - spec.poll / spec.burst, ledger.standing
        at_work, sent_to = total * host.had, total * (1 - host.tester_ns / host.duration_ns)
        left = at_work - taken * of_frame * slower
        batch = min(max(taken * spec.poll * slower / left, 1.0), spec.burst) if left > 0 else spec.burst
        busy = min(at_work, taken * (of_frame + spec.poll / batch) * slower)
        busy = round(busy / at_work * sent_to) if at_work else 0
        bursts = round(taken / batch) if spec.poll else None
        return SwitchCycles(
            busy_cycles=busy, idle_cycles=total - busy, packets=taken, bursts=bursts, drops=ledger.drops
        )


def _evidence(spec: SimSpec, luck: Draw, ledger: Ledger) -> Evidence:
    host, counted = ledger.standing, not ledger.standing.irq
    share = spec.shared_ratio if luck.shared else 1.0
    speeds = (share * ADDITIONS_PER_CYCLE, ADDITIONS_PER_CYCLE) if spec.shared_share else ()
    distance = CoreDistance(DISTANCE_NS[luck.band], luck.band, speeds)
    gaps_ns = [end - begin for begin, end in host.tester if end - begin > GAP_NS]
    return Evidence(
        threads=(
            _thread("switch", "sim", SWITCH_CPU, ledger.duration_ns, host.switch if counted else ()),
            _thread("tester", "sim-tester", TESTER_CPU, ledger.duration_ns, host.tester if counted else ()),
        ),
        poll_gaps=len(gaps_ns),
        poll_gap_sum_ns=sum(gaps_ns),
        poll_gap_max_ns=max(gaps_ns, default=0),
        poll_gap_threshold_ns=GAP_NS if gaps_ns else 0,
        stall_ns=max(round((1 - host.had) * ledger.duration_ns) - host.tester_ns, 0),
        distance_before=distance,
        distance_after=distance,
        tester_busy_share=0.8,
        interrupts={"sim": IRQS_PER_BURST * len(host.switch + host.tester)} if host.irq else None,
    )


def _thread(
    owner: Literal["switch", "tester"], name: str, cpu: int, duration_ns: int, waits: Sequence[Span]
) -> ThreadEvidence:
    wait_ns = length_ns(waits)
    return ThreadEvidence(owner, name, cpu, duration_ns - wait_ns, wait_ns, len(waits))
