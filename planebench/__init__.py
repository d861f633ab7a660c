# SPDX-License-Identifier: BSD-3-Clause
"""planebench: NFV software data planes, measured side by side."""

__version__ = "0.1.0"
