# SPDX-License-Identifier: BSD-3-Clause
"""The estimate of a capacity against simulated pollers whose capacity is known."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import pytest
from analysis.waiting import waiting
from builders import make_header, make_point, make_trial, sim_spec

from planebench.analysis.capacity import FULL_BATCH, capacity, capacity_of, full_batch, one_look
from planebench.analysis.results import derive_results
from planebench.measure.sim.runner import SimRunner
from planebench.measure.trial import TrialRequest
from planebench.model.conditions import LOOK_PER_RING
from planebench.model.header import Run, SwitchInfo
from planebench.model.records import Load, SwitchCycles, Trial
from planebench.model.results import Result

POINT = make_point("sim")
CAPACITY_PPS = 20e6
COST = "cycles=125:poll=800"
"""A frame that comes alone costs seven times as much as one of a full batch."""


def measured(text: str, seed: int = 1, starts: int = 3, loads: Sequence[float] = (0.1, 0.5, 0.9)) -> Run:
    """Return a run of one point: a saturating trial in each start, and one at each load, as a plan has them."""
    spec = sim_spec(text)
    runner = SimRunner(spec, seed, now=lambda: "")
    trials = []
    for start in range(starts):
        asked = [("r_plus", Load("saturating")), *(("latency", Load(f"{it:.2f}", it * spec.max_rate)) for it in loads)]
        for role, load in asked:
            request = TrialRequest(POINT, role, load, 0.3, repetition=start, start=start)  # type: ignore[arg-type]
            trials.append(dataclasses.replace(runner.run(request), index=len(trials)))
    return with_burst(Run(make_header(), tuple(trials)), spec.burst)


def with_burst(run: Run, frames: int) -> Run:
    """Return the run of a switch whose manifest names this burst."""
    switches = (SwitchInfo("sim", "sim", "1", {"burst": str(frames)}),)
    return dataclasses.replace(run, header=dataclasses.replace(run.header, switches=switches))


def result(text: str, **changes: object) -> Result:
    """Return the result of a run whose generator sends less than the switch could forward."""
    (found,) = derive_results(measured(f"sim:capacity=20M:{text}", **changes))  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize("max_rate", ["5M", "10M", "15M", "18M"])
def test_without_noise_the_estimate_is_the_capacity_whatever_the_tester_can_send(max_rate: str) -> None:
    it = result(f"{COST}:max_rate={max_rate}")
    assert it.capacity_estimate_pps == pytest.approx(CAPACITY_PPS, rel=0.002)
    assert it.throughput_pps is not None and it.throughput_pps < 0.91 * CAPACITY_PPS
    assert it.capacity_low_pps is not None and it.capacity_low_pps <= CAPACITY_PPS * 1.002


def test_throughput_by_utilization_would_be_a_third() -> None:
    it = result(f"{COST}:max_rate=2M")
    assert (it.throughput_pps or 0) / (it.switch_busy_share or 1) < CAPACITY_PPS / 3


@pytest.mark.parametrize(
    "text",
    [
        f"{COST}:max_rate=12M:noise=1%",
        f"{COST}:max_rate=12M:noise=1%:start_noise=3%",
        f"{COST}:max_rate=6M:noise=2%",
        "cycles=60:poll=900:burst=64:max_rate=16M:noise=1%:start_noise=2%",
        "cycles=300:poll=3000:max_rate=17M:noise=1%",
    ],
)
def test_the_true_capacity_is_within_the_printed_error_in_95_of_100_seeds(text: str) -> None:
    found = [result(text, seed=seed, starts=5) for seed in range(100)]
    known = [it for it in found if it.capacity_low_pps and it.capacity_high_pps]
    within = [it for it in known if it.capacity_low_pps <= CAPACITY_PPS <= it.capacity_high_pps]  # type: ignore[operator]
    assert len(known) >= 95 and len(within) >= 0.95 * len(known), (len(known), len(within))


def test_a_quiet_switch_is_known_within_five_percent() -> None:
    found = [result(f"{COST}:max_rate=12M:noise=1%", seed=seed, starts=5) for seed in range(20)]
    widths = sorted((it.capacity_high_pps or 0) / (it.capacity_low_pps or 1) for it in found)
    assert widths[10] < 1.05**2


def costing(trial: Trial, ratio: float) -> Trial:
    """Return a trial of a switch with twice the cycles, of which frames cost so many times as many."""
    busy = trial.switch.busy_cycles or 0
    counted = dataclasses.replace(trial.switch, busy_cycles=round(ratio * busy), idle_cycles=round((2 - ratio) * busy))
    return dataclasses.replace(trial, switch=counted)


def test_a_slow_start_is_not_taken_for_a_small_batch() -> None:
    """All trials at low loads are in the first start, which is 1.5 times as fast as the others."""
    run = measured(f"sim:capacity=20M:{COST}:max_rate=12M", starts=5)
    first = [costing(t, 1.0) for t in run.trials if t.start == 0]
    slow = [costing(t, 1.5) for t in run.trials if t.start > 0 and t.role == "r_plus"]
    found = capacity([first[0], *slow], [*first, *slow], FULL_BATCH)
    assert found is not None
    assert found.blocks[0].log - found.blocks[1].log == pytest.approx(0.405, abs=0.01)
    assert found.fit.half_width() < 0.02


def test_there_is_no_estimate_where_the_trials_do_not_tell_it() -> None:
    assert result(f"{COST}:max_rate=6M:noise=1%", starts=1, loads=(0.5,)).capacity_estimate_pps is None, "two trials"
    alike = result(f"{COST}:max_rate=4M:noise=1%", starts=2, loads=(0.98, 0.99))
    assert alike.capacity_estimate_pps is None
    assert result(f"{COST}:max_rate=6M:noise=30%", starts=2).capacity_estimate_pps is None
    assert result("cycles=125:max_rate=6M").capacity_estimate_pps is None, "it does not report its polls"
    mute = make_trial(switch=SwitchCycles(busy_cycles=50, idle_cycles=50, packets=1))
    assert capacity([mute], [mute] * 5, FULL_BATCH) is None


def test_one_start_has_an_estimate_and_no_interval() -> None:
    it = result(f"{COST}:max_rate=12M:noise=1%", starts=1)
    assert it.capacity_estimate_pps == pytest.approx(CAPACITY_PPS, rel=0.1)
    assert it.capacity_low_pps is None and it.capacity_high_pps is None


def full(index: int, batch: int) -> Trial:
    """Return a trial of a start of its own with batches of this size, at half of the cycles."""
    packets = 10_000_000
    counted = SwitchCycles(busy_cycles=10**9, idle_cycles=10**9, packets=packets, bursts=packets // batch)
    return make_trial(index, start=index, switch=counted)


def test_full_batches_need_no_fit() -> None:
    known = capacity([full(0, 32), full(1, 32)], [], FULL_BATCH)
    assert known is not None
    assert [block.log for block in known.blocks] == pytest.approx([16.811] * 2, abs=0.001), "20 Mpps"
    assert capacity([full(0, 32), full(1, 32)], [], 64) is None
    waits = dataclasses.replace(full(0, 32), evidence=waiting(0.5))
    known = capacity([waits], [], FULL_BATCH)
    assert known is not None
    assert math.exp(known.blocks[0].log) == pytest.approx(40e6), "half of the busy cycles were not its own"


def test_a_look_for_a_whole_ring_may_spare_up_to_all_of_a_poll_and_half_of_it_is_taken() -> None:
    run = measured(f"sim:capacity=20M:{COST}:max_rate=12M", starts=5)
    saturating = [t for t in run.trials if t.role == "r_plus"]
    each, one = (capacity(saturating, run.trials, FULL_BATCH, look) for look in (FULL_BATCH, 8 * FULL_BATCH))
    assert each is not None and one is not None
    spared = -math.log(1 - 7 / 8 * (800 / 32) / 125)  # of the 125 cycles that a frame of a full batch takes
    gains = [b.log - a.log for a, b in zip(each.blocks, one.blocks, strict=True)]
    assert gains == pytest.approx([spared / 2] * 5, abs=1e-3)
    assert one.fit.error**2 - each.fit.error**2 == pytest.approx(spared**2 / 12, rel=0.01), "evenly spread"


def test_which_switch_looks_once_for_a_ring_its_manifest_says() -> None:
    once = {"burst": "64", "ring_size": "256", "index_look": LOOK_PER_RING}
    assert one_look(once) == 256
    assert one_look(once | {"index_look": "each burst"}) == one_look(once | {"ring_size": "none"}) == 64


@pytest.mark.parametrize(
    ("manifest", "frames"),
    [
        ({"burst": "64", "ring_size": "256"}, 64),
        ({"burst": "256", "ring_size": "128"}, 128),
        ({"burst": "32 (compiled in)"}, 32),
        ({"burst": "none"}, FULL_BATCH),
        ({}, FULL_BATCH),
    ],
)
def test_a_full_batch_is_the_burst_of_the_manifest(manifest: dict[str, str], frames: int) -> None:
    assert full_batch(manifest) == frames


def test_the_manifest_of_a_switch_decides() -> None:
    run = measured("sim:capacity=20M:cycles=60:poll=900:burst=64:max_rate=12M")
    (short,), (right,) = derive_results(with_burst(run, 32)), derive_results(run)
    assert right.capacity_estimate_pps == pytest.approx(CAPACITY_PPS, rel=0.002)
    assert (short.capacity_estimate_pps or 0) < 0.9 * CAPACITY_PPS


def test_only_a_result_that_the_tester_limits_has_an_estimate() -> None:
    assert result(COST + ":max_rate=30M").capacity_estimate_pps is None


def test_a_run_that_is_one_observation_has_its_fit_within_its_starts() -> None:
    """Of several runs, each is one observation; a start that is half as fast is still no small batch."""
    run = measured(f"sim:capacity=20M:{COST}:max_rate=12M:noise=1%", starts=4)
    slowed = tuple(costing(t, 1.5 if t.start % 2 else 1.0) for t in run.trials)
    run = dataclasses.replace(run, trials=slowed)
    counted_as = [dataclasses.replace(t, start=0, repetition=0) for t in slowed]
    own, whole = capacity_of(run, POINT, slowed), capacity_of(run, POINT, slowed, counted_as)
    assert own is not None and whole is not None
    assert whole.fit == own.fit
    assert {block.start for block in whole.blocks} == {0}
