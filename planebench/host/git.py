# SPDX-License-Identifier: BSD-3-Clause
"""The git program: which commit of which repository is checked out, and bisection."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from planebench.model.errors import NotInstalledError, UsageError
from planebench.model.header import Subject
from planebench.model.quantity import utc_text


def git(folder: Path, *arguments: str) -> str:
    """Return what git prints in a folder. Raises UsageError with its words where it fails.

    Variables that name another repository are removed: git sets them for its hooks.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_DIR")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, errors="replace", env=environment
        )
    except FileNotFoundError:
        raise NotInstalledError("git is not installed, and source trees need it: apt-get install git") from None
    if done.returncode:
        words = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise UsageError(f"git {arguments[0]} in {folder}: {words}")
    return done.stdout.strip()


def subject_in(folder: Path, switch: str = "") -> Subject:
    """Return what is checked out in a folder, by the URL of its remote, or its path without one. Raises UsageError."""
    commit, committed_at = git(folder, "show", "--no-patch", "--format=%H %ct", "HEAD").split()
    moment = utc_text(datetime.fromtimestamp(int(committed_at), UTC))
    remote = git(folder, "config", "--default", "", "--get", "remote.origin.url")
    dirty = bool(git(folder, "status", "--porcelain", "--untracked-files=no"))
    return Subject(_without_password(remote) or str(folder.resolve()), commit, moment, dirty, switch)


def _without_password(url: str) -> str:
    """Return a URL without user and password: a token in it would be in every run and report."""
    return re.sub(r"^(\w+://)[^/@]*@", r"\1", url)
