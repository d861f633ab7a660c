# SPDX-License-Identifier: BSD-3-Clause
"""The library that draws, vl-convert, in a process of its own: it crashes where it gets too little memory."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from functools import cache
from typing import Any

from planebench.model.errors import DrawingError

_PROGRAM = """
import pickle, sys
calls, answers = sys.stdin.buffer, sys.stdout.buffer
while True:
    try:
        name, arguments = pickle.load(calls)
    except EOFError:
        break
    try:
        import vl_convert
        answer = getattr(vl_convert, name)(*arguments[0], **arguments[1]), ""
    except Exception as error:
        answer = None, f"{type(error).__name__}: {error}"
    pickle.dump(answer, answers)
    answers.flush()
"""


_LOCK = threading.Lock()


def draw(name: str, *positional: Any, **named: Any) -> Any:
    """Call a function of vl-convert. Raises DrawingError where it is not there, refuses, or crashes."""
    with _LOCK:
        try:
            process = _library()
            assert process.stdin is not None and process.stdout is not None
            pickle.dump((name, (positional, named)), process.stdin)
            process.stdin.flush()
            drawn, problem = pickle.load(process.stdout)
        except BaseException as error:  # after Ctrl-C, too, for the next one that asks must not get this answer
            how = _end() or str(error)
            if isinstance(error, (OSError, EOFError, pickle.UnpicklingError)):
                raise DrawingError(f"the drawing library ended: {how}") from error
            raise
    if problem:
        raise DrawingError(f"the drawing library failed: {' '.join(problem.split())[:200].removesuffix(':')}")
    return drawn


@cache
def _library() -> subprocess.Popen[bytes]:
    """Start the process; it ends when this one does, which closes its input."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _end() -> str:
    """End the process, and return how it ended; empty if none was started."""
    if not _library.cache_info().currsize:
        return ""
    process = _library()
    _library.cache_clear()
    process.kill()
    code = process.wait()
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
