# SPDX-License-Identifier: BSD-3-Clause
"""A simulated data plane: known capacity, noise, stalls, bands, a generator that falls short. docs/simulator.md."""
