# SPDX-License-Identifier: BSD-3-Clause
"""Run folders whose files were changed by hand, or come from a stranger: every command that reads one ends in a
sentence."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from builders import EXIT_CODES, without_checksums
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from planebench import run as run_plan
from planebench.model.conditions import Conditions
from planebench.model.errors import FAULT
from planebench.model.plan import Skipped
from planebench.store import RunWriter

COMMANDS = (
    ("report", "RUN"),
    ("report", "RUN", "--all"),
    ("report", "RUN", "--json"),
    ("compare", "RUN"),
    ("compare", "RUN", "GOOD", "--force"),
    ("compare", "GOOD", "RUN", "--fail-below", "0.9"),
    ("export", "RUN"),
    ("export", "RUN", "--format", "csv"),
    ("export", "RUN", "--table", "trials", "--format", "csv"),
    ("export", "RUN", "--format", "parquet", "--out", "OUT"),
    ("list", "runs"),
    ("papers", "RUN"),
    ("capacity", "RUN"),
    ("lab", "add", "STORE", "RUN"),
    ("lab", "trend", "STORE"),
)
FILES = ("run.json", "trials.jsonl", "finished.json", "skipped.jsonl", "conditions.jsonl")
DEEP = "[" * 100_000
VALUES = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        0.5,
        2**62,
        2**63,
        10**400,
        1e308,
        5e-324,
        float("nan"),
        "",
        "x",
        "[/b]",
        "\x1b[31m\u202e\x00",
        "2026-13-45T99:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "../../x",
        [],
        {},
        [None],
        {"a": {}},
        "DEEP",
    ]
)
GONE, MORE = object(), object()


def places(document: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a document, by keys."""
    here = dict(enumerate(document)) if isinstance(document, list) else document
    for key, value in here.items() if isinstance(here, dict) else ():
        yield (*above, key)
        yield from places(value, (*above, key))


def changed(text: str, choose: Any) -> str:
    """One file of a run, with one value of one record replaced, or a key taken away or added."""
    lines = text.splitlines() if "\n{" in text else [text]
    number = choose(st.integers(0, len(lines) - 1))
    document = copy.deepcopy(json.loads(lines[number]))
    way = choose(st.sampled_from(sorted(places(document), key=str)))
    value = choose(VALUES | st.sampled_from([GONE, MORE]))
    within = document
    for key in way[:-1]:
        within = within[key]
    if value is GONE:
        del within[way[-1]]
    elif value is MORE and isinstance(within, dict):
        within["more"] = 1
    else:
        within[way[-1]] = None if value is MORE else value
    lines[number] = json.dumps(document).replace('"DEEP"', DEEP)
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small run that has every file and most kinds of records."""
    options = {"switch": "sim:noise=1%,sim", "scenario": "p2p,loopback", "frame_size": "64", "search": "ndr"}
    runs_dir = tmp_path_factory.mktemp("whole")
    run = run_plan("quick", runs_dir=runs_dir, repeat=2, duration=0.02, **options)
    trial = run.raw.trials[0]
    conditions = Conditions("sim", "p2p", 0, "virtio", 0, trial.started_at)
    with closing(RunWriter.reopen(runs_dir / run.header.run_id)) as writer:
        writer.observe(conditions)
        writer.skip(Skipped("vpp", "not installed"))
        writer.finish()
    return without_checksums(runs_dir / run.header.run_id)


@pytest.mark.timeout(1200)  # the examples of make fuzz are a thousand
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_stored_run_ends_in_a_traceback(planebench, monkeypatch, tmp_path: Path, whole: Path, data) -> None:
    monkeypatch.setattr("planebench.report.html.make_figures", lambda _: ())  # charts take seconds
    runs, store = tmp_path / "runs", tmp_path / "store"
    for folder in (runs, store, tmp_path / "out"):
        shutil.rmtree(folder, ignore_errors=True)
    bad = shutil.copytree(whole, runs / "bad")
    name = data.draw(st.sampled_from(FILES))
    (bad / name).write_text(changed((bad / name).read_text(), data.draw))
    command = data.draw(st.sampled_from(COMMANDS))
    names = {"RUN": bad, "GOOD": whole, "STORE": store, "OUT": tmp_path / "out"}
    line = [*(names.get(word, word) for word in command), *(["--runs", runs] if "trend" not in command else [])]
    if "trend" in command:
        planebench("lab", "add", store, whole)
        planebench("lab", "add", store, bad)
    done = planebench(*line)
    event(f"exit code {done.code}")
    assert done.code in EXIT_CODES and "Traceback" not in done.out + done.err
    assert done.code != FAULT, done.err
    if done.code in (2, 4, 5, FAULT):
        assert done.err.startswith("planebench: ") and done.err.count("\n") == 1
