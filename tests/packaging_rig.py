# SPDX-License-Identifier: BSD-3-Clause
"""Roots of distributions, made from their own mirrors, in which the wheel is installed as a user installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
ROOTS = ROOT / "build" / "roots"
MAKE = "make image-check makes it"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
MIRRORS = {"noble": ("deb [trusted=yes] http://archive.ubuntu.com/ubuntu noble main universe",)}
"""Suites that are not Debian's. Debian 12 has no package with Ubuntu's keys: nothing but a test may use such a root."""
DEADLINE_S = 900.0
"""Time limit of one command: a mirror may be slow."""
LIMIT_S = 3600.0
"""Time limit of a test that runs several commands. The limit in pyproject.toml is for tests that fetch nothing."""
ENDED_WHOLE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Ends mmdebstrap with its children and mounts: the next run deletes an incomplete root, and /dev must not be in it."""


@dataclass(frozen=True, slots=True)
class System:
    """A distribution: a suite, and packages beside python3-venv."""

    suite: str
    packages: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        return ROOTS / "-".join((self.suite, *self.packages))

    def make(self) -> Path:
        """Return its root folder, made once; skips the test where its mirror cannot be reached."""
        if os.geteuid() != 0:
            pytest.skip("the roots are made as root")
        if shutil.which("mmdebstrap") is None:
            pytest.skip("apt-get install mmdebstrap")
        if not self.root.exists():
            making = self.root.with_suffix(".part")
            shutil.rmtree(making, ignore_errors=True)
            making.parent.mkdir(parents=True, exist_ok=True)
            include = ",".join(("apt", "python3-venv", "ca-certificates", *self.packages))
            words = ["--variant=minbase", f"--include={include}", self.suite, str(making), *MIRRORS.get(self.suite, ())]
            done = run([*ENDED_WHOLE, "mmdebstrap", *words])
            if done.returncode != 0:
                pytest.skip(f"no root of {self.suite}: {done.stderr.strip().splitlines()[-1]}")
            making.rename(self.root)
        return self.root


def wheel() -> Path:
    """Return the newest wheel in dist/."""
    found = sorted(DIST.glob("planebench-*.whl"), key=lambda path: path.stat().st_mtime)
    if not found:
        pytest.skip(f"no wheel in {DIST}; {MAKE}")
    return found[-1]


def run(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_S, env=environment)


def inside(
    root: Path, command: str, *, writable: bool = False, shown: Mapping[str, Path] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a shell command in a root, with the network, /dist and the folders ``shown`` at these paths.

    Only /tmp and /run can be written, unless the root is ``writable``.
    """
    folders = {"/dist": DIST, **(shown or {})}
    certificates = ("--ro-bind", str(CERTIFICATES), "/run/certificates.crt") if CERTIFICATES.exists() else ()
    return run(
        [
            "bwrap",
            *("--bind" if writable else "--ro-bind", str(root), "/"),
            *("--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys", "--tmpfs", "/run"),
            *("--perms", "1777", "--tmpfs", "/tmp"),
            *("--ro-bind", "/etc/resolv.conf", "/etc/resolv.conf"),
            *certificates,
            *(word for path, folder in folders.items() for word in ("--ro-bind", str(folder), f"/run{path}")),
            *("--unshare-pid", "--die-with-parent", "--cap-add", "ALL"),
            *("--", "/bin/sh", "-euc", command),
        ],
        {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/tmp",
            "LC_ALL": "C.UTF-8",
            "PLANEBENCH_SHARE_CPUS": "1",
            "PIP_CERT": "/run/certificates.crt" if certificates else "",
        },
    )
