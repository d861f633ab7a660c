# SPDX-License-Identifier: BSD-3-Clause
"""The unit is the start, and switches are compared within a block."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from builders import make_point, make_trial

from planebench.analysis.starts import (
    Block,
    Blocks,
    SidesNoise,
    at_same_distance,
    blocks_of,
    by_start,
    geometric_mean,
    noise_of_pairs,
    noise_of_sides,
    paired,
)
from planebench.analysis.starts import throughput_blocks as blocks_of_rates


def blocks(*figures: float, starts: tuple[int, ...] = ()) -> Blocks:
    return tuple(
        Block(i, starts[i] if starts else i, math.log(figure)) for i, figure in enumerate(figures) if figure > 0
    )


def at(side: Blocks, *bands: str | None) -> Blocks:
    return tuple(replace(block, band=band) for block, band in zip(side, bands, strict=True))


def near_or_far(chance: random.Random, log_of: Callable[[int, bool], float]) -> tuple[SidesNoise, list[Blocks]]:
    """Twelve cells of five starts, near or far by chance, with the noise that they have in common."""
    cells = []
    for cell in range(12):
        bands = [chance.choice(("near", "far")) for _ in range(5)]
        logs = [chance.gauss(log_of(cell, band == "far"), 0.03) for band in bands]
        cells.append(tuple(Block(i, i, log, band) for i, (log, band) in enumerate(zip(logs, bands, strict=True))))
    points = [make_point("vpp", "loopback", chain_length=1 + cell) for cell in range(12)]
    return noise_of_sides(zip(points, cells, strict=True)), cells


def test_full_lines_tell_nothing_of_the_noise_of_others() -> None:
    """Most cells of a suite with a line fill it, alike to 0.01 %; the others keep the noise of the others."""
    chance = random.Random(1)

    def cell(deviation: float, full: bool) -> Blocks:
        return tuple(Block(i, i, chance.gauss(0.0, deviation), full=full) for i in range(3))

    cells = [cell(0.0001, True) for _ in range(9)] + [cell(0.05, False) for _ in range(6)]
    points = [make_point("vpp", "loopback", chain_length=1 + number) for number in range(15)]
    noise = noise_of_sides(zip(points, cells, strict=True))
    alike = tuple(Block(i, i, 0.0) for i in range(3))
    found, full = noise.estimate(alike), noise.estimate(cells[0])
    assert found is not None and found.error > 0.02
    assert full is not None and full.error < 0.002


def test_trials_of_one_start_are_one_observation() -> None:
    trials = [make_trial(i, mpps=m, start=i // 2, repetition=i) for i, m in enumerate((10.0, 12.1, 5.0))]
    found = blocks_of_rates(trials)
    assert [round(math.exp(log) / 1e6, 3) for log in by_start(found)] == [11.0, 5.0]
    assert geometric_mean(found) == pytest.approx(math.sqrt(11e6 * 5e6), rel=1e-3)
    assert geometric_mean(()) is None


def test_drift_of_the_machine_cancels_within_blocks() -> None:
    found = paired(blocks(10, 9, 8), blocks(20, 18, 16))
    assert found == pytest.approx([math.log(2)] * 3)


def test_a_figure_that_is_not_positive_makes_no_block() -> None:
    """A negative number has no logarithm. Negative busy cycles have ended a report with a traceback."""
    trials = [make_trial(number, repetition=number, start=number) for number in range(3)]
    figures = iter((-1.0, 0.0, 2.0))
    assert [block.start for block in blocks_of(trials, lambda _: next(figures))] == [2]


def test_blocks_of_shared_starts_are_averaged_first() -> None:
    found = paired(blocks(10, 10, 10, starts=(0, 1, 2)), blocks(10, 20, 40, starts=(0, 0, 1)))
    assert found == pytest.approx([math.log(2) / 2, math.log(4)])


def test_without_common_blocks_there_are_no_pairs() -> None:
    assert paired(blocks(10, 0, 10, 0, 10), blocks(0, 10, 0, 10, 10)) == []
    assert len(paired(blocks(10, 10, 10, 0), blocks(10, 10, 0, 10))) == 2


def test_blocks_at_the_same_core_distance_are_enough_where_they_are_half() -> None:
    a = at(blocks(40, 40, 10, 10), "near", "near", "far", "far")
    alike = at(blocks(20, 5, 5, 20), "near", "far", "far", "near")
    assert paired(a, alike) == pytest.approx([-math.log(2)]), "one near and one far are one observation"
    fewer = at(blocks(20, 5, 20, 20), "near", "far", "near", "near")
    assert len(paired(a, fewer)) == 4, "else all are taken"


def test_one_pair_near_and_one_far_tell_nothing_of_the_noise() -> None:
    """Without what differs by distance nothing is left of them: two starts a switch were certain to 0.3 %."""
    a = at(blocks(40, 10), "near", "far")
    others = [at(blocks(20, 10), "near", "far"), at(blocks(40, 5), "near", "far"), at(blocks(30, 11), "near", "far")]
    points = [make_point("vpp", "loopback", chain_length=1 + number) for number in range(3)]
    assert paired(a, others[0]) == pytest.approx([-math.log(2) / 2])
    noise = noise_of_pairs((point, a, replace(point, switch="ovs"), b) for point, b in zip(points, others, strict=True))
    assert noise.cells == 0 and noise.estimate(paired(a, others[0])) is None
    sides = noise_of_sides(zip(points, others, strict=True))
    assert sides.by_distance(others[0]) == {}, "nor those of one switch"


def test_cells_of_other_times_compare_at_the_core_distances_that_both_had() -> None:
    a = at(blocks(40, 40.4, 10, 10.1), "near", "near", "far", "far")
    b = at(blocks(5, 5.05, 5.1, 20, 20.2), "far", "far", "far", "near", None)
    noise = noise_of_sides([(make_point(), a), (make_point("vpp"), b)])
    whole = at_same_distance(noise.by_distance(a), noise.by_distance(b))
    assert whole is not None and math.exp(whole.mean) == pytest.approx(2, rel=0.02) and whole.error < 0.02
    other = noise.by_distance(at(b, *["other"] * 5))
    assert at_same_distance(noise.by_distance(a), other) is None, "no distance in common"
    mostly = noise.by_distance(at(b, "near", "other", "other", "other", None))
    assert at_same_distance(noise.by_distance(a), mostly) is None, "of too few starts"
    unknown = noise.by_distance(at(b, *[None] * 5))
    alone = at_same_distance(unknown, unknown)
    assert alone is not None and alone.error == pytest.approx(unknown[None].minus(unknown[None]).error)


def test_what_compares_at_the_same_core_distance_covers_the_ratio() -> None:
    """Cells differ by 5 %; far is 2.5 times as slow."""
    chance, covered, narrow, runs = random.Random(1), 0, 0, 400
    for _ in range(runs):
        noise, cells = near_or_far(chance, lambda cell, far: 0.05 * cell - 0.9 * far)
        found = at_same_distance(noise.by_distance(cells[1]), noise.by_distance(cells[0]))
        if found is None:
            runs -= 1
            continue
        covered += abs(found.mean - 0.05) < found.half_width()
        narrow += found.half_width() < 0.15
    assert runs > 300 and covered / runs > 0.93 and narrow / runs > 0.9


def test_a_figure_knows_what_core_distances_change_and_no_more_than_that() -> None:
    """One cell is as fast far as near: a full line."""
    chance, covered, narrow, runs = random.Random(2), 0, 0, 400
    for _ in range(runs):
        noise, cells = near_or_far(chance, lambda cell, far: -0.9 * (far and cell > 0))
        full, mixed = noise.estimate(cells[0]), noise.estimate(cells[1])
        assert full is not None and mixed is not None
        covered += abs(mixed.mean + 0.45) < mixed.half_width()
        narrow += full.half_width() < 0.1
    assert covered / runs > 0.93 and narrow / runs > 0.9


def test_figures_of_switches_with_near_cores_in_other_shares_stand_to_each_other_as_their_ratio_says() -> None:
    a = at(blocks(40, 10, 10.1), "near", "far", "far")
    b = at(blocks(20, 20.1, 5, 20.2, 20.3), "near", "near", "far", "near", "near")
    noise = noise_of_sides([(make_point(), a), (make_point("vpp"), b)])
    one, other = noise.estimate(a), noise.estimate(b)
    assert one is not None and other is not None
    assert math.exp(one.mean - other.mean) == pytest.approx(2, rel=0.01)


def test_a_block_has_the_core_distance_that_all_its_trials_had() -> None:
    trials = [
        make_trial(i, band=band, start=i // 2, repetition=i // 2)
        for i, band in enumerate(("near", "near", "near", "far"))
    ]
    assert [block.band for block in blocks_of_rates(trials)] == ["near", None]


def test_cells_of_a_topology_share_starts_and_those_of_another_do_not() -> None:
    sizes = [make_point("a", frame_size_bytes=size) for size in (64, 128, 256)]
    own = blocks(10, 10.1, 10.2)
    assert noise_of_sides([(point, own) for point in sizes]).noise.degrees_max == 2
    assert noise_of_sides([(make_point("a", scenario), own) for scenario in ("p2p", "v2v")]).noise.degrees_max == 4
    assert noise_of_sides([(make_point("a", s), own) for s in ("p2p", "v2v")], one_topology=True).noise.degrees_max == 2


def test_pairs_of_several_switches_are_not_independent() -> None:
    sides = {name: (make_point(name), blocks(*figures)) for name, figures in
             (("a", (10, 10.1, 10.2)), ("b", (9, 9.1, 9)), ("c", (8, 8, 8.1)))}  # fmt: skip
    pairs = [(*sides[x], *sides[y]) for x, y in ("ab", "ac", "bc")]
    assert noise_of_pairs(pairs[:1]).degrees_max == 2
    assert noise_of_pairs(pairs).degrees_max == 4
