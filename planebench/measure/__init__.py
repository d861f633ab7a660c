# SPDX-License-Identifier: BSD-3-Clause
"""One trial on a live topology, and the campaign that runs a whole plan. docs/design/trials.md is the protocol."""

from __future__ import annotations
