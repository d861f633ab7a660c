# SPDX-License-Identifier: BSD-3-Clause
"""planed, our data plane, as the harness uses it (docs/design/planed-protocol.md)."""
