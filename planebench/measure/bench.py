# SPDX-License-Identifier: BSD-3-Clause
"""One switch of a comparison on the current topology: start, restart, stop, and the reason of a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings
from planebench.measure.runner import Observed, Runner, start_runner
from planebench.measure.trial import TrialRequest, unmeasured
from planebench.model.conditions import Conditions
from planebench.model.errors import PlanebenchError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.model.traffic import TrafficProfile
from planebench.placement import Cpus, place
from planebench.plans.order import Group
from planebench.vnfs.topology import build_chain
from planebench.wiring.adapter import Adapter

DEATHS_MAX = 2
"""How often a switch that died is started again on one topology."""


@dataclass
class Bench:
    """A switch under its label. ``runner`` is None when it is not up; ``reason`` then says why."""

    label: str
    adapter: Adapter
    group: Group
    cpus: Cpus
    settings: LiveSettings
    supervisor: Supervisor
    seed: int
    past: Callable[[], Sequence[Trial]]
    """The trials of the run so far."""
    fail: Callable[[str, str], None]
    """Receives what could not be started, and the reason."""
    keep: Callable[[Conditions], None] = lambda _: None
    """Receives the conditions at each start."""
    profiles: Sequence[TrafficProfile] = ()
    """The traffic to send: functions may pass only this traffic, e.g. a router with its own table."""
    runner: Runner | None = None
    reason: str = ""
    start_number: int = -1
    """How often it was started again on this topology, over all sessions of a run; -1 before the first start."""
    deaths: int = 0
    restarted_for: set[int] = field(default_factory=set)
    """Repetitions of R+ before which it was started again."""
    fresh: bool = False
    """Nothing was measured since its last start: starting it again would change nothing."""

    @property
    def what(self) -> str:
        """Return the name of the topology, e.g. ``loopback-3``."""
        return self.group.points[0].scenario_label

    def start(self) -> None:
        """Start the switch. A failure is reported and kept in ``reason``; nothing is raised."""
        mine = [t for t in self.past() if t.point.switch == self.label and t.point in self.group.points]
        self.start_number = max([self.start_number, *(t.start for t in mine)]) + 1
        group = self.group
        try:
            topology = build_chain(group.scenario, group.chain_length, chain=group.chain, hosting=group.hosting)
            placement = place(self.cpus, len(topology.vnfs), hosted=topology.hosted_numbers)
            self.runner = start_runner(
                self.label,
                self.adapter,
                topology,
                placement,
                self.settings,
                self.supervisor,
                self.seed,
                mine,
                directions=tuple(dict.fromkeys(point.direction for point in self.group.points)),
                profiles=self.profiles,
            )
            self.fresh = True
            self._keep_conditions(self.runner)
        except PlanebenchError as error:
            self._give_up(str(error))

    def _keep_conditions(self, runner: Runner) -> None:
        if isinstance(runner, Observed) and runner.conditions is not None:
            self.keep(replace(runner.conditions, switch=self.label, start=self.start_number))

    def restart(self) -> None:
        """Stop the switch and start it again."""
        self.stop()
        self.start()

    def restart_before(self, repetition: int) -> None:
        """Restart the switch once before a repetition of R+, however many points the repetition has."""
        if repetition not in self.restarted_for:
            self.restarted_for.add(repetition)
            if not self.fresh:
                self.restart()

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial; if the switch is not up, return an invalid trial with the reason."""
        if self.runner is None:
            return unmeasured(request, Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, self.reason),)))
        self.fresh = False
        return self.runner.run(request)

    def revive(self, reason: str) -> None:
        """Start a switch that died again, a limited number of times."""
        self.stop()
        self.deaths += 1
        if self.deaths > DEATHS_MAX:
            self._give_up(f"died {self.deaths} times; the last time: {reason}")
        else:
            self.start()

    def stop(self) -> None:
        """Stop the switch. Never raises; safe to call twice."""
        if self.runner is not None:
            self.runner.stop()
            self.runner = None

    def _give_up(self, reason: str) -> None:
        self.runner, self.reason = None, reason
        self.fail(f"{self.label} {self.what}", reason)
