# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their options. What they do is in the module of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from planebench import __version__
from planebench.cli import inspect, output
from planebench.cli.run import RunOptions, run_plan

app = typer.Typer(
    help="Measure NFV software data planes side by side.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
plan_app = typer.Typer(help="What a plan would measure.", no_args_is_help=True)
app.add_typer(plan_app, name="plan")

Text = str | None
SwitchOption = Annotated[
    Text, typer.Option("--switch", metavar="A,B", help="Switches; one named twice is measured twice.")
]
ScenarioOption = Annotated[Text, typer.Option("--scenario", metavar="A,B", help="p2p, p2v, v2v, loopback.")]
SizeOption = Annotated[Text, typer.Option("--frame-size", metavar="N,M", help="Bytes with FCS: 64 to 1518, 9000.")]
DirectionOption = Annotated[
    Text, typer.Option("--direction", metavar="A,B", help="unidirectional, bidirectional, reversed (p2v).")
]
ChainOption = Annotated[Text, typer.Option("--chain-length", metavar="N,M", help="VNFs in a loopback chain: 1 to 5.")]
DurationOption = Annotated[float | None, typer.Option(help="Seconds of each trial.")]
RepeatOption = Annotated[int | None, typer.Option(help="Saturating trials of each point; R+ is their mean.")]
LoadsOption = Annotated[Text, typer.Option(metavar="A,B", help="Shares of R+ for latency, e.g. 0.10,0.50; or none.")]
WireOption = Annotated[Text, typer.Option(help="What stands in for a NIC: virtio, or veth (kernel interfaces).")]
RingOption = Annotated[int | None, typer.Option(help="Entries of every ring of every port, a power of two.")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of the order of trials.")]
NameOption = Annotated[Text, typer.Option(help="Name of the run.")]
RunsOption = Annotated[
    Path | None, typer.Option("--runs", help="Folder of the runs (default: $PLANEBENCH_RUNS, or runs)")
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on standard output, for scripts.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="latest, a run id or the start of one, a name, a path.")
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planebench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Measure NFV software data planes side by side."""


@app.command()
def run(
    plan: Annotated[str, typer.Argument(metavar="[SUITE|PLAN]", help="A suite (quick) or a plan file.")] = "quick",
    switch: SwitchOption = None,
    scenario: ScenarioOption = None,
    frame_size: SizeOption = None,
    direction: DirectionOption = None,
    chain_length: ChainOption = None,
    duration: DurationOption = None,
    repeat: RepeatOption = None,
    loads: LoadsOption = None,
    wire: WireOption = None,
    ring_size: RingOption = None,
    seed: SeedOption = None,
    name: NameOption = None,
    hugepages: Annotated[
        bool | None, typer.Option("--hugepages/--no-hugepages", help="(default: if enough of them are free)")
    ] = None,
    runs: RunsOption = None,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")] = False,
) -> None:
    """Measure a suite or a plan; options replace what the plan says, and comma-separated lists make a matrix.

    Examples: planebench run quick;  planebench run --switch planed,ovs-dpdk --scenario p2p,v2v --frame-size 64,1024
    """
    overrides = {
        "switch": switch,
        "scenario": scenario,
        "frame_size": frame_size,
        "direction": direction,
        "chain_length": chain_length,
        "duration": duration,
        "repeat": repeat,
        "loads": loads,
        "wire": wire,
        "ring_size": ring_size,
        "seed": seed,
        "name": name,
    }
    code = run_plan(RunOptions(plan, overrides, hugepages=hugepages, runs=runs, json=json, quiet=quiet))
    raise typer.Exit(code)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="switches, vnfs, scenarios, suites or runs.")],
    runs: RunsOption = None,
    json: JsonOption = False,
) -> None:
    """What there is: switches (found or not, and how to get them), vnfs, scenarios, suites, runs."""
    inspect.list_things(what, runs, json)


@app.command()
def report(
    run: RunArgument = "latest",
    html: Annotated[
        Path | None, typer.Option(help="Where the page goes (default: report.html in the run folder)")
    ] = None,
    runs: RunsOption = None,
) -> None:
    """The table of a run, and its HTML report: one file, opens without a network."""
    output.report(run, html, runs)


@app.command()
def export(
    run: RunArgument = "latest",
    format: Annotated[str, typer.Option("--format", "-f", help="csv or json.")] = "json",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A file instead of standard output.")] = None,
    runs: RunsOption = None,
) -> None:
    """The results of a run as data, one record a result."""
    output.export(run, format, out, runs)


@app.command()
def figures(
    run: RunArgument = "latest",
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("figures"),
    formats: Annotated[str, typer.Option(help="svg, png, pdf.")] = "svg,png",
    runs: RunsOption = None,
) -> None:
    """Every chart of a run as a picture of its own."""
    output.figures(run, out, formats, runs)


@app.command()
def doctor(json: JsonOption = False) -> None:
    """Is this machine fit to measure? Every finding carries its remedy. Exit code 1 if numbers would be worthless."""
    raise typer.Exit(inspect.doctor(json))


@plan_app.command("show")
def plan_show(
    plan: Annotated[str, typer.Argument(metavar="SUITE|PLAN")] = "quick",
    switch: SwitchOption = None,
    scenario: ScenarioOption = None,
    frame_size: SizeOption = None,
    direction: DirectionOption = None,
    chain_length: ChainOption = None,
    duration: DurationOption = None,
    repeat: RepeatOption = None,
    loads: LoadsOption = None,
    json: JsonOption = False,
) -> None:
    """Every point that would run, and how long it takes, before anything runs."""
    overrides = {
        "switch": switch,
        "scenario": scenario,
        "frame_size": frame_size,
        "direction": direction,
        "chain_length": chain_length,
        "duration": duration,
        "repeat": repeat,
        "loads": loads,
    }
    inspect.show_plan(plan, overrides, json)
