// SPDX-License-Identifier: BSD-3-Clause
// What driver and device of a virtio port have agreed on, for who reports it (runtime/report.c): a copy,
// taken on the control thread while the rings run.
#pragma once

#include <stdint.h>

#include "runtime/config.h"

// sizes: entries of the rings in the order of virtio 1.2 s5.1.2, receive and transmit of each queue pair; 0
// for one that does not run.
struct negotiated {
	uint64_t features;
	unsigned rings;
	uint16_t sizes[2 * CONFIG_QUEUES_MAX];
};
