# SPDX-License-Identifier: BSD-3-Clause
"""The source papers: their figures, what they claim, and whether a run here confirms it (docs/papers.md)."""
