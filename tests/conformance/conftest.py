# SPDX-License-Identifier: BSD-3-Clause
"""The helpers of this folder, with --import-mode=importlib."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
