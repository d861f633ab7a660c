# SPDX-License-Identifier: BSD-3-Clause
"""The seam between the harness and a switch, and what both sides of a port have in common."""
