# SPDX-License-Identifier: BSD-3-Clause
"""What is read of a live topology, and that nothing that cannot be read becomes a number."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

import pytest

from planebench.host.evidence import ThreadRef, parse_mhz, thread_conditions
from planebench.measure.conditions import port_conditions, read_conditions
from planebench.model.errors import DiedError
from planebench.model.scenarios import build
from planebench.planed.client import get_ports

VIRTIO = {"features": ["mrg_rxbuf", "version_1"], "ring_sizes": [256, 256]}
NEW = {"link_up": True, "driver": "planed", "queues": 1, "ring_size": 256}
CPUINFO = (
    "processor\t: 0\ncpu MHz\t\t: 2595.124\n\nprocessor\t: 1\nflags\t: tsc\n\nprocessor\t: 10\ncpu MHz\t\t: 1200\n"
)


class Switch:
    """Only what is asked for."""

    def __init__(self, *threads: ThreadRef, error: Exception | None = None) -> None:
        self.threads, self.error = threads, error

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        if self.error:
            raise self.error
        return self.threads


def answer(**ports: Any) -> dict[str, Any]:
    return {
        "ports": [
            {"name": name, "kind": "vhost-user", "device": "planed", "mac": "", **it} for name, it in ports.items()
        ]
    }


def read(ports: Any, switch: Switch) -> Any:
    def ask() -> Any:
        if isinstance(ports, Exception):
            raise ports
        return get_ports(lambda *_: ports)

    return read_conditions(build("p2v"), "virtio", switch, ask)  # type: ignore[arg-type]


def test_ports_are_those_of_the_topology_in_its_order() -> None:
    memif = {**NEW, "kind": "ethdev", "driver": "net_memif", "virtio": None}
    told = answer(v0={**NEW, "kind": "virtio-user", "virtio": VIRTIO}, other=NEW, n0=memif)
    wire, vnf = port_conditions(get_ports(lambda *_: told), build("p2v"))
    assert (wire.name, wire.side, wire.kind, wire.features, wire.ring_sizes) == ("n0", "wire", "net_memif", None, None)
    assert (vnf.name, vnf.side, vnf.kind, vnf.driver) == ("v0", "vnf", "virtio-user", "planed")
    assert (vnf.features, vnf.ring_sizes, vnf.queues) == (("mrg_rxbuf", "version_1"), (256, 256), 1)


def test_rings_that_do_not_run_are_not_counted() -> None:
    told = answer(n0={**NEW, "virtio": {"features": [], "ring_sizes": [256, 256, 0, 0]}})
    (port,) = port_conditions(get_ports(lambda *_: told), build("p2p"))
    assert port.ring_sizes == (256, 256)


def test_an_older_planed_says_less() -> None:
    (port,) = port_conditions(get_ports(lambda *_: answer(n0={"link_up": True})), build("p2p"))
    assert (port.features, port.ring_sizes, port.queues, port.driver) == (None, None, None, "")


@pytest.mark.parametrize(
    "garbled", [{}, {"ports": None}, {"ports": [{}]}, answer(n0={**NEW, "virtio": {}}), DiedError("gone")]
)
def test_an_answer_that_cannot_be_read_is_a_problem_and_no_port(garbled: Any) -> None:
    found = read(garbled, Switch())
    assert found.ports == ()
    assert re.match(r"ports of the tester: (gone|planed does not answer ports.get as it should: ports)", found.problem)
    assert found.threads is None, "the rest is not read"


def test_a_switch_that_does_not_answer_leaves_its_threads_unknown() -> None:
    found = read(answer(n0={**NEW, "virtio": VIRTIO}), Switch(error=DiedError("gone")))
    assert found.threads is None
    assert found.problem == "threads of the switch: gone"
    assert len(found.ports) == 1


def test_a_thread_as_the_kernel_has_it() -> None:
    tid = threading.get_native_id()
    it = thread_conditions(os.getpid(), tid, "me")
    assert it is not None
    assert it.cpus == ",".join(map(str, sorted(os.sched_getaffinity(0))))
    assert (it.name, it.policy, it.nice) == ("me", "SCHED_OTHER", os.getpriority(os.PRIO_PROCESS, 0))


def test_a_thread_that_is_gone_is_left_out() -> None:
    assert thread_conditions(2**22 - 1, 2**22 - 1, "gone") is None
    assert read(answer(), Switch(ThreadRef(2**22 - 1, 2**22 - 1, "gone"))).threads == ()


@pytest.mark.parametrize(("cpu", "mhz"), [(0, 2595), (1, None), (10, 1200), (2, None)])
def test_the_frequency_of_a_cpu(cpu: int, mhz: int | None) -> None:
    assert parse_mhz(CPUINFO, cpu) == mhz


@pytest.mark.parametrize("text", ["", "processor: 0", "processor\t: 0\ncpu MHz\t: fast", "cpu MHz\t: 2600"])
def test_a_text_that_is_another_has_no_frequency(text: str) -> None:
    assert parse_mhz(text, 0) is None
