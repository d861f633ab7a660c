# SPDX-License-Identifier: BSD-3-Clause
"""What a run looks like: terminal table, HTML page, charts, export. Everything reads a stored run and nothing else.

The modules are imported one by one: charts are slow to import, and the table does not need them.
"""
