# SPDX-License-Identifier: BSD-3-Clause
"""One switch on one topology: starts it, runs its trials, starts it again when it dies, and gives up in the end."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planebench.host.device_settings import device_journal
from planebench.host.interrupts import keep_away
from planebench.measure.external import ExternalRunner
from planebench.measure.live import LiveTopology
from planebench.measure.runner import LiveRunner, Runner, SelfMeasured
from planebench.measure.trial import TrialRequest, unmeasured
from planebench.model.errors import ExternalTesterError, PlanebenchError, StoreError
from planebench.model.header import Skipped
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Trial, Verdict, VerdictKind
from planebench.model.tester import is_external
from planebench.placement import place_vnfs
from planebench.plans.order import Group
from planebench.testers import get_tester
from planebench.vnfs.topology import build_chain

if TYPE_CHECKING:
    from planebench.measure.campaign import Campaign

DEATHS_MAX = 2
"""How often a switch that died is started again on one topology."""
FAILED_STARTS_MAX = 2
"""How often in a row a switch may fail to start on one topology until it is given up."""


@dataclass
class Bench:
    """One switch on one topology, over all visits. ``runner`` is None when it is not up; ``reason``: why it failed."""

    campaign: Campaign
    label: str
    group: Group
    runner: Runner | None = None
    reason: str = ""
    start_number: int = -1
    """How often it was started again on this topology, over all sessions of a run; -1 before the first start."""
    deaths: int = 0
    failed_starts: int = 0
    """In a row."""

    @property
    def what(self) -> str:
        """Return the name of the topology, e.g. ``loopback-3``."""
        return self.group.points[0].scenario_label

    def begin_visit(self) -> None:
        """Forget a start that failed in an earlier visit, unless the switch was given up: this one may succeed."""
        if self.deaths <= DEATHS_MAX and self.failed_starts < FAILED_STARTS_MAX:
            self.reason = ""

    def ensure(self) -> None:
        """Start the switch if it is not up, unless it failed to start in this visit or was given up."""
        if self.runner is None and not self.reason:
            self.campaign.listener.working_on(f"starting {self.label} for {self.what}")
            self.start()

    def start(self) -> None:
        """Start the switch. A failure is reported and kept in ``reason``; that of an external tester is raised."""
        campaign, group, point = self.campaign, self.group, self.group.points[0]
        mine = [t for t in campaign.trials if t.point.switch == self.label and t.point in group.points]
        self.start_number = max([self.start_number, *(t.start for t in mine)]) + 1
        try:
            self.runner = self._runner(mine)
            self.failed_starts = 0
            if (found := self.runner.conditions) is not None:
                campaign.writer.observe(
                    dataclasses.replace(
                        found,
                        switch=self.label,
                        start=self.start_number,
                        vnf_hosting=point.hosting,
                        placement=point.placement,
                        cpu_clock=point.cpu_clock,
                    )
                )
        except ExternalTesterError as error:  # every other switch would meet it, too
            words = f"{error}. What was measured is stored; --resume continues the run"
            raise ExternalTesterError(words) from error
        except PlanebenchError as error:
            self.failed_starts += 1
            again = f"failed to start {self.failed_starts} times in a row; the last time: "
            self._skip(f"{again if self.failed_starts > 1 else ''}{error}")

    def _runner(self, past: Sequence[Trial]) -> Runner:
        """Start switch and tester. Raises StartError or ExternalTesterError; then no process is left running."""
        campaign, group = self.campaign, self.group
        adapter = campaign.adapters[self.label]
        if isinstance(adapter, SelfMeasured):
            return adapter.runner(self.label, campaign.plan.seed, past)
        adapter = adapter.at_clock(group.cpu_clock)
        sending = campaign.plan.sending
        topology = build_chain(
            group.scenario, group.chain_length, chain=group.chain, hosting=group.hosting, sending=sending
        )
        placement = place_vnfs(
            campaign.cpus,
            topology.cores_of_vnfs,
            hosted=topology.hosted_numbers,
            placing=group.placement,
            idle_tester=topology.idle_tester,
        )
        if os.geteuid() == 0:
            with contextlib.suppress(StoreError):  # without a place for the old values the interrupts stay
                keep_away(placement.pollers, placement.control_cpus, device_journal())
        if is_external(campaign.plan.tester):
            tester = get_tester(campaign.plan.tester)
            return ExternalRunner.start(
                self.label, adapter, topology, placement, campaign.settings, campaign.supervisor, tester
            )
        live = LiveTopology.start(
            self.label,
            adapter,
            topology,
            placement,
            campaign.settings,
            campaign.supervisor,
            directions=tuple(dict.fromkeys(point.direction for point in group.points)),
            profiles=[campaign.plan.profile(name) for name in dict.fromkeys(p.traffic for p in group.points)],
            cpu_clock=group.cpu_clock,
        )
        return LiveRunner(live, campaign.settings)

    def run(self, request: TrialRequest) -> Trial:
        """Run one trial; if the switch is not up, return an invalid trial with the reason."""
        if self.runner is None:
            return unmeasured(request, Verdict(VerdictKind.INVALID, (Reason(ReasonCode.ERROR, self.reason),)))
        return self.runner.run(request)

    def revive(self, reason: str) -> None:
        """Start a switch that died again, a limited number of times."""
        self.stop()
        self.deaths += 1
        if self.deaths > DEATHS_MAX:
            self._skip(f"died {self.deaths} times; the last time: {reason}")
        else:
            self.start()

    def stop(self) -> None:
        """Stop the switch. Never raises; safe to call twice."""
        if self.runner is not None:
            self.runner.stop()
            self.runner = None

    def _skip(self, reason: str) -> None:
        self.runner, self.reason = None, reason
        what = f"{self.label} {self.what}"
        self.campaign.writer.skip(Skipped(what, reason))
        self.campaign.listener.trouble(f"{what}: {reason}")
