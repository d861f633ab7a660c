# SPDX-License-Identifier: BSD-3-Clause
"""Run in the lab: print a line of JSON for each trial of the newest run in a folder.

trials.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from planebench.stats.ledger import describe, ledger
from planebench.store import find_run, read_run

run = read_run(find_run(Path(sys.argv[1]), "latest"))
for trial in run.trials:
    account = ledger(trial)
    print(
        json.dumps(
            {
                "switch": trial.point.switch,
                "scenario": trial.point.scenario,
                "role": trial.role,
                "verdict": trial.verdict.kind.value,
                "reasons": list(trial.verdict.texts),
                "offered": account.offered_packets,
                "forwarded": account.forwarded_packets,
                "unexplained": account.unexplained_packets if account.counted else None,
                "account": describe(account),
            }
        )
    )
print(json.dumps({"rings": {it.label: it.settings.get("ring_size") for it in run.header.switches}}))
