# SPDX-License-Identifier: BSD-3-Clause
"""Frozen records and the exception tree: the vocabulary every other part shares."""
