# SPDX-License-Identifier: BSD-3-Clause
"""The catalog of metrics: each figure is described once, and every output is a selection of it.

The JSON export, its schema, the CSV export, the tables of the library, the page and the terminal read these columns
(docs/design/adding-a-metric.md).
"""
