# SPDX-License-Identifier: BSD-3-Clause
"""Models of the network functions, and their tests. A package: bench/nf.py must not be found in its place."""
