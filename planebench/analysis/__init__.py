# SPDX-License-Identifier: BSD-3-Clause
"""From trials to figures: pure functions, no I/O. Nothing is rounded here, and no percentile is ever averaged."""

from planebench.analysis.results import derive_results

__all__ = ["derive_results"]
