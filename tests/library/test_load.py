# SPDX-License-Identifier: BSD-3-Clause
"""planebench.load: which runs, what of them, and that nothing is imported before."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_header, make_run, make_trial, store_run

import planebench
from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.header import Run


def small(**header: object) -> Run:
    return make_run(("planed", "testpmd"), sizes=(64,), loads=(0.5,), **header)


def test_importing_planebench_imports_nothing_else() -> None:
    code = "import sys, planebench; print([m for m in ('duckdb', 'pandas', 'numpy', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_run_is_found_as_on_the_command_line(own_run_folder: Path) -> None:
    run = store_run(own_run_folder, small())
    other = store_run(own_run_folder, small(run_id="20261122-000000-late", started_at="2026-11-22T00:00:00Z"))
    assert planebench.load().header == other.header
    folder = own_run_folder / run.header.run_id
    for wanted in (run.header.run_id, "20261121", folder):
        assert planebench.load(wanted).header.run_id == folder.name
    assert planebench.load("quick").header == other.header
    assert [info.run_id for info in planebench.list_runs()] == [run.header.run_id, other.header.run_id]
    assert planebench.load(folder).raw.trials == run.trials
    with pytest.raises(UsageError, match="no run 'nothing'"):
        planebench.load("nothing")
    with pytest.raises(UsageError, match="given twice"):
        planebench.load(folder, run.header.run_id)


def test_another_folder_of_runs(tmp_path: Path) -> None:
    run = store_run(tmp_path / "elsewhere", small())
    assert planebench.load(runs_dir=tmp_path / "elsewhere").header == run.header
    assert planebench.list_runs(str(tmp_path / "elsewhere"))[0].path == tmp_path / "elsewhere" / run.header.run_id


def test_several_runs_share_their_tables(own_run_folder: Path) -> None:
    ids = ["20261121-000000-a", "20261121-000001-b"]
    for run_id in ids:
        store_run(own_run_folder, Run(make_header(run_id=run_id), (make_trial(0), make_trial(1))))
    both = planebench.load(*ids)
    assert list(both.trials["run_id"]) == [ids[0]] * 2 + [ids[1]] * 2
    assert list(both.results["run_id"]) == ids
    assert [run.header.run_id for run in both.runs] == ids
    assert repr(both).splitlines()[0] == f"{ids[0]}: planed, ovs-dpdk, testpmd; 2 trials, killed or still running"
    for of_one in ("header", "raw"):
        with pytest.raises(UsageError, match=rf"2 runs are loaded, but {of_one} belongs to one run"):
            getattr(both, of_one)


def test_two_runs_are_compared_as_the_command_does(own_run_folder: Path) -> None:
    for name, mpps in (("a", 10.0), ("b", 9.0)):
        trials = tuple(make_trial(i, mpps=mpps + i / 100, start=i, repetition=i) for i in range(4))
        store_run(own_run_folder, Run(make_header(run_id=name), trials))
    store_run(own_run_folder, Run(make_header(run_id="c", settings={"wire": "veth"}), (make_trial(0),)))
    found = planebench.load("a", "b").compare()
    rates = found[found["metric"] == "throughput"]
    assert list(rates["a"]) == ["planed@a"] and list(rates["run_id"]) == ["b"]
    assert rates["ratio"].round(2).tolist() == [0.9] and rates["answer"].tolist() == ["open"]
    with pytest.raises(UsageError, match=r"are not comparable: .*wire"):
        planebench.load("a", "c").compare()
    assert "throughput" in set(planebench.load("a", "c").compare(force=True)["metric"])
    with pytest.raises(UsageError, match="1 runs are loaded; to compare give two"):
        planebench.load("a").compare()


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_without_the_extra_the_way_out_is_told(
    own_run_folder: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    store_run(own_run_folder, Run(make_header(), (make_trial(0),)))
    run = planebench.load()
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == missing else found(name, *rest)
    )
    with pytest.raises(NotInstalledError, match=rf"{missing} is not installed.*pip install 'planebench\[data\]'"):
        run.trials  # noqa: B018
    assert run.relation("trials").aggregate("verdict, count(*)").fetchall() == [("valid", 1)]
    assert run.rows("trials")[0]["switch"] == "planed"
