# SPDX-License-Identifier: BSD-3-Clause
"""Several planeds that answer as one: who has the task is asked, who sends starts last, and the counts are joined."""

from __future__ import annotations

from typing import Any

import pytest

from planebench.planed import group as module
from planebench.planed.group import Member, PlanedGroup

Asked = list[tuple[str, str, Any]]


def member(name: str, asked: Asked, *tasks: str, **answer: Any) -> Member:
    def call(method: str, params: Any = None, **_: float) -> Any:
        asked.append((name, method, params))
        return dict(answer)

    return Member(call, tasks)


def started(name: str, asked: Asked) -> list[tuple[list[str], bool]]:
    """Return the generators that a member was asked to start, and whether its counters stay, call by call."""
    return [
        ([load["task"] for load in params["generators"]], params.get("keep", False))
        for who, method, params in asked
        if who == name and method == "traffic.start"
    ]


def test_all_clear_their_counters_before_the_first_one_sends() -> None:
    asked: Asked = []
    both = PlanedGroup([member("tester", asked), member("end", asked, "gen-v0", "mon-v0")])
    loads = [{"task": "gen-n0"}, {"task": "gen-v0"}]
    both("traffic.start", {"epoch": 3, "generators": loads})
    assert [who for who, *_ in asked] == ["tester", "end", "tester", "end"]
    assert started("tester", asked) == [([], False), (["gen-n0"], True)]
    assert started("end", asked) == [([], False), (["gen-v0"], True)]
    assert all(params["epoch"] == 3 and params["delay_ns"] > 0 for _, _, params in asked)
    asked.clear()
    both("traffic.start", {"epoch": 4, "generators": loads[1:]})
    assert (started("tester", asked), len(asked)) == ([([], False)], 3)
    assert not any("delay_ns" in params for _, _, params in asked), "who sends alone waits for nobody"


def test_sending_begins_at_one_time_which_follows_how_long_the_calls_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s, begins = 100.0, []

    class Clock:
        def monotonic(self) -> float:
            return now_s

        def sleep(self, seconds: float) -> None:
            nonlocal now_s
            now_s += seconds

    def slow(_: str, params: Any, **__: float) -> Any:
        nonlocal now_s
        begins.append(now_s + params.get("delay_ns", 0) / 1e9)
        now_s += 0.01
        return {}

    monkeypatch.setattr(module, "time", Clock())
    both = PlanedGroup([Member(slow), Member(slow, ["b"])])
    for delay_s in (module.DELAY_MAX_S, 0.08):
        begins.clear()
        called_s = now_s
        both("traffic.start", {"generators": [{"task": "a"}, {"task": "b"}]})
        assert begins == pytest.approx([called_s + delay_s] * 4) and now_s == pytest.approx(called_s + delay_s)


def test_answers_are_joined_and_tasks_asked_where_they_are() -> None:
    asked: Asked = []
    tester = member("tester", asked, running=False, tsc_hz=2, tasks=[1], ports=[])
    end = member("end", asked, "mon-v0", running=True, tsc_hz=3, tasks=[2, 3], ports=[4])
    both = PlanedGroup([tester, end])
    assert both("stats.get") == {"running": True, "tsc_hz": 2, "tasks": [1, 2, 3], "ports": [4]}
    asked.clear()
    both("stamps.get", {"task": "mon-v0"})
    both("stamps.get", {"task": "gen-n0"})
    assert [who for who, *_ in asked] == ["end", "tester"]


def test_one_alone_is_asked_as_it_is() -> None:
    asked: Asked = []
    alone = PlanedGroup([member("tester", asked)])
    alone("traffic.start", {"generators": [{"task": "gen-n0"}]})
    assert asked == [("tester", "traffic.start", {"generators": [{"task": "gen-n0"}]})]
