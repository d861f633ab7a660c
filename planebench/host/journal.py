# SPDX-License-Identifier: BSD-3-Clause
"""Changes of a machine that are put back: the old values are on disk before anything is written.

A kill at any moment can be undone, by ``doctor --undo`` or by the next start. ``root`` is where /proc and /sys are:
tests have a tree of their own.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from planebench.host import procfs
from planebench.host.files import replace_file, sync_folder
from planebench.host.procfs import boot_id, read_text
from planebench.model.errors import StartError, StoreError

STATE_ENV = "PLANEBENCH_STATE"
DEFAULT_STATE = Path("/var/lib/planebench/undo.json")
STATE_VERSION = 1
ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value to change, of the file ``path`` or of what its setting makes of that path."""

    path: str
    old: str
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class ValueOutcome:
    """The outcome for one value. ``left``: unchanged, for the reason in ``note``; ``failed``: the system refused."""

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
    """An entry of the state file: the value before the first change, and the last one that we wrote.

    ``owner``: the process that needs the change, by pid and start; empty for one that stays until ``doctor --undo``.
    """

    path: str
    old: str
    new: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A kind of value that planebench changes: which paths it has (glob patterns), how it is read and written.

    ``write`` raises OSError. ``is_ours`` tells whether a value is the one that we wrote, or one on the way to it.
    """

    patterns: tuple[str, ...]
    read: Callable[[Path, str], str | None] = lambda root, path: read_text(at(root, path))
    write: Callable[[Path, str, str], object] = lambda root, path, value: at(root, path).write_text(value, "ascii")
    is_ours: Callable[[str, Saved], bool] = lambda now, entry: now == entry.new

    def has(self, path: str) -> bool:
        """Return whether a path is one of this setting."""
        return ".." not in path.split("/") and any(
            fnmatchcase(path, pattern) and path.count("/") == pattern.count("/") for pattern in self.patterns
        )


def at(root: Path, path: str) -> Path:
    """Return where an absolute path is below ``root``."""
    return root / path.lstrip("/")


def name_of(path: str) -> str:
    """Return ``kernel.sched_autogroup_enabled`` for a sysctl, ``driver of 0000:01:00.0``, or the path."""
    if path.startswith("/proc/sys/"):
        return path.removeprefix("/proc/sys/").replace("/", ".")
    if path.startswith("/sys/bus/pci/devices/"):
        device, _, name = path.removeprefix("/sys/bus/pci/devices/").partition("/")
        return f"{name} of {device}"
    return path


def state_path() -> Path:
    """Return $PLANEBENCH_STATE, else /var/lib/planebench/undo.json."""
    return Path(os.environ.get(STATE_ENV) or DEFAULT_STATE)


def this_process() -> str:
    """Return the owner of changes that this process needs: its pid and its start."""
    return f"{os.getpid()}:{procfs.start_ticks(os.getpid())}"


def is_alive(owner: str) -> bool:
    """Return whether the process that an entry belongs to still runs."""
    pid, _, start = owner.partition(":")
    return pid.isdigit() and procfs.is_running(int(pid)) and str(procfs.start_ticks(int(pid))) == start


class Journal:
    """The state file of one machine, and the settings that may be in it."""

    def __init__(self, state: Path, settings: Sequence[Setting], root: Path = ROOT) -> None:
        self.state = state
        self.settings = settings
        self.root = root

    def apply(self, changes: Sequence[ChangedValue], owner: str = "") -> tuple[ValueOutcome, ...]:
        """Save the old values, then make the changes in their order. Values saved by an earlier call are kept.

        A value that cannot be written is an outcome, not an error. Raises StoreError if the state cannot be saved;
        then nothing is changed.
        """
        if not changes:
            return ()
        with self._locked():
            saved = {entry.path: entry for entry in self._load()}
            for change in changes:
                first = saved.get(change.path, Saved(change.path, change.old, change.new))
                saved[change.path] = replace(first, new=change.new, owner=owner)
            self._save(tuple(saved.values()))
            outcomes = tuple(self._write(change.path, change.old, change.new) for change in changes)
            partly = {outcome.path: outcome.new for outcome in outcomes if outcome.kind == "changed" and outcome.note}
            if partly:
                self._save(tuple(replace(entry, new=partly.get(entry.path, entry.new)) for entry in saved.values()))
        return outcomes

    def undo(self) -> tuple[ValueOutcome, ...]:
        """Restore everything that no other living process needs, last change first, and remove the state file.

        Return nothing if there is nothing to undo. A value that is neither ours nor the old one was set by somebody
        else and stays. A value that the system refused stays in the state file, to be tried again. Raises StoreError
        for a state file that cannot be read or removed.
        """
        mine = this_process()
        return self._undo(lambda entry: entry.owner == mine or not is_alive(entry.owner), tell_rest=True)

    def undo_own(self, paths: Collection[str] | None = None) -> tuple[ValueOutcome, ...]:
        """Restore what this process changed for itself, all of it or these ``paths``."""
        mine = this_process()
        return self._undo(lambda entry: entry.owner == mine and (paths is None or entry.path in paths))

    def apply_or_undo(self, changes: Sequence[ChangedValue], title: str) -> None:
        """Make changes that this process needs; where one fails, undo all of them and raise StartError."""
        failed = [outcome for outcome in self.apply(changes, this_process()) if outcome.kind == "failed"]
        if failed:
            undone = self.undo_own({change.path for change in changes})
            left = [outcome.text for outcome in undone if outcome.kind != "changed"]
            raise StartError("; ".join([f"{title}: {failed[0].text}; `dmesg` may say more", *left]))

    def undo_abandoned(self) -> tuple[ValueOutcome, ...]:
        """Restore what processes changed that were killed before they restored it."""
        return self._undo(lambda entry: bool(entry.owner) and not is_alive(entry.owner))

    def owners(self) -> dict[str, str]:
        """Return the values that other living processes need: the pid of each by path."""
        entries = self._load() if self.state.exists() else ()
        others = (entry for entry in entries if entry.owner != this_process() and is_alive(entry.owner))
        return {entry.path: entry.owner.partition(":")[0] for entry in others}

    def owned(self) -> frozenset[str]:
        """Return the paths of the values that this process changed for itself."""
        mine = this_process()
        return frozenset(entry.path for entry in self._load() if entry.owner == mine)

    def _undo(self, is_chosen: Callable[[Saved], bool], tell_rest: bool = False) -> tuple[ValueOutcome, ...]:
        if not self.state.exists():
            return ()
        outcomes, kept = [], []
        with self._locked():
            entries = self._load()
            if not (tell_rest or any(map(is_chosen, entries))):
                return ()
            for entry in reversed(entries):
                if not is_chosen(entry):
                    kept.append(entry)
                    note = f"process {entry.owner.partition(':')[0]} of planebench uses it"
                    outcomes += [ValueOutcome("left", entry.path, entry.new, entry.old, note)] if tell_rest else []
                    continue
                outcome = self._put_back(entry)
                if outcome is not None:
                    outcomes.append(outcome)
                    kept += [entry] if outcome.kind == "failed" else []
            if kept:
                self._save(tuple(reversed(kept)))
                return tuple(outcomes)
            try:
                self.state.unlink(missing_ok=True)
                sync_folder(self.state.parent)
            except OSError as error:
                raise StoreError(
                    f"cannot remove {self.state}: {error.strerror}; all values in it were restored"
                ) from error
        return tuple(outcomes)

    def _put_back(self, entry: Saved) -> ValueOutcome | None:
        """Restore one value; return None if it is the old value already."""
        setting = self._setting(entry.path)
        if setting is None:  # whoever can write the state file must not have root write anything else
            return ValueOutcome("left", entry.path, entry.new, entry.old, "it is not a file that planebench changes")
        now = setting.read(self.root, entry.path)
        if now is None:
            return ValueOutcome("left", entry.path, entry.new, entry.old, "it no longer exists")
        if now == entry.old:
            return None
        if not setting.is_ours(now, entry):
            note = f"its value is now {now}, which planebench did not set; the value before planebench was {entry.old}"
            return ValueOutcome("left", entry.path, now, entry.old, note)
        return self._write(entry.path, now, entry.old)

    def _write(self, path: str, old: str, new: str) -> ValueOutcome:
        """Write a value and read back what the kernel accepted: it may grant fewer hugepages."""
        setting = self._setting(path)
        if setting is None:
            return ValueOutcome("failed", path, old, new, os.strerror(errno.EPERM))
        try:
            setting.write(self.root, path, new)
        except OSError as error:
            return ValueOutcome("failed", path, old, new, error.strerror or str(error))
        got = setting.read(self.root, path)
        if got is None or got == old:
            return ValueOutcome("failed", path, old, new, f"it reads {got or 'nothing'} after writing")
        return ValueOutcome("changed", path, old, got, "" if got == new else f"{new} was requested")

    def _setting(self, path: str) -> Setting | None:
        return next((setting for setting in self.settings if setting.has(path)), None)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes out between reading the state file and replacing it."""
        try:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.state.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(
                f"cannot create {self.state.parent}: {error.strerror}; set {STATE_ENV} to another file"
            ) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _load(self) -> tuple[Saved, ...]:
        """Return the values saved since this boot; older ones are void, because the reboot restored everything."""
        try:
            document = json.loads(self.state.read_bytes())
            if document["version"] != STATE_VERSION:
                raise ValueError(f"version {document['version']!r}, not {STATE_VERSION}")
            entries = tuple(Saved(**{key: str(value) for key, value in entry.items()}) for entry in document["changes"])
            return entries if document["boot_id"] == boot_id(self.root) else ()
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"cannot read {self.state}: {error!r}. It holds the values from before planebench changed them; if it "
                "cannot be repaired, remove it and reboot"
            ) from error

    def _save(self, entries: Sequence[Saved]) -> None:
        changes = [asdict(entry) for entry in entries]
        document = {"version": STATE_VERSION, "boot_id": boot_id(self.root), "changes": changes}
        try:
            replace_file(self.state, json.dumps(document, indent=1).encode(), durable=True)
        except OSError as error:
            raise StoreError(
                f"cannot write {self.state}: {error.strerror or error}. Free space, or set {STATE_ENV} to another file"
            ) from error
