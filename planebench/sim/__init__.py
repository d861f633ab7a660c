# SPDX-License-Identifier: BSD-3-Clause
"""A simulated data plane: known capacity, noise, stalls, bands, a generator that falls short. docs/simulator.md."""

from planebench.sim.runner import SimRunner
from planebench.sim.spec import SIM_KEYS, SimSpec

__all__ = ["SIM_KEYS", "SimRunner", "SimSpec"]
