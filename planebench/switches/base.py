# SPDX-License-Identifier: BSD-3-Clause
"""Everything that an adapter needs, under the name that adapters of other packages import (docs/adding-a-switch.md)."""

from planebench.host.programs import PATH_OPTION, Found, Installation, NotFound
from planebench.model.option import Option
from planebench.wiring.adapter import Adapter, RunningSwitch, Situation, ThreadRef, Traits, refusal_of
from planebench.wiring.request import Station, SwitchPort, SwitchRequest, VnfInterface

__all__ = [
    "PATH_OPTION",
    "Adapter",
    "Found",
    "Installation",
    "NotFound",
    "Option",
    "RunningSwitch",
    "Situation",
    "Station",
    "SwitchPort",
    "SwitchRequest",
    "ThreadRef",
    "Traits",
    "VnfInterface",
    "refusal_of",
]
