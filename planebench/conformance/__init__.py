# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite: what every adapter has to do, tried on the running switch (docs/adding-a-switch.md)."""
