# SPDX-License-Identifier: BSD-3-Clause
"""A run with more charts than its page has room for: ``python big_run.py OUT`` writes its page and says what it took.

In a process of its own, so that the memory is that of the page. Prints JSON: bytes of the page, peak memory in MiB.
"""

import dataclasses
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from builders import LATENCY_US, make_latency_trial, make_run

from planebench.analysis.compare import Derived
from planebench.model.header import Run
from planebench.model.records import Trial

SWITCHES = ("planed", "ovs-dpdk", "testpmd", "vpp", "bess", "snabb")
MAX_BYTES = 2_500_000
"""Limit of this page, which leaves room for some of its charts; drawing them is slow."""
LOADS = {"0.10": 1e6, "0.50": 5e6, "0.99": 9.9e6}


def big_run() -> Run:
    """Six switches, p2p, p2v, v2v, loopback 1 to 3, three frame sizes, uni- and bidirectional, three loads of each."""
    run = make_run(SWITCHES, sizes=(64, 256, 1024), chains=(1, 2, 3), loads=())
    trials: list[Trial] = [t for t in run.trials if t.role == "r_plus"]
    records: dict[tuple[str, str], Trial] = {}
    for point in dict.fromkeys(t.point for t in trials):
        loads = {"1Mpps": 1e6} if point.scenario == "v2v" else LOADS
        for load, pps in loads.items():
            made = records.setdefault((point.switch, load), _latency(point.switch, load))
            trial = make_latency_trial(len(trials), point, load, pps)
            trials.append(dataclasses.replace(trial, latency=made.latency))
    return dataclasses.replace(run, trials=tuple(trials))


def _latency(switch: str, load: str) -> Trial:
    """Four hundred latencies that differ, as a real histogram has."""
    base = LATENCY_US.get(switch, 6.0) * 1e3
    samples = [(int(base * 1.02**i), 1 + (400 - i) // 8) for i in range(200)]
    made = make_latency_trial(load=load, samples_ns=samples)
    assert made.latency is not None
    jitter = made.latency.histogram
    return dataclasses.replace(made, latency=dataclasses.replace(made.latency, ipdv=jitter, burst_rises=jitter))


def main(out: str) -> None:
    from planebench.report.html import to_html

    size = Path(out).write_bytes(to_html(Derived(big_run()), max_bytes=MAX_BYTES))
    status = Path("/proc/self/status").read_text()  # ru_maxrss would include the process that started this one
    memory = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"bytes": size, "memory_mib": memory}))


if __name__ == "__main__":
    main(sys.argv[1])
