# SPDX-License-Identifier: BSD-3-Clause
"""Everything that an adapter needs, under the name that adapters of other packages import (docs/adding-a-switch.md)."""

from planebench.host.evidence import ThreadRef
from planebench.host.process import Process, Supervisor, wait_ready
from planebench.host.programs import PATH_OPTION, Found, Installation, NotFound
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.model.records import SwitchCycles
from planebench.model.switch import Option
from planebench.switches.adapter import Adapter, RunningSwitch, Situation, Traits, refusal_of
from planebench.testbed.request import Station, SwitchPort, SwitchRequest, VnfInterface

__all__ = [
    "PATH_OPTION",
    "Adapter",
    "DiedError",
    "Found",
    "Installation",
    "NotFound",
    "Option",
    "Process",
    "RunningSwitch",
    "Situation",
    "StartError",
    "Station",
    "Supervisor",
    "SwitchCycles",
    "SwitchPort",
    "SwitchRequest",
    "ThreadRef",
    "Traits",
    "UsageError",
    "VnfInterface",
    "refusal_of",
    "wait_ready",
]
