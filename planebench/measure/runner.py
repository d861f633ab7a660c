# SPDX-License-Identifier: BSD-3-Clause
"""Interface of whatever the campaign runs trials on: a live topology, or the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from planebench.analysis.capacity import clock_floor_ns, tester_ceiling_pps
from planebench.measure.distance import measure_distance, near_limit_ns
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial, unmeasured
from planebench.model.conditions import Conditions
from planebench.model.errors import PlanebenchError, StartError
from planebench.model.records import CoreDistance, Reason, ReasonCode, Trial, Verdict, VerdictKind
from planebench.testbed.rates import SATURATING


class Runner(Protocol):
    """A switch under test, up and ready. Not thread-safe."""

    @property
    def conditions(self) -> Conditions | None:
        """Return the conditions as read when the switch came up; None if they were not read."""

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial. Never raises for a failure of the switch: a process that died makes the trial invalid."""

    def alive(self) -> bool:
        """Return whether the runner can run another trial: False once one of its processes has exited."""

    def stop(self) -> None:
        """End the runner. Never raises; safe to call twice."""


@runtime_checkable
class SelfMeasured(Protocol):
    """An adapter that needs no tester because it measures itself: the simulator."""

    def runner(self, label: str, seed: int, past: Sequence[Trial]) -> Runner:
        """Return a runner. ``past`` are the earlier trials of this switch, so that a resumed run continues as begun."""


@dataclass
class LiveRunner:
    """Tester and switch on a topology that is up."""

    live: LiveTopology
    settings: LiveSettings

    @property
    def conditions(self) -> Conditions | None:
        """Return the conditions as read when the switch came up."""
        return self.live.conditions

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial; measure the core-to-core latency before and after it."""
        calibration, point = self.settings.calibration, request.point
        try:
            request = self._on_line(request)
        except StartError as error:
            return unmeasured(request, Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, str(error)),)))
        trial = run_trial(self.live, request, self.distance, tester_ceiling_pps(calibration, point))
        if trial.latency is None:
            return trial
        floor_ns = clock_floor_ns(calibration, point, trial.latency.clock)
        return replace(trial, latency=replace(trial.latency, floor_ns=floor_ns))

    def alive(self) -> bool:
        """Return whether tester and switch are running."""
        try:
            self.live.check()
        except PlanebenchError:
            return False
        return True

    def stop(self) -> None:
        """End tester and switch."""
        self.live.stop()

    def _on_line(self, request: TrialRequest) -> TrialRequest:
        """Return the request with the line rate of its NICs. Raises StartError if an open loop needs one in vain."""
        if self.settings.has_rate:
            return request
        pps = self.live.line_rate_pps(request.mean_frame_bytes)
        if pps is None and self.settings.open_loop and request.load == SATURATING:
            raise StartError("no NIC of the tester reports the speed of its link: give --line or --max-rate")
        return request.on_line(pps, open_loop=self.settings.open_loop is not False)

    def distance(self) -> CoreDistance | None:
        """Measure the distance between the CPUs of switch and tester now; None if the switch is on another host."""
        placement = self.live.placement
        if placement.elsewhere:
            return None
        calibration = self.settings.calibration
        limit_ns = near_limit_ns(calibration.distances_ns if calibration is not None else ())
        cpus = placement.switch_cpu, placement.tester_cpus[0]
        return measure_distance(self.settings.planed, *cpus, limit_ns, placement.share_l3)
