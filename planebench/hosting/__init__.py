# SPDX-License-Identifier: BSD-3-Clause
"""Describe what a VNF runs in beside the tester's own process: a planed of its own, a container, a virtual machine."""
