# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``planebench fib``. What they do is in planebench.cli.fib_agent."""

from __future__ import annotations

from typing import Annotated

import typer

from planebench.cli.options import JsonOption, examples

fib_app = typer.Typer(help="Routes that a forwarder in the host holds for a VNF.")

_Interface = Annotated[
    str, typer.Option("--interface", "-i", metavar="NAME", help="The VNF's interface to the forwarder.")
]
_Table = Annotated[
    str, typer.Option(metavar="NAME|N", help="Table of the kernel's routes, with that of local addresses.")
]


@fib_app.command("show", epilog=examples("planebench fib show --interface lo", "planebench fib show -i lo --json"))
def fib_show(interface: _Interface, table: _Table = "main", json: JsonOption = False) -> None:
    """What `planebench fib agent` would tell a forwarder now. Nothing is sent, and no privilege is needed."""
    from planebench.cli import fib_agent

    fib_agent.show(interface, table, json=json)


@fib_app.command(
    "agent",
    epilog=examples(
        "planebench fib agent --interface vnf0 --settle 60 --json",
        "planebench fib agent --interface vnf0 --wire vnf0=0 --wire vnf1=1",
    ),
)
def agent(
    interface: _Interface,
    wire: Annotated[
        list[str],
        typer.Option(
            metavar="N|NAME=N",
            help="Wire of the VNF that packets leave by, as the forwarder counts them. Again for another interface.",
        ),
    ] = ["0"],  # noqa: B006
    table: _Table = "main",
    settle: Annotated[
        float,
        typer.Option(min=0, help="Seconds until routes of before are given up, for a routing daemon that starts too."),
    ] = 0,
    withdraw: Annotated[
        bool, typer.Option("--withdraw", help="Take the routes back at the end, not leave them for the grace period.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Events as JSON, one a line, on standard output.")] = False,
) -> None:
    """Runs in a VNF: its kernel's routes become the forwarder's, and every change of them, until SIGTERM or Ctrl-C."""
    from planebench.cli import fib_agent

    fib_agent.run(interface, wire, table, settle_s=settle, withdraw=withdraw, json=json)
