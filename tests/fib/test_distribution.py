# SPDX-License-Identifier: BSD-3-Clause
"""planebench-fib as a router installs it: its wheel alone in an empty environment, beside pyroute2 and nothing else."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from fib_example import inside
from fib_rig import Forwarder
from planed_rig import PATIENCE_S, until

import planebench
import planebench_fib
from planebench.host import procfs
from planebench.host.process import Supervisor

pytestmark = pytest.mark.dataplane

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "planebench_fib"
VNF_MAC = "02:00:00:00:00:01"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    alone = ["--no-build-isolation"] if importlib.util.find_spec("hatchling") else []
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        *alone,
        "--wheel-dir",
        str(folder),
        str(SOURCE),
    ]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode and not alone:
        pytest.skip(f"hatchling is not here, and pip gets none: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of its programs. pyroute2 is the one of this environment: no index is needed."""
    folder = tmp_path_factory.mktemp("router") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=PATIENCE_S)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(pip, check=True, timeout=PATIENCE_S)
    (packages,) = folder.glob("lib/python*/site-packages")
    spec = importlib.util.find_spec("pyroute2")
    assert spec and spec.origin
    (packages / "pyroute2").symlink_to(Path(spec.origin).parent)
    return folder / "bin"


def test_it_is_for_every_python_and_has_all(wheel: Path) -> None:
    assert wheel.name == f"planebench_fib-{planebench_fib.__version__}-py3-none-any.whl"
    assert planebench_fib.__version__ == planebench.__version__
    with zipfile.ZipFile(wheel) as file:
        names = {Path(name) for name in file.namelist() if not name.startswith("planebench_fib-")}
        metadata = next(file.read(name).decode() for name in file.namelist() if name.endswith("METADATA"))
        assert any(name.endswith("licenses/LICENSE") for name in file.namelist())
    sources = {*SOURCE.glob("*.py"), *SOURCE.glob("system/*")}
    assert names == {path.relative_to(ROOT) for path in sources}
    assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist")] == [
        "Requires-Dist: pyroute2>=0.7"
    ]


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(installed / "planebench-fib"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd="/", env={"PATH": "/bin"})


def test_its_command_is_there(installed: Path) -> None:
    assert run(installed, "--version").stdout == f"planebench-fib {planebench_fib.__version__}\n"
    assert all(word in run(installed, "--help").stdout for word in ("agent", "show", "status", "metrics"))
    shown = run(installed, "show", "--interface", "lo", "--json")
    assert json.loads(shown.stdout)["interface"] == "lo"
    folder = Path(run(installed, "system").stdout.strip())
    assert {path.name for path in folder.iterdir()} == {path.name for path in SOURCE.glob("system/*")}
    refused = run(installed, "agent")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "planebench-fib: the following arguments are required: -i/--interface; see planebench-fib agent --help\n"
    )


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces")
def test_its_agent_announces_the_routes_of_a_kernel(installed: Path, tmp_path: Path) -> None:
    if shutil.which("ip") is None:
        pytest.skip("no ip: apt-get install iproute2")
    with Supervisor(Path("/tmp")) as supervisor, Forwarder() as forwarder:
        cpus = frozenset(os.sched_getaffinity(0))
        holder = supervisor.spawn("vnf", ["sleep", "infinity"], cpus=cpus, new_netns=True, high_priority=False)
        until(lambda: procfs.read_text(f"/proc/{holder.pid}/comm") == "sleep", "the namespace is there")
        for line in (
            "link set lo up",
            f"link add vnf0 address {VNF_MAC} type veth peer name far0",
            "link set vnf0 up",
            "link set far0 up",
            "address add 10.0.0.2/24 dev vnf0",
            "neighbour add 10.0.0.1 lladdr 02:00:00:00:01:01 dev vnf0",
            "route add 192.0.2.0/24 via 10.0.0.1",
        ):
            subprocess.run(["nsenter", f"--net=/proc/{holder.pid}/ns/net", "ip", *line.split()], check=True, timeout=60)
        with inside(holder.pid):
            far = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5))
            far.bind(("far0", 0x88B5))
        ended = threading.Event()

        def answer() -> None:
            far.settimeout(0.1)
            while not ended.is_set():
                try:
                    far.send(forwarder.handle(far.recv(2048)))
                except TimeoutError:
                    continue

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            agent = supervisor.spawn(
                "agent",
                [str(installed / "planebench-fib"), "agent", "--interface", "vnf0", "--json"],
                cpus=cpus,
                netns_pid=holder.pid,
                high_priority=False,
            )
            until(lambda: '"end_of_rib"' in agent.log_tail(), "all is announced")
            agent.terminate()
            assert agent.returncode == 0
            assert '"event": "ended"' in agent.log_tail()
        finally:
            ended.set()
            thread.join()
            far.close()
        routes = forwarder.routes()
        assert routes["192.0.2.0/24"].mac == "2:0:0:0:1:1"
        assert {"10.0.0.0/24", "10.0.0.1/32", "10.0.0.2/32"} <= set(routes)
