# SPDX-License-Identifier: BSD-3-Clause
"""Tester and switch in two guests with cables between them: each has a kernel, NICs and a clock of its own.

`make lab MODEL=two_guests`.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab_rig import RUNS, Lab, Topology, booted

from planebench.model.errors import INCONCLUSIVE

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(3600)]
CABLES = (("t0", "s0"), ("t1", "s1"), ("m0", "m1"))
"""Two under test, and that of the management network."""
TESTER, SWITCH = "192.0.2.1", "192.0.2.2"
RATE_PPS = 1000
AHEAD_S = 1000
"""The clock of the switch's guest before that of the tester's."""
AGENT = "/run/lab/planebench"
SSHD = """
mkdir -p /run/sshd /run/lab/keys
cat > /run/lab/keys/allowed
ssh-keygen -q -t ed25519 -N '' -f /run/lab/keys/host
/usr/sbin/sshd -E /run/lab/keys/log -f /dev/null -h /run/lab/keys/host -o PidFile=none -o StrictModes=no -o UsePAM=no \
	-o AuthorizedKeysFile=/run/lab/keys/allowed -o PermitRootLogin=yes -o PasswordAuthentication=no
cat /run/lab/keys/host.pub
"""
CONFIG = f"""Host switch
  HostName {SWITCH}
  User root
  IdentityFile /run/lab/key
  UserKnownHostsFile /run/lab/known
"""


@dataclass(frozen=True)
class Guests:
    """The guest of the tester, where commands are typed, and that of the switch."""

    tester: Lab
    switch: Lab

    @property
    def wire(self) -> str:
        """Return the wire of the cables under test."""
        pairs = [f"{self.tester.address(a)}={self.switch.address(b)}" for a, b in CABLES[:2]]
        return f"pci:{','.join(pairs)}"

    def run(self, *words: str) -> list[str]:
        """Return a command that makes a run of the tester here and the switch there."""
        plan = ["--scenario", "p2p", "--frame-size", "64", "--direction", "bidirectional", "--loads", "none"]
        plan += ["--max-rate", str(RATE_PPS), "--repeat", "1", "--hugepages", "--no-calibrate", "--no-report"]
        return ["run", *plan, "--wire", self.wire, "--switch-host", "switch", "--runs", RUNS, *words]

    def assert_drivers(self) -> None:
        """Each NIC under test has the driver of its kernel again."""
        for guest, names in ((self.tester, ("t0", "t1")), (self.switch, ("s0", "s1"))):
            assert [guest.driver(name) for name in names] == ["vmxnet3"] * 2


@pytest.fixture(scope="module")
def guests() -> Iterator[Guests]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pbg", dir="/tmp")))
        made = []
        for host in (1, 2):
            ends = [(cable[host - 1], cable[2 - host]) for cable in CABLES]
            outside = {own: (folder / own, folder / other) for own, other in ends}
            nics = {own: "virtio-net" if own.startswith("m") else "vmxnet3" for own, _ in ends}
            topology = Topology(nics=nics, cables=(), host=host, outside=outside)
            made.append(stack.enter_context(booted(topology)))
        guests = Guests(*made)
        _connect(guests)
        yield guests


def _connect(guests: Guests) -> None:
    """Let root of the tester's guest log in to that of the switch, where planebench is."""
    for guest, name, nic, address in (
        (guests.tester, "gen", "m0", TESTER),
        (guests.switch, "dut", "m1", SWITCH),
    ):
        interface = f"$(ls /sys/bus/pci/devices/{guest.address(nic)}/virtio*/net)"
        up = f"hostname {name} && ip address add {address}/24 dev {interface} && ip link set {interface} up"
        assert guest.sh(up).code == 0
    key = guests.tester.sh("ssh-keygen -q -t ed25519 -N '' -f /run/lab/key && cat /run/lab/key.pub").output
    host_key = guests.switch.sh(f"printf %s {shlex.quote(key)} | ( {SSHD} )").output
    known = f"{SWITCH} {' '.join(host_key.split()[:2])}"
    there = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in guests.switch.environment().items())
    guests.switch.sh(
        f"cat > {AGENT} <<'END'\n#!/bin/sh\n{there}exec {sys.executable} -m planebench \"$@\"\nEND\nchmod +x {AGENT}"
    )
    guests.switch.sh(f"date -s @$(($(date +%s) + {AHEAD_S}))")
    config = f"mkdir -p /root/.ssh && cat > /root/.ssh/config <<'END'\n{CONFIG}END\necho {known} > /run/lab/known"
    logged_in = guests.tester.sh(f"{config}\nchmod 600 /root/.ssh/config\nssh switch hostname")
    assert logged_in.output == "dut\n", guests.switch.sh("cat /run/lab/keys/log; dmesg | tail").output


def test_a_run_of_two_machines_is_exact(guests: Guests) -> None:
    command = guests.run("--switch", "planed,testpmd", "--duration", "1")
    done = guests.tester.planebench(*command, timeout_s=600, PLANEBENCH_AGENT=AGENT)
    assert done.code in (0, INCONCLUSIVE), done.output
    *trials, about = guests.tester.script("trials.py", RUNS).documents()
    assert {it["switch"] for it in trials} == {"planed", "testpmd"}
    for it in trials:
        assert it["verdict"] == "functional" and it["forwarded"] == it["offered"] > 0 == it["unexplained"], it
    assert about["there"] == "switch"
    assert abs(about["offset_ns"] / 1e9 - AHEAD_S) < 2 + about["error_ns"] / 1e9, about
    guests.assert_drivers()


def test_nics_are_given_back_on_both_machines_when_the_connection_dies(guests: Guests) -> None:
    command = guests.run("--switch", "planed", "--duration", "100", "--quiet")
    words = shlex.join([sys.executable, "-m", "planebench", *command])
    environment = guests.tester.environment() | {"PLANEBENCH_AGENT": AGENT}
    started = guests.tester.sh(f"{words} > /run/lab/said 2>&1 & echo $! > /run/lab/pid", **environment)
    assert started.code == 0
    taken = f"basename $(readlink /sys/bus/pci/devices/{guests.switch.address('s1')}/driver)"
    until = 'for _ in $(seq 600); do [ "$(%s)" != %s ] || exit 0; sleep 0.2; done; exit 1'
    assert guests.switch.sh(until % (taken, "vfio-pci")).code == 0, guests.tester.sh("cat /run/lab/said").output
    assert guests.tester.sh("pkill -KILL -x ssh").code == 0
    assert guests.switch.sh(until % (taken, "vmxnet3")).code == 0
    guests.tester.sh("kill $(cat /run/lab/pid); while kill -0 $(cat /run/lab/pid); do sleep 0.2; done")
    guests.assert_drivers()
