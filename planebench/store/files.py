# SPDX-License-Identifier: BSD-3-Clause
"""The two ways a run folder is written: a whole file at once, or one line at the end. Both survive kill -9."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from planebench.host.files import replace_file
from planebench.model.errors import StoreError


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
        with path.open("r+b") as file:
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
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"cannot open {path}: {error.strerror or error}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise StoreError(f"{path} is in use by another planebench; wait until it ends") from error

    def append(self, line: bytes) -> None:
        """Append one line (without its newline). On failure the file is as it was before. Raises StoreError."""
        data = line + b"\n"
        before = self._there().st_size
        try:
            written = os.write(self._fd, data)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes were written")
            os.fdatasync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, before)
            raise StoreError(f"cannot append to {self.path}: {error.strerror or error}. Is the disk full?") from error

    def _there(self) -> os.stat_result:
        """Return the status of the open file if the path still names it: writes to a removed file would be lost
        silently."""
        mine = os.fstat(self._fd)
        try:
            named = self.path.stat()
        except OSError:
            named = None
        if named is None or (named.st_dev, named.st_ino) != (mine.st_dev, mine.st_ino):
            raise StoreError(f"{self.path} was removed or moved while planebench was writing it. Start the run again")
        return mine

    def close(self) -> None:
        """Close; safe to call twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
