# SPDX-License-Identifier: BSD-3-Clause
"""Write the tables of docs/examples/*.md from the runs in docs/examples/runs.

``worked_examples.py [--check | --measure NAME]``. A table is between ``<!-- table NAME -->`` and ``<!-- end -->``. A
run is a run folder without its report, with short paths. --check changes nothing; exit code 1 if a page would change.
--measure runs docs/examples/NAME.yaml, and keeps the run in place of the last one.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, latency_compares
from planebench.analysis.node_capacity import path_costs
from planebench.model.errors import StoreError
from planebench.model.results import Comparison, Metric, Result
from planebench.store import find_run, read_run
from planebench.store.folder import CONDITIONS_FILE, FINISHED_FILE, HEADER_FILE, TRIALS_FILE

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "docs" / "examples"
KEPT = (HEADER_FILE, CONDITIONS_FILE, FINISHED_FILE, TRIALS_FILE)
"""What is kept of a run folder."""
_KEPT = "docs/examples/runs"
VNFS, PPS_PER_VNF = 16, 500e3
"""The node of sixteen-vnfs.md."""
_TABLE = re.compile(r"(?<=<!-- table )([a-z-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)


@cache
def _run(name: str) -> Derived:
    return Derived(read_run(EXAMPLES / "runs" / name))


def _rows(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _against_first(name: str) -> str:
    """Return the throughput of each switch of a run against the first one."""
    derived = _run(name)
    first = derived.run.switch_labels[0]
    compared = sorted((it for it in derived.comparisons if it.a == first and it.metric == "throughput"), key=_size)
    rows = ((f"{_size(it)} B", it.b, f"{it.ratio:.3f}", _interval(it.low, it.high), it.answer) for it in compared)
    return _rows(("frames", "build", f"its rate / that of `{first}`", "interval", "answer"), rows)


def _loopback(name: str) -> str:
    """Return the results of a run with chains, fastest first in each frame size."""
    found = [it for it in _run(name).results if it.point.scenario == "loopback" and counts(it)]
    found.sort(key=lambda it: (it.point.chain, it.point.frame_size_bytes, -(it.throughput_pps or 0)))
    rows = (
        (
            it.point.chain.replace(",", ", "),
            f"{it.point.frame_size_bytes} B",
            it.point.switch,
            _mpps(it.throughput_pps, it.verdict.kind.is_bound),
            _interval(_in_mpps(it.throughput_low_pps), _in_mpps(it.throughput_high_pps)),
            f"{it.switch_cycles_per_packet:.0f}" if it.switch_cycles_per_packet else "–",
            _latency(it),
        )
        for it in found
    )
    return _rows(("chain", "frames", "switch", "Mpps", "interval", "cycles per hop", "p50 / p99, µs, at 50 %"), rows)


def _pairs(name: str, metric: Metric, of_what: str) -> str:
    """Return the comparisons of a run with chains by one metric, which ``of_what`` names."""
    found = [it for it in _run(name).comparisons if it.metric == metric and it.point.startswith("loopback")]
    rows = (
        (f"{_size(it)} B", f"{it.b} / {it.a}", f"{it.ratio:.2f}", _interval(it.low, it.high), it.answer, _price(it))
        for it in found
    )
    return _rows(("frames", "pair", f"ratio of the {of_what}", "interval", "answer", "more starts"), rows)


def _price(it: Comparison) -> str:
    return f"{it.more_starts}" if it.more_starts else "–"


def _account(name: str) -> str:
    """Return where a run is, when it was, and how many trials it has."""
    derived = _run(name)
    mhz = derived.run.header.host.get("cpu_mhz")
    rows = [(derived.run.header.started_at[:10], f"{mhz} MHz", str(len(derived.run.trials)))]
    asked = f"    planebench compare {_KEPT}/{name}\n"
    where = f"The tables below are of the run in [runs/{name}](runs/{name}), as is what these commands say:\n\n"
    return f"{where}{asked}\n" + _rows(("day", "CPU", "trials"), iter(rows))


def _cores(name: str) -> str:
    """Return the cores that each switch needs for the node, beside the cost of a frame."""
    derived = _run(name)
    costs = {it.point: it for it in path_costs(derived, lambda label: 1)}
    rows = []
    for it in derived.results:
        if it.point.scenario != "loopback" or not counts(it) or not it.throughput_pps:
            continue
        bound = it.verdict.kind.is_bound
        least = "≤ " if bound else ""
        cores = math.ceil(VNFS * PPS_PER_VNF / (it.throughput_low_pps or it.throughput_pps))
        utilization = VNFS * PPS_PER_VNF / (cores * it.throughput_pps)
        cells = (
            f"{it.point.frame_size_bytes} B",
            it.point.switch,
            f"{costs[it.point].cycles_per_frame or 0:.0f}",
            _mpps(costs[it.point].pps_per_core, bound),
            f"{least}{cores}",
            f"{least}{utilization:.0%}",
            f"{least}{VNFS + cores + 1}",
        )
        rows.append((it.point.frame_size_bytes, cores, utilization, cells))
    head = ("frames", "switch", "cycles per frame", "Mpps per core", "switch cores", "utilization", "cores in all")
    return _rows(head, (cells for *_, cells in sorted(rows)))


def _size(it: Comparison) -> int:
    return int(it.point.split("/")[2])


def _latency(it: Result) -> str:
    found = [each for each in it.latency if "0.50" in each.load and latency_compares(each)]
    return f"{found[0].p50:.1f} / {found[0].p99:.1f}" if found else "–"


def _in_mpps(pps: float | None) -> float | None:
    return pps / 1e6 if pps is not None else None


def _mpps(pps: float | None, bound: bool = False) -> str:
    return "–" if pps is None else f"{'≥ ' if bound else ''}{pps / 1e6:.2f}"


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "–" if low is high else f"from {low:.2f}" if high is None else f"to {high:.2f}"
    return f"{low:.2f} to {high:.2f}"


TABLES: dict[str, Callable[[], str]] = {
    "builds": lambda: _against_first("regression"),
    "fix": lambda: _against_first("regression-fix"),
    "cores": lambda: _cores("quick"),
    "account": lambda: _account("firewall-chain"),
    "chain": lambda: _loopback("firewall-chain"),
    "chain-rates": lambda: _pairs("firewall-chain", "throughput", "rates"),
    "chain-costs": lambda: _pairs("firewall-chain", "cycles_per_packet", "cycles per frame and hop"),
}


def written(page: Path) -> str:
    """Return the text of a page with its tables made anew."""
    text = page.read_text(encoding="utf-8")
    return _TABLE.sub(lambda match: f"{match[1]}{match[2]}\n{_table(match[1])}\n", text)


def _table(name: str) -> str:
    try:
        return TABLES[name]()
    except StoreError:
        return "(No run is kept yet.)\n"


def measure(name: str) -> None:
    """Run the plan of an example, and keep the run. Raises CalledProcessError where it has no accepted trial."""
    plan, runs = EXAMPLES / f"{name}.yaml", ROOT / "runs"
    command = ["planebench", "run", str(plan), "--name", name, "--runs", str(runs)]
    subprocess.run([sys.executable, "-m", *command], check=True)
    keep(find_run(runs, name), EXAMPLES / "runs" / name)


def keep(run: Path, folder: Path) -> None:
    """Copy what is kept of a run folder, with relative paths in place of those below the examples and the tree."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for file in KEPT:
        text = (run / file).read_text(encoding="utf-8")
        for path, short in ((f"{EXAMPLES}/", ""), (f"{ROOT}/", ""), (str(ROOT), ".")):
            text = text.replace(path, short)
        (folder / file).write_text(text, encoding="utf-8")


def main() -> int:
    """Write the pages, or check them. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--measure", metavar="NAME", help="run docs/examples/NAME.yaml first")
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
    changed = {
        page: text for page in sorted(EXAMPLES.glob("*.md")) if (text := written(page)) != page.read_text("utf-8")
    }
    for page, text in changed.items():
        print(page)
        if not options.check:
            page.write_text(text, encoding="utf-8")
    return int(options.check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
