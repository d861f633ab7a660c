# SPDX-License-Identifier: BSD-3-Clause
"""The answers claim what the comparisons have shown, in words: a case for each thing that they may not claim."""

import dataclasses
from html.parser import HTMLParser
from typing import Any

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial, table_text

from planebench.analysis.compare import Derived
from planebench.analysis.counting import cell_id
from planebench.analysis.standings import Standing, Standings, by_pair, versus
from planebench.model.header import Run
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import (
    DirectionCounts,
    Evidence,
    SwitchCycles,
    ThreadEvidence,
    Trial,
    Verdict,
    VerdictKind,
)
from planebench.model.results import Comparison
from planebench.report.answers import leaders_sentence, missing_words, winner_sentence
from planebench.report.comparison import result_words
from planebench.report.figures import make_figures
from planebench.report.html import to_html
from planebench.report.terminal.screen import lead_words, rate_words
from planebench.report.trust import trust

RATES = {"planed": 18.0, "testpmd": 10.0, "vpp": 9.0}


def _derived(*comparisons: Comparison, rates: dict[str, float] = RATES, **verdicts: str) -> Derived:
    """Return a run with one point and switches of these rates, which compare as given."""
    trials = [
        make_trial(i, make_point(switch), rate, verdicts.get(switch, "valid"), switch=_cycles(switch))
        for i, (switch, rate) in enumerate(rates.items())
    ]
    return _of(trials, *comparisons, switches=tuple(rates))


def _of(trials: list[Trial], *comparisons: Comparison, switches: tuple[str, ...]) -> Derived:
    indexed = tuple(dataclasses.replace(trial, index=i) for i, trial in enumerate(trials))
    derived = Derived(Run(make_header(switches), indexed))
    derived.comparisons = comparisons
    return derived


def _cycles(switch: str) -> SwitchCycles:
    return SwitchCycles() if switch == "vpp" else SwitchCycles(900_000_000, 1000, 9_000_000, {})


def _pair(a: str, b: str, ratio: float, answer: str, **changes: Any) -> Comparison:
    made = Comparison(
        a,
        b,
        cell_id(make_point()),
        "throughput",
        ratio,
        ratio * 0.95,
        ratio * 1.05,
        answer,
        3,
        3,  # type: ignore[arg-type]
    )
    return dataclasses.replace(made, **{"starts_a": 3, "starts_b": 3, **changes})


def _names(found: Standing) -> tuple[str, ...]:
    """The first, and those that may be as good."""
    level = (r for r, c in found.level if r in found.hidden or (c is not None and c.answer in ("same", "open")))
    return tuple(r.point.switch for r in (*found.results[:1], *level))


def _standing(derived: Derived) -> Standing:
    (standing,) = Standings(derived).throughput
    return standing


def _lead(derived: Derived) -> str:
    return lead_words(_standing(derived).pairs[0])


def test_a_lead_over_all_has_ratio_and_interval() -> None:
    derived = _derived(_pair("testpmd", "planed", 1.8, "different"), _pair("planed", "vpp", 0.5, "different"))
    found = _standing(derived)
    assert (_names(found), found.state, rate_words(found.results[0])) == (("planed",), "different", "18.0")
    assert _lead(derived) == "1.80±5%"


def test_the_order_of_the_header_does_not_matter() -> None:
    one, other = _pair("testpmd", "planed", 1.8, "different"), _pair("planed", "testpmd", 1 / 1.8, "different")
    cell = make_point("")
    found = [versus(by_pair((c,)), cell, "throughput", "planed", "testpmd") for c in (one, other)]
    assert [c and round(c.ratio, 6) for c in found] == [1.8, 1.8]
    assert versus(by_pair((one,)), cell, "ndr", "planed", "testpmd") is None


@pytest.mark.parametrize(
    ("pair", "state", "best", "lead", "words"),
    [
        ({"answer": "same"}, "same", ("planed", "testpmd"), "=1.80±5%", "the same within 5 %"),
        (
            {"answer": "open", "more_starts": 4, "more_minutes": 1.8},
            "open",
            ("planed", "testpmd"),
            "?1.80±5%",
            "open: 4 more starts of each, about 2 min, would decide it",
        ),
        ({"answer": "open"}, "open", ("planed", "testpmd"), "?1.80±5%", "open: more starts may not decide it"),
        (
            {"answer": "untested", "starts_a": 1, "starts_b": 1, "low": None, "high": None},
            "untested",
            ("planed",),
            "?1.80",
            "not tested: one start each",
        ),
    ],
)
def test_no_lead_without_a_test(pair: dict[str, Any], state: str, best: tuple[str, ...], lead: str, words: str) -> None:
    compared = dataclasses.replace(_pair("testpmd", "planed", 1.8, "open"), **pair)
    derived = _derived(compared, rates={"planed": 18.0, "testpmd": 10.0})
    found = _standing(derived)
    assert (found.state, _names(found), _lead(derived)) == (state, best, lead)
    assert result_words(compared) == words
    page = to_html(derived).decode()
    assert words in page and "Fastest:" not in page


def test_an_overlap_of_trials_decides_nothing() -> None:
    """D1: rates that do not overlap are no lead where no comparison was made."""
    derived = _derived()
    assert (_standing(derived).state, _lead(derived)) == ("untested", "–")
    assert winner_sentence(Standings(derived)) == (
        "No switch is shown to be the fastest: not tested at 1 of 1 test point."
    )


def test_a_lead_over_some_is_not_a_lead_over_all() -> None:
    found = _standing(_derived(_pair("testpmd", "planed", 1.8, "same"), _pair("vpp", "planed", 2.0, "different")))
    assert (found.state, _names(found)) == ("same", ("planed", "testpmd"))


def test_a_lower_bound_behind_may_be_faster() -> None:
    found = _standing(_derived(_pair("testpmd", "planed", 1.8, "open", low=None), testpmd="tester-limited"))
    assert (found.state, _names(found)) == ("tester-limited", ("planed", "testpmd"))
    assert rate_words(found.results[1]) == "≥10.0"


def test_where_the_tester_hides_the_first_the_capacities_estimated_decide() -> None:
    estimate = dataclasses.replace(_pair("testpmd", "planed", 1.6, "different"), metric="capacity")
    rates = {"planed": 18.0, "testpmd": 10.0}
    hidden = _pair("testpmd", "planed", 1.8, "open", low=None)
    derived = _derived(hidden, estimate, rates=rates, planed="tester-limited", testpmd="tester-limited")
    assert (_standing(derived).state, _lead(derived)) == ("different", "≈1.60±5%")


def test_a_lower_bound_in_front_leads_by_at_least() -> None:
    pair = _pair("testpmd", "planed", 1.8, "different", high=None)
    derived = _derived(pair, rates={"planed": 18.0, "testpmd": 10.0}, planed="tester-limited")
    assert (_standing(derived).state, _lead(derived)) == ("different", "≥1.71")


def test_one_switch_and_none_are_said() -> None:
    found = _standing(_derived(rates={"planed": 18.0, "testpmd": 10.0}, testpmd="invalid"))
    assert (found.state, missing_words(found)) == ("alone", ("testpmd (no trial counts: invalid)",))
    none = _standing(_derived(rates={"planed": 18.0}, planed="invalid"))
    assert (none.state, _names(none)) == ("none", ())


def test_switches_without_cycles_are_not_in_a_ranking_by_cycles() -> None:
    """D8: they are named as not compared, never as level or behind."""
    (standing,) = Standings(_derived()).cost.values()
    assert {r.point.switch for r in standing.results} == {"planed", "testpmd"}
    assert missing_words(standing) == ("vpp (no cycle counter)",)


def test_the_first_in_a_metric_is_named_only_where_it_was_shown() -> None:
    pair, rates = _pair("testpmd", "planed", 1.8, "different"), {"planed": 18.0, "testpmd": 10.0}
    for compared, words in (
        ((pair,), "Lowest: planed at 1 of 1 test point (1.80 × the next)."),
        ((), "No switch is shown to be lowest: not tested at 1 of 1 test point."),
    ):
        assert leaders_sentence(Standings(_derived(*compared, rates=rates)).throughput, "Lowest", "be lowest") == words
    assert leaders_sentence((), "Lowest", "be lowest") == ""


def test_a_latency_has_p50_p99_and_p99_9_and_a_mean_only_beside_them() -> None:
    samples = ((1000, 900), (2000, 99), (900_000, 2))
    trials = [make_trial(0), make_latency_trial(0, make_point(), "0.50", 9e6, samples)]
    derived = _of(trials, switches=("planed",))
    page, text = to_html(derived).decode(), table_text(derived)
    for words in ("p50", "p99", "p99.9", "50 % of R+"):
        assert words in page and words in text


def test_what_is_decided_is_the_title_and_what_would_help_the_advice() -> None:
    good = trust(Standings(_derived(_pair("testpmd", "planed", 1.8, "different"), _pair("vpp", "planed", 2.0, "same"))))
    assert (good.level, good.title, good.advice) == ("high", "1 of 1 test points is decided at 95 %", ())
    open_ = _pair("testpmd", "planed", 1.8, "open", more_starts=4, more_minutes=1.2)
    found = trust(Standings(_derived(open_, _pair("vpp", "planed", 2.0, "different"))))
    assert (found.level, found.title) == ("low", "0 of 1 test points are decided at 95 %")
    assert found.advice == ("Up to 4 more starts would decide 1 open test point.",)
    beside = _pair("vpp", "planed", 1.2, "open")  # no number of starts decides it
    assert trust(Standings(_derived(open_, beside))).advice == ()


def _waiting(waits_ms: dict[str, int], **changes: Any) -> Derived:
    """Return eight blocks, in each of which the switches waited for their CPU."""
    trials = [
        make_trial(
            0,
            make_point(label),
            start=i,
            repetition=i,
            evidence=Evidence((ThreadEvidence("switch", "w", 1, (1000 - ms) * 1_000_000, (ms + i) * 1_000_000, 9),)),
            **changes,
        )
        for i in range(8)
        for label, ms in waits_ms.items()
    ]
    return _of(trials, switches=tuple(waits_ms))


def test_what_the_host_took_is_said_and_which_switch_it_takes_more_from() -> None:
    assert trust(Standings(_waiting({"a": 0, "b": 0}))).facts == ()
    assert trust(Standings(_waiting({"a": 100, "b": 100}))).facts == (
        "The host kept pollers from their CPUs in 16 of 16 saturating trials, 10 % of the time in all: "
        "rates are per time that they had.",
    )
    assert trust(Standings(_waiting({"a": 0, "b": 100}))).facts[1:] == (
        "b lost more of its time to others than the other switches in the same blocks (10 % and 0.3 %): "
        "its intervals contain its rates as counted, too.",
    )


def test_a_sampled_check_is_said() -> None:
    ways = (DirectionCounts("n0->n1", 900, 900, 800, unchecked_packets=600),)
    (words,) = trust(Standings(_waiting({"a": 0, "b": 0}, directions=ways))).facts
    assert words.startswith("Trials without probes were checked by samples (--check sampled), 25 % of their frames: in")


def test_beside_other_programs_the_first_advice_is_not_to_measure_more() -> None:
    waiting = _waiting({"a": 500, "b": 500})
    waiting.comparisons = (_pair("a", "b", 1.1, "open", more_starts=40),)
    first, second = trust(Standings(waiting)).advice
    assert first.startswith("Run planebench doctor") and second.startswith("Up to 40 more starts")


def test_near_and_far_trials_and_those_that_did_not_take_place_are_said() -> None:
    bands = [make_trial(0, band=band) for band in ("near", "near", "far")]
    dead = make_trial(0, verdict="invalid", reasons=("planed died",))
    assert trust(Standings(_of([*bands, dead], switches=("planed",)))).facts == (
        "The cores of switch and tester were near in 2 and far in 1 trials; "
        "switches are compared where both had the same.",
        "1 trial did not take place: planed died.",
    )


def test_untested_and_same_are_never_one_phrase() -> None:
    """D2: a reader must not take what was not tested for equal."""
    untested = _pair("a", "b", 5.8, "untested", low=None, high=None, starts_a=1, starts_b=5)
    assert result_words(untested) == "not tested: only one start of a"
    assert result_words(_pair("a", "b", 1.0, "same")) == "the same within 5 %"
    assert result_words(_pair("a", "b", 1.1, "open", more_starts=1)) == "open: 1 more start of each would decide it"


def test_the_terminal_ends_with_the_last_screen() -> None:
    derived = _derived(_pair("testpmd", "planed", 1.8, "different"), _pair("vpp", "planed", 2.0, "different"))
    text = table_text(derived, 100)
    order = ("hold for this host", "1 of 1 test points is decided at 95 %", "best / next", "Fastest: planed")
    places = [text.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("code", "remedy"), [(ReasonCode.STEAL, "pin the virtual CPUs"), (ReasonCode.CPU_WAIT, "isolate the CPUs")]
)
def test_where_the_host_disturbs_and_an_answer_is_missing_there_is_a_remedy(code: ReasonCode, remedy: str) -> None:
    remark = Verdict(VerdictKind.VALID, (Reason(code, "why"),))
    derived = _waiting({"a": 100, "b": 100})
    trials = [dataclasses.replace(trial, verdict=remark) for trial in derived.run.trials]
    *_, first, last = trust(Standings(_of(trials, switches=("a", "b")))).advice
    assert remedy in first
    assert last == "Run planebench doctor, which names the programs and settings that disturb this host."


class _Screen(HTMLParser):
    """Collects the text of the section of answers, and the order of its parts."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.inside, self.words, self.parts = False, "", ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "section":
            self.inside = values.get("id") == "answers"
        if self.inside:
            self.parts += f" {values.get('class') or tag}"

    def handle_data(self, data: str) -> None:
        self.words += data if self.inside else ""


def test_page_and_terminal_say_the_same_and_the_answer_comes_first() -> None:
    derived = _derived(_pair("testpmd", "planed", 1.8, "different"), _pair("vpp", "planed", 2.0, "different"))
    screen, text = _Screen(to_html(derived)), " ".join(table_text(derived, 140).split())
    places = [screen.parts.index(part) for part in (" answer ", " trust high", " answers ", " panel overview")]
    assert places == sorted(places)
    for words in (winner_sentence(Standings(derived)), trust(Standings(derived)).title, "18.0", _lead(derived)):
        assert words in screen.words and words in text, words


def test_a_bar_that_the_tester_limits_is_pale_and_ends_in_an_arrow() -> None:
    derived = _derived(rates={"planed": 18.0, "testpmd": 10.0}, planed="tester-limited")
    (overview,) = (figure for figure in make_figures(derived) if figure.kind == "overview")
    assert {row["switch"]: (row["label"], row["limited"]) for row in overview.rows} == {
        "planed": ("18.0", True),
        "testpmd": ("10.0", False),
    }
    assert overview.svg().count('fill-opacity="0.3"') == 1


def test_a_scatter_keeps_a_switch_that_did_not_carry_the_load() -> None:
    """D5: a chart must not hide the leader."""
    trials = [make_trial(0, make_point("planed"), 18.0), make_trial(0, make_point("testpmd"), 10.0)]
    trials += [make_latency_trial(0, make_point("planed"), "0.50", 9e6, verdict="overload")]
    trials += [make_latency_trial(0, make_point("testpmd"), "0.50", 5e6)]
    derived = _of(trials, switches=("planed", "testpmd"))
    (scatter,) = (figure for figure in make_figures(derived) if figure.kind == "tradeoff")
    assert "planed (overload)" in scatter.svg()
