# SPDX-License-Identifier: BSD-3-Clause
"""The roots of every error of this package, which depends on no other package of planebench."""

from __future__ import annotations


class Error(Exception):
    """The base class: an error that one sentence explains to the user."""


class UsageError(Error):
    """An invalid value: the message names it, and what is valid."""
