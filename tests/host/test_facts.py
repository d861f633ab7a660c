# SPDX-License-Identifier: BSD-3-Clause
"""Facts are plain, complete and true of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planebench.host import facts as host_facts
from planebench.host.facts import (
    HostFacts,
    collect,
    deep_c_states,
    grantable_cpus,
    kernel_command_line,
    sample_kernel_threads,
    usable_cpus,
)
from planebench.model.cpus import parse_cpus
from tests.sysfs_tree import Tree


@pytest.mark.parametrize(
    ("text", "cpus"), [("", ()), ("0", (0,)), ("0-3", (0, 1, 2, 3)), ("0,2-3,8", (0, 2, 3, 8)), ("rubbish", ())]
)
def test_cpu_lists_of_the_kernel(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize(
    ("inherited", "isolated", "cpuset", "usable"),
    [
        # isolcpus=: the kernel took the isolated CPUs out of the affinity of init, and nobody gave them back
        ((0, 1), (2, 3), (0, 1, 2, 3), (0, 1, 2, 3)),
        ((0,), (1,), (0, 1), (0, 1)),
        # the cpuset of a container forbids one of them
        ((0, 1), (2, 3), (0, 1, 2), (0, 1, 2)),
        ((0, 1), (2, 3), (0, 1), (0, 1)),
        # somebody chose the affinity: taskset -c 0, taskset -c 0,3
        ((0,), (2, 3), (0, 1, 2, 3), (0,)),
        ((0, 3), (2, 3), (0, 1, 2, 3), (0, 3)),
        # nothing is isolated
        ((0, 1), (), (0, 1, 2, 3), (0, 1)),
    ],
)
def test_isolated_cpus_are_usable_unless_somebody_chose_the_affinity(
    inherited: tuple[int, ...], isolated: tuple[int, ...], cpuset: tuple[int, ...], usable: tuple[int, ...]
) -> None:
    online = frozenset(range(2 if isolated == (1,) else 4))
    found = usable_cpus(frozenset(inherited), online, frozenset(isolated), lambda asked: asked & frozenset(cpuset))
    assert found == usable


def test_what_the_kernel_grants_is_found_without_changing_our_affinity() -> None:
    before = os.sched_getaffinity(0)
    (some, *_) = before
    assert grantable_cpus(frozenset({some, 4095})) == {some}
    assert grantable_cpus(frozenset({4095})) == grantable_cpus(frozenset()) == frozenset()
    assert os.sched_getaffinity(0) == before


def test_collect_agrees_with_the_system() -> None:
    facts = collect()
    assert set(facts.cpus_allowed) == os.sched_getaffinity(0)
    assert set(facts.cpus_allowed) <= set(facts.cpus_online)
    assert facts.kernel == os.uname().release
    assert facts.memory_total_bytes >= facts.memory_available_bytes > 0
    assert facts.is_root == (os.geteuid() == 0)
    assert 1 <= facts.cores_allowed <= len(facts.cpus_allowed)


@pytest.mark.parametrize(
    ("mark", "environment", "engine"),
    [
        (None, {}, None),
        ("run/.containerenv", {"container": "podman"}, "podman"),
        (".dockerenv", {}, "docker"),
        (".dockerenv proc/2/comm", {}, None),
        ("run/.containerenv", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        (None, {"container": "lxc"}, "lxc"),
    ],
)
def test_the_engine_of_a_container(
    mark: str | None, environment: dict[str, str], engine: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "container"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for path in (mark or "").split():
        Tree(tmp_path).set(path, "kthreadd")
    assert collect(tmp_path).container == engine


USERNS = ("unshare", "--user", "--map-root-user")


@pytest.mark.skipif(subprocess.run([*USERNS, "true"]).returncode != 0, reason="no user namespaces here")
def test_root_of_a_user_namespace_cannot_raise_priorities() -> None:
    """It has every capability, none of which counts on the machine."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NICE, (0, 0)); "
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536)); from planebench.host.facts import collect; "
        "it = collect(); from planebench.host.facts import is_machine_root as power; "
        "print(it.is_root, power(), it.in_user_namespace, it.can_raise_priority, it.memlock_limit_bytes)"
    )
    said = subprocess.run([*USERNS, sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True", "False", "True", "False", "65536"]


def test_as_dict_is_plain_and_survives_json() -> None:
    plain = collect().as_dict()
    assert all(value is None or isinstance(value, str | int | float | bool) for value in plain.values())
    assert json.loads(json.dumps(plain)) == plain
    assert {"cpus_allowed", "smt_siblings", "numa_nodes", "autogroup", "hugepages_2m_free"} <= plain.keys()


def test_siblings_count_as_one_core() -> None:
    pair, other = frozenset({0, 4}), frozenset({1, 5})
    facts = HostFacts(cpus_online=(0, 1, 4, 5), cpus_allowed=(0, 1, 4), siblings={0: pair, 4: pair, 1: other, 5: other})
    assert facts.cores_allowed == 2
    assert facts.shared_cores == ((0, 4),)
    assert facts.as_dict()["smt_siblings"] == "0-4"


def files(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True)
    for name, value in values.items():
        (folder / name).write_text(f"{value}\n")


def test_idle_states_deeper_than_c1(tmp_path: Path) -> None:
    states = [("POLL", "0", "0"), ("C1", "2", "0"), ("C1E", "10", "0"), ("C6", "133", "0"), ("C8", "500", "1")]
    for cpu in (0, 1, 10):
        for number, (name, latency, disable) in enumerate(states):
            files(tmp_path / f"cpu{cpu}/cpuidle/state{number}", name=name, latency=latency, disable=disable)
    assert deep_c_states((0, 1), tmp_path) == ("C1E", "C6")
    (tmp_path / "cpu10/cpuidle/state4/disable").write_text("0")
    assert deep_c_states((0, 10), tmp_path) == ("C1E", "C6", "C8")
    assert deep_c_states((2,), tmp_path) == ()


def test_nics_of_the_pci_bus(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.device("0000:00:03.0", "virtio-pci", vendor="0x1af4")
    tree.device("0000:00:04.0", "vfio-pci", vendor="0x1af4", numa_node="-1")
    tree.device("0000:01:00.0", "ixgbe", "7", numa_node="1")
    tree.device("0000:02:00.0", numa_node="-1")
    tree.device("0000:03:00.0", "nvme", **{"class": "0x010802"})
    assert [(nic.address, nic.driver, nic.numa_node, nic.iommu_group) for nic in collect(tmp_path).nics] == [
        ("0000:00:04.0", "vfio-pci", None, None),
        ("0000:01:00.0", "ixgbe", 1, "7"),
        ("0000:02:00.0", None, None, None),
    ]
    assert collect(tmp_path / "absent").nics == ()


def test_kernel_threads_that_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that works now, one that works now and then, one that worked for others, and one that sleeps."""
    second = 10**9
    samples = iter(
        [
            {1: (0, 100, True), 2: (second, 100, True), 3: (50 * second, 100, False), 4: (1000, 100, True)},
            {1: (second, 100, True), 2: (second, 100, True), 3: (50 * second, 100, False), 4: (1000, 100, True)},
        ]
    )

    def take() -> dict[int, host_facts._KernelTime]:
        taken = next(samples)
        return {pid: host_facts._KernelTime(run, age * second, movable) for pid, (run, age, movable) in taken.items()}

    monkeypatch.setattr(host_facts, "_kernel_threads", take)
    found = sample_kernel_threads(0.01)
    assert [thread.pid for thread in found] == [1, 2]
    assert found[1].cpu_share == 0.01


def test_kernel_threads_of_this_machine() -> None:
    found = sample_kernel_threads(0.01, least_share=-1.0)
    names = {thread.pid: thread.name for thread in found}
    if 2 not in names:
        pytest.skip("a container: kernel threads are not visible")
    assert names[2] == "kthreadd"
    assert os.getpid() not in names
    assert [it.cpu_share for it in found] == sorted((it.cpu_share for it in found), reverse=True)


def test_of_the_kernels_command_line_what_may_be_secret_is_only_counted() -> None:
    line = 'BOOT_IMAGE=/vmlinuz isolcpus=1-3 nohz-full=1-3 key="a b" processor.max_cstate=1 root=/dev/a mitigations=off'
    assert kernel_command_line(line) == "isolcpus=1-3 nohz-full=1-3 processor.max_cstate=1 mitigations=off (3 others)"
    assert kernel_command_line("quiet") == "(1 others)"
    assert kernel_command_line("hugepages=8") == "hugepages=8"
    assert kernel_command_line(None) is None
