# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their options. What they do is in the module of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from planebench import __version__
from planebench.cli import calibrate as calibrating
from planebench.cli import check as checking
from planebench.cli import compare as comparing
from planebench.cli import doctor as examining
from planebench.cli import inspect, output, plan_show, switches
from planebench.cli import watch as watching
from planebench.cli.options import (
    HugepagesOption,
    JsonOption,
    RunArgument,
    RunsOption,
    TimeBudgetOption,
    with_plan_options,
)
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
switch_app = typer.Typer(help="A switch by itself.", no_args_is_help=True)
app.add_typer(switch_app, name="switch")


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
@with_plan_options
def run(
    plan: Annotated[str, typer.Argument(metavar="[SUITE|PLAN]", help="A suite (quick) or a plan file.")] = "quick",
    time_budget: TimeBudgetOption = None,
    hugepages: HugepagesOption = None,
    calibrated: Annotated[
        bool, typer.Option("--calibrate/--no-calibrate", help="Know what the tester can do (measured once a day).")
    ] = True,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of this plan.")
    ] = False,
    runs: RunsOption = None,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no table.")] = False,
    page: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the HTML report (`planebench report` can do it later).")
    ] = True,
    **overrides: Any,
) -> None:
    """Measure a suite or a plan; options replace what the plan says, and comma-separated lists make a matrix.

    Examples: planebench run quick;  planebench run --switch planed,ovs-dpdk --scenario p2p,v2v --frame-size 64,1024
    """
    options = RunOptions(plan, overrides, hugepages, runs, json, quiet, resume, calibrated, page, time_budget)
    raise typer.Exit(run_plan(options))


@app.command()
def watch(
    run: Annotated[
        str | None,
        typer.Argument(metavar="[RUN]", help="As for report; without it, the newest run that goes on."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print how it stands now, and end.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for a run to begin if none goes on.")] = False,
    runs: RunsOption = None,
    json: JsonOption = False,
) -> None:
    """See a run go on, from another terminal. It is not disturbed: exit code 0 at its end, 1 if it was killed.

    Examples: planebench watch;  planebench watch --wait;  planebench watch latest --once --json
    """
    raise typer.Exit(watching.watch(watching.WatchOptions(run, runs, once, wait, json)))


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="switches, traffic, vnfs, scenarios, suites or runs.")],
    details: Annotated[bool, typer.Option("--details", help="Of switches: all that is known of each.")] = False,
    runs: RunsOption = None,
    json: JsonOption = False,
) -> None:
    """What there is: switches (found or not, and how to get them), traffic profiles, vnfs, scenarios, suites, runs."""
    inspect.list_things(what, runs, json, details)


@app.command()
def report(
    run: RunArgument = "latest",
    html: Annotated[
        Path | None, typer.Option(help="Where the page goes (default: report.html in the run folder)")
    ] = None,
    conditions: Annotated[
        bool, typer.Option("--conditions", help="Instead of the table: under which conditions the switches ran.")
    ] = False,
    runs: RunsOption = None,
) -> None:
    """The table of a run, and its HTML report: one file, opens without a network."""
    output.report(run, html, runs, conditions=conditions)


@app.command()
def export(
    run: RunArgument = "latest",
    format: Annotated[str, typer.Option("--format", "-f", help="csv, json or parquet.")] = "json",
    table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="One table: results, trials, latency, searches, ...")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A file instead of standard output; of all tables as parquet, a folder."),
    ] = None,
    runs: RunsOption = None,
) -> None:
    """The results of a run as data, one record a result; or its tables (docs/library.md).

    Examples: planebench export latest -f csv;  planebench export --table trials -f csv;  planebench export -f parquet
    """
    output.export(run, format, table, out, runs)


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="run, trial, conditions, skipped, finished, plan, export.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Which there are.")] = False,
    json: JsonOption = False,
) -> None:
    """The JSON Schema of a file of a run, or of the JSON export.

    Examples: planebench schema --list;  planebench schema trial > trial.schema.json
    """
    inspect.show_schema(name, listed or name is None, json)


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
def compare(
    run_a: Annotated[str, typer.Argument(metavar="RUN", help="The run, or the one to compare with.")] = "latest",
    run_b: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="The newer run; without it, the switches of RUN.")
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option("--fail-below", help="Exit code 1 if a rate is below this share, or cannot be judged."),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Only this: throughput, ndr, pdr, cycles_per_packet, latency_p50, latency_p99.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Compare runs that differ in what must match.")] = False,
    runs: RunsOption = None,
    json: JsonOption = False,
) -> None:
    """Two runs, or the switches of one: the ratio, its interval, and whether it can be told from chance.

    Examples: planebench compare latest;  planebench compare baseline latest --fail-below 0.97
    """
    code = comparing.compare(run_a, run_b, runs, json=json, force=force, fail_below=fail_below, metric=metric)
    raise typer.Exit(code)


@app.command()
def calibrate(
    frame_size: Annotated[str, typer.Option("--frame-size", metavar="N,M", help="Bytes with FCS.")] = "64,1024",
    wire: Annotated[str, typer.Option(help="virtio, or veth.")] = "virtio",
    ring_size: Annotated[int, typer.Option("--ring-size", help="Entries of every ring, a power of two.")] = 256,
    duration: Annotated[float, typer.Option(help="Seconds of each step.")] = 0.2,
    hugepages: HugepagesOption = None,
    json: JsonOption = False,
) -> None:
    """Measure the tester against itself: highest rate, rate error, latency floor. Kept, and used by runs for a day."""
    raise typer.Exit(calibrating.calibrate(frame_size, wire, ring_size, duration, hugepages, json))


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Apply the remedies that are safe and can be taken back.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take back what --fix did.")] = False,
    json: JsonOption = False,
) -> None:
    """Is this machine fit to measure? Every finding carries its remedy. Exit code 1 if numbers would be worthless."""
    raise typer.Exit(examining.doctor(json, fix, undo))


@plan_app.command("show")
@with_plan_options
def plan_show_(
    plan: Annotated[str, typer.Argument(metavar="SUITE|PLAN")] = "quick",
    time_budget: TimeBudgetOption = None,
    json: JsonOption = False,
    **overrides: Any,
) -> None:
    """Every point that would run, and how long it takes, before anything runs."""
    plan_show.show_plan(plan, overrides, json, time_budget)


@switch_app.command("show")
def switch_show(
    switch: Annotated[str, typer.Argument(metavar="NAME[:OPTION=VALUE]", help="A switch, as in run --switch.")],
    json: JsonOption = False,
) -> None:
    """All that is known of a switch: where it is, what it can and cannot do, taxonomy, options."""
    switches.show_switch(switch, json=json)


@switch_app.command("check")
def switch_check(
    switch: Annotated[str, typer.Argument(metavar="NAME[:OPTION=VALUE]", help="A switch, as in run --switch.")],
    scenario: Annotated[
        str, typer.Option(metavar="A,B", help="p2p, p2v, v2v, loopback-1 to loopback-5.")
    ] = checking.DEFAULT_CASES,
    wire: Annotated[
        str | None, typer.Option(metavar="A,B|all", help="virtio, memif, veth (default: the first that it has).")
    ] = None,
    checks: Annotated[
        str | None, typer.Option("--check", metavar="A,B", help="Only these checks (docs/conformance.md).")
    ] = None,
    hugepages: HugepagesOption = None,
    json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Does an adapter do all that the bench relies on? Exit code 1 if anything fails.

    Examples: planebench switch check planed;  planebench switch check vpp --wire all --scenario p2p,loopback-2
    """
    options = checking.CheckOptions(switch, scenario, wire, checks, hugepages, json, quiet)
    raise typer.Exit(checking.check_switch(options))
