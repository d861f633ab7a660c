# SPDX-License-Identifier: BSD-3-Clause
"""Is this machine fit to measure? What is found, its remedy, and how a remedy is taken back."""
