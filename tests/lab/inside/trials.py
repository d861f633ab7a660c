# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: print a line of JSON for each trial of the newest run in a folder, and one of the run.

trials.py FOLDER
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from planebench.analysis.histogram import decode, percentile_ns
from planebench.analysis.ledger import describe, ledger
from planebench.model.header import Calibration
from planebench.model.records import LatencyRecord
from planebench.store import find_run, read_run


def latency_of(latency: LatencyRecord | None) -> dict[str, object] | None:
    if latency is None or not latency.histogram:
        return None
    of_clock, of_software = decode(latency.histogram), decode(latency.software or latency.histogram)
    return {
        "clock": latency.clock,
        "stamped": latency.probes_stamped,
        "unstamped": latency.unstamped,
        "floor_ns": latency.floor_ns,
        "p50_ns": percentile_ns(of_clock, 0.5),
        "software_p50_ns": percentile_ns(of_software, 0.5),
    }


def clocks(calibration: Calibration | None) -> dict[str, object]:
    if calibration is None:
        return {}
    return {"floors": {floor.clock: floor.p50_ns for floor in calibration.floors}}


run = read_run(find_run(Path(sys.argv[1]), "latest"))
for trial in run.trials:
    account = ledger(trial)
    print(
        json.dumps(
            {
                "switch": trial.point.switch,
                "scenario": trial.point.scenario,
                "placement": trial.point.placement,
                "role": trial.role,
                "verdict": trial.verdict.kind.value,
                "reasons": list(trial.verdict.texts),
                "offered": account.offered_packets,
                "forwarded": account.forwarded_packets,
                "unexplained": account.unexplained_packets if account.counted else None,
                "account": describe(account),
                "latency": latency_of(trial.latency),
                "threads": [(it.owner, it.cpu) for it in trial.evidence.threads],
                "memory": {it.name: (it.node, dict(it.bytes_by_node)) for it in trial.evidence.memory},
            }
        )
    )
rings = {it.label: it.settings.get("ring_size") for it in run.header.switches}
there = run.header.switch_host
hosts = {} if there is None else {"there": there.name, **dataclasses.asdict(there.clock)}
print(json.dumps({"rings": rings, **clocks(run.header.calibration), **hosts}))
