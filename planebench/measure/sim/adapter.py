# SPDX-License-Identifier: BSD-3-Clause
"""The simulated switch: no process, no packets; trials with test with known results (docs/simulator.md)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planebench.host.process import Supervisor
from planebench.host.programs import Found
from planebench.measure.runner import Runner
from planebench.measure.sim.runner import SIM_KEYS, SimRunner, SimSpec
from planebench.model.errors import StartError
from planebench.model.records import Trial
from planebench.switches.adapter import Adapter, RunningSwitch, Traits
from planebench.testbed.request import SwitchRequest


class SimAdapter(Adapter):
    """``sim:capacity=10M:noise=1%``: found everywhere, needs no tester (measure.runner.SelfMeasured)."""

    name = "sim"
    title = "simulated switch"
    remedy = "it is part of planebench"
    wires = frozenset({"virtio", "vhost", "memif", "veth"})
    traits = Traits("self-contained", "structured", ("rtc",), "none", "high", ("Python",), "test with known results")
    stations = True
    is_program = False
    options = tuple(SIM_KEYS.values())

    @property
    def spec(self) -> SimSpec:
        """Return the switch with the options that were given."""
        values: Mapping[str, Any] = self.values
        return SimSpec(**values)

    def find(self) -> Found:
        return Found("simulated", Path(sys.executable))

    def settings(self, request: SwitchRequest) -> dict[str, str]:
        spec, usual = self.spec, SimSpec()
        changed = {key: getattr(spec, key) for key in SIM_KEYS if getattr(spec, key) != getattr(usual, key)}
        texts = {key: value if isinstance(value, str) else f"{value:.12g}" for key, value in changed.items()}
        return {"function": "simulated", **texts}

    def start(self, request: SwitchRequest, supervisor: Supervisor) -> RunningSwitch:
        raise StartError("the simulated switch forwards no packets; it works with planebench run only")

    def runner(self, label: str, seed: int, past: Sequence[Trial]) -> Runner:
        """Return a runner that continues after the trials in ``past``."""
        return SimRunner(self.spec, seed, past)


ADAPTER = SimAdapter()
