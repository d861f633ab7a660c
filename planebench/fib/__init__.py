# SPDX-License-Identifier: BSD-3-Clause
"""The former name of the package planebench_fib: its modules can be imported as planebench.fib.NAME, too."""

from __future__ import annotations

import importlib
import sys

for _name in ("exceptions", "messages", "errors", "transport", "client"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"planebench_fib.{_name}")
