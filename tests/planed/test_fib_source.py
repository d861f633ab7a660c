# SPDX-License-Identifier: BSD-3-Clause
"""fib_source, the control of an offloaded VNF: its session, its rate, what it counts; ports with a MAC of their own."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planed_rig import CPU, OTHER_CPU, Document, Planed, document, planed_binary, ring, task, until, vhost, virtio

from planebench.host.process import Supervisor
from planebench.planed.client import RpcError

pytestmark = pytest.mark.dataplane

VNF_MAC, MONITOR_MAC = "02:00:00:00:02:01", "02:00:00:00:03:01"
ROUTES = 1000
_NAMES = itertools.count()


def run(supervisor: Supervisor, made: Document) -> Planed:
    return Planed(supervisor, made["name"], made)


def switch(path: Path, quota: int) -> Document:
    vnf = {"vnf": 1, "port": "v0", "mac": VNF_MAC, "wires": ["w0"], "quota_routes": quota}
    settings = {"wires": ["w0"], "routes4": 4096, "vnfs": [vnf]}
    tasks = [task("sw", "fib_offload", "w0", "v0", settings=settings)]
    return document(f"sw{next(_NAMES)}", [ring("w0"), vhost("v0", path)], tasks, cpu=OTHER_CPU)


def control(path: Path, **port: Any) -> Document:
    tasks = [task("ctl", "fib_source", "v0", settings={"routes": ROUTES, "mac": MONITOR_MAC})]
    return document(f"ctl{next(_NAMES)}", [virtio("v0", path) | {"mac": VNF_MAC} | port], tasks, cpu=CPU)


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(Path("/tmp")) as made:
        yield made


def source(planed: Planed) -> Document:
    (found,) = [task for task in planed.call("stats.get")["tasks"] if task["kind"] == "fib_source"]
    return dict(found["fib_source"])


def settled(planed: Planed) -> Document:
    """Once everything that was sent is answered."""

    def all_answered() -> bool:
        found = source(planed)
        return bool(found["sent"] == found["acknowledged"] + found["refused"])

    until(all_answered, "everything is answered")
    return source(planed)


@pytest.mark.parametrize("quota", [ROUTES, 300])
def test_routes_are_changed_and_every_one_is_answered(supervisor: Supervisor, tmp_path: Path, quota: int) -> None:
    path = supervisor.root / "v0.sock"
    forwarder = run(supervisor, switch(path, quota))
    planed = run(supervisor, control(path))
    until(lambda: bool(source(planed)["up"]), "the session is up")
    assert source(planed)["updates_per_s"] == 0
    planed.call("stats.clear")
    planed.call("fib_source.rate", {"task": "ctl", "flat_out": True})
    until(lambda: bool(source(planed)["sent"] > 5 * ROUTES), "all routes have changed")
    assert source(planed)["updates_per_s"] is None
    planed.call("fib_source.rate", {"task": "ctl", "updates_per_s": 0})
    found = settled(planed)
    assert found["lost_sessions"] == 0
    assert found["routes"] == min(ROUTES, quota)
    assert (found["refused"] > 0) == (quota < ROUTES)
    seen = forwarder.call("fib_offload.routes", {"task": "sw", "vnf": 1})
    assert len(seen["routes"]) == min(ROUTES, quota)
    assert seen["routes"][0]["prefix"].startswith("10.0.")


def test_a_rate_is_kept_from_the_moment_it_is_set(supervisor: Supervisor) -> None:
    path = supervisor.root / "v0.sock"
    run(supervisor, switch(path, ROUTES))
    planed = run(supervisor, control(path))
    until(lambda: bool(source(planed)["up"]), "the session is up")
    planed.call("fib_source.rate", {"task": "ctl", "updates_per_s": 5000})
    planed.call("stats.clear")
    until(lambda: bool(source(planed)["acknowledged"] >= 500), "500 are acknowledged")
    found = source(planed)
    assert found["sent"] <= 5000 * found["duration_ns"] / 1e9 + 1024  # never ahead of its rate, but for one poll
    for params in ({}, {"updates_per_s": 1, "flat_out": True}):
        with pytest.raises(RpcError, match="either updates_per_s or flat_out"):
            planed.call("fib_source.rate", {"task": "ctl", **params})


def test_counters_are_cleared_with_those_of_retransmissions(supervisor: Supervisor) -> None:
    path = supervisor.root / "v0.sock"
    forwarder = run(supervisor, switch(path, ROUTES))
    planed = run(supervisor, control(path))
    until(lambda: bool(source(planed)["up"]), "the session is up")
    stopped = forwarder.call("version")["pid"]
    os.kill(stopped, signal.SIGSTOP)  # nobody answers for a while
    try:
        planed.call("fib_source.rate", {"task": "ctl", "updates_per_s": 1000})
        until(lambda: bool(source(planed)["retransmitted"]), "something is sent again")
    finally:
        os.kill(stopped, signal.SIGCONT)
    planed.call("fib_source.rate", {"task": "ctl", "updates_per_s": 0})
    settled(planed)
    planed.call("stats.clear")
    assert source(planed)["retransmitted"] == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["tasks"][0].pop("settings"), "settings are missing: give routes and mac"),
        (lambda d: d["tasks"][0]["settings"].update(routes=0), "settings.routes: 0"),
        (lambda d: d["tasks"][0]["settings"].pop("mac"), 'key "mac" is missing'),
        (lambda d: d["tasks"][0]["settings"].update(wire=8), "settings.wire: 8"),
        (lambda d: d["ports"][0].update(mac="03:00:00:00:00:01"), "port v0: mac is a group address"),
        (lambda d: d["ports"][0].update(backend="dpdk"), 'a device of DPDK has a "mac" of its own'),
        (lambda d: d["ports"][0].update(mac="02:00"), "mac"),
    ],
)
def test_a_bad_document_is_refused_with_a_reason(tmp_path: Path, change: Any, words: str) -> None:
    made = control(tmp_path / "v0.sock")
    change(made)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([planed_binary(), "--check", path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_port_has_the_mac_that_it_was_given(supervisor: Supervisor) -> None:
    port = vhost("v0", supervisor.root / "v0.sock") | {"mac": VNF_MAC}
    planed = run(supervisor, document(f"mac{next(_NAMES)}", [port]))
    assert [found["mac"] for found in planed.call("ports.get")["ports"]] == [VNF_MAC]
    with pytest.raises(RpcError, match="mac, clock or limit"):
        planed.apply([port | {"mac": MONITOR_MAC}])
