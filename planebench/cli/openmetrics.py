# SPDX-License-Identifier: BSD-3-Clause
"""``planebench machine metrics``: a run in progress, or a planed process, for Prometheus (docs/ci.md)."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from prometheus_client.core import CollectorRegistry, CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily

from planebench.cli.watch import NICE
from planebench.host.files import replace_file
from planebench.model.errors import UsageError, unknown, unwritable
from planebench.model.records import POINT_KEY, Point, Trial
from planebench.model.text import seconds_since_epoch
from planebench.planed.client import PlanedClient, get_statistics
from planebench.planed.statistics import Statistics
from planebench.store import default_runs_dir, find_run
from planebench.store.reader import Follower, Seen, live_runs

FORMATS = ("openmetrics", "text")
_STATES = ("running", "complete", "interrupted", "killed")

Families = Iterator[Any]


def metrics(run: str | None, rpc: Path | None, format: str, out: Path | None, runs: Path | None) -> None:
    """Print the metrics of a run, or of the planed process behind a socket, or write them to a file by a rename.

    Without either, the run in progress. Raises UsageError where there is none.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    if rpc is not None and run is not None:
        raise UsageError("give a run or --rpc, not both")
    if rpc is not None:
        with PlanedClient(rpc, deadline_s=1.0) as client:
            families = of_statistics(get_statistics(client.call))
    elif run is not None:
        families = of_run(Follower(find_run(runs or default_runs_dir(), run)).look())
    else:
        folder = runs or default_runs_dir()
        live = live_runs(folder)
        if not live:
            raise UsageError(f"no run is in progress in {folder}: name one, e.g. planebench machine metrics latest")
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        families = of_run(Follower(live[0]).look())
    data = exposition(list(families), format)
    if out is None:
        sys.stdout.buffer.write(data)
        return
    try:
        replace_file(out, data)
    except OSError as error:
        raise unwritable(str(out), error) from None


def exposition(families: list[Any], format: str) -> bytes:
    """Return metrics as OpenMetrics 1.0, or in the text format 0.0.4, which node-exporter reads from files."""
    from prometheus_client import generate_latest
    from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

    class _Collector:
        def collect(self) -> Families:
            yield from families

    registry = CollectorRegistry(auto_describe=False)
    registry.register(cast(Any, _Collector()))
    return cast(bytes, (generate_openmetrics if format == "openmetrics" else generate_latest)(registry))


def of_run(seen: Seen) -> Families:
    """Yield the metrics of a run: its progress, its trials by verdict, and the latest rate of each test point."""
    header = seen.header
    labels = {"run": header.run_id, "plan": header.name, "testbed": header.testbed}
    if header.subject is not None:
        labels["commit"] = header.subject.commit
    info = InfoMetricFamily("planebench_run", "The run.")
    info.add_metric([], labels)
    yield info
    state = GaugeMetricFamily("planebench_run_state", "1 for the state of the run.", labels=["state"])
    for name in _STATES:
        state.add_metric([name], float(name == seen.state))
    yield state
    if seen.status is not None:
        status = seen.status
        yield GaugeMetricFamily("planebench_run_steps_done", "Steps of the plan that are done.", status.done)
        yield GaugeMetricFamily("planebench_run_steps", "Steps of the plan.", status.steps)
        yield GaugeMetricFamily("planebench_run_left_seconds", "Estimated time to the end.", status.left_s)
        written = seconds_since_epoch(status.written_at)
        yield GaugeMetricFamily("planebench_run_status_timestamp_seconds", "Time of the last status.", written)
    counts = Counter((t.point.switch, t.role, t.verdict.kind.value) for t in seen.trials)
    number = CounterMetricFamily("planebench_trials", "Trials by verdict.", labels=["switch", "role", "verdict"])
    for key, count in sorted(counts.items()):
        number.add_metric(list(key), count)
    yield number
    rate = GaugeMetricFamily("planebench_throughput_pps", "Latest saturating trial.", labels=[*POINT_KEY, "verdict"])
    latest: dict[Point, Trial] = {t.point: t for t in seen.trials if t.role == "r_plus"}
    for point, trial in latest.items():
        rate.add_metric([*map(str, point.key.values()), trial.verdict.kind.value], trial.throughput_pps)
    yield rate


def of_statistics(found: Statistics) -> Families:
    """Yield the counters of ports, workers and tasks of a planed process."""
    hz = found.tsc_hz
    packets = CounterMetricFamily("planed_port_packets", "Frames of a port.", labels=["port", "way"])
    drops = CounterMetricFamily("planed_port_drops", "Frames lost at a port.", labels=["port", "reason"])
    for port in found.ports:
        packets.add_metric([port.name, "rx"], port.rx_packets)
        packets.add_metric([port.name, "tx"], port.tx_packets)
        for reason, count in port.drops.items():
            drops.add_metric([port.name, reason], count)
    yield from (packets, drops)
    busy = CounterMetricFamily("planed_worker_busy_seconds", "Time with frames.", labels=["worker"])
    gaps = CounterMetricFamily("planed_worker_gaps", "Times that a worker did not run.", labels=["worker"])
    gap_s = CounterMetricFamily("planed_worker_gap_seconds", "Time that a worker did not run.", labels=["worker"])
    for worker in found.workers:
        busy.add_metric([worker.name], worker.busy_cycles / hz)
        gaps.add_metric([worker.name], worker.gaps)
        gap_s.add_metric([worker.name], worker.gap_sum_ns / 1e9)
    yield from (busy, gaps, gap_s)
    packets = CounterMetricFamily("planed_task_packets", "Frames of a task.", labels=["task", "kind", "way"])
    cycles = CounterMetricFamily("planed_task_seconds", "Time of a task.", labels=["task", "kind", "state"])
    drops = CounterMetricFamily("planed_task_drops", "Frames dropped by a task.", labels=["task", "kind", "reason"])
    for task in found.tasks:
        name = [task.name, task.kind]
        packets.add_metric([*name, "rx"], task.rx_packets)
        packets.add_metric([*name, "tx"], task.tx_packets)
        cycles.add_metric([*name, "busy"], task.busy_cycles / hz)
        cycles.add_metric([*name, "idle"], task.idle_cycles / hz)
        for why, count in task.drops.items():
            drops.add_metric([*name, why], count)
    yield from (packets, cycles, drops)
