# SPDX-License-Identifier: BSD-3-Clause
"""VNFs and switches restarted under traffic: frames flow again, and every one that did not come is accounted for; and
what is left of hosted VNFs when the harness is killed: nothing."""

from __future__ import annotations

import json
import os
import signal

import pytest
from e2e_rig import PATIENCE_S, Bench, Record
from planed_rig import often

from planebench.host.programs import NotFound
from planebench.testbed.hosting.registry import HOSTINGS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(240)]

TIMES = often(1, 3)
USUAL = [
    ("planed", "container:l2fwd", "vnf0", ("--kill",)),
    pytest.param("ovs-dpdk", "container:l2fwd", "vnf0", ("--kill",), marks=pytest.mark.all),
    pytest.param("planed", "vm:l2fwd:accel=tcg", "switch", (), marks=pytest.mark.all),
]
THOROUGH = [
    ("planed,ovs-dpdk", "container:l2fwd", "vnf0", ()),
    ("planed,ovs-dpdk", "container:l2fwd,l2fwd", "switch", ("--kill",)),
    ("planed", "vm:l2fwd:accel=tcg", "vnf0", ("--kill",)),
    ("ovs-dpdk", "vm:l2fwd:accel=tcg", "switch", ("--kill",)),
]
RESTARTS = [*USUAL, *THOROUGH * often(0, 1)]
BOTH = "container:l2fwd,vm:l2fwd:accel=tcg"


def needs(chain: str) -> None:
    """Skip where what a chain says its VNFs run in is not here."""
    for name in HOSTINGS:
        if f"{name}:" in chain and isinstance(missing := HOSTINGS[name].find(), NotFound):
            pytest.skip(f"{name} is not here: {missing.remedy}")


@pytest.mark.parametrize(("switch", "chain", "victim", "more"), RESTARTS)
def test_after_a_restart_frames_flow_and_every_one_is_accounted_for(
    bench: Bench, switch: str, chain: str, victim: str, more: tuple[str, ...]
) -> None:
    needs(chain)
    arguments = ("--switch", switch, "--chain", chain, "--hosting", "process", "--restart", victim, *more)
    done = bench.run("outage", *arguments, "--rate", "2k", "--repetitions", TIMES, "--json")
    reports = json.loads(done.stdout)["reports"]
    assert [report["switch"] for report in reports] == switch.split(",")
    for report in reports:
        assert (report["victim"], report["killed"], len(report["outages"])) == (victim, bool(more), TIMES)
        for it in report["outages"]:
            assert_adds_up(it)


def assert_adds_up(it: Record) -> None:
    """Nothing came twice or damaged, nothing came that was not sent, and the silence is one of this sending."""
    assert (it["duplicate_packets"], it["corrupt_packets"]) == (0, 0)
    unsent = it["unsent_late_packets"] + it["unsent_ring_full_packets"]
    gone = it["intended_packets"] - unsent - it["forwarded_packets"] - sum(it["drops"].values())
    assert it["forwarded_packets"] > 0 and gone >= 0
    silence = it["silence"]
    assert silence["duration_ns"] > 0, silence
    assert abs(silence["end_ns"] - silence["begin_ns"] - silence["duration_ns"]) <= 2, "each is rounded by itself"


@pytest.mark.parametrize(
    "hosted",
    [
        pytest.param(("--scenario", "loopback", "--chain", BOTH), marks=pytest.mark.all),
        pytest.param(("--scenario", "v2v", "--hosting", "container"), marks=pytest.mark.all),
    ],
    ids=["chain", "ends"],
)
def test_kill_9_of_the_harness_leaves_nothing_of_hosted_vnfs_and_ends(bench: Bench, hosted: tuple[str, ...]) -> None:
    """The reaper killed too: what stays then is swept by the next start."""
    needs(BOTH)
    arguments = ("run", bench.plan, *hosted, "--repeat", 500, "--no-calibrate")
    process = bench.start(*arguments)
    bench.wait_for(bench.trials, "a trial is stored", process)
    for pid in (*bench.processes("reaper.py"), process.pid):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert list(bench.base.glob("pb-*")), "nobody was there to remove it"
    bench.run("run", bench.plan, "--switch", "sim")
