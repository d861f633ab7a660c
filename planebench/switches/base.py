# SPDX-License-Identifier: BSD-3-Clause
# ruff: noqa: I001 - isort would have a line for each name that is handed on
"""Everything that an adapter needs, under the name that adapters of other packages import (docs/adding-a-switch.md)."""

from planebench.host.evidence import ThreadRef as ThreadRef
from planebench.host.process import Process as Process, Supervisor as Supervisor, wait_ready as wait_ready
from planebench.host.programs import (
    PATH_OPTION as PATH_OPTION,
    Found as Found,
    Installation as Installation,
    NotFound as NotFound,
)
from planebench.model.errors import DiedError as DiedError, StartError as StartError, UsageError as UsageError
from planebench.model.records import SwitchCycles as SwitchCycles
from planebench.model.switch import Option as Option
from planebench.switches.adapter import (
    Adapter as Adapter,
    RunningSwitch as RunningSwitch,
    Situation as Situation,
    Traits as Traits,
    refusal_of as refusal_of,
)
from planebench.testbed.request import (
    Station as Station,
    SwitchPort as SwitchPort,
    SwitchRequest as SwitchRequest,
    VnfInterface as VnfInterface,
)
