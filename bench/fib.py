# SPDX-License-Identifier: BSD-3-Clause
"""The FIB against its bars: the cuckoo table at a million entries and at as many as memory allows, up to a billion.

    .venv/bin/python bench/fib.py [--entries N] [--rounds 9] [--seconds 0.2] [--pages best] [--folder runs]

Medians of interleaved rounds by build/dataplane/fib_bench, one core; keys drawn uniformly from those that are there.
DPDK's rte_hash is measured beside it at one and at 16 million entries. A snapshot of the large table goes to
``--folder`` and back. Then a full table of prefixes, as routers of the Internet have it, is looked up by the FIB, by
rounds of the cuckoo table, one a length, and by DPDK's rte_fib, rte_lpm and rte_fib6. Then packets of 256 B are
forwarded by a router with as many routes, and bench/fib_offload.py runs, where it is. Exit code 1 where a bar is
missed; it says which.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import planebench

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "dataplane" / "fib_bench"
PREFIXES = PROGRAM.with_name("fib_bench_prefixes")
OFFLOAD = ROOT / "bench" / "fib_offload.py"
MILLION = 1_000_000
BILLION = 1_000_000_000
RTE_LARGE = 16 * MILLION
FULL_TABLE_VNFS = 16
BYTES_PER_ENTRY = 8.6
SPARE_BYTES = 2_000_000_000
"""Left to the rest of the machine."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of fib_bench: single figures by case, and the rates of the cases that took turns."""

    title: str
    single: dict[str, Line]
    rates: dict[str, list[float]]

    def median(self, case: str) -> float:
        """Operations a second."""
        return statistics.median(self.rates[case])

    def bare(self) -> float:
        """Bare reads of random cache lines of the same memory, the way that is fastest here."""
        return max(self.median(case) for case in self.rates if case.startswith("bare_"))


@dataclass(frozen=True, slots=True)
class Bar:
    """The bars that the table is held against."""

    name: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def cleared(self) -> bool:
        """Whether the figure is on the right side."""
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    def __str__(self) -> str:
        limit = f"at least {self.least:,.2f}" if self.least is not None else f"at most {self.most:,.2f}"
        return f"{'cleared' if self.cleared else 'MISSED '}  {self.name}: {self.value:,.2f}, {limit}"


def main() -> int:
    """Measure, print, judge."""
    given = arguments()
    entries = given.entries or affordable_entries()
    if entries < BILLION:
        print(f"{entries:,} entries in place of a billion: " + ("as asked for" if given.entries else "memory is short"))
    measured = [
        run("1 million", given, MILLION, "--rte-hash"),
        run("1 million, wide keys", given, MILLION, "--width", "wide"),
        run("16 million", given, RTE_LARGE, "--rte-hash"),
        run("the large table", given, entries, *snapshot_arguments(given.folder, entries)),
    ]
    for one in measured:
        show(one)
    compare(measured[0])
    compare(measured[2])
    bars = [*small_bars(measured[0]), *large_bars(measured[3], entries), *prefix_bars(given)]
    bars.append(packets(measured[3], entries))
    print()
    for bar in bars:
        print(bar)
    good = all(bar.cleared for bar in bars)
    return 0 if offload_is_good() and good else 1


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, help="of the large table; default: a billion, or what memory allows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a case in each round")
    parser.add_argument("--pages", default="best", help="best, 1G, 2M, thp or 4K")
    parser.add_argument("--folder", type=Path, default=ROOT / "runs", help="where the snapshot goes: on a disk")
    return parser.parse_args()


def affordable_entries() -> int:
    """A billion, or as many as fit into the memory that is available, in whole millions."""
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
    kilobytes = int(meminfo["MemAvailable"].split()[0])
    huge_kilobytes = int(meminfo["HugePages_Free"].split()[0]) * int(meminfo["Hugepagesize"].split()[0])
    room = max(kilobytes * 1024 - SPARE_BYTES, huge_kilobytes * 1024)
    return max(MILLION, min(BILLION, int(room / BYTES_PER_ENTRY) // MILLION * MILLION))


def snapshot_arguments(folder: Path, entries: int) -> list[str]:
    """Nothing where the disk has no room for it."""
    folder.mkdir(exist_ok=True)
    if shutil.disk_usage(folder).free < 1.1 * entries * BYTES_PER_ENTRY:
        print(f"no snapshot: {folder} has not the {entries * BYTES_PER_ENTRY / 1e9:.1f} GB for it; see --folder")
        return []
    return ["--snapshot", str(folder / "fib_bench.snapshot")]


def run(title: str, given: argparse.Namespace, entries: int, *more: str) -> Measured:
    """One run of the program."""
    return measure(title, PROGRAM, given, "--entries", str(entries), "--pages", given.pages, *more)


def measure(title: str, program: Path, given: argparse.Namespace, *more: str) -> Measured:
    """Cases of a program in turn."""
    if not program.exists():
        raise SystemExit(f"{program} is not built: make unit-tests")
    words = [str(program), "--rounds", str(given.rounds), "--seconds", str(given.seconds), *more]
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}")
    single: dict[str, Line] = {}
    rates: dict[str, list[float]] = defaultdict(list)
    for line in map(json.loads, done.stdout.splitlines()):
        if "round" in line:
            rates[line["case"]].append(line["per_second"])
        else:
            single[line["case"]] = line
    return Measured(title, single, dict(rates))


def show(measured: Measured) -> None:
    """A table of one run."""
    table, build = measured.single["table"], measured.single["build"]
    print(
        f"\n{measured.title}: {table['entries']:,} {table['width']} entries, {table['bytes'] / 1e9:.3f} GB on "
        f"{table['pages']} pages ({table['bytes'] / table['entries']:.2f} bytes each), {table['isa']}, "
        f"{table['in_first']:.1%} in their first bucket, longest path {table['longest_path']}"
    )
    whole, last = build["per_second"] / 1e6, build["last_tenth_per_second"] / 1e6
    print(f"  built at {whole:.2f} M/s, the last tenth at {last:.2f} M/s")
    for case, rates in measured.rates.items():
        low, middle, high = min(rates), statistics.median(rates), max(rates)
        cycles = table["tsc_hz"] / middle
        print(f"  {case:16} {middle / 1e6:8.2f} M/s ({low / 1e6:.2f} to {high / 1e6:.2f}), {cycles:6.1f} cycles")
    for case in measured.single.keys() & {"save", "load"}:
        line = measured.single[case]
        print(f"  {case}: {line['seconds']:.1f} s for {line['bytes'] / 1e9:.2f} GB")


def compare(measured: Measured) -> None:
    """Where each is better: our table and rte_hash with the same keys."""
    entries = measured.single["table"]["entries"]
    bytes_ours = measured.single["table"]["bytes"] / entries
    bytes_theirs = measured.single["rte_build"]["bytes"] / entries
    print(f"\n{measured.title}, beside rte_hash: {bytes_ours:.1f} and {bytes_theirs:.1f} bytes an entry")
    for case in (name for name in measured.rates if "rte_" + name in measured.rates):
        ours, theirs = measured.median(case), measured.median("rte_" + case)
        better, times = ("cuckoo", ours / theirs) if ours > theirs else ("rte_hash", theirs / ours)
        print(f"  {case:12} {ours / 1e6:8.2f} and {theirs / 1e6:8.2f} M/s: {better}, {times:.2f}x")


def small_bars(measured: Measured) -> list[Bar]:
    """At a million entries."""
    return [Bar("million lookups a second at 1 million entries", measured.median("find_64") / 1e6, least=60)]


def large_bars(measured: Measured, entries: int) -> list[Bar]:
    """At a billion, or the size that there was memory for."""
    table, build = measured.single["table"], measured.single["build"]
    at = f"at {entries:,} entries"
    find = measured.median("find_64")
    # With fewer entries whole pages count for too much.
    bars = [Bar(f"GB {at}", table["bytes"] / 1e9, most=9.5)] if entries == BILLION else []
    bars += [
        Bar(f"million lookups a second {at}", find / 1e6, least=20),
        Bar(f"lookups by bare random reads of cache lines {at}", find / measured.bare(), least=0.4),
        Bar(f"million updates a second {at}: the last tenth put", build["last_tenth_per_second"] / 1e6, least=1),
        Bar(f"million updates a second {at}: replaced", measured.median("replace") / 1e6, least=1),
        Bar(f"million updates a second {at}: deleted and put", measured.median("delete_put") / 1e6, least=1),
    ]
    if "load" in measured.single:
        bars.append(Bar(f"seconds to load {at}", measured.single["load"]["seconds"], most=120 * entries / BILLION))
    return bars


def prefix_bars(given: argparse.Namespace) -> list[Bar]:
    """A full table of each family, looked up and changed by each; IPv4's in many VNFs; a tenth of it beside rte_lpm,
    which looks through all rules of a length for each new one.
    """
    four = measure("a full table of IPv4", PREFIXES, given, "--family", "4")
    six = measure("a full table of IPv6", PREFIXES, given, "--family", "6")
    many = measure(
        f"a full table of IPv4 in each of {FULL_TABLE_VNFS} VNFs", PREFIXES, given,
        "--family", "4", "--vnfs", str(FULL_TABLE_VNFS), "--only-fib",
    )  # fmt: skip
    tenth = measure("a tenth of it", PREFIXES, given, "--family", "4", "--routes", "100000", "--rte-lpm")
    for measured in (four, six, many, tenth):
        show_prefixes(measured)
    return [
        Bar(f"{measured.title}: lookups that end at few bits, times those of a round a length",
            measured.median("fib_find_short") / measured.median("rounds_find_short"), least=least)
        for measured, least in ((four, 1.2), (six, 2))
    ]  # fmt: skip


def show_prefixes(measured: Measured) -> None:
    """A line for each that was compared. The FIB has its entries in the cuckoo table ("rounds") as well."""
    print(f"\n{measured.title}")
    for name, line in measured.single.items():
        rates = {
            case: measured.median(f"{name}_{case}") / 1e6
            for case in ("find", "find_short", "replace", "replace_short", "delete_put")
        }
        print(
            f"  {name:8} {line['entries']:,} routes, {line['bytes'] / line['entries']:6.1f} bytes each, built in "
            f"{line['seconds']:.1f} s; M/s: {rates['find']:.1f} lookups, of few bits "
            f"{rates['find_short']:.1f}, {rates['replace']:.3f} replaced, of few bits "
            f"{rates['replace_short']:.5f}, {rates['delete_put']:.3f} deleted or put"
        )


def packets(measured: Measured, entries: int) -> Bar:
    """Return the rate of one process on the wires that routes packets of 256 B by a table of ``entries`` routes.

    ic16: 10 Gb/s from 256 B with a billion entries. Addresses are a million of its routes, drawn uniformly.
    """
    run = planebench.run(
        "quick", switch="planed", scenario="bare", vnfs="1", chain=[f"l3fwd:fib=cuckoo:synthetic={entries}"],
        direction="unidirectional", frame_size="256", traffic="fib:count=1M", loads="none", repeat=3,
    )  # fmt: skip
    (result,) = run.rows("results")
    mpps, gbps = (result["throughput_pps"] or 0) / 1e6, result["throughput_l1_gbps"] or 0
    print(
        f"\n{entries:,} routes: {mpps:.2f} million packets of 256 B per second on one core ({result['verdict']}), "
        f"beside {measured.median('find_64') / 1e6:.2f} million lookups"
    )
    return Bar(f"Gb/s of 256 B packets at {entries:,} routes", gbps, least=10)


def offload_is_good() -> bool:
    """The other half, with packets: bench/fib_offload.py."""
    if not OFFLOAD.exists():
        print(f"{OFFLOAD.name} is not here: nothing was measured with packets")
        return True
    sys.stdout.flush()
    return subprocess.run([sys.executable, str(OFFLOAD)], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
