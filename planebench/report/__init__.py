# SPDX-License-Identifier: BSD-3-Clause
"""The output for people of a stored run: terminal table, HTML page, charts; and the exports.

Import the modules one by one: charts are slow to import, and the table does not need them.
"""
