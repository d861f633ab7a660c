# SPDX-License-Identifier: BSD-3-Clause
"""Makes tests/builders.py importable, whatever pytest's import mode."""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).parents[1])
if _TESTS not in sys.path:
    sys.path.insert(0, _TESTS)
