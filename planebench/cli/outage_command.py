# SPDX-License-Identifier: BSD-3-Clause
"""The command ``planebench outage`` and its options."""

from __future__ import annotations

from typing import Annotated

import typer

from planebench.cli import complete
from planebench.cli.complete import listed, one_of
from planebench.cli.options import HugepagesOption, JsonOption, QuietOption, examples

OUTAGE_EXAMPLES = examples(
    "planebench outage --chain separate:l2fwd --restart vnf0",
    "planebench outage --restart switch --kill --repetitions 2 --json",
)


def outage(
    restart: Annotated[
        str,
        typer.Option("--restart", metavar="NAME", help="What is restarted: switch, or vnf0, vnf1, ... of the chain."),
    ],
    switch: Annotated[
        str,
        typer.Option("--switch", metavar="A,B", help="As for run.", autocompletion=listed(complete.switches)),
    ] = "planed",
    chain: Annotated[
        str,
        typer.Option(
            "--chain", metavar="A,B", help="As for run: vm:l3fwd,l2fwd.", autocompletion=listed(complete.vnfs)
        ),
    ] = "l2fwd",
    hosting: Annotated[
        str, typer.Option(help="What those run in that say nothing else.", autocompletion=one_of(complete.hostings))
    ] = "separate",
    kill: Annotated[bool, typer.Option("--kill", help="By SIGKILL, as in a crash; else it is ended in order.")] = False,
    rate: Annotated[
        str, typer.Option(help="Frames a second, as 10k: outages are known to the distance of two.")
    ] = "10k",
    frame_size: Annotated[int, typer.Option("--frame-size", help="Bytes with FCS.")] = 64,
    repetitions: Annotated[int, typer.Option("--repetitions", help="Restarts of each switch, or of its VNF.")] = 5,
    wire: Annotated[
        str, typer.Option(help="Port type: virtio, memif or veth.", autocompletion=one_of(complete.WIRES))
    ] = "virtio",
    ring_size: Annotated[int, typer.Option("--ring-size", help="Descriptors of each ring, a power of two.")] = 256,
    hugepages: HugepagesOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Restart a VNF, or the switch, under traffic: how long nothing came through, and where every lost frame went."""
    from planebench.cli import outage as measuring

    options = measuring.OutageOptions(
        switch, chain, restart, hosting, kill, rate, frame_size, repetitions, wire, ring_size, hugepages, json, quiet
    )
    raise typer.Exit(measuring.outage(options))
