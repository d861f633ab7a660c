# SPDX-License-Identifier: BSD-3-Clause
"""Trials and whole runs with an external tester, on a switch that only the tester's program has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from otg_server import OtgServer, served

import planebench
from planebench.analysis.compare import Derived
from planebench.analysis.standings import Standings
from planebench.host import evidence
from planebench.host.programs import Found
from planebench.loaded import Loaded
from planebench.measure import runner, session
from planebench.measure.survey import check_tester, external_refusal
from planebench.model.errors import DiedError, ExternalTesterError, UsageError
from planebench.model.plan import Plan
from planebench.model.reasons import ReasonCode
from planebench.model.records import SwitchCycles, Trial, VerdictKind
from planebench.plan.expand import expand
from planebench.plan.override import override
from planebench.plan.schema import load_plan
from planebench.report.html import to_html
from planebench.switches.registry import get_adapter
from planebench.testbed.testers import otg

WIRE = "veth:@eth1=lo,@eth2=lo2"
SENDING_S = 0.06
OPTIONS: dict[str, Any] = {
    "switch": "testpmd",
    "scenario": "p2p",
    "frame_size": "64",
    "direction": "unidirectional",
    "loads": "none",
    "duration": SENDING_S,
    "repeat": 1,
    "max_rate": "20k",
}


class Switch:
    """A switch that is up, elsewhere; ``dead``: its process is gone."""

    dead = False
    started = 0
    busy = 0

    def pids(self) -> tuple[int, ...]:
        return ()

    def polling_threads(self) -> tuple[()]:
        return ()

    def counters(self) -> SwitchCycles:
        Switch.busy += 1_000_000
        return SwitchCycles(busy_cycles=Switch.busy, packets=Switch.busy // 100)

    def check(self) -> None:
        if Switch.dead:
            raise DiedError("testpmd was killed by signal 9")

    def stop(self) -> None: ...


def _start(self: Any, request: Any, supervisor: Any) -> Switch:
    Switch.started += 1
    return Switch()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LOOK_S": 0.01, "SETTLED_S": 0.04, "OVERTIME_S": 0.05, "START_S": 0.02}.items():
        monkeypatch.setattr(otg, name, value)
    monkeypatch.setattr(evidence, "steal_ns", lambda cpus: 0)
    monkeypatch.setattr(runner, "READY_S", 0.1)
    monkeypatch.setattr(runner, "READY_FRAMES_S", 0.02)
    monkeypatch.setattr(Switch, "dead", False)
    monkeypatch.setattr(Switch, "started", 0)
    adapter = type(get_adapter("testpmd"))
    monkeypatch.setattr(adapter, "find", lambda self: Found("25.11", Path("/bin/true")))
    monkeypatch.setattr(adapter, "start", _start)
    monkeypatch.setattr("planebench.host.interfaces.refusal", lambda names: "")
    monkeypatch.setattr(session, "require_planed", lambda drivers: Path("planed"))
    monkeypatch.setattr(session, "dry_poll", lambda *args: ())


@pytest.fixture
def server() -> OtgServer:
    return OtgServer()


@pytest.fixture
def url(server: OtgServer) -> Iterator[str]:
    with served(server) as url:
        yield url


def run(url: str, folder: Path, more: str = "", **options: Any) -> Loaded:
    resume = options.pop("resume", False)
    chosen = {**OPTIONS, "wire": WIRE, "tester": f"otg:{url}{more}", **options}
    return planebench.run("quick", runs_dir=folder, resume=resume, **chosen)


def only(loaded: Loaded) -> Trial:
    (trial,) = loaded.raw.trials
    return trial


def test_a_run_with_another_tester(server: OtgServer, url: str, tmp_path: Path) -> None:
    server.capacity_pps = 9000
    loaded = run(url, tmp_path)
    trial = only(loaded)
    (direction,) = trial.directions
    assert (direction.intended_packets, direction.offered_packets, direction.forwarded_packets) == (1200, 1200, 540)
    assert (trial.verdict.kind, trial.offered_duration_ns) == (VerdictKind.VALID, 60_000_000)
    assert (trial.evidence.tester_busy_share, trial.switch.idle_cycles, trial.latency) == (None, None, None)
    assert loaded.header.settings["tester_version"] == "mock-1 (OTG 1.62.0)"
    assert loaded.header.settings["tester"] == f"otg:{url}"
    (row,) = loaded.rows("results")
    assert row["throughput_pps"] == pytest.approx(9000)


def test_a_tester_that_sends_too_little_limits(server: OtgServer, url: str, tmp_path: Path) -> None:
    server.generator_pps, server.capacity_pps = 15_000, 9000
    verdict = only(run(url, tmp_path)).verdict
    assert verdict.kind is VerdictKind.TESTER_LIMITED
    assert verdict.reasons[0].code is ReasonCode.GENERATOR_LATE and "25.0%" in verdict.texts[0]


def test_a_switch_that_loses_nothing_was_not_saturated(url: str, tmp_path: Path) -> None:
    verdict = only(run(url, tmp_path)).verdict
    assert (verdict.kind, verdict.reasons[0].code) == (VerdictKind.TESTER_LIMITED, ReasonCode.NOT_SATURATED)


def test_the_line_rate_that_the_user_gives_is_filled(url: str, tmp_path: Path) -> None:
    trial = only(run(url, tmp_path, ",line=13.44M", max_rate=None))
    assert (trial.line_rate_pps, trial.load.pps_per_direction, trial.forwarded_packets) == (20_000, 20_000, 1200)
    assert trial.verdict.kind is VerdictKind.LINE_RATE


def test_latency_has_no_percentiles(
    server: OtgServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planebench.report.html.make_figures", lambda _: ())  # charts take seconds
    server.capacity_pps = 9000
    loaded = run(url, tmp_path, loads="0.5")
    record = loaded.raw.trials[-1].latency
    assert record is not None and (record.least_ns, record.mean_ns, record.most_ns) == (1200.0, 5000.0, 91000.0)
    (row,) = loaded.rows("latency")
    assert (row["mean_us"], row["max_us"]) == (5.0, 91.0)
    assert row["p50_us"] is None or math.isnan(row["p50_us"])
    derived = Derived(loaded.raw)
    assert not any(it.results for it in Standings(derived).latency), "none is first by what is not known"
    assert '="nan' not in to_html(derived).decode()
    server.delay_ns = None
    assert run(url, tmp_path, loads="0.5").raw.trials[-1].latency is None


def test_a_fault_in_a_trial_is_an_invalid_trial(server: OtgServer, url: str, tmp_path: Path) -> None:
    metric = server._metric

    def goes_back(flow: dict[str, Any]) -> dict[str, Any]:
        server.goes_back = flow["rate"]["pps"] == 20_000  # no readiness test
        return metric(flow)

    server._metric = goes_back  # type: ignore[method-assign]
    loaded = run(url, tmp_path)
    assert only(loaded).verdict.kind is VerdictKind.INVALID and "went back" in only(loaded).verdict.texts[0]
    assert loaded.raw.finished is not None and loaded.raw.finished.status == "complete"


@pytest.mark.parametrize(
    ("odd", "words"),
    [({"frames_tx": "many"}, "reports no frames_tx"), ({"latency": [1, 2, 3]}, "latency of flow"), (None, "no list")],
)
def test_an_answer_that_is_no_metric_is_an_invalid_trial(
    server: OtgServer, url: str, tmp_path: Path, odd: dict[str, Any] | None, words: str
) -> None:
    server.capacity_pps = 9000
    metric = server._metric

    def answers_oddly(flow: dict[str, Any]) -> Any:
        ready = flow["rate"]["pps"] != 20_000  # the readiness test is answered well
        return metric(flow) if ready else odd and metric(flow) | odd

    server._metric = answers_oddly  # type: ignore[method-assign]
    trial = only(run(url, tmp_path))
    assert trial.verdict.kind is VerdictKind.INVALID and words in trial.verdict.texts[0]


def test_a_run_whose_tester_dies_is_resumed(server: OtgServer, url: str, tmp_path: Path) -> None:
    server.capacity_pps = 9000
    answer = server.answer

    def dies(path: str, document: Any) -> tuple[int, Any]:
        server.mute |= len([call for call in server.calls if call == "/control/state"]) == 3
        return answer(path, document)

    server.answer = dies  # type: ignore[method-assign]
    with pytest.raises(ExternalTesterError, match=r"cannot be reached .* --resume continues the run") as found:
        run(url, tmp_path, repeat=3)
    assert "\n" not in str(found.value)
    server.answer, server.mute = answer, False  # type: ignore[method-assign]
    loaded = run(url, tmp_path, repeat=3, resume=True)
    assert loaded.raw.finished is not None and loaded.raw.finished.status == "complete"
    valid = [trial for trial in loaded.raw.trials if trial.verdict.kind is VerdictKind.VALID]
    assert len(valid) >= 2


def test_nothing_is_made_where_nobody_answers(tmp_path: Path) -> None:
    with served(OtgServer()) as url:
        pass
    with pytest.raises(ExternalTesterError, match="cannot be reached"):
        run(url, tmp_path)
    assert not list(tmp_path.iterdir()) and not Switch.started


def test_a_switch_that_lets_nothing_through_is_given_up(server: OtgServer, url: str, tmp_path: Path) -> None:
    server.capacity_pps = 0
    loaded = run(url, tmp_path)
    assert not loaded.raw.trials or all(trial.verdict.kind is VerdictKind.INVALID for trial in loaded.raw.trials)
    assert any("no frame of tester otg" in entry.reason for entry in loaded.raw.skipped)


def test_a_switch_that_dies_makes_an_invalid_trial(server: OtgServer, url: str, tmp_path: Path) -> None:
    answer = server.answer

    def killed(path: str, document: Any) -> tuple[int, Any]:
        Switch.dead |= any(flow["rate"]["pps"] == 20_000 for flow in server.config.get("flows", ()))
        return answer(path, document)

    server.answer = killed  # type: ignore[method-assign]
    trial = only(run(url, tmp_path))
    assert (trial.verdict.kind, trial.verdict.texts) == (VerdictKind.INVALID, ("testpmd was killed by signal 9",))


def wanted(**options: Any) -> Plan:
    return override(load_plan("quick"), **{**OPTIONS, "wire": WIRE, "tester": "otg:https://gen", **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wire": "virtio"}, 'wire "virtio" has no end at tester otg'),
        ({"wire": "veth:eth1=lo,eth2=lo2"}, "has no end at tester otg"),
        ({"wire": "veth:@eth1=lo,@eth1=lo2"}, "@eth1 is named twice"),
        ({"tester": "near"}, "names ports of an external tester: add --tester"),
        ({"max_rate": None}, "an external tester sends at a rate"),
        ({"anatomy": True, "loads": "0.5"}, "--anatomy needs the stamps of planed"),
        ({"clock": "hardware"}, "an external tester has its own clock"),
        ({"open_loop": False, "max_rate": None, "tester": "otg:https://gen,line=10G"}, "--closed-loop is for planed"),
        ({"wire": "pci:@eth1=nic,@eth2=3b:00.1"}, "'nic' is not a PCI address"),
    ],
)
def test_what_an_external_tester_cannot_do_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_tester(wanted(**options))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "loopback"}, "planed drives the VNFs"),
        ({"traffic": "imix"}, "plain frames, not traffic imix"),
        ({"switch": "sim"}, "sim simulates its tester"),
        ({"switch": "linux-bridge"}, "works on interfaces that planebench makes"),
        ({"cpu_mhz": "1200"}, "leave out --cpu-mhz"),
        ({"wire": "pci:@eth1=3b:00.0,@eth2=3b:00.1"}, "^$"),
    ],
)
def test_points_that_it_cannot_measure_are_left_out(options: dict[str, Any], words: str) -> None:
    plan = wanted(**options)
    check_tester(plan)
    (point, *_) = expand(plan)
    assert re.search(words, external_refusal(plan, point, get_adapter(point.switch)))
