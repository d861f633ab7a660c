# SPDX-License-Identifier: BSD-3-Clause
"""Files of Debian packages that are not installed: downloaded and read. Needs no root."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from planebench.host.programs import run_tool
from planebench.model.errors import StartError

FETCH_DEADLINE_S = 300.0
"""Enough for 30 MB over a slow line."""
ASK_DEADLINE_S = 30.0
PROGRAMS = ("apt-get", "apt-cache", "dpkg-deb")
WAY_OUT = (
    "this needs network access and Debian's package lists once (run `apt-get update` as root); downloads are cached"
)


def missing_program() -> str | None:
    """Return the first of Debian's programs that is not installed, or None."""
    return next((name for name in PROGRAMS if shutil.which(name) is None), None)


def newest_dependency(package: str, prefix: str) -> str:
    """Return the dependency of a meta package whose name begins with ``prefix``. Raises StartError."""
    said = _run(["apt-cache", "depends", package], f"find the Debian package {package}", ASK_DEADLINE_S)
    names = [line.rpartition("Depends:")[2].strip() for line in said.splitlines() if "Depends:" in line]
    found = next((name for name in names if name.startswith(prefix)), None)
    if found is None:
        raise StartError(f"the Debian package {package} has no dependency {prefix}*: {WAY_OUT}")
    return found


def files_of(package: str, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Download a package and return the files whose paths (``./boot/vmlinuz-...``) are wanted. Raises StartError."""
    with tempfile.TemporaryDirectory(prefix="pb-deb-") as folder:
        what = f"download the Debian package {package}"
        _run(["apt-get", "-q", "download", package], what, FETCH_DEADLINE_S, Path(folder))
        fetched = next(Path(folder).glob("*.deb"), None)
        if fetched is None:
            raise StartError(f"cannot {what}: apt-get downloaded no file; {WAY_OUT}")
        with _files_of(fetched) as contents:
            return dict(_read(contents, wanted))


@contextmanager
def _files_of(deb: Path) -> Iterator[tarfile.TarFile]:
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as unpacking:
        assert unpacking.stdout is not None
        try:
            with tarfile.open(fileobj=unpacking.stdout, mode="r|") as contents:
                yield contents
        except tarfile.TarError as error:
            raise StartError(f"cannot read {deb.name}: {error}; {WAY_OUT}") from error
        finally:
            unpacking.kill()


def _read(contents: tarfile.TarFile, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    for member in contents:
        data = contents.extractfile(member) if member.isfile() and wanted(member.name) else None
        if data is not None:
            yield member.name, data.read()


def _run(argv: list[str], what: str, deadline_s: float, folder: Path | None = None) -> str:
    """Return the output of a program. Raises StartError with its last line if it fails."""
    done = run_tool(argv, deadline_s, cwd=folder)
    if done.code is None:
        raise StartError(f"cannot {what}: {done.stderr}; {WAY_OUT}")
    if done.code:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise StartError(f"cannot {what}: {words[-1] if words else f'{argv[0]} failed'}; {WAY_OUT}")
    return done.stdout
