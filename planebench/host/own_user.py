# SPDX-License-Identifier: BSD-3-Clause
"""A user for one program only, who owns nothing and has no name: what root starts for strangers is not root here."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from planebench.host import procfs

_FIRST, _LAST = 61184, 65519
"""The ids of systemd's DynamicUser=, which it and we give only while nobody has them."""
_RIGHTS = sum(1 << right for right in (0, 6, 7, 21, 27))
"""CAP_CHOWN, CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN and CAP_MKNOD (linux/capability.h)."""
_BEGIN = random.randint(_FIRST, _LAST)
_IDS: Iterator[int] = itertools.cycle((*range(_BEGIN, _LAST + 1), *range(_FIRST, _BEGIN)))


@dataclass(frozen=True, slots=True)
class OwnUser:
    """A user and group ``uid``, and the files and folders of others that it is shown, in launch.STAGE by number."""

    uid: int
    sources: tuple[Path, ...]


def free_uid() -> int | None:
    """Return a user and group id that no process and no account has; None if we cannot give one: we are not root, or
    root of a container without the rights for it."""
    status = procfs.read_text("/proc/self/status") or ""
    rights = int(status.partition("CapEff:")[2].split()[0], 16) if "CapEff:" in status else 0
    if os.geteuid() != 0 or rights & _RIGHTS != _RIGHTS or not _mapped():
        return None
    used = {account.pw_uid for account in pwd.getpwall()}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            used.add(process.stat().st_uid)
    return next(uid for uid in _IDS if uid not in used)


def _mapped() -> bool:
    """Return whether our user namespace has all these users and groups: one of a container may have few."""
    maps = (Path(f"/proc/self/{kind}_map").read_text(encoding="ascii") for kind in ("uid", "gid"))
    ranges = [[(int(first), int(count)) for first, _, count in map(str.split, it.splitlines())] for it in maps]
    return all(any(first <= _FIRST and first + count > _LAST for first, count in it) for it in ranges)
