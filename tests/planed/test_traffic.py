# SPDX-License-Identifier: BSD-3-Clause
"""Generator to monitor through real rings: every frame is accounted for, on both sides, to the last one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from planed_rig import CPU, Document, Planed, ethdev, load, ring, stream, task, until, vhost, virtio

from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

PACED = {"rate_pps": 20_000}
FLAT_OUT = {"flat_out": True}


def assert_accounted_for(generator: Mapping[str, Any], monitor: Mapping[str, Any], *, lossless: bool = True) -> None:
    """Intended = offered + unsent; attempted = offered + refused; what arrived was sent, once, in order, intact."""
    sent, came = generator["generator"], stream(monitor, generator["generator"]["stream"])
    unsent = sent["unsent_late_packets"] + sent["unsent_ring_full_packets"]
    if sent["intended_packets"] is None:
        assert unsent == 0
    else:
        assert sent["intended_packets"] == sent["offered_packets"] + unsent
    assert sent["attempted_packets"] == sent["offered_packets"] + sent["refused_packets"]
    assert sent["offered_packets"] == generator["tx_packets"] > 0
    assert sent["state"] == "done"
    assert 0 < came["forwarded_packets"] <= sent["offered_packets"]
    if lossless:
        assert came["forwarded_packets"] == sent["offered_packets"]
    assert came["forwarded_bytes"] == came["forwarded_packets"] * sent["frame_size_bytes"]
    assert (came["duplicate_packets"], came["reordered_packets"], came["corrupt_packets"]) == (0, 0, 0)
    odd = ("foreign_packets", "stale_packets", "corrupt_packets")
    assert [monitor["monitor"][key] for key in odd] == [0, 0, 0]


@pytest.fixture
def wired(planed: Planed, other: Planed) -> tuple[Planed, Planed]:
    """A vhost-user port n0 of one planed is the NIC of the other, which calls it v0."""
    return _wired(planed, other, {"n0": planed.workdir / "n0.sock"})


def _wired(device: Planed, driver: Planed, wires: dict[str, Any]) -> tuple[Planed, Planed]:
    device.wires = tuple(vhost(name, path) for name, path in wires.items())
    driver.wires = tuple(virtio(f"v{name[1:]}", path) for name, path in wires.items())
    device.apply(device.wires)
    driver.apply(driver.wires)
    for side in (device, driver):
        side.links_up()
    return device, driver


def tasks_on(planed: Planed, *tasks: Document) -> None:
    planed.apply(planed.wires, tasks)


def send_through(device: Planed, driver: Planed, *loads: Document, epoch: int = 1) -> tuple[Document, Document]:
    """Send, and read the device last: on a busy machine the driver may send back long after it received."""
    device.send(*loads, epoch=epoch, clear=driver)
    there = driver.settled()
    return device.settled(), there


@pytest.mark.parametrize("rate", [PACED, FLAT_OUT], ids=["paced", "flat-out"])
@pytest.mark.parametrize("frame_bytes", [64, 65, 1518])
def test_a_ring_gives_back_what_it_took(planed: Planed, rate: Document, frame_bytes: int) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    tasks = planed.send(load("gen", frame_bytes, **rate))
    assert_accounted_for(tasks["gen"], tasks["mon"])


def test_a_ring_that_nobody_empties_refuses_what_does_not_fit(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0")])
    sent = planed.send(load("gen", rate_pps=2_000_000), duration_s=0.2)["gen"]["generator"]
    assert sent["intended_packets"] == 400_000
    assert sent["offered_packets"] < sent["intended_packets"], "the ring has fewer entries"
    assert sent["unsent_ring_full_packets"] + sent["unsent_late_packets"] == 400_000 - sent["offered_packets"]
    assert sent["refused_packets"] > 0


@pytest.mark.parametrize("rate", [PACED, FLAT_OUT], ids=["paced", "flat-out"])
@pytest.mark.parametrize("way", ["device-to-driver", "driver-to-device"])
def test_a_virtio_wire(wired: tuple[Planed, Planed], way: str, rate: Document) -> None:
    """Nothing is lost either way: a full ring refuses, and what is refused was not sent."""
    (device, driver) = wired
    sender, receiver = (device, driver) if way == "device-to-driver" else (driver, device)
    near, far = (side.wires[0]["name"] for side in (sender, receiver))
    tasks_on(receiver, task("mon", "monitor", far))
    tasks_on(sender, task("gen", "generator", near, stream=3))
    receiver.start_traffic()  # the epoch
    sent = sender.send(load("gen", **rate))
    came = receiver.settled()
    assert_accounted_for(sent["gen"], came["mon"])
    assert came["mon"]["rx_packets"] == sent["gen"]["tx_packets"]


def test_both_ways_at_once(wired: tuple[Planed, Planed]) -> None:
    """The device starts first, so it counts all that the driver sends; the driver misses what came before its start."""
    device, driver = wired
    tasks_on(device, task("mon", "monitor", "n0"), task("gen", "generator", "n0", stream=0))
    tasks_on(driver, task("mon", "monitor", "v0"), task("gen", "generator", "v0", stream=1))
    device.start_traffic(load("gen", **FLAT_OUT), duration_s=0.3)
    driver.start_traffic(load("gen", **FLAT_OUT), duration_s=0.3)
    until(lambda: not any(side.call("traffic.get")["running"] for side in wired), "both generators end")
    here, there = device.settled(), driver.settled()
    assert_accounted_for(there["gen"], here["mon"])
    assert stream(there["mon"], 0)["forwarded_packets"] <= here["gen"]["tx_packets"]
    assert stream(there["mon"], 0)["duplicate_packets"] == stream(there["mon"], 0)["corrupt_packets"] == 0


@pytest.mark.parametrize("rate", [PACED, FLAT_OUT], ids=["paced", "flat-out"])
def test_l2fwd_echoes_every_frame_or_counts_its_drop(wired: tuple[Planed, Planed], rate: Document) -> None:
    device, driver = wired
    tasks_on(driver, task("vnf", "l2fwd", "v0", "v0"))
    tasks_on(device, task("mon", "monitor", "n0"), task("gen", "generator", "n0"))
    here, there = send_through(device, driver, load("gen", **rate))
    assert there["vnf"]["rx_packets"] == here["gen"]["tx_packets"]
    dropped = sum(there["vnf"]["drops"].values())
    assert there["vnf"]["drops_by_port"] == {"v0": {"tx_full": there["vnf"]["drops"]["tx_full"]}}
    assert there["vnf"]["rx_packets"] == there["vnf"]["tx_packets"] + dropped
    assert_accounted_for(here["gen"], here["mon"], lossless=False)
    assert stream(here["mon"])["forwarded_packets"] == there["vnf"]["tx_packets"]


@pytest.mark.parametrize("kind", ["patch", "l2fwd"])
def test_two_ports_are_joined_both_ways(planed: Planed, other: Planed, kind: str) -> None:
    paths = {name: planed.workdir / f"{name}-{kind}.sock" for name in ("n1", "n2")}
    device, driver = _wired(planed, other, paths)
    tasks_on(driver, task("join", kind, "v1", "v2"))
    ends = [(task(f"mon{n}", "monitor", f"n{n}"), task(f"gen{n}", "generator", f"n{n}", stream=n)) for n in (1, 2)]
    tasks_on(device, *ends[0], *ends[1])
    here, there = send_through(device, driver, load("gen1", **PACED), load("gen2", 1518, **PACED))
    sent = here["gen1"]["tx_packets"] + here["gen2"]["tx_packets"]
    assert there["join"]["rx_packets"] == sent
    assert there["join"]["rx_packets"] == there["join"]["tx_packets"] + sum(there["join"]["drops"].values())
    assert_accounted_for(here["gen1"], here["mon2"], lossless=False)
    assert_accounted_for(here["gen2"], here["mon1"], lossless=False)
    forwarded = stream(here["mon2"], 1)["forwarded_packets"] + stream(here["mon1"], 2)["forwarded_packets"]
    assert forwarded == there["join"]["tx_packets"]


def join(planed: Planed, other: Planed, name: str, *, kind: str = "patch", **more: Any) -> tuple[Planed, Planed]:
    """Two ends of traffic on a device, and on the driver a task between them."""
    device, driver = _wired(planed, other, {f"n{n}": planed.workdir / f"n{n}-{name}.sock" for n in (1, 2)})
    tasks_on(driver, task("join", kind, "v1", "v2", **more))
    ends = [(task(f"mon{n}", "monitor", f"n{n}"), task(f"gen{n}", "generator", f"n{n}", stream=n)) for n in (1, 2)]
    tasks_on(device, *ends[0], *ends[1])
    return device, driver


@pytest.mark.parametrize("rate", [PACED, FLAT_OUT], ids=["paced", "flat-out"])
def test_a_fault_takes_every_nth_frame_of_a_task_and_no_other(planed: Planed, other: Planed, rate: Document) -> None:
    device, driver = join(planed, other, f"fault-{len(rate)}-{'flat_out' in rate}", fault={"drop_one_in": 7})
    passed = faults = 0
    for epoch in (1, 2):
        here, driven = send_through(device, driver, load("gen1", **rate), load("gen2", **rate), epoch=epoch)
        there = driven["join"]
        passed, faults = passed + there["rx_packets"], faults + there["drops"]["fault"]
        assert there["rx_packets"] == here["gen1"]["tx_packets"] + here["gen2"]["tx_packets"]
        assert there["rx_packets"] == there["tx_packets"] + sum(there["drops"].values())
        assert there["drops"]["tx_full"] == sum(port["tx_full"] for port in there["drops_by_port"].values())
        forwarded = stream(here["mon2"], 1)["forwarded_packets"] + stream(here["mon1"], 2)["forwarded_packets"]
        assert forwarded == there["tx_packets"]
        # What a send that had to be repeated left in the count is cleared here, but not its phase.
        assert abs(there["drops"]["fault"] - there["rx_packets"] / 7) < 1
    assert faults > 0 and abs(faults - passed / 7) < 2


def test_the_fault_is_exact_from_the_start_of_the_task(planed: Planed, other: Planed) -> None:
    device, driver = join(planed, other, "exact", fault={"drop_one_in": 3})
    for epoch in (1, 2, 3):
        device.send(load("gen1", **PACED), epoch=epoch)
        there = driver.settled()["join"]  # never cleared
        assert there["drops"]["fault"] == there["rx_packets"] // 3 > 0


@pytest.mark.parametrize("kind", ["patch", "l2fwd"])
def test_drops_name_the_port_whose_ring_was_full(planed: Planed, other: Planed, kind: str) -> None:
    """Nobody takes anything out of n2, the other side of v2."""
    device, driver = join(planed, other, f"full-{kind}", kind=kind)
    tasks_on(device, task("gen1", "generator", "n1", stream=1))
    full = False
    while not full:  # beside other pollers, one send may be just what the ring holds
        here = device.send(load("gen1", **FLAT_OUT), duration_s=0.3, clear=driver)
        there = driver.settled()["join"]
        assert there["rx_packets"] == here["gen1"]["tx_packets"]
        full = there["rx_packets"] > there["tx_packets"]
    dropped = there["rx_packets"] - there["tx_packets"]
    assert there["drops_by_port"] == {"v1": {"tx_full": 0}, "v2": {"tx_full": dropped}}
    assert there["drops"]["tx_full"] == dropped


def test_what_a_ring_gives_back_after_the_sending_is_counted_apart(planed: Planed) -> None:
    """A monitor that is slower than the generator has a full ring before it, of 1023 frames, when the sending ends."""
    planed.apply([ring("r0")], [task("mon", "monitor", "r0", burst=4), task("gen", "generator", "r0", burst=32)])
    tasks = planed.send(load("gen", **FLAT_OUT), duration_s=0.1)
    came = stream(tasks["mon"])
    tenths = came["forwarded_by_tenth"]
    assert len(tenths) == 10
    assert came["forwarded_packets"] == tasks["gen"]["generator"]["offered_packets"]
    assert 1000 <= came["forwarded_packets"] - sum(tenths) <= 1023


def samples(histogram: Mapping[str, Any]) -> int:
    return sum(count for _, count in histogram["counts"]) + int(histogram["overflow"])


def test_jitter_is_between_probes_that_follow_each_other(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    tasks = planed.send(load("gen", rate_pps=50_000, probe_rate_pps=5_000), duration_s=0.05)
    sent, came = tasks["gen"]["generator"], stream(tasks["mon"])
    probes = sent["probes_sent"]
    assert probes == sent["probes_stamped"] == came["probes_received"] == samples(came["latency"]) > 1
    assert samples(came["ipdv"]) == probes - 1
    assert (came["stamped_packets"], "burst_rises" in came) == (0, False)
    for key in ("lowest_ns", "highest_ns", "significant_digits"):
        assert came["ipdv"][key] == came["latency"][key]


@pytest.mark.parametrize("profile", [{}, {"flows": {"count": 100}}], ids=["plain", "flows"])
def test_stamped_frames_have_the_jitter_of_bursts(planed: Planed, profile: dict[str, Any]) -> None:
    """Every frame is in the mean of its burst, so bursts of several frames say something else than IPDV of probes."""
    planed.apply([ring("r0")], [task("gen", "generator", "r0", burst=16), task("mon", "monitor", "r0", burst=4)])
    more = {"profile": profile} if profile else {}
    tasks = planed.send(load("gen", **FLAT_OUT, probe_rate_pps=5_000, stamp_all=True, **more), duration_s=0.05)
    came, monitor = stream(tasks["mon"]), tasks["mon"]["monitor"]
    offered = tasks["gen"]["generator"]["offered_packets"]
    assert offered == came["forwarded_packets"] == came["stamped_packets"]
    assert (monitor["foreign_packets"], monitor["corrupt_packets"]) == (0, 0)
    assert samples(came["burst_rises"]) + samples(came["burst_falls"]) == monitor["bursts"] - 1
    assert samples(came["ipdv"]) == came["probes_received"] - 1 < monitor["bursts"] - 1


def test_without_probes_there_is_no_jitter(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    planed.send(load("gen", rate_pps=50_000, probe_rate_pps=5_000))
    tasks = planed.send(load("gen", **PACED), epoch=2)
    came = stream(tasks["mon"])
    assert tasks["gen"]["generator"]["probes_stamped"] == 0
    assert [came[kind]["counts"] for kind in ("latency", "ipdv")] == [[], []]


def test_a_worker_that_may_sleep_loses_nothing(planed: Planed) -> None:
    tasks = [task("gen", "generator", "r0"), task("mon", "monitor", "r0")]
    worker = {"name": "w0", "cpu": CPU, "tasks": ["gen", "mon"]}
    wire = ring("r0")
    for idle in ("sleep", "poll"):
        planed.apply([wire], tasks, workers=[{**worker, "idle": idle}])
        if idle == "sleep":
            until(lambda: planed.call("stats.get")["workers"][0]["sleeps"] > 10, "it sleeps")
        seen = planed.send(load("gen", **PACED))
        assert_accounted_for(seen["gen"], seen["mon"])
        assert (planed.call("stats.get")["workers"][0]["sleeps"] > 0) == (idle == "sleep")
        came = stream(seen["mon"])
        times = [came[key] for key in ("first_ns", "longest_silence_begin_ns", "longest_silence_end_ns", "last_ns")]
        assert times == sorted(times)
        assert abs(times[2] - times[1] - came["longest_silence_ns"]) <= 1


def test_frames_of_an_earlier_epoch_are_stale(wired: tuple[Planed, Planed]) -> None:
    device, driver = wired
    tasks_on(driver, task("mon", "monitor", "v0"))
    tasks_on(device, task("gen", "generator", "n0"))
    driver.start_traffic(epoch=7)
    sent = device.send(load("gen", **PACED), epoch=6)["gen"]["tx_packets"]
    seen = driver.settled()["mon"]["monitor"]
    assert (seen["stale_packets"], seen["received_packets"], stream({"monitor": seen})["forwarded_packets"]) == (
        sent,
        sent,
        0,
    )
    sent = device.send(load("gen", **PACED), epoch=7)["gen"]["tx_packets"]
    tasks = driver.settled()
    assert stream(tasks["mon"])["forwarded_packets"] == sent


def test_frames_of_another_nonce_are_foreign(wired: tuple[Planed, Planed]) -> None:
    """A generator that is right in all but the nonce, as a function that forges frames of the trial."""
    device, driver = wired
    tasks_on(driver, task("mon", "monitor", "v0"))
    tasks_on(device, task("gen", "generator", "n0"))
    driver.start_traffic(epoch=3, nonce=2**63 - 1)
    sent = device.send(load("gen", **PACED) | {"probe_rate_pps": 5_000}, epoch=3)["gen"]["tx_packets"]
    seen = driver.settled()["mon"]["monitor"]
    assert (seen["foreign_packets"], seen["received_packets"], seen["streams"]) == (sent, sent, [])


def test_a_sampled_trial_counts_every_frame_and_looks_into_some(wired: tuple[Planed, Planed]) -> None:
    device, driver = wired
    tasks_on(driver, task("mon", "monitor", "v0"))
    tasks_on(device, task("gen", "generator", "n0"))
    driver.start_traffic(epoch=3, sampled=True)
    sent = device.send(load("gen", **PACED), epoch=3, clear=driver)["gen"]["tx_packets"]
    seen = stream(driver.settled()["mon"])
    assert (seen["forwarded_packets"], seen["forwarded_bytes"]) == (sent, 64 * sent)
    assert 0 < seen["unchecked_packets"] < sent


def test_a_trial_with_a_nonce_counts_its_own_frames(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    paced = {**load("gen", 128, **PACED), "probe_rate_pps": 5_000}
    for epoch, profile in enumerate(({}, {"profile": {"flows": {"count": 100}, "transport": "tcp", "ip": 6}})):
        tasks = planed.send(paced | profile, epoch=epoch, nonce=2**62 + epoch)
        assert_accounted_for(tasks["gen"], tasks["mon"])
        assert tasks["mon"]["monitor"]["foreign_packets"] == 0
        assert stream(tasks["mon"])["probes_received"] == tasks["gen"]["generator"]["probes_sent"]


def test_frames_that_are_not_ours_are_foreign(planed: Planed) -> None:
    planed.apply([ethdev("e0", "net_null0,size=64,copy=1")], [task("mon", "monitor", "e0")])
    until(lambda: planed.tasks()["mon"]["rx_packets"] > 1000, "null frames come")
    seen = planed.tasks()["mon"]["monitor"]
    assert seen["foreign_packets"] == seen["received_packets"] > 0
    assert seen["streams"] == []


def test_a_monitor_is_not_stopped_while_traffic_runs(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    planed.start_traffic(load("gen", **PACED), duration_s=3600)
    until(lambda: planed.tasks()["mon"]["monitor"]["received_packets"] > 0, "frames come, and are counted meanwhile")
    assert planed.call("traffic.get")["running"] and "streams" not in planed.tasks()["mon"]["monitor"]
    planed.call("traffic.stop")
    tasks = planed.settled()
    assert_accounted_for(tasks["gen"], tasks["mon"])


def test_counters_are_those_of_the_last_start_alone(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    for epoch in (1, 2, 65535, 0):
        tasks = planed.send(load("gen", **PACED), epoch=epoch)
        assert tasks["gen"]["generator"]["intended_packets"] == 400
        assert tasks["gen"]["generator"]["epoch"] == epoch
        assert_accounted_for(tasks["gen"], tasks["mon"])
    planed.call("stats.clear")
    tasks = planed.tasks()
    assert (tasks["gen"]["tx_packets"], tasks["mon"]["rx_packets"], tasks["mon"]["monitor"]["streams"]) == (0, 0, [])


def test_every_probe_is_timed(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    tasks = planed.send({**load("gen", **PACED), "probe_rate_pps": 2000}, duration_s=0.1)
    assert_accounted_for(tasks["gen"], tasks["mon"])
    seen = stream(tasks["mon"])
    latency = seen["latency"]
    assert 0 < tasks["gen"]["generator"]["probes_sent"] <= 200
    assert seen["probes_received"] == tasks["gen"]["generator"]["probes_sent"]
    assert sum(count for _, count in latency["counts"]) + latency["overflow"] == seen["probes_received"]
    assert all(value_ns > 0 for value_ns, _ in latency["counts"])


def test_stop_ends_the_generators_and_counts_add_up(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("gen", "generator", "r0"), task("mon", "monitor", "r0")])
    planed.start_traffic(load("gen", **PACED), duration_s=600)
    time.sleep(0.05)
    assert planed.call("traffic.get") == {"running": True}
    planed.call("traffic.stop")
    assert planed.call("traffic.get") == {"running": False}
    tasks = planed.settled()
    assert_accounted_for(tasks["gen"], tasks["mon"])
    assert tasks["gen"]["generator"]["duration_ns"] < 60_000_000_000


def test_a_refused_load_starts_none_of_the_generators(planed: Planed) -> None:
    ports = [ring("r0"), ring("r1")]
    planed.apply(ports, [task("g0", "generator", "r0"), task("g1", "generator", "r1")])
    with pytest.raises(RpcError, match="g1 cannot send this load"):
        planed.start_traffic(load("g0", **PACED), load("g1", 9000, **PACED))
    assert planed.call("traffic.get") == {"running": False}
    assert planed.settled()["g0"]["tx_packets"] == 0


def test_a_generator_has_one_load(planed: Planed) -> None:
    planed.apply([ring("r0")], [task("g0", "generator", "r0")])
    with pytest.raises(RpcError, match=r"generators\[1\].task: generators\[0\] names g0 already"):
        planed.start_traffic(load("g0", **PACED), load("g0", 128, **PACED))
    assert planed.call("traffic.get") == {"running": False}


def test_the_driver_may_come_back(wired: tuple[Planed, Planed]) -> None:
    """A VNF that restarts: the wire works again, counts are exact again."""
    device, driver = wired
    for epoch in (1, 2):
        driver.apply()
        driver.apply(driver.wires)
        driver.links_up()
        device.links_up()
        tasks_on(driver, task("mon", "monitor", "v0"))
        tasks_on(device, task("gen", "generator", "n0"))
        driver.start_traffic(epoch=epoch)
        sent = device.send(load("gen", **PACED), epoch=epoch)
        assert_accounted_for(sent["gen"], driver.settled()["mon"])


def test_a_generator_may_join_a_trial_without_clearing_what_others_have_sent(wired: tuple[Planed, Planed]) -> None:
    device, driver = wired
    both = [
        (device, [task("gen", "generator", "n0", stream=0), task("mon", "monitor", "n0")]),
        (driver, [task("gen", "generator", "v0", stream=1), task("mon", "monitor", "v0")]),
    ]
    for side, tasks in both:
        tasks_on(side, *tasks)
        side.start_traffic(epoch=7)
    device.start_traffic(load("gen", **PACED), epoch=7, keep=True)
    until(lambda: not device.call("traffic.get")["running"], "the first has sent")
    begun = time.monotonic()
    driver.start_traffic(load("gen", **PACED), epoch=7, keep=True, delay_ns=50_000_000)
    until(lambda: not driver.call("traffic.get")["running"], "the second has sent")
    assert time.monotonic() - begun >= 0.05
    there, back = device.settled(), driver.settled()
    assert_accounted_for(there["gen"], back["mon"])
    assert_accounted_for(back["gen"], there["mon"])
