# SPDX-License-Identifier: BSD-3-Clause
"""The roots of every error of this package, which depends on no other package of planebench."""

from __future__ import annotations


class Error(Exception):
    """Base class: something that a user can be told in one sentence."""


class UsageError(Error):
    """A value that cannot be: the message names it, and what is valid."""
