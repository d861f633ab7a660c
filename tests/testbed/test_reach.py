# SPDX-License-Identifier: BSD-3-Clause
"""What a VNF can reach: a program in its container walks all that it sees, and tries every socket and known file.

The bench around it runs as root, and as an ordinary user.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from planebench.host.planed_program import REMEDY, STATIC_REMEDY, find_planed, find_static_planed
from planebench.host.programs import NotFound
from planebench.testbed.hosting.registry import HOSTINGS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(240)]

KNOWN = ("/etc/shadow", "/etc/passwd", "/etc/hostname", "/root", "/home", "/dev/mem", "/dev/kvm")
NOBODY = 65534

BENCH = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from hosting_rig import hosted_request, port_sockets, start_vnf, tester
from planed_rig import until
from planebench.host.process import Supervisor
from planebench.model.errors import StartError
from planebench.testbed.hosting.registry import HOSTINGS

walker, root, hosting, known = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]

def files(folder):
    return {str(path) for path in folder.rglob("*") if path.is_socket()}

with Supervisor(Path("/tmp")) as supervisor:
    folder = supervisor.workdir("it")
    it = tester(supervisor, "tester", "abcd", folder)
    beside = hosted_request("vnf1", port_sockets(folder, "c", "d"), supervisor)
    start_vnf(HOSTINGS["container"], beside, supervisor)
    (folder / "secret").write_text("of the bench")
    own = port_sockets(folder, "a", "b")
    others = sorted(files(supervisor.root) - set(map(str, own)))
    told = [f"@{path}" for path in (*known, folder / "secret", *others)]  # a command that names a file has it
    if hosting in ("container", "image"):
        os.environ["PLANEBENCH_PLANED_STATIC"] = walker
        os.environ["PATH"] = f"{Path(walker).parent}:{os.environ['PATH']}"
        disk = Path(walker).parents[1] / "disk"
        request = hosted_request("vnf0", own, supervisor, {"path": str(disk), "accel": "tcg"})
        request = request if hosting == "container" else replace(request, document=None)
        try:
            HOSTINGS[hosting].start(request, supervisor)
        except StartError as error:
            print(error, file=sys.stderr)  # it is no planed, and no QEMU
    else:
        values = {"command": " ".join(["/walk" if root else walker, *told])} | ({"image": root} if root else {})
        request = replace(hosted_request("vnf0", own, supervisor, values), document=None)
        vnf = HOSTINGS[hosting].start(request, supervisor)
        until(lambda: not vnf.process.alive(), "it has walked")
    (found,) = [path for path in supervisor.root.rglob("found") if path.is_file()]
    lines = found.read_text().splitlines()
    print(json.dumps({"own": list(map(str, own)), "others": others, "root": str(supervisor.root), "lines": lines}))
"""


@pytest.fixture(scope="module")
def walker() -> Iterator[Path]:
    """The program, which needs no library, in a folder that everybody may enter."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    with tempfile.TemporaryDirectory(prefix="reach-") as name:
        folder = Path(name)
        (folder / "bin").mkdir()
        for path in (folder, folder / "bin"):
            path.chmod(0o755)
        disk = folder / "disk"
        disk.write_bytes(bytes(510) + b"\x55\xaa")
        disk.chmod(0o644)
        program = folder / "bin" / "walk"
        subprocess.run([compiler, "-static", "-O1", "-o", program, Path(__file__).with_name("reach.c")], check=True)
        program.chmod(0o755)
        shutil.copy(program, program.with_name("qemu-system-x86_64"))
        yield program


@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize("hosting", ["exec", "exec:image", "container", "image"])
def test_a_vnf_reaches_its_own_ports_and_files_only(walker: Path, hosting: str, who: str) -> None:
    for needed, remedy in ((find_planed(), REMEDY), (find_static_planed(), STATIC_REMEDY)):
        if needed is None:
            pytest.skip(remedy)
    if isinstance(missing := HOSTINGS["exec"].find(), NotFound):
        pytest.skip(missing.remedy)
    if who == "root" and os.geteuid() != 0:
        pytest.skip("not root")
    kind, _, root = hosting.partition(":")
    lowered = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    words = [sys.executable, "-P", "-c", BENCH, str(walker), str(walker.parent) if root else "", kind, *KNOWN]
    path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(__file__).parents[1])])
    done = subprocess.run(
        [*(lowered if who == "user" and os.geteuid() == 0 else []), *words],
        env={**os.environ, "PYTHONPATH": path, "REACH_SECRET": "x", "HOME": "/nonexistent"},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    if "Permission denied" in done.stderr and "RTM_NEWADDR" in done.stderr:
        pytest.skip("an ordinary user may make no namespaces here")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    found: dict[str, set[str]] = {"seen": set(), "read": set(), "socket": set(), "connects": set()}
    assert told["lines"][-1] == "end"
    for line in told["lines"][:-1]:
        kind, _, name = line.partition(" ")
        found[kind].add(name)
    assert len(told["others"]) >= 4, "there is what it must not reach"
    assert found["socket"] == found["connects"] == set(told["own"])
    _only_its_own(found, told["root"], walker)


def _only_its_own(found: dict[str, set[str]], root: str, walker: Path) -> None:
    """Nothing of the bench but its own folder and ports, nothing of the machine but programs and libraries."""
    vnf = f"{root}/it/vnf0/"
    ours = {path for path in found["seen"] | found["read"] if path.startswith(f"{root}/it/")}
    assert not {path for path in ours if not f"{path}/".startswith((vnf, f"{root}/it/a/", f"{root}/it/b/"))}
    assert not {path for path in found["read"] if path.endswith((".log", "environ"))}
    programs = ("/walk", "/qemu-system-x86_64", "/planed")
    allowed = ("/etc/ld.so.c", "/etc/alternatives", root, str(walker.parents[1]), *programs)
    reads = {path for path in found["read"] if not path.startswith(allowed)}
    assert not reads
    assert "/etc/shadow" not in found["seen"] and "/etc/passwd" not in found["seen"]
