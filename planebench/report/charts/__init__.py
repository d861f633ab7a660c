# SPDX-License-Identifier: BSD-3-Clause
"""Charts: what a figure is (figure.py), and how bars and curves are drawn (bars.py, curves.py, of base.py)."""

from __future__ import annotations
