# SPDX-License-Identifier: BSD-3-Clause
"""Makes tests/builders.py and making.py of this folder importable, whatever pytest's import mode."""

import sys
from pathlib import Path

for folder in (Path(__file__).parents[1], Path(__file__).parent):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
