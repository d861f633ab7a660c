# SPDX-License-Identifier: BSD-3-Clause
"""VNF isolation beside the tester's own process: a planed process, a container, a virtual machine."""
