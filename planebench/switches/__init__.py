# SPDX-License-Identifier: BSD-3-Clause
"""The switches planebench can drive: one adapter a file, listed in :mod:`planebench.switches.registry`."""
