# SPDX-License-Identifier: BSD-3-Clause
"""This machine, as every measuring command uses it: its CPUs, its hugepages, its tester, and how long to go on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import FrameType

from planebench.host import cpu_claims
from planebench.host import facts as host_facts
from planebench.host.device_settings import device_journal, undone_at_exit
from planebench.host.facts import HostFacts, cpus_of
from planebench.host.memory import enough_hugepages
from planebench.host.planed_program import require_planed
from planebench.host.process import Supervisor, high_priority, sweep_stale
from planebench.measure.live import LiveSettings
from planebench.model.cpus import Cpus
from planebench.model.plan import TesterChoice
from planebench.model.wire import wire_arguments
from planebench.switches.remote import SwitchHost
from planebench.testbed.placement import place, tester_elsewhere
from planebench.testbed.request import LinkSide
from planebench.testbed.wires.base import wire_kind


def run_cpus(
    facts: HostFacts,
    switch_cores: int,
    wire: str,
    tester: TesterChoice,
    host: SwitchHost | None = None,
    tester_cores: int = 1,
) -> Cpus:
    """Return the CPUs of a machine for a run, near the NICs of the wire; those of the switch are on ``host``, if given.

    Raises UsageError for a ``tester`` on another node where there is none.
    """
    node = {nic.address: nic.numa_node for nic in facts.nics}
    cpus = replace(cpus_of(facts, switch_cores), tester_cores=tester_cores)
    for cable in wire_kind(wire).cables(wire_arguments(wire))[:1]:
        cpus = replace(cpus, switch_node=node.get(cable.switch), tester_node=node.get(cable.tester))
    if host is not None:
        return replace(cpus, switch_node=None, switch_elsewhere=host.answer.switch_cpus)
    return tester_elsewhere(cpus) if tester == "other-node" else cpus


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts of this machine, and the CPUs that a command may use, looked up before it moves to some of them."""

    facts: HostFacts
    cpus: Cpus
    wire: str = "virtio"
    """The wire of a run: its NICs decide on which nodes the CPUs are, and are held while it measures."""
    simulated: bool = False
    """Nothing is measured on the CPUs, so that any number of runs may use them."""
    switch_host: SwitchHost | None = None
    """The host of the switch, if it is not this one."""

    @classmethod
    def prepare(
        cls,
        switch_cores: int = 1,
        wire: str = "virtio",
        tester: TesterChoice = "near",
        switch_host: SwitchHost | None = None,
        *,
        tester_cores: int = 1,
        simulated: bool = False,
    ) -> Machine:
        """Collect the facts, and remove or restore what killed runs have left behind.

        Raises UsageError as :func:`run_cpus`, and BusyError where another planebench measures on these CPUs.
        """
        sweep_stale()
        if os.geteuid() == 0:  # others may not restore devices
            device_journal().undo_abandoned()
        facts = host_facts.collect()
        cpus = run_cpus(facts, switch_cores, wire, tester, switch_host, tester_cores)
        machine = cls(facts, cpus, wire, simulated, switch_host)
        with cpu_claims.claimed(() if simulated else machine.cpus.allowed):
            return machine

    def live_settings(self, wire: str, ring_size: int, max_frame_bytes: int, hugepages: bool | None) -> LiveSettings:
        """Return the settings of a tester with one switch. Raises NotInstalledError without planed.

        ``hugepages``: None for hugepages if enough are free.
        """
        enough = enough_hugepages(hugepages, self.facts)
        planed = require_planed(drivers=wire_kind(wire).needs_drivers)
        return LiveSettings(planed, ring_size, enough, max_frame_bytes, wire)

    @contextlib.contextmanager
    def pinned(self) -> Iterator[None]:
        """Claim the CPUs, and keep this process at a high priority and off those of the switch. Raises BusyError where
        another planebench has claimed one."""
        old = os.sched_getaffinity(0)
        with cpu_claims.claimed(() if self.simulated else self.cpus.allowed):
            os.sched_setaffinity(0, place(self.cpus).control_cpus)
            try:
                with high_priority():
                    yield
            finally:
                os.sched_setaffinity(0, old)

    @contextlib.contextmanager
    def measuring(self) -> Iterator[Supervisor]:
        """Pin this process, hold the devices of the wire, and yield what starts other processes; at exit all of them
        are ended."""
        with self.pinned(), undone_at_exit(), held(self.wire, switch_host=self.switch_host), Supervisor() as supervisor:
            yield supervisor


@contextlib.contextmanager
def held(*wires: str, switch_host: SwitchHost | None = None) -> Iterator[None]:
    """Hold the devices that wires name (``WireKind.hold``); warnings of them go to the standard error output.

    With a ``switch_host``, which has to be there for one wire, the devices at the switch's end are held there.
    """
    side: LinkSide | None = None if switch_host is None else "tester"
    with contextlib.ExitStack() as stack:
        holds = [wire_kind(wire).hold(wire_arguments(wire), side) for wire in wires]
        if switch_host is not None:
            holds.append(switch_host.holding())
        found = [text for hold in holds for text in stack.enter_context(hold)]
        for warning in found:
            print(f"planebench: {warning}", file=sys.stderr)
        yield


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt as Ctrl-C does; after the first, ignore all three.

    A SIGHUP that is ignored already stays so: the run is to outlive its terminal (nohup).
    """
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        for caught in signals:
            signal.signal(caught, signal.SIG_IGN)
        raise KeyboardInterrupt

    heard = (it for it in signals if it != signal.SIGHUP or signal.getsignal(it) is not signal.SIG_IGN)
    old = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in old.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)
