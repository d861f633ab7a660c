# SPDX-License-Identifier: BSD-3-Clause
"""The commands and their options. A command imports what does it when it runs: a user waits for help, too."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from planebench import __version__
from planebench.cli.lab import lab_app
from planebench.cli.options import (
    MORE,
    HugepagesOption,
    PageOption,
    PlanArgument,
    RingSizeOption,
    RunArgument,
    SwitchArgument,
    SwitchHostOption,
    TimeBudgetOption,
    argument,
    does,
    examples,
    option,
    with_plan_options,
)
from planebench.model.results import Metric

app = typer.Typer(
    help="Benchmark and compare software switches (NFV data planes).",
    epilog=examples("planebench doctor", "planebench run quick", "planebench report latest"),
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
plan_app = typer.Typer(help="Inspect a plan.")
app.add_typer(plan_app, name="plan")
switch_app = typer.Typer(help="Inspect or test one switch.")
app.add_typer(switch_app, name="switch")
app.add_typer(lab_app, name="lab")
testbed_app = typer.Typer(help="Measure the tester of this machine alone.")
app.add_typer(testbed_app, name="testbed")
machine_app = typer.Typer(help="Commands for programs.")
app.add_typer(machine_app, name="machine", hidden=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"planebench {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Benchmark and compare software switches (NFV data planes)."""


@app.command(
    epilog=examples(
        "planebench run quick",
        "planebench run --switch planed,testpmd --scenario p2p,v2v --frame-size 64,1024",
        "planebench run --switch sim:capacity=10M --quiet --json > results.json",
    )
)
@with_plan_options
@does("run.run_plan", "runs", "json", "quiet")
def run(
    plan: PlanArgument = "quick",
    time_budget: TimeBudgetOption = None,
    hugepages: HugepagesOption = None,
    calibrated: Annotated[
        bool, option("--calibrate/--no-calibrate", "Calibrate the tester first (cached for 24 hours).")
    ] = True,
    resume: Annotated[bool, option("--resume", "Resume the last unfinished run of the plan.")] = False,
    page: Annotated[
        bool,
        typer.Option(
            "--report/--no-report",
            help="Write the HTML report (default; or later: `planebench report`).",
            show_default=False,
            rich_help_panel=MORE,
        ),
    ] = True,
    switch_host: SwitchHostOption = None,
    subject: Annotated[
        str | None,
        option("--subject", "Git working tree that is measured; its commit is stored with the run.", "[SWITCH=]FOLDER"),
    ] = None,
    testbed: Annotated[
        str | None, option("--testbed", "Name of the testbed (default: $PLANEBENCH_TESTBED, or the host name).", "NAME")
    ] = None,
    tag: Annotated[list[str] | None, option("--tag", "Tag stored with the run. May be repeated.", "KEY=VALUE")] = None,
    **overrides: Any,
) -> None:
    """Run a suite or a plan. Options override the plan; comma-separated lists make a test matrix."""


@machine_app.command(epilog=examples("planebench machine agent < /dev/null"))
def agent(
    run: Annotated[
        str | None,
        option("--run", "Id of the run. An earlier agent with this id, whose connection was lost, is ended."),
    ] = None,
) -> None:
    """Serve a run on another host over stdin and stdout: `run --switch-host` starts it by ssh."""
    from planebench.measure.agent import serve

    raise typer.Exit(serve(run))


@app.command("list", epilog=examples("planebench list switches", "planebench list runs --json"))
@does("lists.list_things", "runs", "json")
def list_(
    what: Annotated[
        str, typer.Argument(help="What to list: switches, traffic, vnfs, hostings, scenarios, suites or runs.")
    ],
) -> None:
    """List switches (installed or not, and how to install them), traffic, vnfs, hostings, scenarios, suites or runs."""


@app.command(
    epilog=examples(
        "planebench report",
        "planebench report --all",
        "planebench report latest --html page.html",
    )
)
@does("output.report", "runs", "json", "quiet")
def report(
    run: RunArgument = "latest",
    html: PageOption = None,
    everything: Annotated[bool, option("--all", "Print every table of the run, not only its last screen.")] = False,
) -> None:
    """Print the results of a run and write its self-contained HTML report."""


@app.command(
    epilog=examples(
        "planebench export latest > results.json",
        "planebench export -f csv -o results.csv",
        "planebench export --table trials -f csv",
        "planebench export -f parquet",
        "planebench export -f svg --out pictures --only chain,latency --width-mm 84",
    )
)
@does("output.export", "runs", "json", "quiet")
def export(
    run: RunArgument = "latest",
    format: Annotated[str, option("--format -f", "csv, json or parquet; or svg: charts for a paper.")] = "json",
    table: Annotated[
        str | None, option("--table", "Export one table: results, trials, latency, searches, ...", "NAME")
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "--out -o",
            "File to write instead of standard output; a folder for parquet and charts (default for these: figures).",
        ),
    ] = None,
    only: Annotated[
        str | None, option("", "Only these kinds of charts: overview, chain, latency, ... (default: all).", "A,B")
    ] = None,
    width_mm: Annotated[
        float | None,
        option(
            "--width-mm", "Width of charts, e.g. 84 for one column of a paper, 178 for two (default: as on the page)."
        ),
    ] = None,
) -> None:
    """Export the results of a run as data, one record per result, or its tables (docs/library.md), or its charts."""


@app.command(
    epilog=examples("planebench compare latest", "planebench compare a1,a2,a3 b1,b2,b3 --fail-below 0.97 --quiet")
)
@does("compare.compare", "runs", "json", "quiet")
def compare(
    run_a: Annotated[str, argument("RUN", "Run whose switches are compared, or baseline runs (a,b,c).")] = "latest",
    run_b: Annotated[
        str | None, argument("RUN", "Runs to compare with the baseline (default: compare the switches of one).")
    ] = None,
    fail_below: Annotated[
        float | None,
        option("--fail-below", "Exit 1 if the new/old throughput ratio is below this value, 6 if inconclusive."),
    ] = None,
    metric: Annotated[str | None, option("", f"Compare only this metric: {', '.join(get_args(Metric))}.")] = None,
    force: Annotated[bool, option("--force", "Compare runs even if their settings differ.")] = False,
    junit: Annotated[Path | None, option("--junit", "File for the gate as JUnit XML.", "FILE")] = None,
    summary: Annotated[
        Path | None, option("--summary", "File to append a summary in Markdown to, e.g. $GITHUB_STEP_SUMMARY.", "FILE")
    ] = None,
) -> None:
    """Compare two runs, or the switches of one run: ratio, confidence interval, statistical significance."""


@app.command(
    epilog=examples(
        "planebench papers", "planebench papers latest --json", "planebench papers conext19 netsoft19 can17"
    )
)
@does("papers.papers", "runs", "json")
def papers(
    names: Annotated[
        list[str] | None, argument("[RUN]...", "Runs to check the claims against. Without one, only list the claims.")
    ] = None,
) -> None:
    """Check published claims against runs: confirmed, not confirmed, or inconclusive (with the reason)."""


@app.command(
    epilog=examples(
        "planebench capacity --ports 4 --vfs 63 --lcores 32 --sockets 2",
        "planebench capacity latest --rate 100k --lcores 32 --reserved 2",
    )
)
@does("capacity.capacity", "runs", "json")
def capacity(
    run: Annotated[
        str | None, argument("[RUN]", "Run whose measured cost of a frame is used. Without it, only the model.")
    ] = None,
    ports: Annotated[int | None, typer.Option(min=1, help="NIC ports (default: of this host).")] = None,
    vfs: Annotated[int | None, typer.Option(min=1, help="Virtual functions per port (default: of its NICs).")] = None,
    lcores: Annotated[int | None, typer.Option(min=1, help="Logical cores (default: of this host).")] = None,
    sockets: Annotated[int | None, typer.Option(min=1, help="CPU sockets (default: NUMA nodes of this host).")] = None,
    reserved: Annotated[int, typer.Option(min=0, help="Logical cores for switch, tester and the rest.")] = 0,
    rate: Annotated[str, option("--rate", "Frames per second that each VNF receives, with RUN.", "PPS")] = "100k",
) -> None:
    """Compute how many VNFs a server carries: by cores and virtual functions, and by the measured cost of a frame."""


@testbed_app.command(
    epilog=examples("planebench testbed calibrate --frame-size 64", "planebench testbed calibrate --quiet")
)
@does("calibrate.calibrate", "json", "quiet")
def calibrate(
    frame_size: Annotated[str, option("--frame-size", "Frame sizes in bytes, FCS included.", "N,M")] = "64,1024",
    wire: Annotated[str, option("", "Port type, as for run.")] = "virtio",
    ring_size: RingSizeOption = 256,
    hugepages: HugepagesOption = None,
) -> None:
    """Measure the tester alone: highest rate, rate error, latency baseline.

    The result is cached and reused by runs for 24 hours; those with other settings calibrate it themselves.
    """


@app.command(
    epilog=examples(
        "planebench outage --chain separate:l2fwd --restart vnf0",
        "planebench outage --restart switch --kill --repetitions 2 --json",
    )
)
@does("outage.outage", "runs", "json", "quiet")
def outage(
    restart: Annotated[
        str, option("--restart", "Process to restart: switch, or vnf0, vnf1, ... of the chain.", "NAME")
    ],
    switch: Annotated[str, option("--switch", "Switches to test, as for run.", "A,B")] = "planed",
    chain: Annotated[
        str, option("--chain", "Functions of the chain, as for run, e.g. vm:l3fwd,l2fwd.", "A,B")
    ] = "l2fwd",
    hosting: Annotated[str, option("", "VNF isolation of functions that name none.")] = "separate",
    kill: Annotated[bool, option("--kill", "End it by SIGKILL, as in a crash (default: end it in order).")] = False,
    rate: Annotated[
        str, option("", "Frames per second, e.g. 10k. An outage is measured to the interval of two frames.")
    ] = "10k",
    frame_size: Annotated[int, option("--frame-size", "Frame size in bytes, FCS included.")] = 64,
    repetitions: Annotated[int, option("--repetitions", "Number of restarts per switch.")] = 5,
    wire: Annotated[str, option("", "Port type, as for run.")] = "virtio",
    ring_size: RingSizeOption = 256,
    hugepages: HugepagesOption = None,
) -> None:
    """Restart a VNF or the switch under traffic: measure the outage and account for every lost frame."""


@app.command(epilog=examples("planebench doctor", "sudo planebench doctor --fix", "planebench doctor --quiet"))
@does("doctor.doctor", "json", "quiet")
def doctor(
    fix: Annotated[bool, option("--fix", "Apply safe, reversible fixes.")] = False,
    undo: Annotated[
        bool, option("--undo", "Revert the changes made by --fix, and remove what killed runs of this user left.")
    ] = False,
    bind: Annotated[
        list[str] | None,
        option("--bind", "With --fix: bind this NIC to vfio-pci until --undo. May be repeated.", "ADDRESS"),
    ] = None,
    user: Annotated[
        str | None, option("--user", "With --bind: the user whose runs get these NICs (default: root).", "NAME")
    ] = None,
) -> None:
    """Check whether this host can produce valid results, and how to fix what it finds.

    Exit code 1 if results would be invalid.
    """


@plan_app.command(
    "show", epilog=examples("planebench plan show quick", "planebench plan show quick --frame-size 64 --json")
)
@with_plan_options
@does("lists.show_plan", "json")
def plan_show(
    plan: PlanArgument = "quick",
    time_budget: TimeBudgetOption = None,
    topology: Annotated[
        str | None,
        option(
            "--topology",
            'Show the placement on another machine: XML file of lstopo, or e.g. "pack:2 core:8 pu:2".',
            "FILE|TEXT",
        ),
    ] = None,
    **overrides: Any,
) -> None:
    """List all test points and the estimated duration (dry run)."""


@switch_app.command("show", epilog=examples("planebench switch show planed", "planebench switch show vpp --json"))
@does("lists.show_switch", "json")
def switch_show(switch: SwitchArgument) -> None:
    """Show everything that is known of a switch: where it is, scenarios, taxonomy, options."""


@switch_app.command(
    "check",
    epilog=examples(
        "planebench switch check planed", "planebench switch check planed --scenario p2p --check forwards,intact"
    ),
)
@does("check.check_switch", "json", "quiet")
def switch_check(
    switch: SwitchArgument,
    scenario: Annotated[
        str, option("", "Scenarios: p2p, p2v, v2v, loopback-1 to loopback-5, workers-2.", "A,B")
    ] = "p2p,p2v,v2v,loopback-1,loopback-2,workers-2",
    wire: Annotated[
        str | None, option("", "Port types, as for run (default: the first that the switch supports).", "A,B|all")
    ] = None,
    checks: Annotated[str | None, option("--check", "Run only these checks (docs/adding-a-switch.md).", "A,B")] = None,
    hugepages: HugepagesOption = None,
) -> None:
    """Run the conformance tests of a switch adapter. Exit code 1 if a test fails."""


@machine_app.command("run-job", epilog=examples("planebench machine run-job jobs/nightly/planed-rack1"))
@does("jobs.run_job")
def run_job(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the job.")]) -> None:
    """Run a job on this machine, or resume it: what submit has Slurm or ssh start."""
