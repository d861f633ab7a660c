# SPDX-License-Identifier: BSD-3-Clause
"""Errors in one line, and a fault of planebench itself, whose traceback goes to a file. Standard library alone."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import sys
import textwrap
import time
from pathlib import Path

STATE_VARIABLE = "XDG_STATE_HOME"


def one_line(text: str) -> str:
    """Return a text as one line for standard error; on a terminal it is wrapped at its words."""
    line = " ".join(text.split())
    if not sys.stderr.isatty():
        return line
    width = shutil.get_terminal_size().columns
    return textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def fault_words(error: Exception) -> str:
    """Return a sentence on an error that no part has made one of; its traceback goes to a file that the sentence names.

    The file is in $XDG_STATE_HOME/planebench, or ~/.local/state/planebench.
    """
    what = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    is_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    is_memory |= limited and isinstance(error, ImportError | SystemError)  # what libraries make of it
    cause = "there is too little memory (see ulimit -v)" if is_memory else "this is a fault of planebench"
    try:
        import traceback

        state = Path(os.environ.get(STATE_VARIABLE, ""))
        folder = (state if state.is_absolute() else Path("~/.local/state").expanduser()) / "planebench"
        path = folder / f"fault-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{sys.argv}\n{''.join(traceback.format_exception(error))}", errors="backslashreplace")
    except Exception as second:
        return f"{what[:300]}; {cause}. Its details cannot be kept: {second!r}"
    return f"{what[:300]}; {cause}. Details: {path}"
