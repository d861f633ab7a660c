#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the OCI image and the Debian package of the bench: ``bench_image.py ROOT.TAR FOLDER``.

ROOT.TAR is a root of Debian with the bench in it. The image has two layers, so that a new planebench does not bring a
new Debian: /opt/planebench is the upper one, and the package has it, too.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from planebench import __version__
from planebench.testbed.hosting import oci

UPPER = "opt/planebench"
CONFIG = {
    # tini is process 1: it passes signals on, and collects what is left of switches.
    "Entrypoint": ["/usr/bin/tini", "--", "planebench"],
    "Cmd": ["--help"],
    "Env": [
        f"PATH=/{UPPER}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "PLANEBENCH_RUNS=/runs",
        "XDG_CACHE_HOME=/runs/.cache",  # calibrations are kept with the runs
    ],
    "WorkingDir": "/runs",
    "Volumes": {"/runs": {}},
    "Labels": {
        "org.opencontainers.image.title": "planebench",
        "org.opencontainers.image.version": __version__,
        "org.opencontainers.image.description": "Benchmark and compare software switches (NFV data planes)",
    },
}


CONTROL = """Package: planebench
Version: {version}
Architecture: amd64
Maintainer: planebench
Section: net
Priority: optional
Depends: python3 (>= 3.{minor}), python3 (<< 3.{next}), libc6 (>= 2.34)
Recommends: dpdk-dev, openvswitch-switch-dpdk, libjansson4, libpcap0.8, libbsd0, iproute2, ethtool
Description: benchmark and compare software switches (NFV data planes)
 With its own data plane, planed, and all Python packages that it needs, in /opt/planebench. Without the recommended
 packages planed-static measures.
"""


def package(upper: Path, folder: Path) -> Path:
    """Write ``planebench_VERSION_amd64.deb`` to the folder: for the Python of the Debian that the image has."""
    tree = upper.with_name("deb")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir()
    subprocess.run(["tar", "-x", "--no-same-owner", "-C", str(tree), "-f", str(upper)], check=True)
    (library,) = (tree / UPPER / "lib").glob("python3.*")
    minor = int(library.name.removeprefix("python3."))
    (tree / "DEBIAN").mkdir()
    control = CONTROL.format(version=__version__, minor=minor, next=minor + 1)
    (tree / "DEBIAN" / "control").write_text(control)
    (tree / "usr" / "bin").mkdir(parents=True)
    (tree / "usr" / "bin" / "planebench").symlink_to(f"/{UPPER}/bin/planebench")
    made = folder / f"planebench_{__version__}_amd64.deb"
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z1", "--build", str(tree), str(made)], check=True)
    shutil.rmtree(tree)
    return made


def split(root: Path, lower: Path, upper: Path) -> None:
    """Write the members of a tar file to two: those below ``UPPER``, and all others."""
    with tarfile.open(root) as whole, tarfile.open(lower, "w") as below, tarfile.open(upper, "w") as above:
        for member in whole:
            layer = above if f"{member.name.removeprefix('./')}/".startswith(f"{UPPER}/") else below
            layer.addfile(member, whole.extractfile(member) if member.isreg() else None)


def main(root: Path, folder: Path) -> None:
    """Write ``planebench-VERSION.oci.tar`` and the package to the folder and print their paths."""
    lower, upper = root.with_name("lower.tar"), root.with_name("upper.tar")
    split(root, lower, upper)
    root.unlink()
    archive = folder / f"planebench-{__version__}.oci.tar"
    oci.write(archive, f"localhost/planebench:{__version__}", [lower, upper], CONFIG)
    made = package(upper, folder)
    lower.unlink()
    upper.unlink()
    for path in (archive, made):
        print(f"{path} ({path.stat().st_size / 2**20:.0f} MiB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
