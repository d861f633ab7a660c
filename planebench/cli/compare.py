# SPDX-License-Identifier: BSD-3-Clause
"""``planebench compare``: b against a, in words or as JSON, and as a gate for scripts."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.table import Table
from rich.text import Text

from planebench.analysis.compare import METRICS, RATES, Comparisons, Derived, NotCompared, runs_compared
from planebench.analysis.conditions import between, differing, differing_facts
from planebench.analysis.gate import GateResult, judge
from planebench.analysis.metrics.column import plain
from planebench.cli.options import print_json
from planebench.model.errors import INCONCLUSIVE, UsageError, unknown
from planebench.model.results import Comparison, Metric
from planebench.model.words import METRICS as TITLES
from planebench.model.words import load_words, printable
from planebench.report.ci import judgement_words, state_of, to_junit, to_markdown
from planebench.report.comparison import undecided_words
from planebench.report.export import write_bytes
from planebench.report.setup import conditions_remark
from planebench.store import find_run, read_run, runs_named

MAX_FAIL_BELOW = 2.0

MAX_SKIPPED = 12
"""Lines about what was not compared."""

VERDICT_WIDTH = 19
"""Least width of the column of verdicts: longer ones are wrapped."""

DETECTABLE_MAX = 10.0
_ROOMY = 100
_OTHERS = 80
"""Columns of a terminal that the table takes beside the verdict; what it needs without folding a short point."""

_WORDS: dict[Metric, tuple[str, str]] = {
    "capacity": ("is estimated {} faster", "is estimated {} slower"),
    "cycles_per_packet": ("takes {} more cycles", "takes {} fewer cycles"),
    "latency_p50": ("is {} slower", "is {} quicker"),
    "latency_p99": ("is {} slower", "is {} quicker"),
}
"""For a ratio above and below 1; rates are faster and slower."""


@dataclass(frozen=True, slots=True)
class GateFiles:
    """Files for CI systems: JUnit XML, and a summary in Markdown that is appended to; None for none."""

    junit: Path | None = None
    summary: Path | None = None

    def check(self, *, gate: bool) -> None:
        """Raise UsageError for files that say the result of a gate where there is none."""
        if self.junit is not None and not gate:
            raise UsageError("--junit says whether a gate passes: add --fail-below, e.g. 0.97")

    def write(
        self, title: str, shown: Sequence[Comparison], judged: Sequence[GateResult], notes: Sequence[str]
    ) -> None:
        """Write the files that are wanted. Raises an error as write_bytes."""
        if self.junit is not None:
            write_bytes(self.junit, to_junit(judged))
        if self.summary is not None:
            before = self.summary.read_bytes() if self.summary.is_file() else b""
            write_bytes(self.summary, before + to_markdown(title, shown, judged, notes))


def compare(
    run_a: str,
    run_b: str | None,
    runs_dir: Path | None,
    *,
    json: bool,
    quiet: bool = False,
    force: bool,
    fail_below: float | None,
    metric: str | None,
    files: GateFiles | None = None,
) -> int:
    """Print how b does against a: two runs, several runs and others (``a1,a2,a3``), or the switches of one run.

    Return the exit code: 0; 1 for a gate that fails, or without a gate where there was nothing to compare;
    INCONCLUSIVE for a gate that neither passes nor fails, as where there was nothing to compare. ``quiet``: only what
    is wrong is printed. UsageError for bad input, and for runs that differ in what must match, unless ``force``.
    """
    _check(fail_below, metric)
    files = files or GateFiles()
    files.check(gate=fail_below is not None)
    firsts = _runs(runs_dir, run_a)
    first, seconds = firsts[0], [] if run_b is None else _runs(runs_dir, run_b)
    second = seconds[0] if seconds else None
    if second is None and len(firsts) > 1:
        raise UsageError(f"{run_a}: several runs are compared with other runs: name these, too")
    outcome = first.compared if second is None else _other_runs(firsts, seconds, force)
    shown = [c for c in outcome.comparisons if metric in (None, c.metric)]
    conditions = _conditions(first, second)
    baseline = None if run_b is not None else next(iter(first.run.switch_labels), None)
    judged = () if fail_below is None else judge(outcome, fail_below, baseline, cast(Metric | None, metric))
    names = [it.run.header.run_id for it in (second, first) if it is not None]
    title = f"planebench: {' and '.join(names)}"
    files.write(title, shown, judged, [*conditions, *filter(None, [outcome.not_in_intervals])])
    if json:
        document = {"comparisons": [plain(c) for c in shown], "conditions": conditions}
        print_json(document if fail_below is None else {**document, "gate": [plain(it) for it in judged]})
    elif shown and not quiet:
        _print_table(shown, two_runs=run_b is not None)
    skipped = [s for s in outcome.skipped if metric is None or metric in s.metrics]
    if not quiet:
        if outcome.not_in_intervals:
            _say(outcome.not_in_intervals)
        _say_detectable(shown)
        if second is None:  # one sentence, because the report of a run shows them
            conditions = list(filter(None, [conditions_remark(first)]))
        for text in conditions:
            _say(text if second is None else f"conditions differ: {text}")
        for left_out in skipped[:MAX_SKIPPED]:
            _say(f"not compared: {_left_out(left_out)}: {left_out.reason}")
        if len(skipped) > MAX_SKIPPED:
            _say(f"not compared: {len(skipped) - MAX_SKIPPED} more, for similar reasons")
    if not shown:
        _say(_nothing_words(metric, skipped if quiet else ()))
    if fail_below is None:
        return 0 if shown else 1
    return _gate(judged, fail_below, quiet=quiet)


def verdict_words(comparison: Comparison) -> str:
    """Return ``b is 8.1 % faster``, ``b takes 12 % fewer cycles``, ``no significant difference``."""
    if not comparison.distinguishable:
        return undecided_words(comparison)
    # Where one end is open, the ratio is a bound itself: only the other end is known.
    ends = comparison.low, comparison.high
    known = comparison.ratio if None not in ends else next((end for end in ends if end is not None), comparison.ratio)
    change, least = known - 1, "at least " * (None in ends)
    more, less = _WORDS.get(comparison.metric, ("is {} faster", "is {} slower"))
    return "b " + (more if change > 0 else less).format(f"{least}{abs(change) * 100:.1f} %")


def _check(fail_below: float | None, metric: str | None) -> None:
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
            _say(f"{name} is {folder.name}, the newest of {others + 1} runs of this name; the others are found by id")
    return [Derived(read_run(folder)) for folder in folders]


def _other_runs(a: Sequence[Derived], b: Sequence[Derived], force: bool) -> Comparisons:
    first, *others = (it.run.header for it in (*a, *b))
    for other in others:
        differing = differing_facts(first, other)
        if differing and not force:
            raise UsageError(
                f"{first.run_id} and {other.run_id} are not comparable: {'; '.join(differing)}. "
                "Repeat with identical settings, or override with --force"
            )
        for fact in differing:
            _say(f"compared because of --force, although they differ: {fact}")
    return runs_compared(a, b)


def _conditions(first: Derived, second: Derived | None) -> list[str]:
    """Return the conditions of a switch that differ in two runs; of one run, those that differ between its switches.

    These are texts such as ``burst: planed 64, testpmd 32``.
    """
    if second is not None:
        return list(between(first.run, second.run))
    labels = [switch.label for switch in first.run.header.switches]
    found = []
    for condition in differing(first.conditions):
        cells = zip(labels, condition.cells, strict=True)
        found.append(f"{condition.title}: {', '.join(f'{label} {cell.text}' for label, cell in cells)}")
    return found


def _print_table(comparisons: Sequence[Comparison], two_runs: bool) -> None:
    """Print the table. Two runs are named once, above it, because their ids are long.

    Its last column keeps whole words at every width, the column of points is folded first.
    """
    console = Console(markup=False, highlight=False)
    if two_runs:
        for side, name in (("a", comparisons[0].a), ("b", comparisons[0].b)):
            console.print(Text(printable(f"{side} = {name.rpartition('@')[2]}")))
        comparisons = [dataclasses.replace(c, a=c.a.rpartition("@")[0], b=c.b.rpartition("@")[0]) for c in comparisons]
    width = console.width
    gap = 2 if width >= _ROOMY else 1
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="bold")
    for column in ("point", "a", "b", "metric"):
        table.add_column(column, overflow="fold")
    for column in ("ratio", "95 % interval"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    alike = len({_wire_and_hosting(c) for c in comparisons}) == 1
    for c in comparisons:
        metric = TITLES[c.metric] + (f" at {load_words(c.load)}" if c.load else "")
        point = c.point.removesuffix(_wire_and_hosting(c)) if alike else c.point
        texts = (point, c.a, c.b, metric, f"{c.ratio:.3f}", _interval(c))
        table.add_row(*(Text(printable(text)) for text in texts), _verdict(c, max(VERDICT_WIDTH, width - _OTHERS)))
    console.print(table)


def _wire_and_hosting(comparison: Comparison) -> str:
    """Return the end of the point, which most runs have in common: ``/virtio/process``."""
    return "/" + "/".join(comparison.point.split("/")[-2:])


def _verdict(comparison: Comparison, width: int) -> Text:
    text = Text(_wrapped(verdict_words(comparison), width), style="bold" if comparison.distinguishable else "")
    if comparison.note:
        text.append("\n" + _wrapped(printable(comparison.note), width), style="dim not bold")
    return text


def _wrapped(text: str, width: int) -> str:
    """Wrap at whole words here, because rich would squeeze the column."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _interval(comparison: Comparison) -> str:
    """Return ``0.97 to 1.02``; ``from 1.30`` with an open end; empty with too few trials."""
    low, high = comparison.low, comparison.high
    if low is not None and high is not None:
        return f"{low:.3f} to {high:.3f}"
    if low is not None:
        return f"from {low:.3f}"
    return f"to {high:.3f}" if high is not None else ""


def _say_detectable(comparisons: Sequence[Comparison]) -> None:
    """Print, for each metric with open comparisons or equal figures, the least difference that would be found."""
    undecided = [c for c in comparisons if c.answer in ("open", "same") and None not in (c.low, c.high)]
    found = []
    for metric in dict.fromkeys(c.metric for c in undecided):
        shares = [c.detectable for c in undecided if c.metric == metric and c.detectable is not None]
        least, most = (f"{share * 100:.2g}" for share in (min(shares, default=0.0), max(shares, default=0.0)))
        if shares and max(shares) < DETECTABLE_MAX:  # more is no difference that anybody asks for
            found.append(f"{TITLES[metric]} {least if least == most else f'{least} to {most}'} %")
    if found:
        _say(f"differences found with a probability of 80 % where none is shown: {', '.join(found)}")


def _nothing_words(metric: str | None, skipped: Sequence[NotCompared]) -> str:
    """Return that nothing was compared, with what to do and the most frequent reason among ``skipped``."""
    reasons = Counter(it.reason for it in skipped).most_common(1)
    why = "".join(
        f": {_left_out(next(it for it in skipped if it.reason == reason))}: {reason}" for reason, _ in reasons
    )
    return (
        f"nothing to compare{f' by {metric}' if metric else ''}{why}. A run of one switch needs a second run; "
        "`planebench report` with the name of a run has the reasons of its trials"
    )


def _gate(judgements: Sequence[GateResult], fail_below: float, *, quiet: bool) -> int:
    """Return 1 if a rate is shown to be below the limit; INCONCLUSIVE if not all are shown to be above it.

    Unless ``quiet``, a line for each metric has the ratio at which it fails with a probability of 80 %, and a gate
    that passes prints a line.
    """
    known = [] if quiet else [it for it in judgements if it.detectable is not None]
    for metric in dict.fromkeys(it.metric for it in known):
        least = min(it.detectable or 0.0 for it in known if it.metric == metric)
        _say(f"the gate detects a ratio of {least:.3f} or less in {TITLES[metric]} with a probability of 80 %")
    if not judgements:
        _say(f"--fail-below {fail_below:g}: no rate was compared, so the gate is inconclusive")
        return INCONCLUSIVE
    for judgement in judgements:
        if judgement.kind != "passes":
            _say(f"{judgement.kind}: {judgement_words(judgement)}")
    state = state_of(judgements)
    if state == "passes" and not quiet:
        lowest = min(judgement.ratio or 0.0 for judgement in judgements)
        figures = f"{len(judgements)} of {len(judgements)} figures are within --fail-below {fail_below:g}"
        _say(f"the gate passes: {figures}, the lowest ratio is {lowest:.3f}")
    return {"passes": 0, "fails": 1, "inconclusive": INCONCLUSIVE}[state]


def _left_out(left_out: NotCompared) -> str:
    if not left_out.b:
        return f"{left_out.a} at {left_out.point}"
    metric = TITLES[left_out.metrics[0]] if not left_out.load else f"latency at {load_words(left_out.load)}"
    return f"{metric} of {left_out.b} and {left_out.a} at {left_out.point}"


def _say(text: str) -> None:
    """Print to standard error: standard output has the table or the JSON alone."""
    print(printable(" ".join(text.split())), file=sys.stderr)
