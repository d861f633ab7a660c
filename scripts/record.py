# SPDX-License-Identifier: BSD-3-Clause
"""Make docs/results from runs of the papers' suites: record.py [RUN ... | --measure | --check].

A run replaces the kept one of its suite: its records and its tables as Parquet in docs/results/runs/SUITE. --measure
runs the suites first. All pages are made from what is kept, so that without a run they are made anew. --check
changes nothing; exit code 1 if a page would change.

In README.md and docs/results/README.md, a part is between ``<!-- made NAME -->`` and ``<!-- end -->``. Other pages are
made whole.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from statistics import median

from record_kept import RESULTS, ROOT, SUITES, derived, keep_run, kept, standings

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, latency_counts, same_cell, saturating
from planebench.analysis.node_capacity import predictions
from planebench.analysis.standings import Standing, Standings
from planebench.model.records import Point
from planebench.model.results import LatencySummary, Result
from planebench.model.scenario import scenario_named
from planebench.model.text import seconds_since_epoch
from planebench.model.time_had import is_disturbed
from planebench.model.wire import Wire, wire_named
from planebench.model.words import (
    ARROWS,
    NOTHING,
    cycles,
    frames,
    listed,
    load_words,
    mpps,
    percent,
    printable,
    throughput,
    us,
)
from planebench.papers.claims import all_papers
from planebench.papers.data import paper_figures
from planebench.papers.judge import Conclusion, conclude, open_words
from planebench.papers.measured import RunFigures, of_the_plan
from planebench.papers.shape import Shape, shapes
from planebench.papers.told import ClaimOutcome
from planebench.report.answers import STATES, missing_words, needs, times
from planebench.report.chains import latency_claim, throughput_claim
from planebench.report.figure import DARK_COLORS, SWITCH_COLORS, Figure, FigureId, switch_colors
from planebench.report.figures import FIGURES, make_figures
from planebench.report.images import figure_svg
from planebench.report.setup import conditions_remark
from planebench.report.svg import GRID, INK, MUTED
from planebench.report.throughput import chain_length_figures
from planebench.report.trust import trust
from planebench.store import find_run

IMAGES = RESULTS / "img"
MAX_BYTES = 20_000_000
"""The largest size of all kept runs together."""
PICTURES: dict[str, tuple[str, FigureId, int]] = {
    "picture-overview": ("conext19", "overview", 1),
    "picture-load": ("conext19", "load", 2),
    "picture-chain": ("conext19", "chain", 1),
    "picture-parts": ("can17", "parts", 2),
    "picture-vnfs": ("ic16", "vnfs", 2),
}
"""Drawings of README.md: of which suite, of which kind, and how many of them."""
SMALL, FEW_CORES = 64, 3
"""The frame size of the tables of README.md; below so many CPUs the tester shares its own with the VNFs."""
_PART = re.compile(r"(?<=<!-- made )([a-z-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

Line = Sequence[str]


# Tables as Markdown


def table(head: Line, rows: Iterable[Line], numbers: int = 0) -> str:
    """Return a Markdown table, its last ``numbers`` columns aligned to the right; empty without a row."""
    found = [[_cell(it) for it in row] for row in rows]
    if not found:
        return ""
    ruler = ["---"] * (len(head) - numbers) + ["--:"] * numbers
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ruler, *found))


def _cell(text: str) -> str:
    return " ".join(printable(text).replace("|", "\\|").replace("<", "&lt;").split())


def _short(point_label: str) -> str:
    """Return the label of a path without what a reader of a table does not need."""
    return re.sub(r"exec:\S+[^,]*", "exec:...", printable(point_label))


def path(it: Standing) -> str:
    """Return path and direction of a standing: ``loopback-2 ⇄``."""
    return f"{_short(it.point.scenario_label)} {ARROWS[it.point.direction]}"


def labels(suite: str) -> tuple[str, ...]:
    """Return the switches of a kept run."""
    found = derived(suite)
    return () if found is None else found.run.switch_labels


# Parts of README.md


def machine() -> str:
    """Return the first paragraph: what the machine of the runs can and cannot tell."""
    if not kept():
        return "No run is kept.\n"
    runs = kept().values()
    host = next(iter(runs)).run.header.host
    cores, nodes = int(host.get("cores_allowed") or 0), int(host.get("numa_nodes") or 1)
    few, virtual = cores < FEW_CORES, bool(host.get("hypervisor"))
    trials = [t for it in runs for t in saturating(it.run.trials).trials]
    disturbed = sum(map(is_disturbed, trials))
    lacks = [
        "a 10 GbE line" * all(wire_of(it).replaces_nics for it in runs),
        "a second core of a switch" * few,
        "a remote NUMA node" * (nodes < 2),
        "VNFs in virtual machines, whose guests the host would emulate" * virtual,
    ]
    where = f"a virtual machine ({host['hypervisor']})" if virtual else "a machine"
    parts = [
        f"All figures are from {where} with {cores} CPUs ({host.get('cpu_model')}).",
        clocks(),
        "The switch has one CPU; the tester shares the other with all VNFs." if few else "",
        wires(),
        page_sizes(),
        "That is enough to see how many CPU cycles a switch spends on a packet, which of two switches is faster (where "
        "the confidence interval of their ratio excludes 1), how throughput falls with the length of a chain, and how "
        "latency changes with load.",
        f"It says nothing about the rates of a server, and nothing about {listed(list(filter(None, lacks)))}.",
        "A switch that is faster than the tester has only a lower bound (`≥`), and a chain is often limited by its "
        "VNFs, which take turns on one CPU." * few,
        f"In {disturbed} of {len(trials)} saturating trials ({percent(disturbed / len(trials))}) other work took more "
        "than 2 % of the CPU time away; rates are per time that was left.",
    ]
    return " ".join(filter(None, parts)) + "\n"


def clocks() -> str:
    """Return which suites ran on CPUs of which clock, if they differ: then these were not the same; else nothing."""
    told = _by_suites(lambda found: f"{found.run.header.host.get('cpu_mhz')} MHz")
    if len(told) < 2:
        return ""
    return f"It was not the same in all suites: {listed(told)}. Rates of two suites cannot be compared."


def page_sizes() -> str:
    """Return which suites ran with packet buffers in pages of which size."""
    told = _by_suites(lambda found: f"of {_pages(found)}")
    if len(told) < 2:
        return "".join(f"Packet buffers are in pages of {_pages(found)}." for found in list(kept().values())[:1])
    return f"Packet buffers are in pages {listed(told)}: rates of suites with other pages cannot be compared."


def _by_suites(what: Callable[[Derived], str]) -> list[str]:
    """Return each value of the kept runs with its suites, as ``2 MiB in conext19 and waiting``, but an empty one."""
    suites: dict[str, list[str]] = {}
    for suite, found in kept().items():
        suites.setdefault(what(found), []).append(suite)
    return [f"{value} in {listed(names)}" for value, names in suites.items() if value]


def _in_place_of_nics(found: Derived) -> str:
    wire = wire_of(found)
    return f"{wire.name} ({wire.title.partition(' (')[2]}" if wire.replaces_nics else ""


def wire_of(found: Derived) -> Wire:
    """Return the wire of a run."""
    return found.run.header.wire or wire_named("virtio")


def wires() -> str:
    """Return what is in the place of the NICs in which suites; empty if there are NICs in all."""
    told = _by_suites(_in_place_of_nics)
    return f"In the place of NICs: {', '.join(told)}." if told else ""


def runs_table() -> str:
    """Return what was run: a row per suite."""
    rows = []
    for suite in SUITES:
        found = derived(suite)
        if found is None:
            rows.append([suite, "no run is kept", *[NOTHING] * 7])
            continue
        of_run = standings(suite)
        assert of_run is not None
        header = found.run.header
        trials = sum(t.role != "warmup" for t in found.run.trials)
        rows.append(
            [
                f"[{suite}](../suites.md)",
                header.started_at.partition("T")[0],
                _minutes(found),
                wire_of(found).name,
                _pages(found),
                listed(found.run.switch_labels),
                f"{len(of_run.throughput)}",
                f"{trials} ({len(found.invalid)})",
                trust(of_run).title,
            ]
        )
    head = ("suite", "date", "minutes", "wire", "pages", "switches", "test points", "trials (invalid)", "answers")
    return table(head, rows)


def _pages(found: Derived) -> str:
    return "2 MiB" if found.run.header.settings["hugepages"] else "4 KiB"


def _minutes(found: Derived) -> str:
    end = found.run.finished
    if end is None:
        return NOTHING
    minutes = (seconds_since_epoch(end.finished_at) - seconds_since_epoch(found.run.header.started_at)) / 60
    return f"{minutes:.0f}{f' ({end.status})' if end.status != 'complete' else ''}"


def switches_table() -> str:
    """Return the version of each switch, and why others have no figure."""
    versions: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for found in kept().values():
        for label in found.run.switch_labels:
            versions.setdefault(label, found.run.version_of(label))
        for it in found.run.skipped:
            name = it.what.partition(" ")[0]
            if it.reason.startswith("not installed"):
                reasons.setdefault(name, "not installed on this machine")
    rows = [[name, version] for name, version in versions.items()]
    rows += [[name, f"{NOTHING} ({reason})"] for name, reason in reasons.items() if name not in versions]
    return table(("switch", "version"), rows)


def leaders() -> str:
    """Return which switch is best for what, in each suite, and how far it is ahead."""
    rows = [
        [suite, it.title, f"**{it.pick}**", f"{it.why[:1].upper()}{it.why[1:]}"]
        for suite in kept()
        if (found := standings(suite)) is not None
        for it in needs(found)
    ]
    return table(("suite", "wanted", "switch", "how often, and by how much"), rows)


def _core_cycles(found: Derived, result: Result) -> float | None:
    """Return all cycles of the switch's core for each packet and pass at its throughput.

    A switch that polls spends them at its capacity, whether it counts its busy cycles or not. None where the throughput
    is a bound, and where the place of the switch is not that of one process on one core that all packets pass.
    """
    mhz, of = found.run.header.host.get("cpu_mhz"), scenario_named(result.point.scenario)
    if not counts(result) or result.verdict.kind.is_bound or not result.throughput_pps or not isinstance(mhz, int):
        return None
    if of.bare or of.side_by_side or of.two_switches:
        return None
    passes = result.point.chain_length + 1
    return mhz * 1e6 / (result.throughput_pps * passes)


def _cost(suite: str, it: Standing) -> dict[str, tuple[float, bool]]:
    """Return the cycles per packet of each switch at a point, and whether the switch counted them."""
    of_run = standings(suite)
    assert of_run is not None
    counting = {r.point.switch: r.switch_cycles_per_packet for r in it.results}
    cells = {name: (value, True) for name, value in counting.items() if value is not None}
    for result in _cells(suite)[it.point]:
        value = None if result.point.switch in cells else _core_cycles(of_run.derived, result)
        if value is not None:
            cells[result.point.switch] = (value, False)
    return cells


@cache
def _cells(suite: str) -> dict[Point, tuple[Result, ...]]:
    """Return the results of each test point of a kept run."""
    of_run = standings(suite)
    return {} if of_run is None else {point: tuple(found) for point, found in same_cell(of_run.derived.results).items()}


def cost_words() -> str:
    """Return by how much the first switch is ahead in cycles, of those that count them and of all, in sentences."""
    found = standings("conext19")
    if found is None:
        return ""
    counting = [it.pairs[0].ratio for it in found.cost.values() if it.pairs and it.pairs[0] is not None]
    costs = [sorted(value for value, _ in _cost("conext19", it).values()) for it in found.cost.values()]
    of_all = [second / first for first, second, *_ in (it for it in costs if len(it) > 1)]
    who = (("Of the switches that count cycles", counting), ("Of all switches", of_all))
    return "".join(
        f"{which}, the next one needs three times the cycles of the first or more at {sum(it >= 3 for it in ratios)} "
        f"of {len(ratios)} test points; the median is {median(ratios):.1f} times.\n"
        for which, ratios in who
        if ratios
    )


def _small(suite: str, which: Callable[[Standings], Iterable[Standing]]) -> list[Standing]:
    """Return the standings of plain small frames and of VNFs as the plan has them."""
    found = standings(suite)
    if found is None:
        return []
    return [it for it in which(found) if _plain(it) and it.point.frame_size_bytes == SMALL]


def _plain(it: Standing) -> bool:
    return not it.point.traffic and not it.point.named and of_the_plan(it.point)


def main_table() -> str:
    """Return the throughput for the first page: each path in both directions, chains at their ends."""
    ends = (0, 1, 5)
    found = _small("conext19", lambda of: of.throughput)
    wanted = [it for it in found if it.point.direction == "bidirectional" and it.point.chain_length in ends]
    return throughput_table("conext19", wanted)


def throughput_table(suite: str, found: Sequence[Standing], with_size: bool = False) -> str:
    """Return the throughput of each switch by test point, the best ones bold, and how far the first is ahead."""
    names = labels(suite)
    rows = []
    for it in found:
        by_switch = {r.point.switch: r for r in it.results}
        best = it.names if it.state in ("open", "tester-limited") else it.names[:1]
        cells = [_bold(throughput(by_switch[n]) if n in by_switch else NOTHING, n in best) for n in names]
        rows.append([path(it), *[frames(it.point)] * with_size, *cells, _ahead(it), _answer(it)])
    head = ("path", *["frames"] * with_size, *names, "first / next", "answer")
    return table(head, rows)


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold and text != NOTHING else text


def _ahead(it: Standing) -> str:
    pair = it.pairs[0] if it.pairs else None
    return NOTHING if pair is None else times(pair)


def _answer(it: Standing) -> str:
    missing = f"; not in it: {_short(', '.join(missing_words(it)))}" if it.missing else ""
    return STATES[it.state] + missing


def cost_table(suite: str, found: Sequence[Standing], with_size: bool = False) -> str:
    """Return the cycles per packet of each switch by test point, the fewest bold, those not counted in parentheses."""
    names = labels(suite)
    rows = []
    for it in found:
        costs = _cost(suite, it)
        best = min(costs, key=lambda name: costs[name][0], default="")
        texts = {name: cycles(value) if counted else f"({cycles(value)})" for name, (value, counted) in costs.items()}
        cells = [_bold(texts.get(name, NOTHING), name == best) for name in names]
        rows.append([path(it), *[frames(it.point)] * with_size, *cells, _ahead(it), STATES[it.state]])
    return table(("path", *["frames"] * with_size, *names, "next / first", "answer"), rows)


def latency_table(suite: str, results: Iterable[Result]) -> str:
    """Return p50 / p99 of each switch by path and load."""
    names = labels(suite)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for it in results:
        label = f"{_short(it.point.scenario_label)} {ARROWS[it.point.direction]} {frames(it.point)}"
        for summary in it.latency:
            rows.setdefault((label, load_words(summary.load)), {})[it.point.switch] = _percentiles(summary)
    found = ([*key, *(cells.get(name, NOTHING) for name in names)] for key, cells in rows.items())
    return table(("path", "load", *names), found, len(names))


def _percentiles(summary: LatencySummary) -> str:
    if not summary.samples:
        return NOTHING
    words = f"{us(summary.p50)} / {us(summary.p99)}"
    return words if latency_counts(summary) else f"({words})"


def small_latency() -> str:
    """Return the latencies of the small frames of conext19."""
    found = derived("conext19")
    results = () if found is None else found.results
    return latency_table("conext19", (it for it in results if not it.point.named and of_the_plan(it.point)))


def chains_table() -> str:
    """Return throughput by the length of the chain."""
    found = [it for it in _small("conext19", lambda of: of.throughput) if it.point.chained]
    lengths = sorted({it.point.chain_length for it in found})
    by_key = {(r.point.direction, r.point.switch, r.point.chain_length): r for it in found for r in it.results}
    rows = []
    for direction, name in dict.fromkeys(key[:2] for key in by_key):
        ours = [by_key.get((direction, name, n)) for n in lengths]
        first, last = ours[0], ours[-1]
        share = _over(last, first) if first is not None and last is not None else NOTHING
        rows.append([f"{name} {ARROWS[direction]}", *(throughput(it) if it else NOTHING for it in ours), share])
    head = ("switch", *(f"{n} VNF{'s' * (n > 1)}" for n in lengths), "last / first")
    return table(head, rows, len(lengths) + 1)


def predictions_table() -> str:
    """Return the throughput of longer chains as predicted from a chain of one and v2v, beside the measured one."""
    run = derived("conext19")
    found = () if run is None else predictions(run)
    rows = [
        [
            f"{ARROWS[it.point.direction]} {frames(it.point)}",
            it.point.switch,
            f"{it.point.chain_length}",
            ("≥" if it.is_bound else "") + mpps(it.pps),
            mpps(it.measured_pps),
            NOTHING if it.error is None or it.is_bound else f"{it.error:+.0%}",
        ]
        for it in found
        if it.way == "first" and it.point.frame_size_bytes == SMALL and it.measured_pps
    ]
    return table(("traffic", "switch", "VNFs", "predicted, Mpps", "measured, Mpps", "error"), rows, 4)


def repeated() -> str:
    """Return how the figures that conext19 and netsoft19 have in common differ between both runs."""
    one, two = derived("conext19"), derived("netsoft19")
    if one is None or two is None:
        return ""
    alike = wire_of(one) is wire_of(two)
    first, second = (
        {
            replace(it.point, wire=""): it
            for it in found.results
            if counts(it) and not it.verdict.kind.is_bound and (alike or not scenario_named(it.point.scenario).wired)
        }
        for found in (one, two)
    )
    pairs = [
        (it.throughput_pps or 0) / (first[point].throughput_pps or 1) for point, it in second.items() if point in first
    ]
    if not pairs:
        return ""
    near = sum(abs(it - 1) <= 0.05 for it in pairs)
    where = "" if alike else ", all of v2v, as their wires differ"
    told = "so much does a whole run differ from the next one on this machine"
    if _pages(one) != _pages(two):
        told = f"but their pages differ, too ({_pages(one)} in conext19, {_pages(two)} in netsoft19)"
    return (
        f"The runs of conext19 and netsoft19 have {len(pairs)} throughputs in common that are no lower bounds{where}. "
        f"That of netsoft19 divided by that of conext19 is {median(pairs):.2f} in the median, {min(pairs):.2f} to "
        f"{max(pairs):.2f} at the ends, and within 5 % of 1 in {near}: {told}. "
        "Answers within a run compare switches that took turns.\n"
    )


def chain_words() -> str:
    """Return what can17's run says of chains and their functions."""
    found = derived("can17")
    if found is None:
        return "No run of can17 is kept.\n"
    claims = filter(None, (latency_claim(found.chains), throughput_claim(found.chains)))
    return "\n\n".join(claims) + "\n"


def vnfs_table() -> str:
    """Return throughput by the number of VNFs side by side, of ic16's run."""
    found = derived("ic16")
    if found is None:
        return "No run of ic16 is kept.\n"
    results = [it for it in found.results if it.point.side_by_side]
    numbers = sorted({it.point.chain_length for it in results})
    rows: dict[tuple[str, str, str], dict[int, str]] = {}
    for it in results:
        point = replace(it.point, chain_length=1)
        key = _short(point.chain_label).removeprefix("1 x "), f"{ARROWS[point.direction]} {frames(point)}", point.switch
        rows.setdefault(key, {})[it.point.chain_length] = throughput(it)
    cells = ([*key, *(found.get(n, NOTHING) for n in numbers)] for key, found in rows.items())
    return (
        table(("VNF", "traffic", "switch", *(f"{n}" for n in numbers)), cells, len(numbers))
        or "The run has no independent VNFs.\n"
    )


# 2019 and now


def shape_tables() -> str:
    """Return the published tables beside the run, as multiples of a reference, of the switches that both have."""
    run = derived("conext19")
    if run is None:
        return ""
    parts = []
    for it in shapes(RunFigures(run)):
        shared = [name for name in it.switches if any(e.ours and e.paper for e in it.entries if e.switch == name)]
        if it.own or len(shared) > 1:
            parts.append(f"**{it.paper}: {it.title}.** {it.note}\n\n{_shape(it, shared)}")
    return "\n".join(parts)


def _shape(shape: Shape, shared: Sequence[str]) -> str:
    entries = {(it.switch, it.cell): it for it in shape.entries}
    rows = []
    for cell in shape.cells:
        found = [entries.get((name, cell)) for name in shared]
        words = [
            part.words if part else NOTHING for it in found for part in ((it.paper, it.ours) if it else (None, None))
        ]
        if any(it is not None and it.paper and it.ours for it in found):
            rows.append([cell, *words])
    head = ("test point", *(f"{name}, {whose}" for name in shared for whose in ("2019", "here")))
    return table(head, rows, len(head) - 1)


@cache
def concluded() -> tuple[Conclusion, ...]:
    """Return the outcome of each claim over all kept runs, which are named as their suites."""
    return conclude({suite: RunFigures(found) for suite, found in kept().items()})


KINDS = (
    "confirmed here",
    "not confirmed here",
    "inconclusive: runs disagree",
    "inconclusive: insufficient data",
    "inconclusive: not covered by this run",
    "inconclusive: not testable on this host",
)


def claims_table() -> str:
    """Return the number of claims by paper and outcome."""
    rows = []
    for paper in (*all_papers(), ""):
        found = Counter(it.words for it in concluded() if paper in (it.claim.paper, ""))
        rows.append([paper or "all", f"{sum(found.values())}", *(f"{found[kind]}" for kind in KINDS)])
    return table(("paper", "claims", *KINDS), rows, 1 + len(KINDS))


def still_open() -> str:
    """Return why claims stay open, in a sentence."""
    words = open_words(concluded())
    return f"Inconclusive: {words}.\n" if words else ""


def differences() -> str:
    """Return the claims that the runs contradict, with their evidence."""
    found = [it for it in concluded() if it.outcome is ClaimOutcome.NOT_CONFIRMED]
    lines = (f"- {_claimed(it)}: {_cell(it.evidence.partition(' Beside it:')[0])}\n" for it in found)
    return "".join(lines) or "None.\n"


def confirmed() -> str:
    """Return the claims that the runs confirm, in a line each."""
    return "".join(f"- {_claimed(it)}\n" for it in concluded() if it.outcome is ClaimOutcome.CONFIRMED) or "None.\n"


def _claimed(it: Conclusion) -> str:
    """Return a claim and where it is from; with the switches that decide it if some of the paper's are missing."""
    there = {label.partition("#")[0] for suite in kept() for label in labels(suite)}
    present = [name for name in it.claim.switches if name in there]
    only = f"; here: {listed(present)}" if present and len(present) < len(it.claim.switches) else ""
    return f"{it.claim.sentence} ({it.claim.paper}, {it.claim.where}{only})"


def conditions() -> str:
    """Return in what the switches of a run differ besides their code."""
    found = derived("conext19")
    words = "" if found is None else conditions_remark(found)
    return f"{words}.\n" if words else ""


def paths_table() -> str:
    """Return what each path costs a switch against its own p2p, published and here; on a wire with ports of NICs."""
    found = next(
        (it for suite in ("conext19", "netsoft19") if (it := derived(suite)) and not wire_of(it).vnf_ports), None
    )
    if found is None:
        return ""
    ours = {(it.point.switch, it.point.scenario, it.point.direction): it for it in found.results if _small_plain(it)}
    theirs = {
        (it.switch, it.scenario, it.direction): it.bounds or (it.value or 0.0, it.value or 0.0)
        for it in paper_figures()
        if it.metric == "throughput" and it.frame_size_bytes == SMALL
    }
    rows = []
    for name, scenario, direction in ours:
        key, base = (name, scenario, direction), (name, "p2p", direction)
        if scenario in ("p2v", "v2v") and base in ours and key in theirs and base in theirs:
            (low, high), (whole, same) = theirs[key], theirs[base]
            if whole == same:
                paper = f"{high / whole:.2f}" if low == high else f"{low / whole:.2f} to {high / whole:.2f}"
                rows.append([name, f"{scenario} {ARROWS[direction]}", paper, _over(ours[key], ours[base])])
    return table(("switch", "path / p2p", "2019", "here"), rows, 2)


def _small_plain(it: Result) -> bool:
    point = it.point
    return point.frame_size_bytes == SMALL and not point.traffic and not point.named and counts(it)


def _over(one: Result, base: Result) -> str:
    """Return the throughput of a result over that of another; a dash if both are lower bounds."""
    limited = one.verdict.kind.is_bound, base.verdict.kind.is_bound
    if all(limited):
        return NOTHING
    sign = "≥" if limited[0] else "≤" if limited[1] else ""
    return f"{sign}{(one.throughput_pps or 0) / (base.throughput_pps or 1):.2f}"


# Drawings


@cache
def pictures(name: str) -> tuple[tuple[Path, Figure], ...]:
    """Return the file and the figure of each drawing of a part."""
    suite, kind, most = PICTURES[name]
    run = derived(suite)
    found = () if run is None else _figures(run, kind)
    return tuple((IMAGES / f"{suite}-{it.key}.svg", it) for it in found[:most])


def _figures(run: Derived, kind: FigureId) -> tuple[Figure, ...]:
    """Return the figures of a kind; of chains only those of the plan's VNFs, so that their length is the axis."""
    if kind != "chain":
        return make_figures(run, [it for it in FIGURES if it.id == kind])
    results = [it for it in run.results if it.point.chained and not it.point.named]
    return tuple(chain_length_figures(results, switch_colors(run.run.switch_labels)))


def links(name: str) -> str:
    """Return the links to the drawings of a part."""
    return "".join(f"![{it.full_title}](img/{file.name})\n" for file, it in pictures(name))


def draw() -> None:
    """Write all drawings as SVG that follow the color scheme of the reader."""
    IMAGES.mkdir(exist_ok=True)
    wanted = dict(it for name in PICTURES for it in pictures(name))
    for file in set(IMAGES.iterdir()) - wanted.keys():
        file.unlink()
    for file, figure in wanted.items():
        file.write_text(in_both_schemes(figure_svg(figure)) + "\n", encoding="utf-8")


def in_both_schemes(svg: str) -> str:
    """Return a drawing with the colors of the report's dark mode where the reader's scheme is dark."""
    css = resources.files("planebench.report").joinpath("report.css").read_text(encoding="utf-8")
    dark = dict(re.findall(r"--(\w+): (#\w+)", css.partition("prefers-color-scheme: dark")[2].partition("}")[0]))
    swaps = {"white": dark["paper"], INK: dark["ink"], MUTED: dark["muted"], GRID: dark["line"]}
    swaps |= dict(zip(SWITCH_COLORS, DARK_COLORS, strict=True))
    rules = "".join(
        f'[{name}="{light}"]{{{name}:{there}}}' for light, there in swaps.items() for name in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>"
    return re.sub(r"(<svg[^>]*>)", rf"\1{style}", svg, count=1)


PARTS: dict[str, Callable[[], str]] = {
    "machine": machine,
    "runs": runs_table,
    "switches": switches_table,
    "main": main_table,
    "leaders": leaders,
    "throughput": lambda: throughput_table("conext19", _small("conext19", lambda of: of.throughput)),
    "cost": lambda: cost_table("conext19", _small("conext19", lambda of: of.cost.values())),
    "cost-words": cost_words,
    "latency": small_latency,
    "chains": chains_table,
    "predictions": predictions_table,
    "repeated": repeated,
    "chain-words": chain_words,
    "vnfs": vnfs_table,
    "claims": claims_table,
    "open": still_open,
    "differences": differences,
    "confirmed": confirmed,
    "shape": shape_tables,
    "paths": paths_table,
    "conditions": conditions,
    **{name: partial(links, name) for name in PICTURES},
}


# Pages that are made whole

MADE = "This page is made by `scripts/record.py` from the [kept runs](README.md#the-runs); change nothing by hand."


def claims_page() -> str:
    """Return the page with every claim, its outcome, and the evidence."""
    judged = "[How a claim is judged](../papers.md#how-a-claim-is-judged)."
    lines = ["# Results: every claim of the papers", "", MADE, judged]
    for paper, about in all_papers().items():
        rows = [
            [f"**{it.words}**", f"`{it.claim.id}` ({it.claim.where}): {it.claim.sentence}", it.runs, it.evidence]
            for it in concluded()
            if it.claim.paper == paper
        ]
        lines += ["", f"## {paper}", "", about.title, "", table(("outcome", "claim", "run", "evidence"), rows).rstrip()]
    return "\n".join(lines) + "\n"


def tables_page() -> str:
    """Return the page with every test point of every run."""
    lines = ["# Results: every test point", "", MADE, "[Marks and answers](README.md#how-to-read-the-tables)."]
    return "\n".join(lines) + "\n" + "".join(map(suite_tables, kept()))


def suite_tables(suite: str) -> str:
    """Return all tables of the run of a suite, each with its heading."""
    of_run = standings(suite)
    assert of_run is not None
    made = {
        "throughput, Mpps": throughput_table(suite, of_run.throughput, with_size=True),
        "cycles per packet": cost_table(suite, list(of_run.cost.values()), with_size=True),
        "latency, p50 / p99 in µs": latency_table(suite, of_run.derived.results),
    }
    return "".join(f"\n## {suite}: {title}\n\n{text}" for title, text in made.items() if text)


def pages() -> dict[Path, str]:
    """Return the text of each page, made anew."""
    made = {page: _with_parts(page.read_text(encoding="utf-8")) for page in (ROOT / "README.md", RESULTS / "README.md")}
    return {**made, RESULTS / "claims.md": claims_page(), RESULTS / "tables.md": tables_page()}


def _with_parts(text: str) -> str:
    return _PART.sub(lambda match: f"{match[1]}{match[2]}\n{PARTS[match[1]]()}\n", text)


def measure() -> Iterator[str]:
    """Run the suites and yield the names of their runs."""
    for suite in SUITES:
        subprocess.run(
            [Path(sys.executable).parent / "planebench", "run", suite, "--name", f"record-{suite}"], check=True
        )
        yield f"record-{suite}"


def main() -> int:
    """Keep runs and write the pages, or check these. Returns the exit code."""
    given = sys.argv[1:]
    check = given == ["--check"]
    wanted = [] if check else measure() if given == ["--measure"] else given
    for name in wanted:
        keep_run(find_run(None, name))
    changed = {page: text for page, text in pages().items() if not page.exists() or text != page.read_text("utf-8")}
    for page, text in changed.items():
        print(f"{page}: {'is not what the kept runs say: run scripts/record.py' if check else 'written'}")
        if not check:
            page.write_text(text, encoding="utf-8")
    if not check:
        draw()
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
