# SPDX-License-Identifier: BSD-3-Clause
"""What a VNF runs in beside the tester's own process: a planed of its own, a container, a virtual machine."""
