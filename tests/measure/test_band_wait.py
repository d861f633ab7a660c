# SPDX-License-Identifier: BSD-3-Clause
"""How long a campaign waits for a band, on a clock that only its own pauses move."""

from collections.abc import Callable

from planebench.measure.band_wait import IDLE_WAIT_S, WAIT_S, BandWait


class Machine:
    """Cores that are near, and far from ``far_from_s`` on."""

    def __init__(self, far_from_s: float) -> None:
        self.now_s, self.far_from_s, self.looks = 0.0, far_from_s, 0

    def look(self) -> str:
        self.looks += 1
        return "far" if self.now_s >= self.far_from_s else "near"

    def pause(self, seconds: float) -> None:
        self.now_s += seconds

    def wait(self) -> BandWait:
        return BandWait(clock=lambda: self.now_s, sleep=self.pause)


def never() -> Machine:
    return Machine(far_from_s=float("inf"))


def waited_s(machine: Machine, step: Callable[[], bool]) -> float:
    begun = machine.now_s
    step()
    return machine.now_s - begun


def test_far_cores_that_are_asked_for_have_time_to_come() -> None:
    machine = Machine(far_from_s=40)
    assert machine.wait().until("far", machine.look, asked=True)
    assert 40 <= machine.now_s < 45
    assert machine.looks < 20, "each look keeps both CPUs busy, which brings them together"


def test_a_band_that_most_trials_have_is_not_waited_for_long() -> None:
    machine = Machine(far_from_s=40)
    assert not machine.wait().until("far", machine.look)
    assert WAIT_S <= machine.now_s < 2 * WAIT_S


def test_near_cores_come_by_work_and_not_by_waiting() -> None:
    machine = Machine(far_from_s=0)
    assert not machine.wait().until("near", machine.look, asked=True)
    assert machine.now_s < 2 * WAIT_S


def test_waits_in_vain_become_short_and_one_that_helps_makes_them_long_again() -> None:
    machine = never()
    wait = machine.wait()
    spent = [waited_s(machine, lambda: wait.until("far", machine.look, asked=True)) for _ in range(8)]
    assert spent == sorted(spent, reverse=True) and spent[0] >= IDLE_WAIT_S
    assert spent[-1] <= 2 * WAIT_S
    assert sum(spent) < 3 * IDLE_WAIT_S, "cores that never move do not cost minutes for each trial"
    machine.far_from_s = 0
    assert wait.until("far", machine.look, asked=True)
    assert wait.idle_s == IDLE_WAIT_S


def test_it_says_once_that_it_waits_and_not_where_it_need_not() -> None:
    machine, said = Machine(far_from_s=40), list[float]()
    for _ in range(2):
        machine.wait().until("far", machine.look, asked=True, waiting=lambda: said.append(machine.now_s))
    assert said == [0.0]


def test_where_no_band_is_known_nothing_is_waited_for() -> None:
    machine = never()
    assert machine.wait().until("far", lambda: None, asked=True)
    assert machine.now_s == 0
