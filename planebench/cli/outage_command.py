# SPDX-License-Identifier: BSD-3-Clause
"""The command ``planebench outage`` and its options."""

from __future__ import annotations

from typing import Annotated

import typer

from planebench.cli import complete
from planebench.cli.complete import listed, one_of
from planebench.cli.options import HugepagesOption, JsonOption, QuietOption, RunsOption, examples

OUTAGE_EXAMPLES = examples(
    "planebench outage --chain separate:l2fwd --restart vnf0",
    "planebench outage --restart switch --kill --repetitions 2 --json",
)


def outage(
    restart: Annotated[
        str,
        typer.Option("--restart", metavar="NAME", help="Process to restart: switch, or vnf0, vnf1, ... of the chain."),
    ],
    switch: Annotated[
        str,
        typer.Option(
            "--switch", metavar="A,B", help="Switches to test, as for run.", autocompletion=listed(complete.switches)
        ),
    ] = "planed",
    chain: Annotated[
        str,
        typer.Option(
            "--chain",
            metavar="A,B",
            help="Functions of the chain, as for run, e.g. vm:l3fwd,l2fwd.",
            autocompletion=listed(complete.vnfs),
        ),
    ] = "l2fwd",
    hosting: Annotated[
        str, typer.Option(help="VNF isolation of functions that name none.", autocompletion=one_of(complete.hostings))
    ] = "separate",
    kill: Annotated[
        bool, typer.Option("--kill", help="End it by SIGKILL, as in a crash (default: end it in order).")
    ] = False,
    rate: Annotated[
        str, typer.Option(help="Frames per second, e.g. 10k. An outage is measured to the interval of two frames.")
    ] = "10k",
    frame_size: Annotated[int, typer.Option("--frame-size", help="Frame size in bytes, FCS included.")] = 64,
    repetitions: Annotated[int, typer.Option("--repetitions", help="Number of restarts per switch.")] = 5,
    wire: Annotated[
        str, typer.Option(help="Port type: virtio, memif or veth.", autocompletion=one_of(complete.wires))
    ] = "virtio",
    ring_size: Annotated[int, typer.Option("--ring-size", help="Descriptors of each ring, a power of two.")] = 256,
    hugepages: HugepagesOption = None,
    runs: RunsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Restart a VNF or the switch under traffic: measure the outage and account for every lost frame."""
    from planebench.cli import outage as measuring

    options = measuring.OutageOptions(
        *(switch, chain, restart, hosting, kill, rate, frame_size, repetitions, wire, ring_size),
        *(hugepages, runs, json, quiet),
    )
    raise typer.Exit(measuring.outage(options))
