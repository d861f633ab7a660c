# SPDX-License-Identifier: BSD-3-Clause
"""The program planed: its path, its version, the reason why it does not start, and what it alone can tell.

DPDK's drivers know the ring sizes that NICs take, and planed asks these. Planed sends captures and looks up routes, so
what it makes of such files it tells itself.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from planebench.host.programs import NotFound, ProgramOutput, program_output, run_tool
from planebench.model.errors import NotInstalledError, UsageError, unreadable

Facts = dict[str, Any]

PLANED_ENV = "PLANEBENCH_PLANED"
REMEDY = f"build it with `make setup`, or set {PLANED_ENV} to the path of planed"
BROKEN_REMEDY = "install the libraries it was built with, or rebuild it with `make setup`"
STATIC_NAME, STATIC_ENV = "planed-static", "PLANEBENCH_PLANED_STATIC"
_NOT_LOADED, _LOADER_WORDS = 127, "error while loading shared libraries: "
"""Exit code of a program that lacks a library, and what glibc's loader prints before its name."""
_ERROR = "planed: error: "
TIMEOUT_S = 30.0
FACTS_DEADLINE_S = 120.0
"""For a capture or a table of millions."""
STATIC_REMEDY = f"build {STATIC_NAME} with `make setup`, or set {STATIC_ENV} to the path of the program"


def find_planed() -> Path | None:
    """Return $PLANEBENCH_PLANED, else the planed beside our Python, else on PATH; None if there is none.

    Where this system lacks a library of that planed, the result is the planed-static beside it. If $PLANEBENCH_PLANED
    is set, it is never another program, even if it is wrong.
    """
    found = _find("planed", PLANED_ENV, ())
    if found is None or os.environ.get(PLANED_ENV) or not missing_library(found):
        return found
    static = found.with_name(STATIC_NAME)
    return static if planed_version(static) else found


def missing_library(binary: Path) -> str:
    """Return the loader's complaint about a shared library that a program needs; empty if the program starts."""
    said = program_output(binary, "--version")
    complaint = said.stderr.strip() if said.code == _NOT_LOADED else ""
    return complaint.partition(_LOADER_WORDS)[2].strip()


def replaced_planed(used: Path) -> tuple[Path, str] | None:
    """Return the planed that ``used``, a planed-static, stands in for, and the library that it lacks."""
    planed = used.with_name("planed")
    complaint = missing_library(planed) if used.name == STATIC_NAME else ""
    return (planed, complaint) if complaint else None


def find_static_planed(planed: Path | None = None) -> Path | None:
    """Return planed without shared libraries, for containers and virtual machines.

    $PLANEBENCH_PLANED_STATIC, else beside ``planed`` (by default the one that is found), else where planed would be.
    """
    beside = planed or find_planed()
    return _find(STATIC_NAME, STATIC_ENV, (beside.with_name(STATIC_NAME),) if beside else ())


def _find(name: str, variable: str, first: Sequence[Path]) -> Path | None:
    wanted = os.environ.get(variable)
    if wanted:
        found = shutil.which(wanted)
        return Path(found).resolve() if found else None
    for candidate in (*first, Path(sys.executable).parent / name, Path(sys.prefix) / "bin" / name):
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return candidate
    found = shutil.which(name)
    return Path(found) if found else None


def planed_version(binary: Path | None = None) -> str | None:
    """Return the output of ``planed --version``; None if planed is absent or does not start.

    ``binary``: another program than the one that is found.
    """
    binary = binary or find_planed()
    said = program_output(binary, "--version") if binary else None
    return said.lines[0] if said and said.ok and said.lines else None


def missing_planed() -> NotFound:
    """Return why planed cannot be used: it is not installed, or does not start."""
    binary = find_planed()
    if binary is None:
        return NotFound(REMEDY)
    said = program_output(binary, "--version")
    complaint = said.lines[-1] if said.lines else f"{binary} --version printed nothing"
    return NotFound(BROKEN_REMEDY, f"does not start: {complaint}")


def complaint(said: ProgramOutput) -> str:
    """Return the errors in the output of a planed that ended at once, in one sentence."""
    errors = [line.removeprefix(_ERROR) for line in said.stderr.splitlines() if line.startswith(_ERROR)]
    words = "; ".join(errors) or " ".join((said.stderr or said.stdout).split())
    return words or f"it ended with {said.code}"


def require_planed(*, drivers: bool = False) -> Path:
    """Return the planed program. Raises NotInstalledError with a remedy if it is absent or does not start.

    ``drivers``: it must have the drivers of NICs and AF_XDP, which planed-static has not.
    """
    binary = find_planed()
    if binary is None or planed_version(binary) is None:
        raise NotInstalledError(f"planed, which is also the traffic generator, {missing_planed().words}")
    if drivers and (replaced := replaced_planed(binary)):
        planed, complaint = replaced
        raise NotInstalledError(
            f"NICs and AF_XDP need the drivers of {planed}, which does not start: {complaint}; {BROKEN_REMEDY}"
        )
    return binary


@dataclass(frozen=True, slots=True)
class RingLimits:
    """The least and the most descriptors that both the receive and the send rings of a NIC take."""

    least: int
    most: int

    def nearest(self, ring_size: int) -> int:
        """Return the power of two that is nearest to ``ring_size``, itself one, and that the NIC takes."""
        while ring_size < self.least:
            ring_size *= 2
        while ring_size > self.most:
            ring_size //= 2
        return ring_size


def ring_limits(addresses: Sequence[str]) -> Mapping[str, RingLimits]:
    """Return the limits of NICs that are bound for DPDK, by address; those that planed cannot ask are missing."""
    planed = find_planed()
    if planed is None:
        return {}
    done = run_tool([planed, "--ring-limits", ",".join(addresses)], TIMEOUT_S)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {it["device"]: RingLimits(it["least"], it["most"]) for it in told}


def planed_facts(kind: str, what: Mapping[str, Any], files: Iterable[Path] = ()) -> Facts:
    """Return what a task of ``kind`` makes of an object that names ``files``; not to be changed.

    Kept until a file changes. Raises UsageError in planed's words, NotInstalledError without planed.
    """
    stamps = []
    for file in files:
        try:
            it = file.stat()
        except OSError as error:
            raise unreadable(f"file {file}", error, "give a readable file") from None
        stamps.append((it.st_dev, it.st_ino, it.st_size, it.st_mtime_ns))
    return _facts(json.dumps({kind: dict(what)}), tuple(stamps), require_planed())


@lru_cache(maxsize=16)
def _facts(asked: str, stamps: tuple[Any, ...], planed: Path) -> Facts:
    said = run_tool([planed, "--facts", "/dev/stdin"], FACTS_DEADLINE_S, stdin=asked)
    if not said.ok:
        raise UsageError(complaint(said))
    found: Facts = json.loads(said.stdout)
    return found
