# SPDX-License-Identifier: BSD-3-Clause
"""``python -m planebench_fib``."""

from __future__ import annotations

import sys

from planebench_fib.command import main

sys.exit(main())
