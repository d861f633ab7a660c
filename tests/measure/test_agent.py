# SPDX-License-Identifier: BSD-3-Clause
"""The agent on the host of the switch: as a child here, without ssh."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host import procfs
from planebench.host.link import Link, explained, own_version, ssh_command
from planebench.model.errors import DiedError, StartError, UsageError
from planebench.switches.adapter import Adapter, Situation
from planebench.switches.registry import get_adapter
from planebench.switches.remote import Hello, RemoteAdapter, SwitchHost, check_wire

WIRE = "veth:eth1=eth1,eth2=eth2"
HELLO = Hello(own_version(), 1, WIRE)
AGENT = [sys.executable, "-m", "planebench", "machine", "agent"]


def link_to(*command: str) -> Link:
    return Link("b", command or AGENT)


@pytest.fixture(scope="module")
def host() -> Iterator[SwitchHost]:
    found = SwitchHost(link_to(), HELLO)
    yield found
    found.link.close()


def ended_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while procfs.is_running(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not procfs.is_running(pid)


def test_the_agent_says_what_its_host_is_and_what_time_it_is(host: SwitchHost) -> None:
    assert host.answer.version == own_version()
    assert set(host.answer.switch_cpus) <= os.sched_getaffinity(0)
    assert host.answer.facts["kernel"] == os.uname().release
    clock = host.info().clock
    assert abs(clock.offset_ns) <= clock.error_ns + 1, "both clocks are the same"


def test_a_switch_is_looked_for_there(host: SwitchHost) -> None:
    adapter = RemoteAdapter("planed", get_adapter("planed"), host)
    assert adapter.build() == get_adapter("planed").build() is not None
    assert RemoteAdapter("linux-bridge", get_adapter("linux-bridge"), host).build() is None
    found, here = adapter.find(), get_adapter("planed").find()
    assert found == here
    with pytest.raises(UsageError, match=r"host b: .*nosuch"):
        RemoteAdapter("nosuch", get_adapter("planed"), host).find()


def test_it_has_all_that_an_adapter_says_of_its_kind(host: SwitchHost) -> None:
    of_the_program = {"own_libraries", "is_program", "one_per_namespace", "one_queue_because", "takes_updates"}
    for name in ("fastclick", "snabb", "vpp"):
        there, here = RemoteAdapter(name, get_adapter(name), host), get_adapter(name)
        for trait in Adapter.__annotations__.keys() - of_the_program:
            assert getattr(there, trait) == getattr(here, trait), trait


def test_an_error_there_is_one_of_the_same_class_here(host: SwitchHost) -> None:
    with pytest.raises(UsageError, match="host b: agent: there is no method nosuch"):
        host.call("nosuch")
    with pytest.raises(DiedError, match=r"host b: .*unexpected keyword"):
        host.call("find", switch="planed", wrong=1)


def test_another_version_is_refused() -> None:
    with pytest.raises(UsageError, match=r"host b has planebench 0.1.*, here is 9.9: install the same"):
        SwitchHost(link_to(), Hello("9.9", 1, WIRE))


def test_what_a_login_shell_prints_is_skipped_and_no_agent_is_one_sentence() -> None:
    command = " ".join(AGENT)
    link = link_to("sh", "-c", f"echo Welcome; exec {command}")
    link.open()
    assert link.call("clock")
    link.close()
    with pytest.raises(StartError, match="host b: planebench is not installed there"):
        link_to("sh", "-c", "exec planebench-nosuch agent").open()
    with pytest.raises(StartError, match="host b: the connection was closed"):
        link_to("true").open()
    with pytest.raises(StartError, match="nosuch-program cannot be started"):
        link_to("nosuch-program").open()


def test_the_agent_ends_with_its_stdin_and_so_does_what_it_started(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    with subprocess.Popen(AGENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as agent:
        assert agent.stdin and agent.stdout
        assert agent.stdout.readline() == b"planebench machine agent\n"
        agent.stdin.write(json.dumps({"id": 1, "method": "clock", "params": {}}).encode() + b"\n")
        agent.stdin.flush()
        assert json.loads(agent.stdout.readline())["result"] > 0
        agent.stdin.close()
        assert agent.wait(60) == 0


def test_an_agent_ends_an_earlier_one_of_its_run() -> None:
    """The network went away without a word: the earlier one still waits for its next call."""
    agents = []
    for run_id in ("17aa", "17ab", "17aa"):
        command = [*AGENT, "--run", run_id]
        agents.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert agents[-1].stdout and agents[-1].stdout.readline() == b"planebench machine agent\n"
    first, other, _ = agents
    assert first.wait(60) == 0 and other.poll() is None
    for agent in agents:
        agent.communicate(timeout=60)


def test_a_lost_or_silent_connection_is_told_and_made_again() -> None:
    host = SwitchHost(link_to(), HELLO)
    silent = host.link._connection._popen.pid  # type: ignore[union-attr]
    os.kill(silent, signal.SIGSTOP)
    try:
        with pytest.raises(DiedError, match=r"host b: no answer to clock in 0.2 s"):
            host.call("clock", 0.2)
    finally:
        os.kill(silent, signal.SIGCONT)
    with pytest.raises(DiedError, match="host b: the connection is lost"):
        host.call("clock")
    host.ready()
    assert host.call("clock") > 0
    assert ended_within(silent, 60), "its connection was closed"
    os.kill(host.link._connection._popen.pid, signal.SIGKILL)  # type: ignore[union-attr]
    with pytest.raises(DiedError, match="host b: the connection was lost"):
        host.call("clock")
    host.link.close()
    host.link.close()


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("x\nHost key verification failed.", "its host key is not known here"),
        ("root@b: Permission denied (publickey).", "it accepts none of your keys; `ssh b true`"),
        ("ssh: Could not resolve hostname b: Name or service not known", "its name cannot be resolved"),
        ("bash: line 1: exec: planebench: not found", "planebench is not installed there"),
        ("ssh: connect to host b port 22: Connection refused", "Connection refused"),
        ("", "the connection was closed"),
    ],
)
def test_the_reason_of_ssh_becomes_one_sentence(words: str, meaning: str) -> None:
    assert meaning in explained(words, "b")


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x", "a b"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="is not valid"):
        ssh_command(host)


@pytest.mark.parametrize("wire", ["virtio", "memif", "veth", "af_xdp"])
def test_a_wire_of_one_machine_is_refused(wire: str) -> None:
    with pytest.raises(UsageError, match="two hosts need the devices of both"):
        check_wire(wire)
    check_wire(WIRE)


def test_vnfs_and_kernel_switches_are_refused(host: SwitchHost) -> None:
    planed = RemoteAdapter("planed", get_adapter("planed"), host)
    assert planed.refusal(Situation("p2p", "veth")) == ""
    assert "two hosts measure p2p" in planed.refusal(Situation("loopback", "veth", 1))
    assert "two hosts measure p2p" in planed.refusal(Situation("v2v", "veth"))
    assert "two hosts measure p2p" in planed.refusal(Situation("p2v", "veth"))
    bridge = RemoteAdapter("linux-bridge", get_adapter("linux-bridge"), host)
    assert "network namespace" in bridge.refusal(Situation("p2p", "veth"))
