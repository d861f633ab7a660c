# SPDX-License-Identifier: BSD-3-Clause
"""Plans: what a run measures, as data. Suites in YAML, options of the command line, expansion, order, time."""
