# SPDX-License-Identifier: BSD-3-Clause
"""YAML that users write: read, or said in one sentence where and why it is none."""

from __future__ import annotations

from typing import Any

import yaml

from planebench.model.errors import UsageError


def parse_yaml(text: str, source: str) -> Any:
    """Return the document of ``text``. Raises UsageError, which names ``source``, line and column."""
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise UsageError(f"{source}{where} is not YAML: {what}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{source} is not YAML: {' '.join(str(error).split())}") from None
