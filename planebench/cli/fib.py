# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``planebench fib``. What they do is in planebench.cli.fib_agent."""

from __future__ import annotations

from typing import Annotated

import typer

from planebench.cli.options import does, examples, option

fib_app = typer.Typer(help="Routes that a forwarder in the host holds for a VNF.")

_Interface = Annotated[str, option("--interface -i", "Interface of the VNF to the forwarder.", "NAME")]
_Table = Annotated[str, option("", "Routing table of the kernel; local addresses are always included.", "NAME|N")]


@fib_app.command("show", epilog=examples("planebench fib show --interface lo", "planebench fib show -i lo --json"))
@does("fib_agent.show", "json")
def fib_show(interface: _Interface, table: _Table = "main") -> None:
    """Show the routes that `planebench fib agent` would send. Nothing is sent; no privileges are needed."""


@fib_app.command(
    "agent",
    epilog=examples(
        "planebench fib agent --interface vnf0 --settle 60 --json",
        "planebench fib agent --interface vnf0 --wire vnf0=0 --wire vnf1=1",
    ),
)
@does("fib_agent.run")
def agent(
    interface: _Interface,
    wire: Annotated[
        list[str],
        option("", "Output port of the VNF, as the forwarder numbers them. May be repeated per interface.", "N|NAME=N"),
    ] = ["0"],  # noqa: B006
    table: _Table = "main",
    settle: Annotated[
        float, typer.Option(min=0, help="Seconds to keep the previous routes while a routing daemon starts.")
    ] = 0,
    withdraw: Annotated[
        bool, option("--withdraw", "Withdraw the routes at the end instead of leaving them for the grace period.")
    ] = False,
    json: Annotated[bool, option("--json", "Print events as JSON on standard output, one per line.")] = False,
) -> None:
    """Run in a VNF: send its kernel's routes, and every change of them, to the forwarder until SIGTERM or Ctrl-C."""
