# SPDX-License-Identifier: BSD-3-Clause
"""A run is derived once, whoever shows it: page, terminal, exports, papers and library share one Derived."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import make_run, store_run, table_text

import planebench
from planebench.analysis import chains, compare, conditions, results
from planebench.analysis.compare import Derived
from planebench.analysis.tables import TABLES, table_csv
from planebench.cli import output
from planebench.model.header import Run
from planebench.report.export import to_json
from planebench.report.html import to_html
from planebench.report.images import write_figures

ONCE = (results.derive_results, compare.switches_compared, chains.derive_chains, conditions.fairness)


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count the calls of the functions of ONCE, whatever module calls them, and by whatever name."""
    calls: Counter[str] = Counter()
    modules = [module for name, module in sys.modules.items() if name.startswith("planebench")]
    with pytest.MonkeyPatch.context() as patch:
        for function in ONCE:
            for module in modules:
                for name in [name for name, value in vars(module).items() if value is function]:
                    patch.setattr(module, name, _counting(function, calls))
        yield calls


def _counting(function: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def counted(*args: Any, **options: Any) -> Any:
        calls[function.__name__] += 1
        return function(*args, **options)

    return counted


def small_run() -> Run:
    """Return a run with everything that is derived, and few charts."""
    return make_run(("planed", "testpmd"), sizes=(64,), loads=(0.5,), repetitions=1)


def stored(folder: Path) -> Path:
    """Store a run in a folder of its own, and return that folder."""
    run = small_run()
    store_run(folder, run)
    return folder / run.header.run_id


def results_csv(derived: Derived) -> bytes:
    return table_csv("results", derived)


@pytest.mark.parametrize("made", [to_json, results_csv, to_html, table_text], ids=lambda made: made.__name__)
def test_each_output_derives_a_run_once(made: Callable[[Derived], bytes | str]) -> None:
    run = small_run()
    with counted_calls() as calls:
        made(Derived(run))
    assert calls["derive_results"] == 1
    assert max(calls.values()) == 1


def test_figures_derive_a_run_once(tmp_path: Path) -> None:
    with counted_calls() as calls:
        write_figures(Derived(small_run()), tmp_path, ("overview",))
    assert calls["derive_results"] == max(calls.values()) == 1


def test_report_as_json_derives_a_run_once_for_page_and_export(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = stored(tmp_path)
    with counted_calls() as calls:
        output.report(folder.name, None, tmp_path, json=True)
    assert dict(calls) == dict.fromkeys((function.__name__ for function in ONCE), 1)


def test_the_library_derives_a_run_once_for_all_tables(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    with counted_calls() as calls:
        loaded = planebench.load(folder)
        for table in TABLES:
            loaded.rows(table)
    assert set(calls.values()) == {1}
