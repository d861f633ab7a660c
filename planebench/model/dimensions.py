# SPDX-License-Identifier: BSD-3-Clause
"""Names of dimensions of a test point: clocks of latencies, testers, VNF isolation, and registries of names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from planebench.model.errors import unknown

ClockName = Literal["software", "kernel", "hardware"]
"""planed, the kernel at its interface, or the device."""
LatencyClock = Literal["software", "kernel", "hardware", "tester"]
"""The same, or an external tester."""
ClockChoice = Literal["auto", "hardware", "kernel", "software"]
"""``auto``: software. Hardware has to be asked for: with it, drivers choose slower functions than their vector ones."""


def port_clock(choice: ClockChoice) -> ClockName:
    """Return the clock to ask the ports of the tester for."""
    return "software" if choice == "auto" else choice


# VNF isolation: its names, and the record of each VNF that is not a task of the tester.

HostingName = Literal["process", "separate", "container", "vm", "image", "exec"]
"""``process``: a task of the tester's process. ``separate``: a planed process of its own. ``image``, ``exec``: the
user's own VNF, a disk image in a VM or a command in a container."""

WORDS: Mapping[HostingName, str] = {"separate": "in processes", "container": "in containers", "vm": "in VMs"}
"""Words for a common hosting of all VNFs that their text does not name."""


@dataclass(frozen=True, slots=True)
class HostingFacts:
    """One hosted VNF as it really runs: a part of the conditions of a start."""

    vnf: str
    hosting: HostingName
    program: str
    """``QEMU 7.2.22``, ``bubblewrap 0.8.0``, ``podman 4.3.1 with runc 1.1.5``, ``planed 0.1.0``."""
    emulated: bool = False
    """Software emulation (TCG): frames count, rates and latencies tell nothing."""
    details: Mapping[str, str] = field(default_factory=dict)
    """What else a reader must know, in words: ``accelerator``: ``tcg, because KVM does not work: ...``; ``kernel``,
    ``memory``, ``rings``, ``cpus``, ``limits``, ``image``."""


# The names of testers, as plans have them: planed near or far, or a tester that is no part of planebench.

TESTER_PLACES = ("near", "other-node")
"""The places of planed as the tester. ``near``: the NUMA node of its NICs, or of the switch if it has none.
``other-node``: another node than that of the switch."""
EXTERNAL = {"otg": "otg:https://HOST:PORT,...", "trex": "trex:HOST,..."}
"""Kinds of external testers, and how they are written (docs/two-hosts.md)."""

_PORT = "@"


def is_external(tester: str) -> bool:
    """Return whether a tester is no part of planebench."""
    return tester not in TESTER_PLACES


def is_tester_port(end: str) -> bool:
    """Return whether an end of a cable is a port of an external tester, ``@NAME``, and no device of a host of ours."""
    return end.startswith(_PORT)


def port_name(end: str) -> str:
    """Return the name that an external tester has for the port at an end of a cable."""
    return end.removeprefix(_PORT)


# Registries of names: scenarios and wires are added to them by the modules that define them.

R = TypeVar("R", bound=Any)


class Registry(dict[str, R]):
    """Things of one kind by ``name``, sorted by their ``order``. ``what`` is one of them in words."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def register(self, found: R) -> None:
        """Add one."""
        self[found.name] = found
        for known in sorted(self.values(), key=lambda it: it.order):
            self[known.name] = self.pop(known.name)

    def named(self, name: str) -> R:
        """Return the one of a name; raise UsageError for an unknown one."""
        if name not in self:
            raise unknown(self.what, name, self)
        return self[name]


class RegisteredName:
    """Has pydantic check a name against a registry.

    ``arguments``: arguments may follow after a colon.
    """

    def __init__(self, registry: Mapping[str, Any], *, arguments: bool = False) -> None:
        self._registry = registry
        self._arguments = arguments

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # not by those who only ask for a name

        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        if (text.partition(":")[0] if self._arguments else text) not in self._registry:
            raise ValueError(f"Input should be one of {', '.join(self._registry)}")
        return text
