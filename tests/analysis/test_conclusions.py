# SPDX-License-Identifier: BSD-3-Clause
"""``make bench-statistics`` with few seeds: its bars, and that it simulates what planebench computes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from builders import make_point

from planebench.analysis.answers import EXACT, OneOfMany, answers
from planebench.analysis.noise import fit_noise
from planebench.analysis.starts import Block, noise_of_sides, paired

sys.path.append(str(Path(__file__).parents[2] / "bench"))  # after tests, which has a folder nf of its own

import conclusions
import conclusions_runs
from noise_shapes import EXEMPT, SHAPES, Layout


@pytest.mark.parametrize("name", SHAPES)
def test_intervals_cover_and_equal_switches_are_not_told_apart(name: str) -> None:
    found = conclusions.measure(name, seeds=40)
    assert found.ended > 0.90 or name in EXEMPT
    assert max(found.different.values()) <= 0.15 or name in EXEMPT


def test_figures_at_two_core_distances_are_those_of_the_analysis() -> None:
    generator = np.random.default_rng(3)
    far = generator.random((4, 6, 5)) < 0.5
    sample = generator.normal(0, 0.02, far.shape) - 0.7 * far
    told = conclusions.at_distances(sample, far, np.full(4, 24.0))
    for run in range(4):
        cells = [
            tuple(
                Block(i, i, float(log), "far" if flag else "near")
                for i, (log, flag) in enumerate(zip(*it, strict=True))
            )
            for it in zip(sample[run], far[run], strict=True)
        ]
        points = [make_point("vpp", "loopback", chain_length=1 + i) for i in range(6)]
        noise = noise_of_sides(zip(points, cells, strict=True))
        for cell, blocks in enumerate(cells):
            one = noise.estimate(blocks)
            assert one is not None
            assert (one.mean, one.error, one.degrees) == pytest.approx(
                (told.mean[run, cell], told.error[run, cell], told.degrees[run, cell])
            )


@pytest.mark.parametrize("name", ["starts 2 %", "0.3 to 6 % by topology"])
def test_many_runs_at_once_are_what_planebench_makes_of_each(name: str) -> None:
    """After a look at three starts, with other counts of starts by cell."""
    plan = Layout(3)
    drawn = SHAPES[name](plan, np.random.default_rng(1), 5)
    sample = conclusions.differences(plan, drawn, 8) + conclusions.ratios(plan, (1, 1.05, 1.2))[..., None]
    starts = np.random.default_rng(2).choice(plan.looks, sample.shape[:-1])
    some = np.where(np.arange(8) < starts[..., None], sample, np.nan)
    degrees = conclusions.degrees_of_pairs(plan, starts)
    found = conclusions.estimates(*conclusions.moments(some), degrees)
    different, same = conclusions.called(found, 0.0221)
    for run, cells in enumerate(some):
        rows = [[float(v) for v in row if not np.isnan(v)] for pair in cells for row in pair]
        noise = fit_noise(rows, degrees[run])
        told = [noise.estimate(row) for row in rows]
        for (pair, cell), it in zip(np.ndindex(starts.shape[1:]), told, strict=True):
            assert it is not None
            of = (run, pair, cell)
            assert (it.mean, it.error, it.degrees) == pytest.approx(
                (found.mean[of], found.error[of], found.degrees[of])
            )
        units = np.repeat(np.arange(len(plan.first)), len(plan.topology))
        family = [OneOfMany(it, EXACT, unit) for it, unit in zip(told, units, strict=True) if it is not None]
        kinds = np.array([it.answer for it in answers(family, 0.0221)]).reshape(starts.shape[1:])
        assert ((kinds == "different") == different[run]).all() and ((kinds == "same") == same[run]).all()


def test_pairs_of_one_core_distance_are_those_of_planebench() -> None:
    plan = Layout(2)
    drawn = SHAPES["near and far cores"](plan, np.random.default_rng(1), 20)
    assert drawn.far is not None
    for blocks in plan.looks:
        sample = conclusions.differences(plan, drawn, blocks)
        for run, cell in np.ndindex(20, len(plan.topology)):
            both = zip(drawn.logs[run, :, cell, :blocks], drawn.far[run, :, cell, :blocks], strict=True)
            a, b = (
                tuple(
                    Block(i, i, float(log), "far" if far else "near")
                    for i, (log, far) in enumerate(zip(*of, strict=True))
                )
                for of in both
            )
            seen = [value for value in sample[run, 0, cell] if not np.isnan(value)]
            assert (np.mean(seen), np.var(seen)) == pytest.approx((np.mean(paired(a, b)), np.var(paired(a, b))))


def test_degrees_are_the_starts_without_the_means_of_switches_and_blocks() -> None:
    plan = Layout(3, cells=(2, 1))
    starts = np.full((1, 3, 3), 3)
    assert conclusions.degrees_of_pairs(plan, starts).tolist() == [2 * 2 * 2]
    starts[0, 0, 2] = 8  # the second topology: both switches of the first pair have more starts
    assert conclusions.degrees_of_pairs(plan, starts).tolist() == [2 * 2 + 7 + 2]


def test_quick_decides_what_differs_by_a_fifth() -> None:
    decided = conclusions_runs.decided(seed=1)
    assert all(decided[1.2])


def test_the_gate_passes_an_unchanged_switch_and_stops_a_slower_one() -> None:
    assert conclusions_runs.judged(seed=1, new_ratio=1.0) == {"passes"}
    assert "fails" in conclusions_runs.judged(seed=1, new_ratio=0.9)


def test_nine_equal_switches_do_not_differ() -> None:
    assert conclusions_runs.false_differences(seed=1, plan="netsoft19") == 0
