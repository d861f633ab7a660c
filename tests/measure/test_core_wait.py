# SPDX-License-Identifier: BSD-3-Clause
"""How long a campaign waits for cores, on a clock that only its own pauses move."""

from collections.abc import Callable

from planebench.measure.core_wait import ALONE, BRIEF, IDLE, CoreWait


class Machine:
    """Cores that are near, and far from ``far_from_s`` on."""

    def __init__(self, far_from_s: float) -> None:
        self.now_s, self.far_from_s, self.looks = 0.0, far_from_s, 0

    def far(self) -> bool:
        self.looks += 1
        return self.now_s >= self.far_from_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds

    def wait(self) -> CoreWait:
        return CoreWait(clock=lambda: self.now_s, sleep=self.pause)


def never() -> Machine:
    return Machine(far_from_s=float("inf"))


def waited_s(machine: Machine, step: Callable[[], bool]) -> float:
    begun = machine.now_s
    step()
    return machine.now_s - begun


def test_far_cores_that_are_asked_for_have_time_to_come() -> None:
    machine = Machine(far_from_s=40)
    assert machine.wait().until(machine.far, IDLE)
    assert 40 <= machine.now_s < 45
    assert machine.looks < 20, "each look keeps both CPUs busy, which brings them together"


def test_a_band_that_most_trials_have_is_not_waited_for_long() -> None:
    machine = Machine(far_from_s=40)
    assert not machine.wait().until(machine.far)
    assert BRIEF.wait_s <= machine.now_s < 2 * BRIEF.wait_s


def test_near_cores_come_by_work_and_not_by_waiting() -> None:
    machine = Machine(far_from_s=0)
    assert not machine.wait().until(lambda: not machine.far(), BRIEF)
    assert machine.now_s < 2 * BRIEF.wait_s


def test_cores_that_are_to_be_alone_have_the_same_time_and_are_looked_at_more_often() -> None:
    machine = Machine(far_from_s=40)
    assert machine.wait().until(machine.far, ALONE)
    assert 40 <= machine.now_s < 41


def test_waits_in_vain_become_short_and_one_that_helps_makes_them_long_again() -> None:
    machine = never()
    wait = machine.wait()
    spent = [waited_s(machine, lambda: wait.until(machine.far, IDLE)) for _ in range(8)]
    assert spent == sorted(spent, reverse=True) and spent[0] >= IDLE.wait_s
    assert spent[-1] <= 2 * BRIEF.wait_s
    assert sum(spent) < 3 * IDLE.wait_s, "cores that never move do not cost minutes for each trial"
    machine.far_from_s = 0
    assert wait.until(machine.far, IDLE)
    machine.far_from_s = float("inf")
    assert waited_s(machine, lambda: wait.until(machine.far, IDLE)) >= IDLE.wait_s
    assert waited_s(machine, lambda: wait.until(machine.far, ALONE)) >= ALONE.wait_s, "each has its own patience"


def test_it_says_once_that_it_waits_and_not_where_it_need_not() -> None:
    machine, said = Machine(far_from_s=40), list[float]()
    for _ in range(2):
        machine.wait().until(machine.far, IDLE, lambda: said.append(machine.now_s))
    assert said == [0.0]
