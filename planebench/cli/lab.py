# SPDX-License-Identifier: BSD-3-Clause
"""The commands of a lab: its jobs, its store, and trends over commits. They are imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from planebench.cli.options import JsonOption, QuietOption, RunsOption, argument, examples, option
from planebench.model.results import Metric

store_app = typer.Typer(help="Keep the runs of all testbeds of a lab in one folder, as Parquet.")

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the store.")]
_METRICS = [metric for metric in get_args(Metric) if metric not in ("capacity", "outage")]
_MetricOption = Annotated[str, option("--metric", f"Metric: {', '.join(_METRICS)}.", "NAME")]


@store_app.command(
    "add", epilog=examples("planebench store add lab latest", "planebench store add lab latest --testbed rack3 --json")
)
def store_add(
    store: StoreArgument,
    run: Annotated[list[str] | None, argument("[RUN]...", "Runs to add, as for report (default: latest).")] = None,
    testbed: Annotated[str, option("--testbed", "Testbed of runs that do not name one.", "NAME")] = "",
    runs: RunsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Validate finished runs and add them to a store. A run that is in the store already is replaced."""
    from planebench.cli import store as storing

    storing.add(store, run or [], testbed, runs, json=json, quiet=quiet)


@store_app.command("list", epilog=examples("planebench store list lab", "planebench store list lab --json"))
def store_list(store: StoreArgument, json: JsonOption = False) -> None:
    """List the runs of a store, oldest first."""
    from planebench.cli import store as storing

    storing.show(store, json=json)


@store_app.command(
    "query",
    epilog=examples('planebench store query lab "select switch, avg(throughput_pps) from results group by switch"'),
)
def store_query(
    store: StoreArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Query over results, latency, searches, trials and runs.")],
    json: JsonOption = False,
) -> None:
    """Print the rows of an SQL query (DuckDB) over a store."""
    from planebench.cli import store as storing

    storing.query(store, sql, json=json)


def trend(
    store: StoreArgument,
    metric: _MetricOption = "throughput",
    testbed: Annotated[str | None, option("--testbed", "Only this testbed.", "NAME")] = None,
    switch: Annotated[str | None, option("--switch", "Only this switch, by its label.", "NAME")] = None,
    html: Annotated[Path | None, option("--html", "File to write the page to.")] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show when figures changed, in which range of commits, what else changed, and what a confirmation costs."""
    from planebench.cli import trend as trending

    trending.trend(store, cast(Metric, metric), testbed, switch, html, json=json, quiet=quiet)


_JobsOption = Annotated[
    Path | None, option("--jobs", "Folder of the jobs, which all nodes see (default: $PLANEBENCH_JOBS, or jobs).")
]


def submit(
    matrix: Annotated[Path, typer.Argument(metavar="MATRIX", help="File with the matrix (docs/jobs.md).")],
    name: Annotated[str | None, option("--name", "Name of the matrix, instead of that in the file.", "NAME")] = None,
    dry_run: Annotated[bool, option("--dry-run", "Only show the jobs, with estimates and time limits.")] = False,
    wait: Annotated[bool, option("--wait", "Wait until no job is in the queue.")] = False,
    jobs: _JobsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Submit a matrix of runs to the testbeds of a lab, by Slurm or ssh: one job per run and testbed.

    Jobs that are complete or in the queue are left alone; those that ended early are resumed.
    """
    from planebench.cli import jobs as submitting

    raise typer.Exit(submitting.submit(matrix, jobs, name, dry_run=dry_run, wait=wait, json=json, quiet=quiet))


def show_jobs(
    matrix: Annotated[str, typer.Argument(metavar="MATRIX", help="Name or file of a submitted matrix.")],
    wait: Annotated[bool, option("--wait", "Wait until no job is in the queue.")] = False,
    cancel: Annotated[bool, option("--cancel", "Cancel queued and running jobs; measurements are kept.")] = False,
    jobs: _JobsOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show the jobs of a matrix with their results so far, and add complete runs to its store.

    Exit code 1 if a job ended without a complete run.
    """
    from planebench.cli import jobs as showing

    raise typer.Exit(showing.show(matrix, jobs, wait=wait, cancel=cancel, json=json, quiet=quiet))


def run_job(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the job.")],
) -> None:
    """Run a job on this machine, or resume it: what submit has Slurm or ssh start."""
    from planebench.cli import jobs as running

    raise typer.Exit(running.run_job(folder))


def metrics(
    run: Annotated[str | None, argument("[RUN]", "Run, as for report (default: the newest run in progress).")] = None,
    rpc: Annotated[
        Path | None, option("--rpc", "Socket of a planed process to ask instead of a run.", "SOCKET")
    ] = None,
    format: Annotated[
        str,
        option(
            "--format -f",
            "openmetrics, or text (0.0.4, for the textfile collector of node-exporter).",
        ),
    ] = "openmetrics",
    out: Annotated[Path | None, option("--out -o", "File to replace instead of standard output.")] = None,
    runs: RunsOption = None,
) -> None:
    """Print a run in progress, or the counters of planed, as metrics for Prometheus. A run is not affected."""
    from planebench.cli import openmetrics

    openmetrics.metrics(run, rpc, format, out, runs)


def register(app: typer.Typer) -> None:
    """Add the commands to those of planebench."""
    app.add_typer(store_app, name="store")
    app.command(epilog=examples("planebench trend lab", "planebench trend lab --html trend.html"))(trend)
    app.command(
        epilog=examples("planebench submit nightly.yaml --dry-run", "planebench submit nightly.yaml --wait --quiet")
    )(submit)
    app.command("jobs", epilog=examples("planebench jobs nightly", "planebench jobs nightly --wait --json"))(show_jobs)
    app.command("run-job", epilog=examples("planebench run-job jobs/nightly/planed-rack1"))(run_job)
    app.command(
        epilog=examples(
            "planebench metrics latest",
            "planebench metrics latest --format text --out /var/lib/node-exporter/planebench.prom",
        )
    )(metrics)
