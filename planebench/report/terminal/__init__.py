# SPDX-License-Identifier: BSD-3-Clause
"""The report in the terminal: the table of a run and its parts. Other modules have the tables of their subject."""
