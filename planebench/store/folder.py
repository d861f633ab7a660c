# SPDX-License-Identifier: BSD-3-Clause
"""The folder of the runs, the names of runs, and how a run is found."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from planebench.host.files import read_file
from planebench.model.errors import StoreError, UsageError
from planebench.model.header import Finished, RunHeader
from planebench.model.plan import Plan
from planebench.store.codec import from_json, header_from_json, unsealed

HEADER_FILE = "run.json"
TRIALS_FILE = "trials.jsonl"
SKIPPED_FILE = "skipped.jsonl"
CONDITIONS_FILE = "conditions.jsonl"
FINISHED_FILE = "finished.json"

RUNS_VARIABLE = "PLANEBENCH_RUNS"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run in a list: its header and how it ended, without its trials."""

    path: Path
    header: RunHeader
    finished: Finished | None

    @property
    def run_id(self) -> str:
        """Return the name of the folder, which is what a user types."""
        return self.path.name


def default_runs_dir() -> Path:
    """Return ``$PLANEBENCH_RUNS``, or ``runs`` in the current folder."""
    return Path(os.environ.get(RUNS_VARIABLE) or "runs")


def new_run_id(name: str, now: datetime | None = None, suffix: str = "") -> str:
    """Return ``20261121-123356-quick``: UTC time and the name, reduced to characters that are safe in a path.

    ``suffix``: for runs of one name that may begin in the same second, in folders apart from each other.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    return f"{moment:%Y%m%d-%H%M%S}-{safe[:60]}" + (f"-{suffix}" if suffix else "")


def read_header(folder: Path) -> RunHeader:
    """Read run.json of a folder. Raises StoreError."""
    path = folder / HEADER_FILE
    try:
        data = read_file(path)
    except OSError as error:
        raise StoreError(
            f"{path}: {error.strerror or error}. Give a run folder, or see `planebench list runs`"
        ) from error
    return header_from_json(data, str(path))


def read_finished(folder: Path, *, checksums: bool) -> Finished | None:
    """Read finished.json of a folder; None if there is none. Raises StoreError; ``checksums``: also without one."""
    path = folder / FINISHED_FILE
    data = read_if_there(path)
    return None if data is None else from_json(Finished, unsealed(data, str(path), required=checksums), str(path))


def read_if_there(path: Path) -> bytes | None:
    """Return what a file of a run holds; None where there is none. Raises StoreError where it cannot be read."""
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error


def list_runs(runs_dir: Path | None = None) -> tuple[RunInfo, ...]:
    """Return all readable runs, oldest first. Folders with no run.json, or one of another version, are left out."""
    found = []
    directory = runs_dir or default_runs_dir()
    for folder in [path for path in directory.iterdir() if _is_run(path)] if directory.is_dir() else ():
        try:
            header = read_header(folder)
            info = RunInfo(folder, header, read_finished(folder, checksums=header.checksums))
            found.append((header.started_at, (folder / HEADER_FILE).stat().st_mtime_ns, info))
        except (OSError, StoreError):  # another user's, or removed meanwhile
            continue
    return tuple(info for *_, info in sorted(found, key=lambda it: it[:2]))


def runs_named(runs_dir: Path | None, name: str) -> tuple[Path, ...]:
    """Return the folders of the runs with a name, the newest last."""
    return tuple(info.path for info in list_runs(runs_dir) if info.header.name == name)


def find_run(runs_dir: Path | None, wanted: str) -> Path:
    """Return the folder of a run: ``latest``, a run id, the start of one, a name (its newest run) or a path.

    Raises UsageError with the candidates where nothing, or more than one id, fits.
    """
    directory = runs_dir or default_runs_dir()
    if wanted != "latest" and _is_run(Path(wanted)):
        return Path(wanted)
    infos = list_runs(directory)
    if not infos:
        raise UsageError(f"no run {wanted!r}: {directory} holds no runs. Make one with `planebench run quick`")
    if wanted == "latest":
        return infos[-1].path
    for info in infos:
        if info.run_id == wanted:
            return info.path
    named = [i for i in infos if i.header.name == wanted]
    if named:
        return named[-1].path
    begun = [i for i in infos if wanted and i.run_id.startswith(wanted)]
    if len(begun) == 1:
        return begun[0].path
    shown = ", ".join(i.run_id for i in reversed((begun or list(infos))[-8:]))
    problem = f"{len(begun)} runs start with {wanted!r}" if begun else f"no run {wanted!r} in {directory}"
    raise UsageError(f"{problem}. Give one of: latest, {shown}")


def _is_run(folder: Path) -> bool:
    """Return whether a folder may be a run, also if it is not readable: its reader then reports that."""
    try:
        return (folder / HEADER_FILE).is_file()
    except PermissionError:
        return True


# The runs of a plan, of which one that did not come to its end can be resumed.


def runs_of_plan(runs_dir: Path, plan: Plan) -> Iterator[RunInfo]:
    """Yield the runs of this plan, whatever their time budget, the newest first; those that cannot be read are left
    out."""
    for info in reversed(list_runs(runs_dir)):
        if replace(info.header.plan, time_budget_s=plan.time_budget_s) == plan:
            yield info


def is_complete(info: RunInfo) -> bool:
    """Return whether a run came to its end."""
    return info.finished is not None and info.finished.status == "complete"


def resume_command(command: Sequence[str]) -> str:
    """Return what a user types to resume a run, by the command that began it."""
    return shlex.join([*(word for word in command if word != "--resume"), "--resume"])
