# SPDX-License-Identifier: BSD-3-Clause
"""The rig of a check: a switch and the tester, up on one scenario, and the state of the machine before."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from planebench.conformance.model import Case
from planebench.host.deadlines import stretched
from planebench.host.leftovers import Leftovers
from planebench.host.process import Supervisor
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.model.errors import DiedError
from planebench.model.topology import Topology
from planebench.model.wire import wire_name
from planebench.placement import Cpus, Placement, place
from planebench.scenarios.flows import Flow, flows
from planebench.scenarios.shapes import build
from planebench.wiring.adapter import (
    WORKERS_OPTION,
    Adapter,
    RunningSwitch,
    Situation,
    counters_of,
    refusal_of,
)

if TYPE_CHECKING:
    from planebench.conformance.exchange import PcapExchange

CALM_S = 0.03
UNCOUNTED_CALM_S = 0.2
CALM_DEADLINE_S = 3.0


@dataclass
class Rig:
    """One scenario on one wire. Not paused while a check has it; :meth:`renew` starts everything anew."""

    adapter: Adapter
    case: Case
    cpus: Cpus
    settings: LiveSettings
    supervisor: Supervisor
    before: Leftovers = field(default_factory=Leftovers.take)
    """The state of the machine before anything of this scenario was started."""
    logs: tuple[Path, ...] = ()
    """Of the switch that was started last."""
    lossless: bool = True
    """False once the switch was seen to lose frames: other checks then only ask whether frames come at all."""
    sending_min_s: float = 0.0
    """Shorter sendings may be over before the tester has its CPU, as was seen."""
    exchange: PcapExchange | None = None
    """Raw frames through every cross-connect, once it was done: several checks look at it."""
    _live: LiveTopology | None = None

    def __post_init__(self) -> None:
        self.topology: Topology = build(self.case.scenario, self.case.chain_length)
        cpus = replace(self.cpus, switch_cores=max(self.case.workers, self.cpus.switch_cores))
        self.placement: Placement = place(cpus, len(self.topology.vnfs))
        self.starts = 0

    def refusal(self) -> str:
        """Return why the adapter cannot be checked here; empty if it can. It then has the workers of the case.

        Where there are fewer cores, a second worker shares the one of the tester: only frames are counted.
        """
        case, how = self.case, self.settings
        if case.workers > 1:
            if not self.adapter.has_workers:
                return f"{self.adapter.name} forwards with one worker"
            self.adapter = self.adapter.with_options({WORKERS_OPTION.name: str(case.workers)})
        cores = len(self.placement.switch_cpus)
        if cores < case.workers:
            self.placement = replace(self.placement, more_switch_cpus=self.placement.tester_cpus[:1])
        situation = Situation(
            case.scenario,
            wire_name(how.wire),
            case.chain_length,
            how.hugepages,
            how.max_frame_bytes,
            switch_cores=cores,
        )
        return refusal_of(self.adapter, situation)

    @property
    def live(self) -> LiveTopology:
        """Return the topology that is up. Raises DiedError if there is none."""
        if self._live is None:
            raise DiedError("the topology is not up")
        return self._live

    @property
    def up(self) -> bool:
        """Return whether a topology is up."""
        return self._live is not None

    @property
    def switch(self) -> RunningSwitch:
        """Return the running switch. Raises DiedError if there is none."""
        return self.live.switch

    @property
    def ways(self) -> tuple[Flow, ...]:
        """Return the flows of both directions."""
        return flows(self.topology, "bidirectional")

    @property
    def hops(self) -> int:
        """Return how often a frame passes the switch on its way."""
        return len(self.topology.cross_connects)

    def start(self) -> None:
        """Start tester and switch, and wait until frames cross. Raises StartError."""
        known = len(self.supervisor.processes)
        self.starts += 1
        try:
            self._live = LiveTopology.start(
                f"{self.adapter.name}-{self.starts}",
                self.adapter,
                self.topology,
                self.placement,
                self.settings,
                self.supervisor,
            )
            self._live.resume()
        finally:
            self.note_logs(known)

    def note_logs(self, known: int) -> None:
        """Keep the log paths of the processes that were started after the first ``known`` ones."""
        started = [process for process in self.supervisor.processes[known:] if process.name not in ("tester", "netns")]
        self.logs = tuple(process.log_path for process in started if process.name != "veth-setup") or self.logs

    def calm(self) -> None:
        """Wait until the switch has processed all frames that it has received, as far as its counters show."""
        deadline = time.monotonic() + stretched(CALM_DEADLINE_S)
        before = counters_of(self.switch).packets
        time.sleep(UNCOUNTED_CALM_S if before is None else CALM_S)
        while time.monotonic() < deadline and (now := counters_of(self.switch).packets) != before:
            before = now
            time.sleep(CALM_S)

    def stop(self) -> None:
        """End everything. Never raises; safe to call twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def renew(self) -> None:
        """Start the rig anew, because a failed check left it in an unknown state. Raises StartError."""
        self.stop()
        self.start()
