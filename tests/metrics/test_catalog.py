# SPDX-License-Identifier: BSD-3-Clause
"""The catalog of metrics: what is in it reaches every output."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from pathlib import Path

from builders import make_header, make_point, make_trial

from planebench.library import Loaded
from planebench.library.source import Source
from planebench.model.run import Run
from planebench.model.updates import FibUpdates
from planebench.report.export import to_csv, to_json


def test_fib_updates_are_in_every_export() -> None:
    trial = dataclasses.replace(make_trial(0, make_point()), updates=FibUpdates(None, 2_000_000_000, 50, 40))
    source = Source(Path("nowhere"), Run(make_header(("planed",)), (trial,)))
    assert json.loads(to_json(source))["results"][0]["fib_updates_per_s"] == 20
    (line,) = csv.DictReader(io.StringIO(to_csv(source).decode()))
    assert line["fib_updates_per_s"] == "20.0"
    loaded = Loaded([source])
    assert loaded.rows("results")[0]["fib_updates_per_s"] == loaded.rows("trials")[0]["fib_updates_per_s"] == 20
    assert loaded.trials["fib_updates_per_s"].tolist() == [20]
