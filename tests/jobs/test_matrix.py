# SPDX-License-Identifier: BSD-3-Clause
"""The document of a matrix: its combinations, and errors with file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from planebench.cli.jobs import OPTION_KINDS
from planebench.lab.matrix import read_matrix
from planebench.model.errors import UsageError

MATRIX = """# SPDX-License-Identifier: BSD-3-Clause
version: 1
name: nightly
plan: quick
options:
  frame-size: [64, 1024]
  duration: 1
matrix:
  switch: [planed, "testpmd:workers=2"]
  open-loop: [true]
testbeds:
  epyc: {slurm: "--constraint=epyc", options: {duration: 2.5}}
  desk: {slurm: ""}
repeat: 2
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "m.yaml"
    path.write_text(text)
    return read_matrix(path, OPTION_KINDS)


def test_every_combination_on_every_testbed(tmp_path: Path) -> None:
    _, runs = read(tmp_path, MATRIX)
    assert [run.name for run in runs] == [
        f"{switch}-True-{testbed}-{number}"
        for testbed in ("epyc", "desk")
        for switch in ("planed", "testpmd-workers=2")
        for number in (1, 2)
    ]
    first, last = runs[0], runs[-1]
    assert first.options == {"frame-size": "64,1024", "duration": 2.5, "switch": "planed", "open-loop": True}
    assert last.options["duration"] == 1.0 and last.place.name == "desk" and last.place.slurm == ""


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("plan: quick", "plam: quick", "line 4, column 1", 'unknown key "plam", did you mean plan?'),
        ("plan: quick\n", "", "line 2, column 1", "key plan is missing; add it"),
        ("  duration: 1\n", "  duraton: 1\n", "line 7, column 3", 'unknown option of a run "duraton", did you mean'),
        ("  duration: 1\n", "  duration: long\n", "line 7, column 3", 'duration: "long" is not valid: input should be'),
        ("[true]", "[maybe, false]", "line 10, column 15", 'open-loop: "maybe" is not valid'),
        ('{slurm: ""}', "{}", "line 13, column 3", "key testbeds.desk.slurm is missing; add it"),
        ('{slurm: ""}', "{host: desk}", "line 13, column 10", 'unknown key "host"'),
        ("repeat: 2", "repeat: 0", "line 14, column 1", 'repeat: "0" is not valid: input should be greater than'),
        ("repeat: 2", "repeat: [", "line 15, column 1", "is not YAML"),
        ("[true]", "[true, true]", "line 8, column 1", "two runs have the same name"),
    ],
)
def test_errors_name_file_line_and_column(tmp_path: Path, old: str, new: str, place: str, words: str) -> None:
    assert old in MATRIX
    with pytest.raises(UsageError) as error:
        read(tmp_path, MATRIX.replace(old, new))
    assert f"m.yaml, {place}" in str(error.value) and words in str(error.value)
