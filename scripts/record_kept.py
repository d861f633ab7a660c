# SPDX-License-Identifier: BSD-3-Clause
"""The kept runs of docs/results, for record.py: a run folder for each suite and its repetition, records as Parquet."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, same_cell
from planebench.analysis.noise import figure_of
from planebench.analysis.standings import Standing, Standings
from planebench.model.errors import StoreError
from planebench.model.records import Point
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.words import ARROWS, printable
from planebench.papers.measured import RunFigures, of_the_plan
from planebench.plan.schema import load_plan
from planebench.store import read_run
from planebench.store.codec import sealed, unsealed
from planebench.store.folder import CONDITIONS_FILE, FINISHED_FILE, HEADER_FILE, SKIPPED_FILE, TRIALS_FILE
from planebench.store.reader import RECORDS_FILE

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
_RECORDS = (TRIALS_FILE, CONDITIONS_FILE, SKIPPED_FILE)
RUNS = RESULTS / "runs"
SUITES = ("conext19", "netsoft19", "can17", "ic16")
AGAIN = "-again"
"""After the name of a suite: all of it a second time, in another order. All claims are told by both, none by choice."""
SEEDS = dict.fromkeys(SUITES, 1) | {f"{name}{AGAIN}": 2 for name in SUITES}
"""The seed of the order of each kept run, by its name."""
MAIN = "conext19"
"""The suite that most of the page is of: the one with all switches."""
CHAINS = tuple(f"loopback-{length} →" for length in range(1, 6))
PATHS = ("p2p →", "p2v →", "v2v →", *CHAINS)
ENDS = ("p2p →", "v2v →", CHAINS[0], CHAINS[-1])
FILLED = "closed-loop"
"""The traffic that fills the ring of a wire, however fast: of the parts without a line."""
SMALL = 64
"""The frame size of the page, in bytes."""
ROUTER = "l3fwd:fib=cuckoo:synthetic=1M"
"""The L3 VNF of ic16."""


def keep(folder: Path, out: Path) -> Path:
    """Write the run in ``folder`` into ``out``; replace what is there.

    Of the paths that its environment and its command name, the last part stays.
    Raises StoreError for a run that has not finished.
    """
    import duckdb

    if not (folder / FINISHED_FILE).is_file():
        raise StoreError(f"run {folder.name} is not finished: finish it with the same command and --resume first")
    header = json.loads(unsealed((folder / HEADER_FILE).read_bytes(), HEADER_FILE)) | {"checksums": True}
    named = [*header["environment"].values(), *(it for it in header["command"] if it.startswith("/"))]
    paths = sorted((it for it in named if it.count("/") > 1), key=len, reverse=True)
    header["environment"] = {name: it for name, it in header["environment"].items() if it not in paths}
    texts = {HEADER_FILE: [json.dumps(header, indent=1, ensure_ascii=False)]}
    for name in (FINISHED_FILE, *_RECORDS):
        if (folder / name).is_file():
            data = (folder / name).read_bytes()
            found = [data] if name == FINISHED_FILE else filter(None, data.split(b"\n"))
            texts[name] = [unsealed(record, name).decode() for record in found]
    for name, path in product(texts, paths):
        texts[name] = [record.replace(path, Path(path).name) for record in texts[name]]
    texts = {name: [sealed(record.encode()).decode() for record in found] for name, found in texts.items()}
    rows = [(name, *it) for name in _RECORDS for it in enumerate(texts.pop(name, ()), 1)]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, (text,) in texts.items():
        (out / name).write_text(f"{text}\n", encoding="utf-8")
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT unnest($files) AS file, unnest($lines)::INTEGER AS line, unnest($records) AS record) "
            "TO $out (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19, ROW_GROUP_SIZE 1000000)",
            {
                "files": [file for file, _, _ in rows],
                "lines": [line for _, line, _ in rows],
                "records": [record for _, _, record in rows],
                "out": str(out / RECORDS_FILE),
            },
        )
    return out


def keep_run(folder: Path) -> str:
    """Keep a run in place of the one of its suite and seed; return its name."""
    plan = read_run(folder).header.plan
    for name, seed in SEEDS.items():
        if (load_plan(name.removesuffix(AGAIN)).description, seed) == (plan.description, plan.seed):
            keep(folder, RUNS / name)
            return name
    sys.exit(f"{folder}: not a run of {', '.join(SUITES)} with seed 1 or 2: {plan.description}, seed {plan.seed}")


@cache
def run_of(name: str) -> Derived:
    """Return a kept run."""
    return Derived(read_run(RUNS / name))


def kept() -> dict[str, Derived]:
    """Return the kept runs by name, those of the suites first."""
    return {name: run_of(name) for name in SEEDS if (RUNS / name).is_dir()}


@cache
def standings(name: str) -> Standings:
    """Return the standings of a kept run."""
    return Standings(run_of(name))


# What the page shows of them


def path(point: Point) -> str:
    """Return path and direction: ``loopback-2 →``."""
    return f"{printable(point.scenario_label)} {ARROWS[point.direction]}"


def small(point: Point) -> bool:
    """Return whether a test point is of plain small frames, and of VNFs as the plan has them."""
    plain = not point.traffic and not point.named and point.hosting == "process"
    return plain and point.frame_size_bytes == SMALL and of_the_plan(point)


@cache
def figures(name: str) -> RunFigures:
    """Return the figures of a kept run as claims have them."""
    return RunFigures(run_of(name))


def near(name: str, result: Result) -> Result:
    """Return a result with its throughput where the cores were near, in the starts in which they were.

    The host of a virtual machine moves its CPUs, and far ones halve every rate.
    """
    found = figures(name).sample(result.point, "throughput", None)
    if found is None or found.estimate is None or not counts(result):
        return result
    estimate, verdict = found.estimate, replace(result.verdict, kind=found.kind)
    low, high = estimate.interval()
    return replace(
        result,
        verdict=verdict,
        throughput_pps=figure_of(estimate.mean),
        throughput_low_pps=low,
        throughput_high_pps=high,
    )


def chosen(name: str, *paths: str, line: bool = False) -> list[Standing]:
    """Return the standings of small frames on some paths of a kept run, in this order, their rates near.

    Those that fill the ring, where a path has such and is not asked for on its ``line``.
    """
    found = [it for it in standings(name).throughput if small(replace(it.point, traffic=""))]
    ways = {(f"{it.point.scenario_label} {ARROWS[it.point.direction]}", it.point.traffic): it for it in found}
    wanted = [((path, "" if line else FILLED), (path, "")) for path in paths]
    taken = [ways[own] if own in ways else ways[usual] for own, usual in wanted if {own, usual} & ways.keys()]
    return [replace(it, results=tuple(near(name, result) for result in it.results)) for it in taken]


def core_cycles(run: Derived, result: Result) -> float | None:
    """Return all cycles of the switch's core for each packet and pass at its throughput.

    A switch that polls spends them at its capacity, whether it counts its busy cycles or not. None where the throughput
    is a bound, and where the place of the switch is not that of one process on one core that all packets pass.
    """
    mhz, of = run.run.header.host.get("cpu_mhz"), scenario_named(result.point.scenario)
    if not counts(result) or result.verdict.kind.is_bound or not result.throughput_pps or not isinstance(mhz, int):
        return None
    if of.bare or of.side_by_side or of.two_switches:
        return None
    return mhz * 1e6 / (result.throughput_pps * (result.point.chain_length + 1))


def costs(name: str, point: Point) -> dict[str, tuple[float, bool]]:
    """Return the cycles per packet of each switch at a test point, and whether the switch counted them."""
    run, cost = run_of(name), standings(name).cost[point]
    counted = ((r.point.switch, r.switch_cycles_per_packet) for r in cost.results)
    found = {switch: (value, True) for switch, value in counted if value is not None}
    for result in same_cell(run.results)[point]:
        value = core_cycles(run, near(name, result))
        if value is not None:
            found.setdefault(result.point.switch, (value, False))
    return found
