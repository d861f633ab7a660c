# SPDX-License-Identifier: BSD-3-Clause
"""Printing on standard output: JSON documents, and tables without lines."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.table import Table

from planebench.model.words import printable


def complain(text: str) -> None:
    """Print one line on standard error, after the name of the program."""
    print("planebench:", printable(" ".join(text.split())), file=sys.stderr)


def print_json(document: Any) -> None:
    """Print a document as JSON."""
    print(json.dumps(document, indent=1, allow_nan=False))


def plain_table(*columns: str, justify: Any = "left", overflow: Any = "fold", **more: Any) -> Table:
    """Return an empty table without lines, with these columns."""
    table = Table(box=None, padding=(0, 2, 0, 0), **more)
    for column in columns:
        table.add_column(column, justify=justify, overflow=overflow)
    return table
