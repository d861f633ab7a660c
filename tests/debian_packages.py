# SPDX-License-Identifier: BSD-3-Clause
"""Packages of Debian that the lab unpacks into a folder of the cache; nothing is installed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from planebench.host.files import default_folder
from planebench.host.programs import run_tool
from planebench.model.errors import StartError
from planebench.testbed.hosting import guest_image as debian


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder ``unpacked`` that ``make`` left in the folder that it is given; once. Raises StartError."""
    folder = default_folder() / "guest" / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder.parent) as new:
            (Path(new) / "unpacked").mkdir()
            make(Path(new))
            (Path(new) / "unpacked").rename(folder)
    return folder


def unpack(folder: Path, packages: Sequence[str], what: str, options: Sequence[str] = ()) -> None:
    """Download packages into ``folder`` and unpack them in ``folder/unpacked``. Raises StartError."""
    apt_get(folder, what, *options, "download", *packages)
    for package in folder.glob("*.deb"):
        run_tool(["dpkg-deb", "-x", str(package), str(folder / "unpacked")], debian.FETCH_DEADLINE_S)


def apt_get(folder: Path, what: str, *words: str) -> None:
    """Run apt-get in a folder. Raises StartError with its last words."""
    if missing := debian.missing_program():
        raise StartError(f"{missing} is needed to unpack {what}")
    as_root = ("-o", "APT::Sandbox::User=root")  # another user cannot write to this folder
    done = run_tool(["apt-get", "-q", *as_root, *words], debian.FETCH_DEADLINE_S, cwd=folder)
    if done.code:
        raise StartError(f"cannot download {what}: {(done.stderr or done.stdout).strip()[-300:]}")
