# SPDX-License-Identifier: BSD-3-Clause
"""Writer of a run folder: the header, one line per trial, the end. A folder has one writer."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from planebench.host.files import new_file, open_file, read_file, replace_file, sync_folder
from planebench.model.conditions import Conditions
from planebench.model.errors import StoreError, is_full, unwritable
from planebench.model.header import RUN_ID, Finished, RunHeader, RunStatus
from planebench.model.plan import Skipped
from planebench.model.records import Trial
from planebench.model.text import utc_text
from planebench.store.codec import sealed, to_json
from planebench.store.folder import (
    CONDITIONS_FILE,
    FINISHED_FILE,
    HEADER_FILE,
    SKIPPED_FILE,
    TRIALS_FILE,
    read_header,
)

if TYPE_CHECKING:
    import duckdb

# What the user asks for: reports and exports.


def write_output(path: Path, data: bytes, *, named: bool = True) -> Path:
    """Write a file and return its path; one that is there is replaced. Raises an error as :func:`unwritable`.

    ``named``: its name is the user's, who may mean no file, as with /dev/stdout, or a pipe; that is written to.
    """
    try:
        is_no_file = path.exists() and not path.is_file() and not path.is_symlink()
        if named and (is_no_file or path.absolute().parts[1] in ("dev", "proc")):
            path.write_bytes(data)
        else:
            replace_file(path, data)
    except OSError as error:
        raise unwritable(str(path), error) from None
    return path


def write_parquet(found: duckdb.DuckDBPyRelation, path: Path, *, durable: bool = False) -> Path:
    """Write a relation as a Parquet file, as :func:`new_file`, and return its path. Raises an error as unwritable."""
    import duckdb

    from planebench.analysis.tables import TABLES_VERSION

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path, durable=durable) as file:
            # DuckDB takes neither the name of the file nor metadata as a parameter.
            quoted = str(file.name).replace("'", "''")
            metadata = f"KV_METADATA {{planebench_tables: '{TABLES_VERSION}'}}, USE_TMP_FILE false"
            found.query("made", f"COPY (SELECT * FROM made) TO '{quoted}' (FORMAT parquet, {metadata})")
    except OSError as error:
        raise unwritable(str(path), error) from None
    except duckdb.Error as error:
        raise StoreError(f"cannot write {path}: {error}. Free space, or give a folder that you may write") from None
    return path


# The two ways a run folder is written: a whole file at once, or one line at the end. Both survive kill -9.


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, and stays. Raises StoreError."""
    try:
        replace_file(path, data, durable=True)
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror or error}. Free space, or choose another folder"
        ) from error


def cut_torn_line(path: Path) -> None:
    """Cut what follows the last newline of a file of lines: its writer was killed in it. Raises StoreError."""
    try:
        with os.fdopen(open_file(path, os.O_RDWR), "r+b") as file:
            data = file.read()
            file.truncate(data.rfind(b"\n") + 1)
            os.fsync(file.fileno())
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot repair {path}: {error.strerror or error}") from error


class LineFile:
    """An append-only file of lines: one write a line, synced. A line counts once its newline is on disk."""

    def __init__(self, path: Path) -> None:
        """Open for appending; raises StoreError where it cannot be opened or somebody else has it open."""
        self.path = path
        try:
            self._fd = open_file(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        except OSError as error:
            raise StoreError(f"cannot open {path}: {error.strerror or error}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise StoreError(f"{path} is in use by another planebench; wait until it ends") from error

    def append(self, line: bytes) -> None:
        """Append one line (without its newline). On failure the file is as it was before. Raises StoreError."""
        data, mine = line + b"\n", os.fstat(self._fd)
        try:
            named = self.path.stat()
        except OSError:
            named = None
        if named is None or (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):  # it would be lost silently
            raise StoreError(f"{self.path} was removed or moved while planebench was writing it. Start the run again")
        try:
            written = os.write(self._fd, data)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes were written")
            os.fdatasync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, mine.st_size)
            raise StoreError(f"cannot append to {self.path}: {error.strerror or error}. Is the disk full?") from error

    def close(self) -> None:
        """Close; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class RunWriter(contextlib.AbstractContextManager["RunWriter"]):
    """An open run folder. What :meth:`append` returned from is on disk, whatever happens to the process afterwards."""

    def __init__(self, path: Path, header: RunHeader) -> None:
        self.path = path
        self.header = header
        self._trials = LineFile(path / TRIALS_FILE)

    @classmethod
    def create(cls, runs_dir: Path, header: RunHeader) -> RunWriter:
        """Make ``runs_dir/<run_id>/`` and write the header.

        ``header.run_id`` gets ``-2``, ``-3``, ... where the folder is there already; ``writer.header`` carries the id
        that was taken. Raises StoreError where the folder cannot be made.
        """
        path = _make_folder(runs_dir, header.run_id)
        header = dataclasses.replace(header, run_id=path.name, checksums=True)
        try:
            write_atomically(path / HEADER_FILE, sealed(to_json(header, indent=2)) + b"\n")
            return cls(path, header)
        except StoreError:
            shutil.rmtree(path, ignore_errors=True)
            raise

    @classmethod
    def reopen(cls, path: Path) -> RunWriter:
        """Continue a run that was interrupted or killed; a torn last line is removed. Raises StoreError."""
        if not (path / TRIALS_FILE).is_file():
            raise StoreError(f"{path / TRIALS_FILE} is not there, so nothing can be added: measure it again, whole")
        writer = cls(path, read_header(path))
        cut_torn_line(path / TRIALS_FILE)
        cut_torn_line(path / SKIPPED_FILE)
        cut_torn_line(path / CONDITIONS_FILE)
        for old in (path / FINISHED_FILE, *path.glob(f".{FINISHED_FILE}.*.tmp")):  # one that was killed in its end
            old.unlink(missing_ok=True)
        sync_folder(path)
        return writer

    def append(self, trial: Trial) -> None:
        """Store a trial; returns when it is on disk. Raises StoreError (full disk); the folder stays readable."""
        self._trials.append(sealed(to_json(trial)))

    def skip(self, skipped: Skipped) -> None:
        """Store that something did not run (beyond what the header says already)."""
        with contextlib.closing(LineFile(self.path / SKIPPED_FILE)) as lines:
            lines.append(sealed(to_json(skipped)))

    def observe(self, conditions: Conditions) -> None:
        """Store under which conditions a switch came up; returns when it is on disk."""
        with contextlib.closing(LineFile(self.path / CONDITIONS_FILE)) as lines:
            lines.append(sealed(to_json(conditions)))

    def discard(self) -> None:
        """Remove the folder of a run that has no trial; safe to call where it cannot be removed."""
        self.close()
        shutil.rmtree(self.path, ignore_errors=True)

    def finish(self, status: RunStatus = "complete", note: str = "", now: datetime | None = None) -> None:
        """Mark the run as ended in an orderly way, and close. ``interrupted``: by Ctrl-C, SIGTERM or an error."""
        try:
            trials = read_file(self.path / TRIALS_FILE).count(b"\n")
        except OSError:  # it was removed, or is too large to be read: as with an older run
            trials = None
        finished = Finished(status, utc_text(now or datetime.now(UTC)), note, trials)
        try:
            write_atomically(self.path / FINISHED_FILE, sealed(to_json(finished, indent=2)) + b"\n")
        finally:
            self.close()

    def close(self) -> None:
        """Close without a word on how it ended; safe to call twice."""
        self._trials.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def make_runs_dir(runs_dir: Path) -> None:
    """Make the folder of the runs if it is not there. Raises StoreError if it cannot be made or written."""
    try:
        runs_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=runs_dir):
            pass
    except OSError as error:
        raise _unusable(runs_dir, error) from error


def _make_folder(runs_dir: Path, run_id: str) -> Path:
    if not RUN_ID.fullmatch(run_id):
        raise StoreError(f"run_id {run_id!r} is not a folder name. Make one with planebench.store.new_run_id")
    make_runs_dir(runs_dir)
    try:
        for count in range(1, 1000):
            path = runs_dir / (run_id if count == 1 else f"{run_id}-{count}")
            try:
                path.mkdir()
            except FileExistsError:
                continue
            sync_folder(runs_dir)
            return path
    except OSError as error:
        raise _unusable(runs_dir, error) from error
    raise StoreError(f"{runs_dir} has a thousand runs named {run_id}. Remove some, or choose another name")


def _unusable(runs_dir: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot make a run folder in {runs_dir}: {error.strerror or error}. "
        + (
            "Free space, or give a folder on another disk with --runs or PLANEBENCH_RUNS"
            if is_full(error)
            else "Give a folder that you may write with --runs or PLANEBENCH_RUNS"
        )
    )
