// SPDX-License-Identifier: BSD-3-Clause
// The ring sizes that NICs take, as DPDK's drivers tell them. The devices are opened, and not started.
#pragma once

// Prints one JSON line for each of the devices (PCI addresses, comma-separated) that DPDK has a driver for: the least
// and the most descriptors that both its receive and its send rings take. Returns 0, or -errno after logging one line.
int ring_limits_print(const char *devices);
