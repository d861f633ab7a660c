# SPDX-License-Identifier: BSD-3-Clause
import base64
import dataclasses
import hashlib
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import big_run
import pytest
from builders import make_header, make_latency_trial, make_point, make_run, make_trial

import planebench
from planebench.analysis.compare import Derived
from planebench.analysis.results import derive_results
from planebench.model.header import Finished, Run, SwitchInfo
from planebench.model.plan import Skipped
from planebench.model.records import VerdictKind
from planebench.report.figures import make_figures
from planebench.report.html import MAX_PAGE_BYTES, draw, to_html
from planebench.report.trials import verdict_table

HOSTILE = "<script>alert(1)</script> \"quoted\" & 'so' {{ 7*7 }} </style> \x00\x1b[2J\u202e http://evil.example/x"
SCRIPT = Path(planebench.__file__).with_name("report").joinpath("explore.js").read_text(encoding="utf-8")
VOID = {"meta", "link", "br", "img", "hr", "input"}


class _Page(HTMLParser):
    """Collects tags, attributes, text and ids; fails on tags that do not nest."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(page.decode("utf-8"))
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True)
class Largest:
    """The page of a run with more charts than it has room for, and the memory that making it took."""

    data: bytes
    memory_mib: float


@pytest.fixture(scope="module")
def largest(tmp_path_factory: pytest.TempPathFactory) -> Largest:
    path = tmp_path_factory.mktemp("largest") / "report.html"
    source = Path(planebench.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    made = subprocess.run(
        [sys.executable, big_run.__file__, path], env=environment, check=True, capture_output=True, text=True
    )
    return Largest(path.read_bytes(), json.loads(made.stdout)["memory_mib"])


@pytest.fixture(scope="module")
def page(largest: Largest) -> _Page:
    return _Page(largest.data)


def test_the_page_fetches_nothing_and_runs_its_own_script_alone(page: _Page) -> None:
    assert page.tags["script"] == 1
    policy = next(value for tag, _, value in page.attributes if tag == "meta" and "default-src" in value)
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert SCRIPT in page.words
    assert not re.search(r"fetch|XMLHttp|import|eval|innerHTML|https?:", SCRIPT)
    for tag in ("link", "img", "iframe", "object", "embed", "base", "form"):
        assert page.tags[tag] == 0, tag
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), (tag, name)
        if name != "xmlns":
            assert "://" not in value, (tag, name, value)
        if name in ("src", "href", "xlink:href"):
            assert value.startswith("#"), (tag, name, value)
    assert not re.search(r"@import|url\((?!#)", "".join(page.words))


def test_ids_are_unique_and_links_lead_somewhere(page: _Page) -> None:
    ids = Counter(value for _, name, value in page.attributes if name == "id")
    assert [i for i, n in ids.items() if n > 1] == []
    used = [v.removeprefix("#") for _, n, v in page.attributes if n == "href"]
    used += [i for _, _, v in page.attributes for i in re.findall(r"url\(#([^)]+)\)", v)]
    assert set(used) <= set(ids)


def test_the_page_has_what_it_promises(page: _Page) -> None:
    for words in (
        "Answers",
        "Throughput by chain length",
        "Latency by path and load",
        "Trials that did not take place",
        "How to repeat this run",
        "AMD EPYC 9R14",
        "planebench run quick --switch planed,ovs-dpdk,testpmd,vpp",
        "Skipped fastclick",
        "sched_autogroup is on",
        "DPDK 22.11.4",
        "lost its core 14 times",
    ):
        assert words in " ".join(page.text.split()), words
    assert page.tags["svg"] == page.tags["figure"] > 10
    assert "planed, p2p unidirectional 64 B" in page.text


def test_the_largest_run_stays_small_and_has_all_its_charts(largest: Largest, page: _Page) -> None:
    assert MAX_PAGE_BYTES < 4_800_000  # a page has to stay below 5 MB
    assert len(largest.data) < big_run.MAX_BYTES + 100_000
    assert largest.memory_mib < 600
    words = " ".join(page.text.split())
    assert "more of these charts are omitted" not in words
    assert page.tags["figure"] > 30


def test_a_page_says_which_charts_it_leaves_out() -> None:
    text = to_html(Derived(make_run(("planed", "ovs-dpdk"), sizes=(64,), loads=(0.1, 0.99))), max_bytes=1).decode()
    assert re.search(r"<b>\d+ more of these charts</b> are omitted", text)


def test_charts_that_are_rarely_read_go_first() -> None:
    figures = make_figures(Derived(make_run(("planed", "ovs-dpdk"), sizes=(64,), loads=(0.1, 0.99))))
    assert list(draw(figures, 1, {})) == ["overview"]
    everything = draw(figures, 10**9, {})
    assert set(everything) == {f.key for f in figures} | {"overview-narrow"}
    assert [f.kind for f in figures if f.key == list(everything)[-1]] == ["deviation"]


def test_every_kind_of_chart_is_xml_inside_its_frame() -> None:
    run = make_run(sizes=(64, 256, 1024), loads=(0.1, 0.3, 0.5, 0.99), problems=False)
    kinds = {figure.kind: figure for figure in make_figures(Derived(run))}
    assert {"overview", "p99", "throughput", "latency", "load", "tradeoff", "deviation"} <= set(kinds)
    for figure in kinds.values():
        svg = ET.fromstring(figure.svg())
        width, height = float(svg.get("width", "")), float(svg.get("height", ""))
        for element in svg.iter():
            for name, most in (("x", width), ("y", height)):
                assert -1 <= float(element.get(name, "0")) <= most, (figure.key, element.attrib)


def test_hostile_text_is_escaped_everywhere() -> None:
    switch = SwitchInfo("planed", "planed", HOSTILE, {HOSTILE: HOSTILE})
    header = dataclasses.replace(
        make_header(),
        switches=(switch,),
        name=HOSTILE,
        host={HOSTILE: HOSTILE},
        command=("planebench", HOSTILE),
        skipped=(Skipped(HOSTILE, HOSTILE),),
        warnings=(HOSTILE,),
    )
    hostile_label = make_point(HOSTILE)
    trials = (
        make_trial(0, verdict="invalid", reasons=(HOSTILE,)),
        make_trial(1, hostile_label),
        make_latency_trial(2, hostile_label, load=HOSTILE),
    )
    run = Run(header, trials, Finished("interrupted", "2026-11-21T12:40:00Z", HOSTILE), header.skipped, header.warnings)
    data = to_html(Derived(run))
    assert _Page(data).tags["script"] == data.count(b"<script") == 1
    for raw in (b"\x00", b"\x1b", "\u202e".encode()):
        assert raw not in data, raw
    assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in data
    assert b"{{ 7*7 }}" in data


@pytest.mark.parametrize("count", [0, 1, 12])
def test_a_run_that_was_cut_short_has_a_page(count: int) -> None:
    run = make_run(sizes=(64,))
    cut = dataclasses.replace(run, trials=run.trials[-count:] if count else (), finished=None)
    text = _Page(to_html(Derived(cut))).text
    assert "Incomplete run" in text
    assert ("No trial has been measured" in text) == (count == 0)


def test_runs_with_odd_trials_have_a_page() -> None:
    trials = (
        make_trial(0, mpps=0.0),
        make_trial(1, make_point("testpmd"), role="warmup"),
        make_latency_trial(2, samples_ns=[(0, 1)]),
        make_latency_trial(3, load="0.99", samples_ns=()),
        make_latency_trial(4, make_point("testpmd"), load="0.99", samples_ns=[(10_000_000_000, 5)]),
        make_trial(5, make_point("ovs-dpdk"), verdict="invalid", offered_duration_ns=0),
    )
    assert _Page(to_html(Derived(Run(make_header(), trials)))).tags["svg"] > 0
    assert _Page(to_html(Derived(Run(make_header(()), trials)))).tags["svg"] > 0


def test_verdicts_are_counted_under_their_own_name() -> None:
    trials = [make_trial(i, verdict=kind.value) for i, kind in enumerate(VerdictKind) for _ in range(i + 1)]
    (row,) = verdict_table(Run(make_header(("planed",)), tuple(trials))).rows
    assert list(row.cells[1:-2]) == list(range(1, len(VerdictKind) + 1))
    text = _Page(to_html(Derived(Run(make_header(("planed",)), tuple(trials))))).text
    heads = " ".join(k.value for k in VerdictKind)
    assert f"switch {heads} trials core group planed 1 2 3 4 5 6 21" in " ".join(text.split())


def test_every_trial_counts_or_is_invalid_or_a_latency_that_the_tester_limited() -> None:
    run = make_run()
    results = derive_results(run)
    invalid = Derived(run).invalid
    limited = sum(t.role == "latency" and t.verdict.kind is VerdictKind.TESTER_LIMITED for t in run.trials)
    assert sum(len(r.trials) for r in results) + len(invalid) + limited == len(run.trials)
    assert sum(r.invalid for r in results) == len(invalid)


def test_figures_cover_the_papers() -> None:
    kinds = Counter(f.kind for f in make_figures(Derived(make_run(chains=(1, 2, 3)))))
    latencies = {"latency": 5, "load": 4, "tradeoff": 4, "deviation": 4}
    assert kinds == {"overview": 1, "p99": 1, "throughput": 1, "chain": 4, **latencies}
    assert make_figures(Derived(Run(make_header()))) == ()


def test_a_page_is_drawn_without_adapters() -> None:
    """A page is drawn from stored files: no switch, no hosting, no code of another package's entry point is loaded."""
    code = (
        "import sys, planebench.report.html; print(*sorted(it for it in sys.modules if it.startswith('planebench.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    apart = ("switches", "host", "measure", "testbed.hosting", "testbed.placement", "testbed.vnfs")
    assert [it for it in done.stdout.split() if it.removeprefix("planebench.").startswith(apart)] == []
