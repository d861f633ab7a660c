# SPDX-License-Identifier: BSD-3-Clause
"""The command ``planebench-fib``: the agent of a VNF, and what a forwarder has.

All options of all commands are in :func:`parser`.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json as json_module
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from planebench_fib import __version__
from planebench_fib.agent import Agent, AgentSettings, interface_index, only_one
from planebench_fib.agent_fpm import source
from planebench_fib.agent_kernel import Kernel, table_number
from planebench_fib.agent_mirror import BLACKHOLE, Mirror
from planebench_fib.exceptions import Error, UsageError
from planebench_fib.transport import PacketTransport

_WIRE_MAX = 7
_NAME_BYTES_MAX = 15
_USAGE, _FAILED, _INTERRUPTED, _CLOSED_PIPE = 2, 4, 130, 141
"""Exit codes, those of planebench."""
_SENTENCES = {
    "session": "session {number} with the forwarder",
    "end_of_rib": "the forwarder has {routes} routes and {next_hops} next hops{remarks}",
    "wire": "wire {wire} is {state}",
    "interface": "interface {name} is {where}",
    "lost": "the session is lost: {reason}; trying again",
    "refused": "the forwarder refuses {reason}",
    "overrun": "the kernel could not report all route changes; reading all routes again",
    "source": "{what}",
    "ended": "ended; {routes} routes {what}",
}


def main() -> int:
    """Run the command of the command line and return its exit code. Errors are told in one line."""
    try:
        run(sys.argv[1:], "planebench-fib")
        sys.stdout.flush()
    except UsageError as error:
        return _complain(str(error), _USAGE)
    except Error as error:
        return _complain(str(error), _FAILED)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes the rest there at its end
        return _CLOSED_PIPE
    except OSError as error:
        return _complain(f"{error.filename or 'system'}: {error.strerror or error}", _FAILED)
    return 0


def run(arguments: Sequence[str], program: str) -> None:
    """Run a command. Raises Error and OSError; SystemExit after ``--help`` and ``--version``."""
    given = vars(parser(program).parse_args(arguments))
    given.pop("does")(**given)


def parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _Parser(program, description="Routes that a forwarder in the host holds for a VNF.")
    top.add_argument("--version", action="version", version=f"planebench-fib {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    show = commands.add_parser(
        "show",
        help="routes that the agent would send",
        description="Show the routes that the agent would send. Nothing is sent; no privileges are needed.",
    )
    _add_common(show)
    show.add_argument("--json", action="store_true", help="print one JSON document")
    show.set_defaults(does=show_routes)

    agent = commands.add_parser(
        "agent",
        help="run in a VNF",
        description="Send this kernel's routes, and every change of them, to the forwarder until SIGTERM or Ctrl-C.",
    )
    _add_common(agent)
    agent.add_argument(
        "--wire",
        action="append",
        metavar="N|NAME=N",
        help="output port of the VNF, as the forwarder numbers them; may be repeated per interface (default: 0)",
    )
    agent.add_argument(
        "--settle",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="keep the previous routes so long while a routing daemon starts: less than grace_s (default: 0)",
    )
    agent.add_argument(
        "--fpm",
        default="",
        metavar="ADDRESS:PORT",
        help="take routes from FRR's zebra, which connects to this address, not from the kernel",
    )
    agent.add_argument(
        "--withdraw",
        action="store_true",
        help="withdraw the routes at the end instead of leaving them for the grace period",
    )
    agent.add_argument("--json", action="store_true", help="print events as JSON on standard output, one per line")
    agent.set_defaults(does=run_agent)

    status = commands.add_parser(
        "status",
        help="sessions, routes and losses of the VNFs of a forwarder",
        description="Show what a forwarder has of its VNFs, a line each. With --json exact counts.",
    )
    _add_rpc(status)
    status.add_argument("--json", action="store_true", help="print one JSON document")
    status.set_defaults(does=show_status)

    metrics = commands.add_parser(
        "metrics",
        help="the same for Prometheus",
        description="Print the same as metrics for Prometheus, or answer its scrapes until SIGTERM or Ctrl-C.",
    )
    _add_rpc(metrics)
    metrics.add_argument("--listen", metavar="HOST:PORT", help="serve them there by HTTP")
    metrics.set_defaults(does=give_metrics)

    system = commands.add_parser(
        "system",
        help="folder of systemd units and Prometheus alerts",
        description="Print the folder with units of systemd and alerts of Prometheus.",
    )
    system.set_defaults(does=show_system)
    return top


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are exceptions, and whose options are written in full."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **{"allow_abbrev": False, **more})

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("-i", "--interface", required=True, metavar="NAME", help="interface to the forwarder")
    command.add_argument(
        "--table",
        default="main",
        metavar="NAME|N",
        help="routing table of the kernel; local addresses are always included (default: main)",
    )


def _add_rpc(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--rpc", required=True, type=Path, metavar="SOCKET", help="RPC socket of the forwarder, as planed --rpc has it"
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds


_seconds.__name__ = "number of seconds"  # argparse: invalid ... value


def run_agent(
    interface: str, wire: Sequence[str] | None, table: str, settle: float, fpm: str, withdraw: bool, json: bool
) -> None:
    """Mirror routes until SIGTERM or Ctrl-C.

    Raises UsageError, TransportError or AgentRunsError if something is missing, not allowed or there already.
    """
    interface_index(interface)
    settings = AgentSettings(interface, _wires(interface, wire or ("0",)), _table(table), settle, withdraw)
    gc.set_threshold(100_000, 20, 1000)  # looks at every route for garbage; by default a third of the time goes there
    tell = _tell_json if json else _tell_words
    with only_one(interface), PacketTransport(interface) as transport:
        kernel = source({interface, *settings.wires}, settings.table, fpm, tell, settle_s=settle)
        agent = Agent(settings, kernel, transport, tell)
        with _until_signal(agent.stop), contextlib.closing(kernel):
            agent.run()


def show_routes(interface: str, table: str, json: bool) -> None:
    """Print the routes and next hops that there are now."""
    mirror = Mirror({interface_index(interface): 0})
    with contextlib.closing(Kernel((interface,), _table(table))) as kernel:
        _, mirror.vlans = kernel.links()
        mirror.load(kernel.routes())
        mirror.load_neighbours(kernel.neighbours())
    mirror.changes()
    rows: list[dict[str, str]] = []
    for prefix, number in sorted(mirror.told().items(), key=lambda route: (len(route[0].address), *route[0])):
        hops = mirror.told_hops()
        ways = [hops[member] for member, _ in hops[number].members] or [hops[number]]
        mac = " ".join(hop.mac.hex(":") + (f".{hop.vlan}" if hop.vlan else "") for hop in ways)
        does = "forward" if mac else "blackhole" if number == BLACKHOLE else "local"
        rows.append({"prefix": str(prefix), "does": does} | ({"mac": mac} if mac else {}))
    if json:
        print(json_module.dumps({"interface": interface, "table": table, "routes": rows}, indent=2))
        return
    print_table(("prefix", "does", "MAC"), ((row["prefix"], row["does"], row.get("mac", "")) for row in rows))


def show_system() -> None:
    """Print where the units and alerts are."""
    print(Path(__file__).parent / "system")


# An agent runs without what these import: it is in each VNF.


def show_status(rpc: Path, json: bool) -> None:
    """Print what a forwarder has of its VNFs. Raises ForwarderError; UsageError if it is another kind of switch."""
    from planebench_fib import status

    fibs = status.ask(rpc)
    if json:
        print(json_module.dumps({"fibs": [asdict(fib) for fib in fibs]}, indent=2))
        return
    if not fibs:
        raise UsageError(f"{rpc}: this planed forwards for no VNF: it has no task fib_offload")
    for line in status.lines(fibs):
        print(_printable(line))


def give_metrics(rpc: Path, listen: str | None) -> None:
    """Print metrics, or serve them. Raises ForwarderError; UsageError and OSError of an address."""
    from planebench_fib import status

    if listen is not None:
        status.serve(rpc, listen)
    print(status.metrics(status.ask(rpc)), end="")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output, its columns two spaces apart."""
    lines = [columns, *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _wires(interface: str, texts: Sequence[str]) -> dict[str, int]:
    """Parse ``0``, the output port of the interface itself, and ``vnf1=1``, that of another interface, which may come
    later."""
    wires = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        valid = number.isdecimal() and int(number) <= _WIRE_MAX and (name or not equals)
        if not valid or len(os.fsencode(name)) > _NAME_BYTES_MAX:
            raise UsageError(f'wire "{text}" is not valid; give a number from 0 to {_WIRE_MAX}, or INTERFACE=NUMBER')
        wires[name or interface] = int(number)
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
    remarks = f", {facts['multipath']} with several next hops" if facts.get("multipath") else ""
    remarks += "".join(f"; {count} refused: {why}" for why, count in facts.get("refused", {}).items())
    what = "withdrawn" if facts.get("withdrawn") else "stay for the forwarder's grace period"
    words = {"remarks": remarks, "what": what, "state": "up" if facts.get("up") else "down"}
    words["where"] = "there" if facts.get("there") else "not there; this VNF forwards by it until it comes"
    _complain(_SENTENCES[event].format(**words | facts), 0)


def _complain(text: str, code: int) -> int:
    print(f"planebench-fib: {_printable(' '.join(text.split()))}", file=sys.stderr, flush=True)
    return code


def _printable(text: str) -> str:
    """Return a text without what could command a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
