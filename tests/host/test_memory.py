# SPDX-License-Identifier: BSD-3-Clause
"""Memory by NUMA node, read from numa_maps: what counts, and that a process has it where it was told to."""

from __future__ import annotations

import sys
from pathlib import Path

from planebench.host.memory import bytes_by_node, memory_of
from planebench.host.process import Supervisor

MAPS = """\
5580a000-5580b000 r-xp 00000000 fe:00 1201                       /usr/bin/planed
7f000000-7f100000 rw-s 00000000 00:01 2051                       /memfd:nohuge (deleted)
7f400000-7f600000 rw-s 00000000 00:0f 77                         /dev/hugepages/rtemap_0
7f800000-7f801000 rw-p 00000000 00:00 0
"""
NUMA_MAPS = """\
5580a000 bind:1 file=/usr/bin/planed mapped=9 N0=9 kernelpagesize_kB=4
7f000000 bind:1 file=/memfd:nohuge\\040(deleted) dirty=100 N0=30 N1=70 kernelpagesize_kB=4
7f400000 bind:1 file=/dev/hugepages/rtemap_0 huge dirty=1 N1=1 kernelpagesize_kB=2048
7f800000 bind:1 anon=1 dirty=1 N1=1 kernelpagesize_kB=4
7f900000 bind:1
7fa00000 bind:1 file=/usr/lib/libc.so.6 anon=3 dirty=3 N0=3 kernelpagesize_kB=4
"""


def test_memory_is_counted_by_node_without_programs_and_libraries(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/maps").write_text(MAPS)
    (tmp_path / "proc/7/numa_maps").write_text(NUMA_MAPS)
    found = memory_of(7, tmp_path)
    assert [it.shared for it in found] == ["00:01:2051", "00:0f:77", ""]
    assert bytes_by_node(found) == {0: 30 * 4096, 1: 71 * 4096 + 2 * 1024 * 1024}


def test_a_process_that_is_gone_has_none(tmp_path: Path) -> None:
    assert memory_of(7, tmp_path) == ()


def test_what_is_started_there_has_its_memory_bound() -> None:
    policy = "print(open('/proc/self/numa_maps').readline().split()[1])"
    argv = [sys.executable, "-c", policy]
    with Supervisor() as supervisor:
        with supervisor.memory_on(0):
            bound = supervisor.spawn("bound", argv, cpus=frozenset({0}))
        free = supervisor.spawn("free", argv, cpus=frozenset({0}))
        bound.wait(20)
        free.wait(20)
        assert (bound.log_tail(), free.log_tail()) == ("bind:0", "default")
        with supervisor.memory_on(63):
            refused = supervisor.spawn("refused", argv, cpus=frozenset({0}))
        assert refused.wait(20) == 126 and "set_mempolicy" in refused.log_tail()
