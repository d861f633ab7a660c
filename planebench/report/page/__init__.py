# SPDX-License-Identifier: BSD-3-Clause
"""The page: its sections, tables, and panels of charts; templates of the sections."""

from __future__ import annotations
