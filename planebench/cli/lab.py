# SPDX-License-Identifier: BSD-3-Clause
"""The commands of a lab: its jobs, its store, and trends over commits. What does them is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from planebench.cli.options import argument, does, examples, option
from planebench.model.results import Metric

lab_app = typer.Typer(
    help="Run a matrix on the testbeds of a lab, keep all runs in one folder, as Parquet, and see when figures changed."
)

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the store.")]
_METRICS = [metric for metric in get_args(Metric) if metric not in ("capacity", "outage")]
_MetricOption = Annotated[str, option("--metric", f"Metric: {', '.join(_METRICS)}.", "NAME")]


@lab_app.command("add", epilog=examples("planebench lab add lab latest", "planebench lab add lab latest --json"))
@does("store.add", "runs", "json", "quiet")
def store_add(
    store: StoreArgument,
    run: Annotated[list[str] | None, argument("[RUN]...", "Runs to add, as for report (default: latest).")] = None,
) -> None:
    """Validate finished runs and add them to a store. A run that is in the store already is replaced."""


@lab_app.command("list", epilog=examples("planebench lab list lab", "planebench lab list lab --json"))
@does("store.show", "json")
def store_list(store: StoreArgument) -> None:
    """List the runs of a store, oldest first."""


@lab_app.command(
    "query",
    epilog=examples('planebench lab query lab "select switch, avg(throughput_pps) from results group by switch"'),
)
@does("store.query", "json")
def store_query(
    store: StoreArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Query over results, latency, searches, trials and runs.")],
) -> None:
    """Print the rows of an SQL query (DuckDB) over a store."""


@lab_app.command(epilog=examples("planebench lab trend lab", "planebench lab trend lab --json"))
@does("store.trend", "json", "quiet")
def trend(
    store: StoreArgument,
    metric: _MetricOption = "throughput",
) -> None:
    """Show when figures changed, in which range of commits, and what else changed."""


_JobsOption = Annotated[
    Path | None, option("--jobs", "Folder of the jobs, which all nodes see (default: $PLANEBENCH_JOBS, or jobs).")
]


@lab_app.command(
    epilog=examples("planebench lab submit nightly.yaml --dry-run", "planebench lab submit nightly.yaml --wait --quiet")
)
@does("jobs.submit", "json", "quiet")
def submit(
    matrix: Annotated[Path, typer.Argument(metavar="MATRIX", help="File with the matrix (docs/jobs.md).")],
    name: Annotated[str | None, option("--name", "Name of the matrix, instead of that in the file.", "NAME")] = None,
    dry_run: Annotated[bool, option("--dry-run", "Only show the jobs, with estimates and time limits.")] = False,
    wait: Annotated[bool, option("--wait", "Wait until no job is in the queue.")] = False,
    jobs: _JobsOption = None,
) -> None:
    """Submit a matrix of runs to the testbeds of a lab, by Slurm: one job per run and testbed.

    Jobs that are complete or in the queue are left alone; those that ended early are resumed.
    """


@lab_app.command("jobs", epilog=examples("planebench lab jobs nightly", "planebench lab jobs nightly --wait --json"))
@does("jobs.show", "json", "quiet")
def show_jobs(
    matrix: Annotated[str, typer.Argument(metavar="MATRIX", help="Name or file of a submitted matrix.")],
    wait: Annotated[bool, option("--wait", "Wait until no job is in the queue.")] = False,
    cancel: Annotated[bool, option("--cancel", "Cancel queued and running jobs; measurements are kept.")] = False,
    jobs: _JobsOption = None,
) -> None:
    """Show the jobs of a matrix with their trials so far, and add complete runs to its store.

    Exit code 1 if a job ended without a complete run.
    """
