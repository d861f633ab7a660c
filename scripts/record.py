# SPDX-License-Identifier: BSD-3-Clause
"""Make docs/results from runs of the papers' suites: record.py [RUN ... | --measure | --check].

A run replaces the kept one of its suite and seed, in docs/results/runs. --measure first runs each suite twice, in two
orders; what a former call has measured stays. Page, data files and drawings are made from what is kept, so that without
a run they are made anew. --check changes nothing; exit code 1 if a page or a data file would change.

In README.md and docs/results/README.md, a part is between ``<!-- made NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from record_data import concluded, files
from record_drawings import draw
from record_kept import (
    AGAIN,
    ENDS,
    MAIN,
    PATHS,
    RESULTS,
    ROOT,
    ROUTER,
    SEEDS,
    SMALL,
    SUITES,
    chosen,
    costs,
    keep_run,
    kept,
    near,
    path,
    run_of,
    small,
    standings,
)

from planebench.analysis.counting import latency_compares, same_cell, saturating
from planebench.analysis.node_capacity import predictions
from planebench.analysis.standings import Standing
from planebench.model.results import Comparison, LatencySummary
from planebench.model.scenario import scenario_named
from planebench.model.text import parse_yaml, seconds_since_epoch
from planebench.model.time_had import is_disturbed
from planebench.model.words import (
    NOTHING,
    cycles,
    listed,
    load_words,
    percent,
    printable,
    throughput,
    us,
)
from planebench.papers.claims import all_claims
from planebench.papers.judge import Conclusion
from planebench.papers.told import ClaimOutcome
from planebench.report.answers import STATES, missing_words
from planebench.report.setup import conditions_remark
from planebench.store import default_runs_dir, find_run, list_runs
from planebench.store.folder import is_complete

DATA = RESULTS / "data"
FINDINGS = RESULTS / "findings.yaml"
MAX_BYTES = 10_000_000
"""The largest size of all kept runs together."""
_PART = re.compile(r"(?<=<!-- made )([a-z-]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

Line = Sequence[str]


# Tables as Markdown


def table(head: Line, rows: Iterable[Line], numbers: int = 0) -> str:
    """Return a Markdown table, its last ``numbers`` columns aligned to the right."""
    found = [[" ".join(printable(it).replace("|", "\\|").replace("<", "&lt;").split()) for it in row] for row in rows]
    ruler = ["---"] * (len(head) - numbers) + ["--:"] * numbers
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ruler, *found))


# The setup


def setup() -> str:
    """Return what the machine is, and what differs between the suites."""
    rows = [_setup_row(name) for name in kept()]
    head = ("suite", "date", "minutes", "clock, MHz", "in place of NICs", "pages", "switches", "test points", "trials")
    host = run_of(MAIN).run.header.host
    trials = [t for it in kept().values() for t in saturating(it.run.trials).trials]
    disturbed, bands = sum(map(is_disturbed, trials)), Counter(t.band or "both" for t in trials)
    return (
        f"A virtual machine ({host['hypervisor']}) with {host['cores_allowed']} CPUs ({host['cpu_model']}), "
        f"{host['memory_total_bytes'] / 2**30:.0f} GiB, Linux {str(host['kernel']).partition('-')[0]}. The switch has "
        "one CPU, with VNFs side by side; the tester shares the other with those of chains. Ratios within a row hold; "
        "rates of two rows are not "
        f"compared. Other work took more than 2 % of the CPU time in {percent(disturbed / len(trials))} of "
        f"{len(trials)} saturating trials; rates are per time that was left. Switch and tester had near CPUs in "
        f"{percent(bands['near'] / len(trials))} of them, far ones in {percent(bands['far'] / len(trials))}. "
        f"{len(rows) - len(SUITES)} of {len(SUITES)} suites were measured a second time.\n\n"
        f"{table(head, rows)}\n{versions()}"
    )


def _setup_row(name: str) -> Line:
    run = run_of(name).run
    header, end = run.header, run.finished
    assert header.wire is not None and end is not None
    took_s = seconds_since_epoch(end.finished_at) - seconds_since_epoch(header.started_at)
    return [
        name,
        header.started_at.partition("T")[0],
        f"{took_s / 60:.0f}",
        f"{header.host.get('cpu_mhz')}",
        header.wire.name,
        "2 MiB" if header.settings["hugepages"] else "4 KiB",
        f"{len(run.switch_labels)}",
        f"{len(standings(name).throughput)}",
        f"{sum(t.role != 'warmup' for t in run.trials)}",
    ]


def versions() -> str:
    """Return the version of each switch, and in what their conditions differ."""
    found: dict[str, dict[str, None]] = {}
    for run in kept().values():
        for label in run.run.switch_labels:
            found.setdefault(label, {})[run.run.version_of(label)] = None
    names = "; ".join(f"{name} {' and '.join(versions)}" for name, versions in found.items())
    return f"Versions: {names}. {conditions_remark(run_of(MAIN))}.\n"


# Throughput and CPU cost


def main_table() -> str:
    """Return the throughput for README.md: single hops, and the shortest and the longest chain."""
    return throughput_table(MAIN, chosen(MAIN, *ENDS))


def times(pair: Comparison) -> str:
    """Return the advantage of the first as a factor, or the least that it is where its upper end is open."""
    if pair.high is None and pair.low is not None:
        return f"at least {pair.low:.2f} ×"
    return f"{'est. ' * (pair.metric == 'capacity')}{pair.ratio:.2f} ×"


def throughput_table(name: str, found: Sequence[Standing]) -> str:
    """Return the throughput of each switch by test point, the best ones bold, and how far the first is ahead."""
    labels = run_of(name).run.switch_labels
    rows = []
    for it in found:
        by_switch = {r.point.switch: r for r in it.results}
        level = it.level if it.state in ("open", "tester-limited") else ()
        best = [it.results[0].point.switch, *(r.point.switch for r, _ in level)] if it.results else []
        cells = [_bold(throughput(by_switch[n]) if n in by_switch else NOTHING, n in best) for n in labels]
        missing = f"; not in it: {', '.join(missing_words(it))}" if it.missing else ""
        ahead = times(it.pairs[0]) if it.pairs and it.pairs[0] is not None else NOTHING
        rows.append([path(it.point), *cells, ahead, STATES[it.state] + missing])
    return table(("path", *labels, "first / next", "answer"), rows)


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold and text != NOTHING else text


def ports_table() -> str:
    """Return the single hops on a wire on which the ports of NICs are others than those of VNFs."""
    return throughput_table("netsoft19", chosen("netsoft19", "p2p →", "p2v →", "v2v →"))


def throughput_tables() -> str:
    """Return the throughput of single hops and of chains, and of single hops where ports differ."""
    words = "On wire memif, where the ports of NICs are others than those of VNFs (netsoft19):"
    return f"{throughput_table(MAIN, chosen(MAIN, *PATHS))}\n{words}\n\n{ports_table()}"


def cost_table() -> str:
    """Return the cycles per packet of each switch, the fewest bold, those not counted in parentheses."""
    labels, rows = run_of(MAIN).run.switch_labels, []
    for it in chosen(MAIN, *ENDS):
        found = costs(MAIN, it.point)
        best = min(found, key=lambda switch: found[switch][0], default="")
        texts = {name: cycles(value) if counted else f"({cycles(value)})" for name, (value, counted) in found.items()}
        cells = [_bold(texts.get(name, NOTHING), name == best) for name in labels]
        rows.append([path(it.point), *cells])
    return table(("path", *labels), rows)


# Latency, chains, many VNFs


def latency_table() -> str:
    """Return p50 / p99 of each switch by path and load."""
    labels, rows = run_of(MAIN).run.switch_labels, {}
    for it in chosen(MAIN, "p2p →", "loopback-1 →", "loopback-4 →", line=True):
        for result in same_cell(run_of(MAIN).results)[it.point]:
            for summary in result.latency:
                key = path(it.point), load_words(summary.load)
                rows.setdefault(key, {})[result.point.switch] = _percentiles(summary)
    found = ([*key, *(cells.get(name, NOTHING) for name in labels)] for key, cells in rows.items())
    return table(("path", "load", *labels), found, len(labels))


def _percentiles(summary: LatencySummary) -> str:
    if not summary.samples:
        return NOTHING
    words = f"{us(summary.p50)}/{us(summary.p99)}".replace(" ", "")
    return words if latency_compares(summary) else f"({words})"


def chains_table() -> str:
    """Return what five VNFs leave of the throughput of one, and how far predictions from one VNF are off."""
    labels = run_of(MAIN).run.switch_labels
    rates = {(r.point.switch, it.point.chain_length): r for it in chosen(MAIN, *ENDS) for r in it.results}
    errors = {
        (it.point.switch, it.point.chain_length): NOTHING if it.is_bound else f"{it.error:+.0%}"
        for it in predictions(run_of(MAIN))
        if small(it.point) and it.point.direction == "unidirectional"
    }

    def left(name: str) -> str:
        one, five = rates.get((name, 1)), rates.get((name, 5))
        if one is None or five is None or one.verdict.kind.is_bound or five.verdict.kind.is_bound:
            return NOTHING
        return f"{(five.throughput_pps or 0) / (one.throughput_pps or 1):.2f}"

    rows = [["5 VNFs / 1 VNF", *map(left, labels)]]
    rows += [[f"prediction, {n} VNFs", *(errors.get((name, n), NOTHING) for name in labels)] for n in range(2, 6)]
    return table(("", *labels), rows, len(labels))


def vnfs_table() -> str:
    """Return throughput by the number of independent VNFs, and of one process that has the work of all."""
    results = [
        it
        for it in run_of("ic16").results
        if it.point.side_by_side and it.point.frame_size_bytes == SMALL and it.point.traffic in ("", "fib-1M")
    ]
    kinds = {"l2fwd": "L2", ROUTER: "L3, a million routes"}
    numbers = sorted({it.point.chain_length for it in results})
    rows: dict[tuple[str, str, str], dict[int, str]] = {}
    for it in results:
        if it.point.chain_text in kinds:
            where = "in one process" if scenario_named(it.point.scenario).bare else "VNFs"
            key = kinds[it.point.chain_text], where, it.point.switch
            rows.setdefault(key, {})[it.point.chain_length] = throughput(near("ic16", it))
    cells = ([*key, *(found.get(n, NOTHING) for n in numbers)] for key, found in sorted(rows.items()))
    return table(("VNF", "where", "switch", *map(str, numbers)), cells, len(numbers))


# The papers


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a paper, the claims that test it, and why it came out so, by outcome."""

    finding: str
    paper: str
    claims: tuple[str, ...]
    why: Mapping[str, str]

    @property
    def outcome(self) -> str:
        """Return what the outcomes of its claims come to."""
        found = [it for it in concluded() if it.claim.id in self.claims]
        outcomes = {it.outcome for it in found}
        if outcomes >= {ClaimOutcome.CONFIRMED, ClaimOutcome.NOT_CONFIRMED}:
            return "in part"
        if ClaimOutcome.CONFIRMED in outcomes:
            return "agrees"
        if ClaimOutcome.NOT_CONFIRMED in outcomes:
            return "differs"
        if ClaimOutcome.OTHER_CONDITIONS in outcomes:
            return "other conditions"
        return "cannot be tested" if all(map(_cannot_be_tested, found)) else "open"


def _decided(it: Conclusion) -> str:
    return it.outcome.value if it.outcome is not ClaimOutcome.CANNOT_BE_TESTED else it.why


def _cannot_be_tested(it: Conclusion) -> bool:
    return it.why in ("not testable on this host", "not covered by this run")


def findings() -> list[Finding]:
    """Return all findings. Exits where a claim belongs to none or to two, or an outcome has no reason."""
    found = [Finding(**it) for it in parse_yaml(FINDINGS.read_text(encoding="utf-8"), str(FINDINGS))]
    named, there = Counter(name for it in found for name in it.claims), {claim.id for claim in all_claims()}
    if wrong := {name for name in there | named.keys() if named[name] != 1 or name not in there}:
        sys.exit(f"{FINDINGS.name}: every claim belongs to one finding; not so: {', '.join(sorted(wrong))}")
    if unexplained := [f"{it.finding}: {it.outcome}" for it in found if it.outcome not in it.why]:
        sys.exit(f"{FINDINGS.name}: say why: {'; '.join(unexplained)}")
    return found


def findings_table(tested: bool) -> str:
    """Return the findings that can be tested, each with its outcome and why; or those that cannot."""
    found = [it for it in findings() if (it.outcome != "cannot be tested") is tested]
    outcome = [[f"**{it.outcome}**"] if tested else [] for it in found]
    rows = ([it.finding, it.paper, *words, it.why[it.outcome]] for it, words in zip(found, outcome, strict=True))
    return table(("finding", "paper", *["here"] * tested, "why"), rows)


def tested_findings() -> str:
    """Return the number of claims by outcome, and the findings that can be tested."""
    return f"{claims_words()}\n{findings_table(tested=True)}"


def claims_words() -> str:
    """Return the number of claims by outcome."""
    found = Counter("cannot be tested" if _cannot_be_tested(it) else _decided(it) for it in concluded())
    return f"{len(concluded())} claims: {listed([f'{number} {words}' for words, number in found.most_common()])}.\n"


# The pages

PARTS: Mapping[str, Callable[[], str]] = {
    "main": main_table,
    "setup": setup,
    "throughput": throughput_tables,
    "cost": cost_table,
    "latency": latency_table,
    "chains": chains_table,
    "vnfs": vnfs_table,
    "findings": tested_findings,
    "untested": lambda: findings_table(tested=False),
}


def made() -> dict[Path, str]:
    """Return the text of each page and data file, made anew."""
    pages = (ROOT / "README.md", RESULTS / "README.md")
    found = {page: _PART.sub(_with_part, page.read_text(encoding="utf-8")) for page in pages}
    return found | {DATA / name: text for name, text in files().items()}


def _with_part(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{PARTS[match[1]]()}"


def measure() -> Iterator[str]:
    """Run each suite twice, but for what is there already; yield the names of the runs."""
    program = Path(sys.executable).parent / "planebench"
    suites = json.loads(subprocess.check_output([program, "list", "suites", "--json"]))["suites"]
    print("each suite twice:", ", ".join(f"{it['suite']} {it['takes']}" for it in suites if it["suite"] in SUITES))
    for name, seed in SEEDS.items():
        run = f"record-{name}"
        command = [program, "run", name.removesuffix(AGAIN), "--seed", str(seed), "--name", run]
        there = next((it for it in reversed(list_runs(default_runs_dir())) if it.header.name == run), None)
        if there is None:
            subprocess.run(command, check=True)
        elif not is_complete(there):
            subprocess.run([*command, "--resume"], check=True)
        yield run


def main() -> int:
    """Keep runs and write the pages, or check these. Returns the exit code."""
    given = sys.argv[1:]
    check = given == ["--check"]
    wanted = [] if check else measure() if given == ["--measure"] else given
    for name in wanted:
        keep_run(find_run(None, name))
    changed = {page: text for page, text in made().items() if not page.exists() or text != page.read_text("utf-8")}
    for page, text in changed.items():
        print(f"{page}: {'is not what the kept runs say: run scripts/record.py' if check else 'written'}")
        if not check:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, encoding="utf-8")
    if not check:
        draw()
    return int(check and bool(changed))


if __name__ == "__main__":
    sys.exit(main())
