# SPDX-License-Identifier: BSD-3-Clause
"""The veth wire: interfaces in a namespace of their own, gone with its holder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host.netns import VethWire
from planebench.host.process import Process, Supervisor
from planebench.model.errors import StartError

CPU0 = frozenset({min(os.sched_getaffinity(0))})
READ_LINKS = "for d in /proc/self/net/dev /proc/sys/net/ipv6/conf/all/disable_ipv6; do cat $d 2>/dev/null; done"


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with Supervisor(Path("/tmp")) as it:
        yield it


def wire(supervisor: Supervisor) -> VethWire:
    try:
        return VethWire.create(supervisor, ["n0", "n1"], cpus=CPU0)
    except StartError as error:
        if "unshare" not in str(error):
            raise
        pytest.skip(f"no network namespaces here: {error}")


def inside(supervisor: Supervisor, made: VethWire, script: str) -> str:
    process = supervisor.spawn("look", ["sh", "-c", script], cpus=CPU0, netns_pid=made.netns_pid)
    assert process.wait(60) == 0, process.exit_report()
    return process.log_tail(100)


def test_pairs_are_up_with_the_mtu_and_without_ipv6(supervisor: Supervisor) -> None:
    made = wire(supervisor)
    assert made.pairs == {"n0": ("n0-tester", "n0-switch"), "n1": ("n1-tester", "n1-switch")}
    assert all(len(name) <= 15 for pair in made.pairs.values() for name in pair)
    text = inside(supervisor, made, READ_LINKS)
    assert all(f"{name}:" in text for pair in made.pairs.values() for name in pair)
    assert text.endswith("1") or "disable_ipv6" not in text
    mtus = inside(
        supervisor, made, "grep -h . /dev/null; ip -o link 2>/dev/null | grep -c 'mtu 1500.*state UP' || true"
    )
    if Path("/usr/sbin/ip").exists() or Path("/sbin/ip").exists():
        assert mtus.endswith("4")


def test_interfaces_never_show_on_the_host_and_end_with_the_holder(supervisor: Supervisor) -> None:
    made = wire(supervisor)
    assert Path(f"/proc/{made.netns_pid}/ns/net").stat().st_ino != Path("/proc/self/ns/net").stat().st_ino
    assert "n0-tester" not in Path("/proc/net/dev").read_text()
    made.close()
    made.close()
    assert not made.holder.alive()


def test_a_child_can_have_a_namespace_of_its_own(supervisor: Supervisor) -> None:
    process: Process = supervisor.spawn("alone", ["sh", "-c", "cat /proc/net/dev"], cpus=CPU0, new_netns=True)
    if process.wait(60) == 126:
        pytest.skip(f"no network namespaces here: {process.log_tail()}")
    assert "eth0" not in process.log_tail(50)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_works_without_root(tmp_path: Path) -> None:
    script = (
        "import os; os.setgid(65534); os.setuid(65534)\n"
        "from pathlib import Path\n"
        "from planebench.host.process import Supervisor\n"
        "from planebench.host.netns import VethWire\n"
        "with Supervisor(Path('/tmp')) as s:\n"
        "    w = VethWire.create(s, ['n0'], cpus=frozenset({min(os.sched_getaffinity(0))}))\n"
        "    p = s.spawn('look', ['cat', '/proc/net/dev'], cpus=frozenset({0}), netns_pid=w.netns_pid)\n"
        "    p.wait(5); print(p.log_tail(20))\n"
    )
    done = subprocess.run(
        [os.sys.executable, "-B", "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        timeout=30,
    )
    if "No module named 'planebench'" in done.stderr:
        pytest.skip("other users cannot read this tree, e.g. in /root")
    if "unshare" in done.stderr:
        pytest.skip("unprivileged user namespaces are off")
    assert done.returncode == 0, done.stderr
    assert "n0-tester" in done.stdout and "n0-switch" in done.stdout
