# SPDX-License-Identifier: BSD-3-Clause
"""Files of run folders, stores and exports, which may come from a stranger, and the folder for what can be made again.

What is written is there whole or not at all, and never goes through a link. What is read is a file of bounded size.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from planebench.model.errors import UsageError
from planebench.model.text import user_path

READ_MAX_BYTES = 1 << 30
"""The largest file that is read: the lines of a run of some 100,000 trials."""


@contextlib.contextmanager
def new_file(path: Path, *, durable: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file beside ``path``, of a random name, that takes its place at the end of the block.

    What is at ``path`` is replaced, and not followed if it is a link. An error in the block leaves all as it was.
    ``durable``: flush file and name to the disk, so that they survive a crash of the machine. Raises OSError.
    """
    temporary = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.tmp")
    with temporary.open("xb") as out:  # O_EXCL, which follows no link
        try:
            yield out
            out.flush()
            if durable:
                os.fsync(out.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    if durable:
        sync_folder(path.parent)


def replace_file(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file as :func:`new_file` does. Raises OSError."""
    with new_file(path, durable=durable) as out:
        out.write(data)


def open_file(path: Path, flags: int) -> int:
    """Open a file; OSError for a link, and for what is no file: a FIFO would wait, and a device do anything."""
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link, and links are not followed", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return fd


def read_file(path: Path) -> bytes:
    """Return the contents of a file; OSError as :func:`open_file`, and for one above :data:`READ_MAX_BYTES`."""
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        if os.fstat(file.fileno()).st_size > READ_MAX_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {READ_MAX_BYTES} bytes", str(path))
        return file.read()  # a limit here would be allocated at once


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def default_folder() -> Path:
    """Return $XDG_CACHE_HOME/planebench, or ~/.cache/planebench if it is unset or relative (XDG rules)."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = cache if cache.is_absolute() else user_path("~/.cache")
    if not cache.is_absolute():
        raise UsageError("you have no home folder; set HOME or XDG_CACHE_HOME")
    return cache / "planebench"


def keep(path: Path, data: bytes) -> None:
    """Write a file and its folder, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, data)
