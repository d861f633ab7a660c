# SPDX-License-Identifier: BSD-3-Clause
"""``testbed wires``: find which ports are cabled to each other, draw it, and print the option of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from planebench.cli.options import print_json
from planebench.host import pci, pci_binding
from planebench.host.memory import enough_hugepages
from planebench.measure.cabling import Cabling, FoundPort, find_cabling
from planebench.measure.machine import Machine, terminable
from planebench.model.errors import UsageError
from planebench.model.wire import parse_wire, wire_arguments
from planebench.testbed.placement import place
from planebench.testbed.request import Ends
from planebench.testbed.wires.base import wire_kind

PCI = "pci"


def wires(
    device: Sequence[str] | None, wire: str | None, hugepages: bool | None, *, json: bool = False, quiet: bool = False
) -> int:
    """Find and show the cabling of the devices, of those of ``wire``, or of all NICs that may be taken.

    Returns 1 if the cabling is not as ``wire`` says, or if there is no cable. Raises UsageError,
    NotInstalledError without planed, and StartError.
    """
    wanted = wire_kind(parse_wire(wire)).cables(wire_arguments(wire)) if wire else ()
    named = [pci.full_address(it) if _is_address(it) else it for it in device or ()]
    named += [end for cable in wanted for end in (cable.tester, cable.switch) if end not in named]
    machine = Machine.prepare()
    left_out = {}
    for nic in () if named else pci.nics():
        try:
            pci_binding.check([nic.address])
        except UsageError as error:  # it must not be taken
            left_out[nic.address] = str(error).partition(": ")[2]
    named = named or [nic.address for nic in pci.nics() if nic.address not in left_out]
    if left_out and len(named) < 2:
        told = "; ".join(f"{address}: {why}" for address, why in left_out.items())
        raise UsageError(f"a cable has two NICs, but only {len(named)} of this machine may be taken ({told})")
    with terminable(), pci_binding.bound([it for it in named if _is_address(it)]), machine.measuring() as children:
        huge = enough_hugepages(hugepages, machine.facts)
        found = find_cabling(named, place(machine.cpus), children, hugepages=huge)
    differences = found.differences(wanted)
    option = option_words(found)
    if json:
        print_json(
            {
                "ports": [{**dataclasses.asdict(it), "receivers": found.receivers[it.device]} for it in found.ports],
                "cables": [[cable.tester, cable.switch] for cable in found.cables],
                "problems": list(found.problems),
                "wanted": [[cable.tester, cable.switch] for cable in wanted],
                "differences": list(differences),
                "wire": option or None,
            }
        )
    elif not quiet:
        print("\n".join([*drawn(found), *(f"{address}: {why}" for address, why in left_out.items())]))
        if option:
            print(f"\n--wire {option}")
    if not json:
        for sentence in differences:
            print(f"planebench: {sentence}")
    return int(bool(differences) or not found.cables)


def _is_address(device: str) -> bool:
    try:
        pci.full_address(device)
    except UsageError:
        return False
    return True


def option_words(found: Cabling) -> str:
    """Return the cabling as ``--wire`` takes it; empty without cables, or if an end is no NIC.

    The ends of the switch are the NICs of the other device than the first one, as far as the cables allow that.
    """
    cables = []
    for cable in found.cables:
        swap = _card(cable.switch) == _card(found.cables[0].tester) != _card(cable.tester)
        cables.append(Ends(cable.switch, cable.tester) if swap else cable)
    if not all(_is_address(end) for cable in cables for end in (cable.tester, cable.switch)):
        return ""
    return f"{PCI}:{','.join(f'{cable.tester}={cable.switch}' for cable in cables)}" if cables else ""


def _card(device: str) -> str:
    return device.rpartition(".")[0]


def drawn(found: Cabling) -> Iterator[str]:
    """Yield a line for each cable, ``0000:3b:00.0 (10 Gb/s) ------ 0000:af:00.0 (10 Gb/s)``, then for each problem."""
    ports = {port.device: port for port in found.ports}
    left = {cable: _port_words(ports[cable.tester]) for cable in found.cables}
    width = max(map(len, left.values()), default=0)
    for cable, words in left.items():
        yield f"{words:<{width}}  ------  {_port_words(ports[cable.switch])}"
    yield from found.problems


def _port_words(port: FoundPort) -> str:
    speed = f"{port.speed_mbps / 1000:g} Gb/s" if port.speed_mbps else "speed unknown"
    return f"{port.device} ({port.driver or 'driver unknown'}, {speed})"
