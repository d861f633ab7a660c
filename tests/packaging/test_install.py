# SPDX-License-Identifier: BSD-3-Clause
"""`pip install` of the wheel on distributions, and a run there. make image-check; they are slow."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from packaging_rig import DIST, LIMIT_S, MAKE, ROOT, System, inside, run, wheel

from planebench.model.errors import INCONCLUSIVE

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.timeout(LIMIT_S)]

RUN = "--switch planed --scenario p2p --frame-size 64 --duration 0.1 --repeat 1 --loads none --no-calibrate"
ON_A_BUSY_HOST = f"[ $? = {INCONCLUSIVE} ]"
INSTALL = f"""
python3 -m venv /tmp/v
/tmp/v/bin/pip install --quiet WHEEL >&2
/tmp/v/bin/planebench --version >&2
/tmp/v/bin/planebench doctor --json || [ $? = 1 ]
echo ---
/tmp/v/bin/planebench run quick {RUN} --runs /tmp/runs --quiet --json || {ON_A_BUSY_HOST}
"""


def test_the_wheel_is_for_every_python_and_has_its_notices() -> None:
    assert wheel().name.endswith("-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(wheel()) as file:
        names = set(file.namelist())
        (metadata,) = [name for name in names if name.endswith("dist-info/METADATA")]
        stem = metadata.removesuffix("METADATA")
        assert f"{stem}licenses/LICENSE" in names
        (installed,) = [name for name in names if name.endswith("/purelib/planebench/third-party-notices.txt")]
        notices = file.read(installed).decode()
        assert "Requires-Python: >=3.11" in file.read(metadata).decode()
    assert "libnuma: LGPL-2.1-only" in notices and "GNU LESSER GENERAL PUBLIC LICENSE" in notices


def test_the_debian_package_installs_and_goes_without_a_trace(tmp_path: Path) -> None:
    packages = list(DIST.glob("planebench_*_amd64.deb"))
    if not packages:
        pytest.skip(f"no package in {DIST}; {MAKE}")
    root = tmp_path / "root"
    run(["cp", "-a", str(System("bookworm").make()), str(root)])
    done = inside(
        root,
        f"dpkg --install /run/dist/{packages[0].name} >&2; test -f /usr/share/man/man1/planebench.1*\n"
        "planebench --version\n"
        f"planebench run quick {RUN} --runs /tmp/runs --quiet --json || {ON_A_BUSY_HOST}\n"
        "dpkg --purge planebench >&2; ls -d /opt/planebench 2>/dev/null || true",
        writable=True,
    )
    assert done.returncode == 0, done.stderr
    version, _, rest = done.stdout.partition("\n")
    assert version.startswith("planebench 0.") and '"results"' in rest and "/opt/planebench\n" not in rest


@pytest.mark.parametrize(
    ("system", "program"),
    [
        pytest.param(System("bookworm", ("dpdk-dev",)), "planed", id="bookworm-dpdk"),
        pytest.param(System("bookworm"), "planed-static", id="bookworm"),
        pytest.param(System("trixie"), "planed-static", id="trixie"),
        pytest.param(System("trixie", ("dpdk-dev",)), "planed-static", id="trixie-dpdk"),
        pytest.param(System("noble"), "planed-static", id="noble"),
    ],
)
def test_it_installs_and_measures(system: System, program: str) -> None:
    """The wheel of Debian 12: where its DPDK is not there, or is another one, planed-static measures."""
    done = inside(system.make(), INSTALL.replace("WHEEL", f"/run/dist/{wheel().name}"))
    assert done.returncode == 0, done.stderr
    planed = measured_with(done.stdout)
    assert f"/tmp/v/bin/{program}" in planed["text"]
    assert planed["level"] == ("ok" if program == "planed" else "warning")
    assert ("librte_fib.so.23: cannot open shared object file" in planed["text"]) == (program != "planed")


def measured_with(printed: str) -> dict[str, str]:
    """Return what the doctor finds of planed, from the output of INSTALL; the run has results."""
    examined, _, results = printed.partition("---\n")
    assert json.loads(results)["results"]
    (planed,) = [it for it in json.loads(examined)["findings"] if it["code"] == "switch-planed"]
    return planed


def test_a_wheel_built_on_debian_13_measures_with_its_dpdk(tmp_path: Path) -> None:
    subprocess.run(["git", "-C", ROOT, "checkout-index", "--all", f"--prefix={tmp_path}/"], check=True)
    packages = ("build-essential", "pkg-config", "libdpdk-dev", "dpdk-dev", "libjansson-dev", "libpcap-dev")
    build = (
        "cp -r /run/source /tmp/source; python3 -m venv /tmp/b\n"
        "/tmp/b/bin/pip wheel --quiet --no-deps --wheel-dir /tmp/made /tmp/source >&2\n"
    )
    install = INSTALL.replace("WHEEL", "/tmp/made/planebench-*.whl")
    done = inside(System("trixie", packages).make(), build + install, shown={"/source": tmp_path})
    assert done.returncode == 0, done.stderr
    planed = measured_with(done.stdout)
    assert planed["level"] == "ok" and "DPDK 24.11" in planed["text"] and "/tmp/v/bin/planed)" in planed["text"], planed
