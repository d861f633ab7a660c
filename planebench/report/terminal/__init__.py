# SPDX-License-Identifier: BSD-3-Clause
"""The report in the terminal: the table of a run and what it is made of. Tables and words of a subject are with it."""

from __future__ import annotations
