# SPDX-License-Identifier: BSD-3-Clause
"""The changes of ``doctor --fix``, which ``doctor --undo`` reverts: safe, reversible, gone after a reboot.

:data:`TUNINGS` is the complete list. The old values are on disk before anything is written, so that a kill at any
moment can be undone. ``root`` is where /proc and /sys are: tests have a tree of their own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from planebench.host import facts as host_facts
from planebench.host.files import sync_folder
from planebench.host.procfs import boot_id, read_text
from planebench.model.errors import StoreError
from planebench.store.files import write_atomically

STATE_ENV = "PLANEBENCH_STATE"
DEFAULT_STATE = Path("/var/lib/planebench/undo.json")
STATE_VERSION = 1

HUGEPAGES = 1024
HUGEPAGE_BYTES = 2 * 2**20
SPARE_BYTES = 2 * 2**30
"""Memory that stays free of hugepages: programs, buffers, the page cache."""

ROOT = Path("/")

Wanted = Callable[[Path, Path, str], str | None]
"""Returns the value for a file from root, file and present value; None leaves the file unchanged."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """One tuning: ``code`` of the finding that it mends, the files (glob patterns), the value, the reason."""

    code: str
    files: tuple[str, ...]
    wanted: Wanted
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """A file to change."""

    path: str
    old: str
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one file. ``left``: unchanged, for the reason in ``note``; ``failed``: the system refused."""

    kind: Literal["changed", "left", "failed"]
    path: str
    old: str
    new: str
    note: str = ""

    @property
    def text(self) -> str:
        """Return e.g. ``kernel.sched_autogroup_enabled: 1 -> 0``, or the reason why not."""
        if self.kind == "left":
            return f"{name_of(self.path)}: unchanged, {self.note}"
        if self.kind == "failed":
            return f"{name_of(self.path)}: {self.old} -> {self.new} failed: {self.note}"
        return f"{name_of(self.path)}: {self.old} -> {self.new}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, slots=True)
class Saved:
    """An entry of the state file: the value before the first change, and the last one that we wrote."""

    path: str
    old: str
    new: str


def _always(value: str) -> Wanted:
    return lambda root, file, old: value


def _performance(root: Path, file: Path, old: str) -> str | None:
    available = read_text(file.with_name("scaling_available_governors"))
    return "performance" if available is None or "performance" in available.split() else None


def _off_if_deep(root: Path, file: Path, old: str) -> str | None:
    return "1" if host_facts.is_deep(file.parent) else None


def _more_hugepages(root: Path, file: Path, old: str) -> str | None:
    """Return 1024, or None if there are as many or they would leave too little memory."""
    available_bytes = host_facts.meminfo(root).get("MemAvailable")
    if available_bytes is None or not old.isdigit() or int(old) >= HUGEPAGES:
        return None
    left_bytes = available_bytes - (HUGEPAGES - int(old)) * HUGEPAGE_BYTES
    return str(HUGEPAGES) if left_bytes >= SPARE_BYTES else None


_CPUS = "/sys/devices/system/cpu"

TUNINGS: tuple[Tuning, ...] = (
    Tuning(
        "autogroup",
        ("/proc/sys/kernel/sched_autogroup_enabled",),
        _always("0"),
        "nice values of pollers apply across login sessions",
    ),
    Tuning(
        "governor",
        (f"{_CPUS}/cpu[0-9]*/cpufreq/scaling_governor",),
        _performance,
        "the CPU does not lower its clock between trials",
    ),
    Tuning("turbo", (f"{_CPUS}/intel_pstate/no_turbo",), _always("1"), "the clock does not depend on temperature"),
    Tuning("turbo", (f"{_CPUS}/cpufreq/boost",), _always("0"), "the clock does not depend on temperature"),
    Tuning(
        "c-states",
        (f"{_CPUS}/cpu[0-9]*/cpuidle/state[0-9]*/disable",),
        _off_if_deep,
        "cores wake without delay",
    ),
    Tuning("kernel-threads", host_facts.DAMON_SWITCHES, _always("N"), "DAMON takes no time from a poller's core"),
    Tuning(
        "hugepages",
        ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",),
        _more_hugepages,
        "packet buffers cause fewer TLB misses",
    ),
)


def state_path() -> Path:
    """Return $PLANEBENCH_STATE, else /var/lib/planebench/undo.json."""
    return Path(os.environ.get(STATE_ENV) or DEFAULT_STATE)


def plan(root: Path = ROOT) -> tuple[Change, ...]:
    """Return the changes of :func:`apply`, in its order. Reads only; files that this machine lacks are left out."""
    return tuple(change for tuning in TUNINGS for pattern in tuning.files for change in _changes(root, tuning, pattern))


def _changes(root: Path, tuning: Tuning, pattern: str) -> Iterator[Change]:
    for file in sorted(root.glob(pattern.lstrip("/"))):
        old = read_text(file)
        new = tuning.wanted(root, file, old) if old is not None else None
        if old is not None and new is not None and new != old:
            yield Change(f"/{file.relative_to(root)}", old, new, tuning.why)


def commands(changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the changes as shell commands, one for all CPUs."""
    every = ((re.sub(r"/cpu\d+/", "/cpu[0-9]*/", change.path), change.new) for change in changes)
    return tuple(dict.fromkeys(f"echo {new} | sudo tee {path}" for path, new in every))


def apply(state: Path, root: Path = ROOT) -> tuple[Outcome, ...]:
    """Save the old values, then make the changes of :func:`plan`. Values saved by an earlier call are kept.

    A file that cannot be written is an outcome, not an error. Raises StoreError if the state cannot be saved; then
    nothing is changed.
    """
    changes = plan(root)
    if not changes:
        return ()
    saved = {entry.path: entry for entry in _load(state, root)}
    for change in changes:
        first = saved.get(change.path, Saved(change.path, change.old, change.new))
        saved[change.path] = replace(first, new=change.new)
    _save(state, root, tuple(saved.values()))
    outcomes = tuple(_write(root, change.path, change.old, change.new) for change in changes)
    partly = {outcome.path: outcome.new for outcome in outcomes if outcome.kind == "changed" and outcome.note}
    if partly:
        _save(state, root, tuple(replace(entry, new=partly.get(entry.path, entry.new)) for entry in saved.values()))
    return outcomes


def undo(state: Path, root: Path = ROOT) -> tuple[Outcome, ...]:
    """Restore everything, last change first, and remove the state file. Return nothing if there is nothing to undo.

    A value that is neither ours nor the old one was set by somebody else and stays. A value that the system refused
    stays in the state file, to be tried again. Raises StoreError for a state file that cannot be read or removed.
    """
    outcomes, refused = [], []
    for entry in reversed(_load(state, root)):
        outcome = _put_back(root, entry)
        if outcome is not None:
            outcomes.append(outcome)
            refused += [entry] if outcome.kind == "failed" else []
    if refused:
        _save(state, root, tuple(reversed(refused)))
    else:
        _remove(state)
    return tuple(outcomes)


def _put_back(root: Path, entry: Saved) -> Outcome | None:
    """Restore one value; return None if it is the old value already."""
    if not _is_ours(entry.path):  # whoever can write the state file must not have root write anything else
        return Outcome("left", entry.path, entry.new, entry.old, "it is not a file that planebench changes")
    now = read_text(_at(root, entry.path))
    if now is None:
        return Outcome("left", entry.path, entry.new, entry.old, "it no longer exists")
    if now == entry.old:
        return None
    if now != entry.new:
        note = f"its value is now {now}, which planebench did not set; the value before planebench was {entry.old}"
        return Outcome("left", entry.path, now, entry.old, note)
    return _write(root, entry.path, now, entry.old)


def _write(root: Path, path: str, old: str, new: str) -> Outcome:
    """Write a value and read back what the kernel accepted: it may grant fewer hugepages."""
    file = _at(root, path)
    try:
        file.write_text(new, encoding="ascii")
    except OSError as error:
        return Outcome("failed", path, old, new, error.strerror or str(error))
    got = read_text(file)
    if got is None or got == old:
        return Outcome("failed", path, old, new, f"it reads {got or 'nothing'} after writing")
    return Outcome("changed", path, old, got, "" if got == new else f"{new} was requested")


def _at(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _is_ours(path: str) -> bool:
    patterns = (pattern for tuning in TUNINGS for pattern in tuning.files)
    return ".." not in path.split("/") and any(
        fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for pattern in patterns
    )


def name_of(path: str) -> str:
    """Return ``kernel.sched_autogroup_enabled`` for a sysctl, else the path."""
    return path.removeprefix("/proc/sys/").replace("/", ".") if path.startswith("/proc/sys/") else path


def _load(state: Path, root: Path) -> tuple[Saved, ...]:
    """Return the values saved since this boot; older ones are void, because the reboot restored everything."""
    try:
        document = json.loads(state.read_bytes())
        if document["version"] != STATE_VERSION:
            raise ValueError(f"version {document['version']!r}, not {STATE_VERSION}")
        entries = tuple(Saved(**{key: str(value) for key, value in entry.items()}) for entry in document["changes"])
        return entries if document["boot_id"] == boot_id(root) else ()
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(
            f"cannot read {state}: {error!r}. It holds the values from before `doctor --fix`; if it cannot be "
            "repaired, remove it and reboot"
        ) from error


def _save(state: Path, root: Path, entries: Sequence[Saved]) -> None:
    document = {"version": STATE_VERSION, "boot_id": boot_id(root), "changes": [asdict(entry) for entry in entries]}
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot create {state.parent}: {error.strerror}; set {STATE_ENV} to another file") from error
    write_atomically(state, json.dumps(document, indent=1).encode())


def _remove(state: Path) -> None:
    if not state.exists():
        return
    try:
        state.unlink()
        sync_folder(state.parent)
    except OSError as error:
        raise StoreError(f"cannot remove {state}: {error.strerror}; all values in it were restored") from error
