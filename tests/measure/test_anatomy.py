# SPDX-License-Identifier: BSD-3-Clause
"""Stamps of probes joined along a path: the parts add up, and what is missing is told."""

from __future__ import annotations

from typing import Any

import pytest
from planed_answers import statistics, whole

from planebench.measure.latency import StampedVnf, StampLog, read_anatomy, split
from planebench.model.records import Anatomy
from planebench.model.scenarios import Flow

HZ = 2_000_000_000
THERE, BACK = Flow("n0", "n1", 0), Flow("n1", "n0", 1)


def log(name: str, *stamps: tuple[int, int, int, int], lost: int = 0) -> StampLog:
    made = StampLog(name, lost=lost)
    made.add(stamps)
    return made


def path(*vnf: tuple[int, int, int, int], lost: int = 0) -> list[StampLog]:
    """Two probes of stream 0: 2000 and 4000 ticks from stamp to stamp, 1 us and 2 us."""
    return [
        log("gen-n0", (0, 1, 100, 120), (0, 2, 1000, 1040)),
        log("vnf0", *vnf, lost=lost),
        log("mon-n1", (0, 1, 2060, 2100), (0, 2, 4920, 5000)),
    ]


WHOLE = ((0, 1, 520, 620), (0, 2, 3040, 3240), (1, 1, 7, 9))


def means(anatomy: Anatomy) -> dict[str, float]:
    return {part.name: part.mean_ns for part in anatomy.parts}


def test_the_parts_of_a_path_add_up_exactly() -> None:
    anatomy = split(THERE, path(*WHOLE), HZ, 1500.0)
    assert (anatomy.name, anatomy.joined, anatomy.not_joined, anatomy.problem) == ("n0->n1", 2, {}, "")
    assert means(anatomy) == {"generator": 15.0, "hop 1": 600.0, "vnf0": 75.0, "hop 2": 780.0, "monitor": 30.0}
    assert [part.kind for part in anatomy.parts] == ["tester", "switch", "vnf", "switch", "tester"]
    assert anatomy.sum_ns == 1500.0
    hop = anatomy.parts[1]
    assert (hop.p50_ns, hop.p99_ns) == (200.0, pytest.approx(1000.0, rel=0.001))


def test_a_receiver_that_is_seen_first_makes_a_negative_hop_and_the_sum_is_right() -> None:
    """The VNF polls the frame before the generator's core has read the clock."""
    first = [log("gen-n0", (0, 1, 100, 120)), log("vnf0", (0, 1, 110, 200)), log("mon-n1", (0, 1, 300, 400))]
    anatomy = split(THERE, first, HZ, 150.0)
    assert means(anatomy)["hop 1"] == -5.0
    assert anatomy.sum_ns == 150.0 and not anatomy.problem
    assert anatomy.parts[1].p50_ns == 1.0


@pytest.mark.parametrize(
    ("stamps", "lost", "why"),
    [
        (WHOLE[:1], 0, "did not reach vnf0"),
        (WHOLE[:1], 5, "the log of vnf0 was full"),
        ((WHOLE[0], (0, 2, 3040, 0)), 0, "dropped by vnf0"),
        ((*WHOLE, (0, 2, 3100, 3300)), 0, "seen twice at vnf0"),
    ],
)
def test_a_probe_that_is_not_everywhere_is_not_joined_and_it_is_said_why(stamps: Any, lost: int, why: str) -> None:
    anatomy = split(THERE, path(*stamps, lost=lost), HZ, 1000.0)
    assert (anatomy.joined, anatomy.not_joined, anatomy.problem) == (1, {why: 1}, "")


def test_parts_that_do_not_stand_for_the_whole_are_told_with_both_numbers() -> None:
    problem = split(THERE, path(*WHOLE), HZ, 1520.0).problem
    assert problem == (
        "the parts of 2 probes add up to 1.50 us on average; the monitor reports 1.52 us for all of them"
    )
    assert split(THERE, path(*WHOLE), HZ, 1514.0).problem == ""


@pytest.mark.parametrize(("stamps", "reported"), [((), 1000.0), (WHOLE, None)])
def test_without_a_joined_probe_there_are_no_parts(stamps: Any, reported: float | None) -> None:
    assert split(THERE, path(*stamps), HZ, reported).problem == "no probe has a stamp at every task of its path"


def test_everything_is_read_page_by_page_and_the_way_back_is_the_other_way_round() -> None:
    stamps: dict[str, list[list[int]]] = {
        "gen-n0": [[0, n, 1000 * n, 1000 * n + 10] for n in range(5)],
        "vnf0": [*([0, n, 1000 * n + 20, 1000 * n + 30] for n in range(5)), [1, 3, 160, 170]],
        "vnf0-q1": [],
        "vnf1": [*([0, n, 1000 * n + 40, 1000 * n + 50] for n in range(5)), [1, 3, 120, 130]],
        "mon-n1": [[0, n, 1000 * n + 60, 1000 * n + 70] for n in range(5)],
        "gen-n1": [[1, 3, 100, 110]],
        "mon-n0": [[1, 3, 190, 200]],
    }
    monitors = {"mon-n1": (0, [[35, 5]]), "mon-n0": (1, [[50, 1]])}

    def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert method == "stamps.get"
        every, start = stamps[params["task"]], params["from"]
        end = min(start + 2, len(every))
        return {"stamps": every[start:end], "next": end if end < len(every) else None, "lost": 0}

    def monitor(name: str) -> dict[str, Any]:
        stream, counts = monitors[name]
        return {"streams": [{"stream": stream, "latency": {"overflow": 0, "counts": counts}}]}

    tasks = [{"name": name} | ({"monitor": monitor(name)} if name in monitors else {}) for name in stamps]
    there, back = read_anatomy(
        call, (THERE, BACK), (StampedVnf("vnf0"), StampedVnf("vnf1")), statistics({"tsc_hz": HZ, "tasks": tasks})
    )
    assert (there.joined, there.sum_ns, there.reported_mean_ns, there.problem) == (5, 35.0, 35.0, "")
    assert [part.name for part in back.parts] == ["generator", "hop 1", "vnf1", "hop 2", "vnf0", "hop 3", "monitor"]
    assert (back.joined, back.sum_ns, back.problem) == (1, 50.0, "")


def bounds(anatomy: Anatomy) -> dict[str, tuple[float | None, float | None]]:
    return {part.name: (part.low_ns, part.high_ns) for part in anatomy.parts}


def stamped(name: str, *stamps: tuple[int, int, int, int, int, int]) -> StampLog:
    made = StampLog(name)
    made.add(stamps)
    return made


def test_the_last_empty_poll_bounds_what_is_the_switchs_and_what_may_be_a_wait() -> None:
    """The first probe waited 100 ticks at most, the second, whose log knows no empty poll, the whole hop at most."""
    vnf = stamped("vnf0", (0, 1, 520, 620, 0, 420), (0, 2, 3040, 3240, 0, 0))
    monitor = stamped("mon-n1", (0, 1, 2060, 2100, 0, 2050), (0, 2, 4920, 5000, 0, 4320))
    anatomy = split(THERE, [log("gen-n0", (0, 1, 100, 120), (0, 2, 1000, 1040)), vnf, monitor], HZ, 1500.0)
    assert means(anatomy) == {"generator": 15.0, "hop 1": 600.0, "vnf0": 75.0, "hop 2": 780.0, "monitor": 30.0}
    assert bounds(anatomy) == {
        "generator": (15.0, 15.0),
        "hop 1": (75.0, 600.0),
        "vnf0": (75.0, 75.0 + (50.0 + 1000.0) / 2),
        "hop 2": (780.0 - (5.0 + 300.0) / 2, 780.0),
        "monitor": (30.0, 30.0 + (5.0 + 300.0) / 2),
    }


def test_a_poll_that_was_empty_before_the_probe_was_sent_bounds_nothing() -> None:
    vnf = stamped("vnf0", (0, 1, 110, 200, 0, 20))
    first = [log("gen-n0", (0, 1, 100, 120)), vnf, stamped("mon-n1", (0, 1, 300, 400, 0, 190))]
    assert bounds(split(THERE, first, HZ, 150.0)) == {
        "generator": (10.0, 10.0),
        "hop 1": (-5.0, -5.0),  # the VNF polled the frame before the generator's core had read the clock
        "vnf0": (45.0, 45.0),
        "hop 2": (0.0, 50.0),
        "monitor": (50.0, 100.0),
    }


def test_a_vnf_in_a_vm_has_its_wait_by_its_own_clock_and_one_without_stamps_bounds_nothing() -> None:
    """Of the hops of 1380 ns the VM's wait is 40 ns of its clock, the monitor's 20 of the tester's."""
    there = log("gen-n0", (0, 1, 100, 120))
    guest = StampLog("vnf0", hosted=True, clock="own", tsc_hz=GUEST_HZ)
    guest.add([(0, 1, 5_000_000, 5_000_050, 0, 4_999_960)])
    back = stamped("mon-n1", (0, 1, 2060, 2100, 0, 2020))
    vm = split(THERE, [there, guest, back], HZ, 1000.0)
    assert bounds(vm)["hops 1 to 2"] == (920.0 - 60.0, 920.0)
    assert bounds(vm)["vnf0"] == (50.0, 90.0)
    silent = split(THERE, [there, StampLog("vnf0", hosted=True, clock="none"), back], HZ, 1000.0)
    assert bounds(silent)["hops 1 to 2, vnf0"] == (0.0, 970.0)


def test_vnfs_side_by_side_are_one_place_of_which_each_probe_passes_one() -> None:
    """The clocks of VMs differ in rate: the times of the second are converted to the first one's."""
    stamps = {"gen-n0": [[0, n, 1000 * n, 1000 * n + 10, 0, 0] for n in (1, 2, 3)]}
    stamps["mon-n1"] = [[0, n, 1000 * n + 400, 1000 * n + 500, 0, 1000 * n + 390] for n in (1, 2, 3)]

    def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"stamps": stamps[params["task"]], "next": None, "lost": 0}

    def guest(name: str, hz: int, *of: list[int]) -> StampedVnf:
        def answer(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            if method == "stats.get":
                return whole({"tsc_hz": hz, "tasks": [{"name": name}]})
            return {"stamps": list(of), "next": None, "lost": 0}

        return StampedVnf(name, answer, "own")

    monitor = {"streams": [{"stream": 0, "latency": {"overflow": 0, "counts": [[250, 2]]}}]}
    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": "gen-n0"}, {"name": "mon-n1", "monitor": monitor}]})
    vnfs = (
        guest("vnf0", GUEST_HZ, [0, 1, 7000, 7040, 0, 6990]),
        guest("vnf1", 2 * GUEST_HZ, [0, 2, 9000, 9080, 0, 8980]),
    )
    (anatomy,) = read_anatomy(call, (THERE,), vnfs, stats, side_by_side=True)
    assert means(anatomy) == {"generator": 5.0, "hops 1 to 2": 155.0, "VNFs": 40.0, "monitor": 50.0}
    assert bounds(anatomy)["VNFs"] == (40.0, 50.0)
    assert (anatomy.joined, anatomy.not_joined, anatomy.problem) == (2, {"did not reach VNFs": 1}, "")
    (offloaded,) = read_anatomy(call, (THERE,), (), stats, side_by_side=True)
    assert [part.name for part in offloaded.parts] == ["generator", "hop 1", "monitor"]


def test_processes_of_one_clock_measure_its_rate_by_themselves_and_their_ticks_are_the_same() -> None:
    since_boot = 10**16
    stamps = {"gen-n0": [[0, n, since_boot + 1000 * n, since_boot + 1000 * n + 10, 0, 0] for n in (1, 2)]}
    stamps["mon-n1"] = [[0, n, since_boot + 1000 * n + 400, since_boot + 1000 * n + 500, 0, 0] for n in (1, 2)]

    def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"stamps": stamps[params["task"]], "next": None, "lost": 0}

    def process(name: str, hz: int, n: int) -> StampedVnf:
        def answer(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            if method == "stats.get":
                return whole({"tsc_hz": hz, "tasks": [{"name": name}]})
            return {
                "stamps": [[0, n, since_boot + 1000 * n + 110, since_boot + 1000 * n + 150, 0, 0]],
                "next": None,
                "lost": 0,
            }

        return StampedVnf(name, answer)

    monitor = {"streams": [{"stream": 0, "latency": {"overflow": 0, "counts": [[250, 2]]}}]}
    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": "gen-n0"}, {"name": "mon-n1", "monitor": monitor}]})
    vnfs = (process("vnf0", HZ, 1), process("vnf1", HZ + 10_000, 2))
    (anatomy,) = read_anatomy(call, (THERE,), vnfs, stats, side_by_side=True)
    assert means(anatomy) == {"generator": 5.0, "hop 1": 50.0, "VNFs": 20.0, "hop 2": 125.0, "monitor": 50.0}


GUEST_HZ = 1_000_000_000


def in_a_vm(*stamps: tuple[int, int, int, int], hz: int = GUEST_HZ) -> StampLog:
    """By a clock that began whenever, and ticks once a nanosecond."""
    made = log("vnf0", *stamps)
    made.hosted, made.clock, made.tsc_hz = True, "own", hz
    return made


def test_of_a_vnf_in_a_vm_only_the_time_inside_is_taken_by_its_clock() -> None:
    there, _, back = path(*WHOLE)
    guest = in_a_vm((0, 1, 5_000_000, 5_000_050), (0, 2, 9_000_000, 9_000_100))
    anatomy = split(THERE, [there, guest, back], HZ, 1500.0)
    assert means(anatomy) == {"generator": 15.0, "hops 1 to 2": 1380.0, "vnf0": 75.0, "monitor": 30.0}
    assert [part.kind for part in anatomy.parts] == ["tester", "hosting", "vnf", "tester"]
    assert (anatomy.joined, anatomy.sum_ns, anatomy.problem) == (2, 1500.0, "")


def test_a_vnf_of_the_users_own_is_a_part_together_with_the_hops_around_it() -> None:
    there, _, back = path(*WHOLE)
    anatomy = split(THERE, [there, StampLog("vnf0", hosted=True, clock="none"), back], HZ, 1500.0)
    assert means(anatomy) == {"generator": 15.0, "hops 1 to 2, vnf0": 1455.0, "monitor": 30.0}
    assert [part.kind for part in anatomy.parts] == ["tester", "hosting", "tester"]
    assert (anatomy.joined, anatomy.sum_ns, anatomy.problem) == (2, 1500.0, "")


def test_a_mixed_chain_has_a_part_from_each_place_with_the_testers_clock_to_the_next() -> None:
    """A task of the tester, a container, a VM, the user's own, and the way back."""
    container = log("vnf1", (0, 1, 300, 340))
    container.hosted = True
    guest = in_a_vm((0, 1, 77, 127), hz=500_000_000)
    guest.name = "vnf2"
    there = [log("gen-n0", (0, 1, 0, 20)), log("vnf0", (0, 1, 100, 140)), container, guest]
    there += [StampLog("vnf3", hosted=True, clock="none"), log("mon-n1", (0, 1, 1000, 1020))]
    anatomy = split(THERE, there, HZ, 510.0)
    assert [(part.name, part.kind, part.mean_ns) for part in anatomy.parts] == [
        ("generator", "tester", 10.0),
        ("hop 1", "switch", 40.0),
        ("vnf0", "vnf", 20.0),
        ("hop 2", "hosting", 80.0),
        ("vnf1", "vnf", 20.0),
        ("hops 3 to 5, vnf3", "hosting", 230.0),
        ("vnf2", "vnf", 100.0),
        ("monitor", "tester", 10.0),
    ]
    assert (anatomy.sum_ns, anatomy.problem) == (510.0, "")


def test_stamps_of_a_hosted_vnf_are_read_from_its_own_planed() -> None:
    def tester(method: str, params: dict[str, Any]) -> dict[str, Any]:
        stamps = {"gen-n0": [[0, 1, 100, 120]], "mon-n1": [[0, 1, 2000, 2100]]}[params["task"]]
        return {"stamps": stamps, "next": None, "lost": 0}

    def guest(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        if method == "stats.get":
            return whole({"tsc_hz": GUEST_HZ, "tasks": [{"name": "vnf0"}, {"name": "vnf0-q1"}]})
        assert params is not None
        return {"stamps": [[0, 1, 40, 90]] if params["task"] == "vnf0" else [], "next": None, "lost": 3}

    monitor = {"streams": [{"stream": 0, "latency": {"overflow": 0, "counts": [[1000, 1]]}}]}
    stats = statistics({"tsc_hz": HZ, "tasks": [{"name": "gen-n0"}, {"name": "mon-n1", "monitor": monitor}]})
    for clock, parts in (("own", {"hops 1 to 2": 890.0, "vnf0": 50.0}), ("none", {"hops 1 to 2, vnf0": 940.0})):
        vnf = StampedVnf("vnf0", guest, clock)  # type: ignore[arg-type]
        (anatomy,) = read_anatomy(tester, (THERE,), (vnf,), stats)
        assert means(anatomy) == {"generator": 10.0, **parts, "monitor": 50.0}
        assert (anatomy.joined, anatomy.problem) == (1, "")
