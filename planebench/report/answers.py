# SPDX-License-Identifier: BSD-3-Clause
"""The answers of a run in words: the standings of ``planebench.analysis.standings`` as page and terminal print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from planebench.analysis.compare import Derived
from planebench.analysis.standings import AnswerState, Standing, Standings
from planebench.model.grouped import grouped
from planebench.model.records import VerdictKind
from planebench.model.results import Comparison, Metric, Result
from planebench.model.wire import wire_name
from planebench.model.words import listed, point_words, several, us
from planebench.report.setup import switch_cores

STATES: Mapping[AnswerState, str] = {
    "different": "different",
    "same": "the same",
    "open": "open",
    "untested": "not tested",
    "tester-limited": "tester-limited",
    "alone": "only one switch",
    "none": "no result",
}
"""The states in words, as the page and the terminal print them."""

FEW_NAMES, MOST_NAMES = 3, 10
"""Test points that a sentence names, and switches that a title names; of more, the number is given."""


def missing_words(standing: Standing) -> tuple[str, ...]:
    """Return the switches without a figure, each with the reason."""
    return tuple(f"{r.point.switch} ({_why_missing(r, standing.metric)})" for r in standing.missing)


def _why_missing(result: Result, metric: Metric) -> str:
    if metric == "latency_p99":
        return "no latency of a carried load"
    if result.throughput_pps is None:
        if result.verdict.kind is VerdictKind.FUNCTIONAL:
            return "functional trials only: they have packet counts, no rates"
        return f"no trial counts: {result.verdict.kind.value}"
    if metric == "cycles_per_packet" and result.switch_cycles_per_packet is None:
        return "no cycle counter"
    return "not saturated: its cycles are what it had time for"


def winner_sentence(standings: Standings) -> str:
    """Return who has the highest throughput and who is next, where and by how much; empty with one switch."""
    return leaders_sentence(standings.compared, "Fastest", "be the fastest")


def leaders_sentence(standings: Iterable[Standing], title: str, best: str) -> str:
    """Return who is first by a metric and who is next, where and by how much; empty where nobody is compared.

    The factors are those that comparisons found, of a lower bound the least one. ``best``: what no switch is shown to
    be or have, where none is first.
    """
    found = [it for it in standings if len(it.results) + len(it.missing) > 1]
    if not found:
        return ""
    leaders = grouped((it.results[0].point.switch, it) for it in found if it.state == "different")
    states = [it.state for it in found if it.state != "different"]
    undecided = listed([f"{words} at {states.count(state)}" for state, words in STATES.items() if state in states])
    of = f"of {several(len(found), 'test point')}"
    if not leaders:
        return f"No switch is shown to {best}: {undecided} {of}."
    first = [
        f"{label} at {len(won)} {of} ({_factors([it.lead for it in won])} × the next)" for label, won in leaders.items()
    ]
    decided = (it for won in leaders.values() for it in won if it.second_lead is not None)
    behind = grouped((it.results[1].point.switch, it) for it in decided)
    second = []
    for label, shown in behind.items():  # a few test points are named, where there are others
        few = len(shown) <= FEW_NAMES and len(shown) < len(found)
        where = listed([point_words(it.point) for it in shown]) if few else str(len(shown))
        second.append(f"{label} at {where} ({_factors([it.second_lead for it in shown])} × the one after it)")
    parts = (f"{title}: {listed(first)}", undecided, f"second: {listed(second)}" if second else "")
    return f"{'; '.join(filter(None, parts))}."


def _factors(pairs: Sequence[Comparison | None]) -> str:
    """Return the factors of some comparisons, from the smallest to the largest; of a lower bound its lower end."""
    known = [pair for pair in pairs if pair is not None]
    bounds = [pair.low for pair in known if pair.high is None and pair.low is not None]
    factors = sorted([*bounds, *(pair.ratio for pair in known if pair.high is not None or pair.low is None)])
    ends = dict.fromkeys(us(factor) for factor in (factors[0], factors[-1]))
    return f"{'at least ' if bounds else ''}{' to '.join(ends)}"


def in_order(standings: Standings) -> list[str]:
    """Return the labels of the switches, those first that are in front at most test points."""
    labels = standings.derived.run.switch_labels
    places = dict.fromkeys(labels, 0)
    for it in standings.throughput:
        found = [r.point.switch for r in it.results]
        for label in labels:
            places[label] += found.index(label) if label in found else len(labels)
    return sorted(labels, key=lambda label: places[label])


def title_words(derived: Derived) -> str:
    """Return what was measured: ``planed and testpmd in p2p, v2v and loopback-1 to 5``."""
    chains = grouped(dict.fromkeys((it.point.scenario, it.point.scenario_label) for it in derived.results))
    paths: list[str] = []
    for labels in chains.values():
        paths += labels if len(labels) < 3 else [f"{labels[0]} to {labels[-1].rpartition('-')[2]}"]
    switches = derived.run.switch_labels
    shown = switches if len(switches) <= MOST_NAMES else (*switches[:MOST_NAMES], f"{len(switches) - MOST_NAMES} more")
    return f"{listed(shown) or 'No switch'}{f' in {listed(paths)}' if paths else ''}"


def title_facts(derived: Derived) -> tuple[str, ...]:
    """Return what was measured, when and on what, for the line below the title."""
    header = derived.run.header
    host, labels = header.host, derived.run.switch_labels
    cores = dict.fromkeys(switch_cores(derived.run, label) for label in labels)
    facts = (
        header.name,
        header.started_at.partition("T")[0],
        str(host.get("cpu_model") or host.get("hostname") or "unknown host"),
        f"{host['cores_allowed']} CPUs" if host.get("cores_allowed") else "",
        f"switch on {header.switch_host.host.get('cpu_model') or 'another host'}" if header.switch_host else "",
        str(header.settings.get("wire") or ""),
        f"{listed([str(n) for n in cores])} core{'s' * (list(cores) != [1])} per switch" if cores else "",
        f"{sum(t.role != 'warmup' for t in derived.run.trials)} trials",
        header.run_id,
    )
    return tuple(filter(None, facts))


def limits_words(derived: Derived) -> str:
    """Return in one line what the answers hold for."""
    header = derived.run.header
    name, wire = wire_name(str(header.settings.get("wire") or "")), header.wire
    replaced = wire.title.partition(" ")[0] if wire is not None and wire.replaces_nics else name * (wire is None)
    ports = f" {replaced} ports replace NICs." if replaced else ""
    return f"The answers hold for this host and for these versions and settings only.{ports}"
