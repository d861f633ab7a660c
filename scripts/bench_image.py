#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Make the OCI image of the bench from a tar file of its root: ``bench_image.py ROOT.TAR FOLDER``.

It has two layers, so that a new planebench does not bring a new Debian: /opt/planebench is the upper one.
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

from planebench import __version__
from planebench.hosting import oci

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


def split(root: Path, lower: Path, upper: Path) -> None:
    """Write the members of a tar file to two: those below ``UPPER``, and all others."""
    with tarfile.open(root) as whole, tarfile.open(lower, "w") as below, tarfile.open(upper, "w") as above:
        for member in whole:
            layer = above if f"{member.name.removeprefix('./')}/".startswith(f"{UPPER}/") else below
            layer.addfile(member, whole.extractfile(member) if member.isreg() else None)


def main(root: Path, folder: Path) -> None:
    """Write ``planebench-VERSION.oci.tar`` to the folder and print its path."""
    lower, upper = root.with_name("lower.tar"), root.with_name("upper.tar")
    split(root, lower, upper)
    root.unlink()
    archive = folder / f"planebench-{__version__}.oci.tar"
    oci.write(archive, f"localhost/planebench:{__version__}", [lower, upper], CONFIG)
    lower.unlink()
    upper.unlink()
    print(f"{archive} ({archive.stat().st_size / 2**20:.0f} MiB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
