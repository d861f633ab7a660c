# SPDX-License-Identifier: BSD-3-Clause
"""This machine: what it is, what disturbs measuring on it, and the processes we start on it."""
