# SPDX-License-Identifier: BSD-3-Clause
"""From trials to figures: pure functions, no I/O. Nothing is rounded here, and no percentile is ever averaged."""
