# SPDX-License-Identifier: BSD-3-Clause
"""A user's own VNF as a command: what it is told, what it may do, and that it forwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hosting_rig import Way, exact, hosted_request, port_sockets, start_vnf, tester, until_crossing
from planed_rig import CPUS, OTHER_CPU, until

from planebench.host import procfs
from planebench.host.pci import Nic
from planebench.host.planed_program import REMEDY, STATIC_REMEDY, find_planed, find_static_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.model.errors import DiedError, UsageError
from planebench.model.switch import Value
from planebench.testbed.hosting.base import HostedPort, HostedRequest, device_files
from planebench.testbed.hosting.bubblewrap import around, shown
from planebench.testbed.hosting.exec import FUNCTIONS, ExecHosting, missing_program, words_of
from planebench.testbed.hosting.inside import RunningCommand, ids_outside, own_folder

WAYS = (Way("a", "b", 0), Way("b", "a", 1))
MACS = ("02:00:00:00:04:01", "02:00:00:00:04:02")
HOSTING = ExecHosting()


def request_of(folder: Path, command: str, **values: Value) -> HostedRequest:
    """Two ports with nobody at their other end."""
    ports = tuple(HostedPort(f"v{i}", folder / f"v{i}" / "sock", mac) for i, mac in enumerate(MACS))
    return HostedRequest(
        name="vnf0",
        ports=ports,
        values={"command": command, **values},
        document=None,
        files=(),
        cpus=(3, 5),
        control_cpus=frozenset({0, 1}),
        workdir=folder,
        planed=Path("/no/planed"),
    )


def test_a_program_is_found_by_its_variable_or_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command: dict[str, Value] = {"command": "my-vnf {eal}"}
    why = "my-vnf is not installed; to install: give its path with PLANEBENCH_MY_VNF"
    assert missing_program(command) == why
    assert missing_program({**command, "image": "/an/image"}) == missing_program({"command": "/my-vnf"}) == ""
    assert missing_program({"command": "sh"}) == ""
    program = tmp_path / "my-vnf"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for said in (program, tmp_path):
        monkeypatch.setenv("PLANEBENCH_MY_VNF", str(said))
        assert missing_program(command) == ""
    monkeypatch.setenv("PLANEBENCH_MY_VNF", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match=r'PLANEBENCH_MY_VNF ".*gone" does not exist'):
        missing_program(command)


@pytest.mark.parametrize(("name", "kind"), [("router", "lpm"), ("firewall", "acl")])
def test_our_configurations_have_ten_entries_each_way(name: str, kind: str) -> None:
    (_, path) = words_of(f"ip_pipeline {{functions}}/ip-pipeline-{name}.cli", request_of(Path("/x"), ""), 100)
    lines = Path(path).read_text().splitlines()
    assert Path(path).parent == FUNCTIONS
    for table in (0, 1):
        entries = [
            line for line in lines if line.startswith(f"pipeline PIPELINE0 table {table} rule add match {kind} ")
        ]
        assert len(set(entries)) == 10
        assert any(f"action fwd port {1 - table}" in line for line in entries)
        assert not any(f"action fwd port {table}" in line for line in entries)


def test_a_command_is_told_ports_and_cpus() -> None:
    request = request_of(Path("/x"), "")
    assert words_of("fwd -p {port0} --other={port1},{mac1} 'a b' {cpus}/{control_cpus} {name}", request, 100) == [
        *("fwd", "-p", "/x/v0/sock", "--other=/x/v1/sock,02:00:00:00:04:02", "a b", "3,5/0,1", "vnf0"),
    ]
    words = words_of("fwd {eal} -- -i", replace(request, queues=2), 100)
    assert words[0] == "fwd" and words[-2:] == ["--", "-i"]
    assert "--lcores=0@(0,1),1@3,2@5" in words and words[words.index("-m") + 1] == "100"
    assert [word for word in words if word.startswith("--vdev")] == [
        f"--vdev=net_virtio_user{i},path=/x/v{i}/sock,mac={MACS[i]},queue_size=256,queues=2" for i in (0, 1)
    ]
    assert "--lcores=0@3,1@5" in words_of("fwd {eal_main}", request, 100)
    assert "--in-memory" in words_of("fwd {eal}", replace(request, hugepages=True), 100)


def test_devices_are_named_to_eal_and_shown_in_the_container(tmp_path: Path) -> None:
    function = Nic("0000:3b:02.0", "vfio-pci", 0, "61", has_iommu=True)
    request = request_of(tmp_path, "fwd {eal}")
    words = words_of("fwd {eal}", request, 100, [function])
    assert "--no-pci" not in words and words[words.index("-a") + 1] == "0000:3b:02.0"
    assert device_files([function]) == (Path("/dev/vfio/vfio"), Path("/dev/vfio/61"))
    assert device_files([replace(function, has_iommu=False)])[1] == Path("/dev/vfio/noiommu-61")
    assert [(it.how, it.name) for it in shown(device_files([function]))] == [
        ("--dev-bind", Path("/dev/vfio/vfio")),
        ("--dev-bind", Path("/dev/vfio/61")),
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("", "exec needs a command"),
        ("fwd 'open", "cannot parse command line .*: No closing quotation"),
        ("fwd {port9}", r"\{port9\}.*\{port0\}"),
        ("fwd --all={eal}", r"\{eal\} expands to several words"),
    ],
)
def test_a_command_that_cannot_be_is_refused(command: str, words: str, supervisor: Supervisor) -> None:
    if isinstance(HOSTING.find(), NotFound):
        pytest.skip("no bubblewrap")
    with pytest.raises(UsageError, match=words):
        HOSTING.start(request_of(supervisor.workdir("bad"), command), supervisor)


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with high_priority(), Supervisor(Path("/tmp")) as it:
        yield it


def start(supervisor: Supervisor, folder: str, command: str, **values: Value) -> RunningCommand:
    """A command that has no need of its ports."""
    if isinstance(found := HOSTING.find(), NotFound):
        pytest.skip(found.remedy)
    request = replace(request_of(supervisor.workdir(folder), command, **values), cpus=(OTHER_CPU,))
    for port in request.ports:
        port.socket.parent.mkdir()
    return HOSTING.start(replace(request, control_cpus=frozenset(CPUS)), supervisor)


def ended(vnf: RunningCommand) -> str:
    """Its last words."""
    until(lambda: not vnf.process.alive(), "it ends")
    with pytest.raises(DiedError) as told:
        vnf.check()
    vnf.stop()
    return str(told.value)


def test_a_command_can_touch_nothing_but_its_own_folder(supervisor: Supervisor) -> None:
    script = (
        "id -u; touch /usr/x /etc/x ../../v0/x; ls -A /tmp; cat /proc/net/dev; grep -E 'Cap(Eff|Bnd)' /proc/self/status"
    )
    words = ended(start(supervisor, "touch", f'sh -c "{script}; echo mine > here; cat here; exit 7"'))
    assert "exit code 7" in words and words.endswith("vnf0 says: mine")
    assert "vnf0 (exec) died: its command has no {eal}, which becomes the DPDK arguments with its two ports" in words
    log = (supervisor.root / "touch" / "vnf0" / "vnf0.log").read_text()
    assert log.count("Read-only file system") == 3
    assert "CapEff:\t0000000000000000" in log, "no capabilities"
    assert [line.split(":")[0].strip() for line in log.splitlines() if ": " in line and "0 " in line][-1:] == ["lo"]
    assert (supervisor.root / "touch" / "vnf0" / "own" / "here").read_text() == "mine\n"


def test_it_sees_its_program_what_its_command_names_and_what_is_shown(supervisor: Supervisor) -> None:
    with tempfile.TemporaryDirectory(prefix="exec-", dir="/var/tmp") as name:
        home = Path(name)
        home.chmod(0o755)
        for path in ("bin/fwd", "bin/plugin", "rules", "config", "hidden", "more/shown"):
            (home / path).parent.mkdir(mode=0o755, exist_ok=True)
            (home / path).write_text("#!/bin/sh\nfind $HERE -type f | sort | tr '\\n' ' '\n".replace("$HERE", name))
            (home / path).chmod(0o755)
        command = f"{home}/bin/fwd {home}/rules --config={home}/config"
        words = ended(start(supervisor, "sees", command, paths=[str(home / "more")]))
        seen = [f"{home}/{path}" for path in ("bin/fwd", "bin/plugin", "config", "more/shown", "rules")]
        assert words.endswith(" ".join(["vnf0 says:", *seen]))
    assert ended(start(supervisor, "sh", "/bin/sh -c 'echo it is there'")).endswith("it is there")


def test_a_program_is_shown_alone_where_others_have_much(tmp_path: Path) -> None:
    for program in ("/root/fwd", "/home/me/fwd", "/fwd", f"{tmp_path}/fwd"):
        assert around(Path(program), tmp_path / "pb-1") == Path(program)
    assert around(Path("/opt/click/bin/click"), tmp_path) == Path("/opt/click/bin")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"image": "/"}, "/ contains /.*, where other VNFs are; give other paths"),
        ({"paths": ["/tmp"]}, "/tmp contains /.*, where other VNFs are"),
        ({"paths": ["/no/such"]}, 'path "/no/such" is not there; give absolute paths, with . between them'),
    ],
)
def test_what_cannot_be_shown_is_refused(option: dict[str, Value], words: str, supervisor: Supervisor) -> None:
    with pytest.raises(UsageError, match=words):
        start(supervisor, f"refused{len(supervisor.processes)}-{len(words)}", "true", **option)


def test_a_thread_that_ends_meanwhile_is_none_of_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    read = procfs.ids_of_thread
    monkeypatch.setattr(procfs, "ids_of_thread", lambda tid: () if tid == os.getpid() else read(tid))
    assert os.getpid() not in ids_outside(os.getpid())


def test_its_memory_is_limited(supervisor: Supervisor) -> None:
    hog = start(supervisor, "hog", "python3 -c 'x = bytearray(300 << 20)'", memory_mb=64)
    assert hog.facts.details["limits"] == "64 MiB of private memory (RLIMIT_DATA)"
    assert "MemoryError" in ended(hog)


@pytest.mark.dataplane
def test_testpmd_as_a_vnf_forwards_every_frame_and_dies_alone(supervisor: Supervisor) -> None:
    if find_planed() is None:
        pytest.skip(REMEDY)
    if isinstance(found := HOSTING.find(), NotFound) or shutil.which("dpdk-testpmd") is None:
        pytest.skip(found.remedy if isinstance(found, NotFound) else "no dpdk-testpmd")
    folder = supervisor.workdir("pmd")
    it = tester(supervisor, "pmd-tester", ["a", "b"], folder)
    command = (
        "dpdk-testpmd {eal} -- --auto-start --forward-mode=io --nb-cores=1 --total-num-mbufs=4096 --no-mlockall "
        "--no-flush-rx --rxd={ring_size} --txd={ring_size} --stats-period=3600"
    )
    request = hosted_request("vnf0", port_sockets(folder, "a", "b"), supervisor, {"command": command})
    vnf = start_vnf(HOSTING, replace(request, document=None), supervisor)
    for way in WAYS:
        until_crossing(it, way, [vnf])
    until(lambda: exact(it, WAYS), "every frame crosses")
    (thread,) = vnf.threads()
    assert thread.owner == "vnf" and "worker" in thread.name
    assert vnf.facts.hosting == "exec" and vnf.facts.program.startswith("dpdk-testpmd in bubblewrap")
    vnf.ask_to_end()
    until(lambda: not vnf.process.alive(), "it ends")
    assert "Bye" in vnf.process.log_tail(40), "it was asked, not killed"
    vnf.stop()


@pytest.mark.dataplane
def test_an_image_is_a_folder_that_is_its_root(supervisor: Supervisor, tmp_path: Path) -> None:
    planed = find_static_planed()
    if planed is None:
        pytest.skip(STATIC_REMEDY)
    if isinstance(found := HOSTING.find(), NotFound):
        pytest.skip(found.remedy)
    shutil.copy(planed, tmp_path / "planed")
    folder = supervisor.workdir("own")
    it = tester(supervisor, "own-tester", ["a", "b"], folder)
    values = {"command": "/planed --config own.json", "image": str(tmp_path)}
    request = hosted_request("vnf0", port_sockets(folder, "a", "b"), supervisor, values, shares_cpu=False)
    request.document.write(own_folder(request) / "own.json")
    vnf = start_vnf(HOSTING, replace(request, document=None), supervisor)
    until_crossing(it, WAYS[0], [vnf])
    until(lambda: exact(it, WAYS), "every frame crosses")
    root = Path(f"/proc/{vnf.threads()[0].pid}/root")
    assert not (root / "usr").exists() and (root / "planed").exists()
    vnf.stop()


def test_an_archive_is_no_root(supervisor: Supervisor, tmp_path: Path) -> None:
    if isinstance(found := HOSTING.find(), NotFound):
        pytest.skip(found.remedy)
    (tmp_path / "image.tar").touch()
    with pytest.raises(UsageError, match=r"image .*image.tar is not a directory; unpack it: `podman export"):
        start(supervisor, "archive", "true", image=str(tmp_path / "image.tar"))
