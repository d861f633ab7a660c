# SPDX-License-Identifier: BSD-3-Clause
"""The image of the whole bench under podman by `podman run`. make image-check."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging_rig import DIST, LIMIT_S, MAKE, run

from planebench.model.errors import INCONCLUSIVE

pytestmark = [pytest.mark.lab, pytest.mark.root, pytest.mark.timeout(LIMIT_S)]

SHORT = ["--scenario", "p2p", "--frame-size", "64", "--duration", "0.1", "--repeat", "1", "--loads", "none"]
RUN = ["run", "quick", *SHORT, "--no-calibrate", "--quiet", "--json"]
TAP = ("--device=/dev/net/tun", "--cap-add=NET_ADMIN")
"""OvS makes a tap interface for its bridge."""
SHARED = ("--env=PLANEBENCH_SHARE_CPUS=1",)

SETTINGS = """
[containers]
# podman's own are more than a process without CAP_SYS_RESOURCE may have
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
static_dir = "{folder}/lib/libpod"
tmp_dir = "{folder}/tmp"
volume_path = "{folder}/volumes"
[network]
network_config_dir = "{folder}/net"
"""


class Podman:
    """podman with a storage of its own, which has the image."""

    def __init__(self, folder: Path) -> None:
        self.options = ["--root", f"{folder}/lib", "--runroot", f"{folder}/run"]
        settings = folder / "containers.conf"
        settings.write_text(SETTINGS.format(folder=folder))
        self.environment = {**os.environ, "CONTAINERS_CONF": str(settings)}
        (archive,) = DIST.glob("planebench-*.oci.tar")
        loaded = self("load", "-i", str(archive))
        assert loaded.returncode == 0, loaded.stderr
        self.image = loaded.stdout.strip().rpartition(" ")[2]

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run(["podman", *self.options, *words], self.environment)

    def run(self, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return self("run", "--rm", "--network=none", *SHARED, *options, self.image, *words)


@pytest.fixture(scope="module")
def podman() -> Iterator[Podman]:
    if shutil.which("podman") is None:
        pytest.skip("apt-get install podman runc")
    if not list(DIST.glob("planebench-*.oci.tar")):
        pytest.skip(f"no image in {DIST}; {MAKE}")
    folder = Path(tempfile.mkdtemp(prefix="pb-", dir="/tmp"))  # short: podman refuses longer ones
    try:
        yield Podman(folder)
    finally:
        run(["podman", "--root", f"{folder}/lib", "--runroot", f"{folder}/run", "system", "reset", "--force"])
        shutil.rmtree(folder, ignore_errors=True)


def test_the_image_has_licenses_of_all_that_is_in_it() -> None:
    (archive,) = DIST.glob("planebench-*.oci.tar")
    with tarfile.open(archive) as file:
        sizes = [member.size for member in file if member.name.startswith("blobs/") and member.size > 10**6]
        assert len(sizes) == 2, "a layer of Debian, and one of planebench"
        for member in (it for it in file if it.size == max(sizes)):
            content = file.extractfile(member)
            assert content is not None
            with tarfile.open(fileobj=content) as layer:
                names = {name.removeprefix("./") for name in layer.getnames()}
    assert {"usr/share/doc/dpdk-dev/copyright", "usr/share/doc/libc6/copyright", "usr/bin/dpdk-testpmd"} <= names


def test_the_doctor_says_what_the_container_lacks(podman: Podman) -> None:
    done = podman.run("doctor", "--json")
    findings = {it["code"]: it for it in json.loads(done.stdout)["findings"]}
    assert "in a container (podman)" in findings["container"]["text"]
    assert "SYS_NICE" in findings["root"]["text"] and "--cap-add=SYS_NICE" in findings["root"]["remedy"]
    assert findings["priority"]["level"] == "warning"
    for switch in ("planed", "testpmd"):
        assert findings[f"switch-{switch}"]["level"] == "ok", findings[f"switch-{switch}"]
    assert "--device=/dev/net/tun --cap-add=NET_ADMIN" in findings["switch-ovs-dpdk"]["remedy"]

    more = podman.run("doctor", "--json", options=("--cap-add=SYS_NICE,IPC_LOCK", *TAP))
    findings = {it["code"]: it for it in json.loads(more.stdout)["findings"]}
    assert "priority" not in findings and "SYS_NICE" not in findings["root"]["text"]
    assert findings["switch-ovs-dpdk"]["level"] == "ok"


def test_the_quick_suite_runs_in_it(podman: Podman, tmp_path: Path) -> None:
    done = podman.run(*RUN, options=("--volume", f"{tmp_path}:/runs", *TAP))
    assert done.returncode in (0, INCONCLUSIVE), done.stderr
    results = json.loads(done.stdout)["results"]
    assert {it["switch"] for it in results} == {"planed", "testpmd", "ovs-dpdk"}
    (trials,) = tmp_path.glob("*/trials.jsonl")
    kinds = {json.loads(line)["verdict"]["kind"] for line in trials.read_text().splitlines()}
    assert "invalid" not in kinds, done.stderr
    assert list(tmp_path.glob("*/report.html")) and list(tmp_path.glob("*/finished.json"))
