# SPDX-License-Identifier: BSD-3-Clause
"""The library that makes PDF and PNG of SVG, vl-convert, in a process of its own: it may crash."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from planebench.model.errors import DrawingError

_PROGRAM = """
import pickle, sys
import vl_convert
calls = pickle.load(sys.stdin.buffer)
pickle.dump([getattr(vl_convert, name)(svg, **options) for name, svg, options in calls], sys.stdout.buffer)
"""

Conversion = tuple[str, str, dict[str, Any]]
"""A function of vl-convert, the drawing, and its options."""


def convert(wanted: Sequence[Conversion]) -> list[bytes]:
    """Return drawings in other formats. Raises DrawingError where the library is not there, refuses, or crashes."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM],
        input=pickle.dumps(list(wanted)),
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        check=False,
    )
    if done.returncode < 0:
        raise DrawingError(f"the drawing library ended: {signal.Signals(-done.returncode).name}")
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise DrawingError(f"the drawing library failed: {said[-1][:200].strip().removesuffix(':')}")
    made: list[bytes] = pickle.loads(done.stdout)
    return made
