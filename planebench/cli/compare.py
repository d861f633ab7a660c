# SPDX-License-Identifier: BSD-3-Clause
"""``planebench compare``: b against a, as ratios with intervals or as JSON, and as a gate for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

from rich.console import Console
from rich.text import Text

from planebench.analysis.compare import (
    METRICS,
    RATES,
    RUNS_VARY,
    Derived,
    NotCompared,
    runs_compared,
    switches_compared,
)
from planebench.analysis.conditions import between, check_comparable
from planebench.analysis.counting import cell_id
from planebench.analysis.gate import GateResult, judge
from planebench.analysis.metrics.column import plain
from planebench.cli.options import plain_table, print_json, tell
from planebench.model.errors import INCONCLUSIVE, UsageError, unknown
from planebench.model.results import Comparison, Metric
from planebench.model.words import METRICS as TITLES
from planebench.model.words import load_words, point_words, printable, us
from planebench.report.ci import NOTHING, judgement_words, state_of, to_junit, to_markdown
from planebench.report.comparison import result_words
from planebench.report.setup import conditions_remark
from planebench.store import find_run, read_run, runs_named
from planebench.store.writer import write_output

MAX_FAIL_BELOW = 2.0
MAX_SKIPPED = 12
"""Lines about what was not compared."""
DETECTABLE_MAX = 10.0
OLD, NEW = "old", "new"
"""What the two sides are called where they are runs, whose ids are long."""

Named = TypeVar("Named", Comparison, GateResult, NotCompared)


def compare(
    run_a: str,
    run_b: str | None,
    runs: Path | None,
    *,
    json: bool,
    quiet: bool = False,
    force: bool,
    fail_below: float | None,
    metric: str | None,
    junit: Path | None = None,
    summary: Path | None = None,
) -> int:
    """Print how b does against a: two runs, several runs and others (``a1,a2,a3``), or the switches of one run.

    Return the exit code: 0; 1 for a gate that fails, or without a gate where there was nothing to compare;
    INCONCLUSIVE for a gate that neither passes nor fails, as where there was nothing to compare. ``quiet``: only what
    is wrong is printed. ``junit`` and ``summary`` are files for CI systems, the latter appended to. UsageError for bad
    input, and for runs that differ in what must match, unless ``force``.
    """
    _check(fail_below, metric, junit)
    olds = _runs(runs, run_a)
    news = [] if run_b is None else _runs(runs, run_b)
    first = olds[0]
    for run in (it.run for it in (*olds, *news)):
        if run.finished is None or run.finished.status != "complete":
            tell(f"{run.header.run_id} has not come to its end: of its plan {len(run.trials)} trials are compared")
    if not news and len(olds) > 1:
        raise UsageError(f"{run_a}: several runs are compared with other runs: name these, too")
    if news:
        _check_alike([*olds, *news], force)
        outcome = runs_compared(olds, news)
        conditions = list(between(first.run, news[0].run))
    else:
        outcome = switches_compared(first, same_load=True)
        labels, conditions = [it.label for it in first.run.header.switches], []
        for it in (condition for condition in first.conditions if condition.state == "differs"):
            cells = (f"{label} {cell.text}" for label, cell in zip(labels, it.cells, strict=True))
            conditions.append(f"{it.title}: {', '.join(cells)}")  # burst: planed 64, testpmd 32
    shown = [c for c in outcome.comparisons if metric in (None, c.metric)]
    skipped = [s for s in outcome.skipped if metric is None or metric in s.metrics]
    baseline = None if news else next(iter(first.run.switch_labels), None)
    judged = () if fail_below is None else judge(outcome, fail_below, baseline, cast(Metric | None, metric))
    old_ids, new_ids = (", ".join(it.run.header.run_id for it in side) for side in (olds, news))
    words = {cell_id(r.point): point_words(r.point) for it in (*olds, *news) for r in it.results}
    readable = [_named(it, words, new_ids) for it in shown]
    brief = [replace(it, note=it.note.removesuffix(RUNS_VARY).rstrip("; ")) for it in readable]
    gate = [_named(it, words, new_ids) for it in judged]
    if junit is not None:
        write_output(junit, to_junit(gate))
    if summary is not None:
        title = f"planebench: {new_ids} against {old_ids}" if news else f"planebench: {old_ids}"
        notes = [*conditions, *filter(None, [outcome.not_in_intervals])]
        before = summary.read_bytes() if summary.is_file() else b""
        write_output(summary, before + to_markdown(title, readable, None if fail_below is None else gate, notes))
    if json:
        document = {"comparisons": [plain(c) for c in shown], "conditions": conditions}
        print_json(document if fail_below is None else {**document, "gate": [plain(it) for it in judged]})
    elif shown and not quiet:
        if news:
            print(f"{OLD} = {printable(old_ids)}\n{NEW} = {printable(new_ids)}")
        _print_table(brief, runs=bool(news), every_open=bool(outcome.not_in_intervals))
    if outcome.not_in_intervals and (gate or not quiet):
        tell(outcome.not_in_intervals)
    if not quiet:
        _tell_detectable(shown)
        if news:
            for text in conditions:
                tell(f"conditions differ: {text}")
        elif remark := conditions_remark(first):  # one sentence, because the report of a run shows them
            tell(remark)
        _tell_skipped([_named(it, words, new_ids) for it in skipped])
    if not shown:
        tell(
            f"nothing to compare{f' by {metric}' if metric else ''}. A run of one switch needs a second run; "
            "`planebench report` with the name of a run has the reasons of its trials"
        )
        if quiet:
            _tell_skipped([_named(it, words, new_ids) for it in skipped])
    if fail_below is None:
        return 0 if shown else 1
    said = outcome.not_in_intervals
    return _gate([replace(it, why="") if it.why == said else it for it in gate], fail_below, quiet=quiet)


def _check(fail_below: float | None, metric: str | None, junit: Path | None) -> None:
    if junit is not None and fail_below is None:
        raise UsageError("--junit says whether a gate passes: add --fail-below, e.g. 0.97")
    if metric is not None and metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    if fail_below is None:
        return
    if not 0 < fail_below <= MAX_FAIL_BELOW:
        raise UsageError(
            f"--fail-below: {fail_below:g} is not valid. Valid: above 0, at most {MAX_FAIL_BELOW:g}, e.g. 0.97"
        )
    if metric is not None and metric not in RATES:
        raise UsageError(
            f"--fail-below applies to rates only; --metric {metric} is not a rate. Use one of: {', '.join(RATES)}"
        )


def _runs(runs_dir: Path | None, names: str) -> list[Derived]:
    """Return the runs of a list of names with commas between them; print which run a name of several runs means."""
    folders = [find_run(runs_dir, name) for name in names.split(",")]
    for name, folder in zip(names.split(","), folders, strict=True):
        if (others := len(runs_named(runs_dir, name)) - 1) > 0 and name != folder.name:
            tell(f"{name} is {folder.name}, the newest of {others + 1} runs of this name; the others are found by id")
    return [Derived(read_run(folder)) for folder in folders]


def _check_alike(runs: Sequence[Derived], force: bool) -> None:
    first, *others = (it.run.header for it in runs)
    for other in others:
        for fact in check_comparable(first, other, "--force", forced=force):
            tell(f"compared because of --force, although they differ: {fact}")


def _named(it: Named, words: Mapping[str, str], new_ids: str) -> Named:
    """Return ``it`` with its test point in words; in runs the switch is part of it, and the sides are old and new."""
    label, of_runs, ids = it.a.partition("@")
    point = words.get(it.point, it.point)
    if not of_runs:
        return replace(it, point=point)
    side = NEW if not it.b and ids.replace(",", ", ") == new_ids else OLD
    return replace(it, a=side, b=NEW if it.b else "", point=f"{label} {point}")


def _print_table(comparisons: Sequence[Comparison], *, runs: bool, every_open: bool) -> None:
    """Print a line for each pair, and below it a line for each metric; with one metric, each pair in a line.

    ``every_open``: all are open for one reason, which is printed once.
    """
    single = len({(c.metric, c.load) for c in comparisons}) == 1
    title = _metric(comparisons[0]) if single else ""
    table = plain_table(f"{title} {NEW} / {OLD}".lstrip() if runs else title, header_style="bold")
    for name in ("ratio", "95 % interval"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("answer")
    before = ""
    for c in comparisons:
        pair = c.point if runs else f"{c.point}: {c.b} / {c.a}"
        if pair != before and not single:
            table.add_row(Text(printable(pair), style="bold"))
        before = pair
        told = c.answer if every_open and c.answer == "open" else result_words(c)
        answer = Text(printable(told), style="bold" if c.distinguishable else "")
        if c.note:
            answer.append(f"\n{printable(c.note)}", style="dim not bold")
        name = pair if single else f"  {_metric(c)}"
        table.add_row(Text(printable(name)), f"x {_ratio(c.ratio)}", _interval(c), answer)
    Console(markup=False, highlight=False).print(table)


def _metric(it: Comparison | NotCompared) -> str:
    load = f" at {load_words(it.load)}" if it.load else ""
    if isinstance(it, Comparison):
        return TITLES[it.metric] + load
    return f"latency{load}" if load else TITLES[it.metrics[0]]


def _interval(comparison: Comparison) -> str:
    """Return ``0.970 to 1.02``; ``from 1.30`` with an open end; empty with too few trials."""
    low, high = comparison.low, comparison.high
    if low is not None and high is not None:
        return f"{_ratio(low)} to {_ratio(high)}"
    if low is not None:
        return f"from {_ratio(low)}"
    return "" if high is None else f"to {_ratio(high)}"


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 2 else us(value)


def _tell_detectable(comparisons: Sequence[Comparison]) -> None:
    """Print, for each metric with open comparisons or equal figures, the least difference that would be found."""
    undecided = [c for c in comparisons if c.answer in ("open", "same") and None not in (c.low, c.high)]
    found = []
    for metric in dict.fromkeys(c.metric for c in undecided):
        shares = [c.detectable for c in undecided if c.metric == metric and c.detectable is not None]
        least, most = (_ratio(1 + share) for share in (min(shares, default=0.0), max(shares, default=0.0)))
        if shares and max(shares) < DETECTABLE_MAX:  # more is no difference that anybody asks for
            found.append(f"{TITLES[metric]} x {least if least == most else f'{least} to {most}'}")
    if found:
        tell(f"found with a probability of 80 % where no difference is shown: {', '.join(found)} or more")


def _tell_skipped(skipped: Sequence[NotCompared]) -> None:
    """Print a line for each reason why something was not compared, with the first that it is the reason of."""
    reasons = Counter(it.reason for it in skipped)
    for reason, number in list(reasons.items())[:MAX_SKIPPED]:
        it = next(it for it in skipped if it.reason == reason)
        what = f"{it.point}: {_metric(it)} {it.b} / {it.a}" if it.b else f"{it.point} of {it.a}"
        more = f" (and {number - 1} more)" if number > 1 else ""
        tell(f"not compared: {what}{more}: {reason}")
    if len(reasons) > MAX_SKIPPED:
        tell(f"not compared: {sum(list(reasons.values())[MAX_SKIPPED:])} more, for other reasons")


def _gate(judgements: Sequence[GateResult], limit: float, *, quiet: bool) -> int:
    """Print the result, which is the last line, and return the exit code.

    1 if a rate is shown to be below the limit; INCONCLUSIVE if not all are shown to be above it. Unless ``quiet``, a
    line for each metric has the ratio at which it fails with a probability of 80 %, and a gate that passes says so.
    """
    known = [] if quiet else [it for it in judgements if it.detectable is not None]
    for metric in dict.fromkeys(it.metric for it in known):
        least = min(it.detectable or 0.0 for it in known if it.metric == metric)
        tell(f"the gate finds x {least:.3f} or less in {TITLES[metric]} with a probability of 80 %")
    for judgement in judgements:
        if judgement.kind != "passes":
            tell(f"{judgement.kind}: {judgement_words(judgement)}")
    state, number = state_of(judgements), len(judgements)
    counts = Counter(it.kind for it in judgements)
    lowest = min((it for it in judgements if it.ratio is not None), key=lambda it: it.ratio or 0.0, default=None)
    worst = ""
    if lowest is not None:
        rate = "" if lowest.metric == "throughput" else f" {TITLES[lowest.metric]}"
        side = "" if (lowest.a, lowest.b) == (OLD, NEW) else f" {lowest.b} / {lowest.a}"
        word = "worst" if state == "fails" else "lowest"
        worst = f" ({word} {lowest.ratio:.3f}: {lowest.point}{rate}{side})"
    if state == "fails":
        open_words = f", {counts['inconclusive']} inconclusive" if counts["inconclusive"] else ""
        tell(f"gate FAILED: {counts['fails']} of {number} below {limit:g}{open_words}{worst}")
    elif state == "inconclusive":
        what = f"{counts['passes']} of {number} shown to be above {limit:g}" if number else NOTHING
        tell(f"gate inconclusive: {what}{worst}")
    elif not quiet:
        tell(f"gate passed: {number} of {number} above {limit:g}{worst}")
    return {"passes": 0, "fails": 1, "inconclusive": INCONCLUSIVE}[state]
