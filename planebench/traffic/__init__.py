# SPDX-License-Identifier: BSD-3-Clause
"""Rates and loads: what a share, a line rate or a label means in packets per second. Pure."""
