# SPDX-License-Identifier: BSD-3-Clause
"""The network functions of planed that a chain is made of: what there is, and what a user writes. No processes."""
