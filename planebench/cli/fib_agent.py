# SPDX-License-Identifier: BSD-3-Clause
"""``fib agent`` and ``fib show``: a kernel's routes for a forwarder."""

from __future__ import annotations

import contextlib
import json as json_module
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from planebench.cli.options import print_table
from planebench.model.errors import PlanebenchError, UsageError
from planebench.model.words import printable
from planebench_fib import exceptions
from planebench_fib.agent import Agent, AgentSettings, interface_index
from planebench_fib.agent_kernel import Kernel, table_number
from planebench_fib.agent_mirror import BLACKHOLE, Mirror
from planebench_fib.transport import PacketTransport

_WIRE_MAX = 7
_SENTENCES = {
    "session": "session {number} with the forwarder",
    "end_of_rib": "the forwarder has {routes} routes and {next_hops} next hops{remarks}",
    "lost": "the session is lost: {reason}; trying again",
    "refused": "the forwarder refuses {reason}",
    "overrun": "the kernel could not report all route changes; reading all routes again",
    "ended": "ended; {routes} routes {what}",
}


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Raise errors of planebench_fib as those of planebench, which have exit codes."""
    try:
        yield
    except exceptions.UsageError as error:
        raise UsageError(str(error)) from error
    except exceptions.Error as error:
        raise PlanebenchError(str(error)) from error


@_told()
def run(interface: str, wire: Sequence[str], table: str, *, settle: float, withdraw: bool, json: bool) -> None:
    """Mirror routes until SIGTERM or Ctrl-C.

    Raises UsageError or TransportError if something is missing or not allowed.
    """
    settings = AgentSettings(_wires(interface, wire), _table(table), settle, withdraw)
    transport = PacketTransport(interface)
    kernel = Kernel(settings.wires, settings.table)
    agent = Agent(settings, kernel, transport, _tell_json if json else _tell_words)
    with _until_signal(agent.stop), contextlib.closing(kernel), transport:
        agent.run()


@_told()
def show(interface: str, table: str, *, json: bool) -> None:
    """Print the routes and next hops that there are now."""
    wires = {interface_index(interface): 0}
    mirror = Mirror(wires)
    with contextlib.closing(Kernel(wires, _table(table))) as kernel:
        mirror.load(kernel.routes())
        mirror.load_neighbours(kernel.neighbours())
    mirror.changes()
    rows: list[dict[str, str]] = []
    for prefix, number in sorted(mirror.told().items(), key=lambda route: (len(route[0].address), *route[0])):
        mac = mirror.told_hops()[number].mac
        does = "forward" if mac else "blackhole" if number == BLACKHOLE else "local"
        rows.append({"prefix": str(prefix), "does": does} | ({"mac": mac.hex(":")} if mac else {}))
    if json:
        print(json_module.dumps({"interface": interface, "table": table, "routes": rows}, indent=2))
        return
    print_table(("prefix", "does", "MAC"), ((row["prefix"], row["does"], row.get("mac")) for row in rows))


def _wires(interface: str, texts: Sequence[str]) -> dict[int, int]:
    """Parse ``0``, the output port of the interface itself, and ``vnf1=1``, that of another interface."""
    wires = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not (number.isdecimal() and int(number) <= _WIRE_MAX and (name or not equals)):
            raise UsageError(f'wire "{text}" is not valid; give a number from 0 to {_WIRE_MAX}, or INTERFACE=NUMBER')
        wires[interface_index(name or interface)] = int(number)
    return wires


def _table(name: str) -> int:
    try:
        number = table_number(name)
    except ValueError:
        number = 0
    if not 0 < number < 1 << 32:
        raise UsageError(f'table "{name}" is not valid; give main, default or a number of `ip route show table all`')
    return number


@contextlib.contextmanager
def _until_signal(stop: Callable[[], None]) -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, lambda *_: stop()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _tell_json(event: str, facts: dict[str, Any]) -> None:
    print(json_module.dumps({"event": event} | facts), flush=True)


def _tell_words(event: str, facts: dict[str, Any]) -> None:
    remarks = f", {facts['multipath']} with several next hops, of which one is used" if facts.get("multipath") else ""
    remarks += "".join(f"; {count} refused: {why}" for why, count in facts.get("refused", {}).items())
    what = "withdrawn" if facts.get("withdrawn") else "stay for the forwarder's grace period"
    words = _SENTENCES[event].format(**facts, remarks=remarks, what=what)
    print(f"planebench: {printable(words)}", file=sys.stderr, flush=True)
