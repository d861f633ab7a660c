# SPDX-License-Identifier: BSD-3-Clause
from pathlib import Path

from builders import make_header, make_point, make_run, make_trial

from planebench.model.run import Run
from planebench.store import RunWriter
from planebench.store.query import COLUMNS, trials_relation


def _store(runs_dir: Path, run: Run) -> Path:
    with RunWriter.create(runs_dir, run.header) as writer:
        for trial in run.trials:
            writer.append(trial)
    return writer.path


def test_one_row_a_trial_and_direction(tmp_path: Path) -> None:
    run = make_run(repetitions=1)
    table = trials_relation(_store(tmp_path, run))
    assert table.columns == list(COLUMNS)
    assert len(table.fetchall()) == sum(len(t.directions) for t in run.trials)


def test_figures_and_types_survive(tmp_path: Path) -> None:
    point = make_point(direction="bidirectional")
    run = Run(make_header(), (make_trial(3, point, 10.0, "disturbed", ("a", "b")),))
    table = trials_relation(_store(tmp_path, run))
    row = dict(zip(table.columns, table.order("flow").fetchall()[0], strict=True))
    assert (row["flow"], row["trial_index"], row["forwarded_packets"]) == ("n0->n1", 3, 5_000_000)
    assert (row["verdict"], row["verdict_reasons"], row["band"]) == ("disturbed", ["a", "b"], "near")
    assert (row["flow_pps"], row["trial_pps"]) == (5e6, 1e7)


def test_several_runs_in_one_table(tmp_path: Path) -> None:
    run = Run(make_header(), (make_trial(),))
    paths = [_store(tmp_path, run) for _ in range(2)]
    counted = trials_relation(*paths).aggregate("run_id, count(*)", "run_id").order("run_id").fetchall()
    assert counted == [("20261121-123356-quick", 1), ("20261121-123356-quick-2", 1)]


def test_a_run_without_trials_gives_an_empty_table(tmp_path: Path) -> None:
    assert trials_relation(_store(tmp_path, Run(make_header()))).fetchall() == []
