// SPDX-License-Identifier: BSD-3-Clause
// Memory for DPDK's tables that does not count against memory.size_mb: anonymous memory, in huge pages where the system
// grants them (madvise), also with --no-huge: a lookup goes anywhere in 64 MB. A table is as large as the machine
// allows, and its memory goes back to the system when it is closed.
//
// DPDK's tables allocate from a heap by its socket number, and DPDK has 32 heaps at most. So all tables share one heap
// of rte_malloc, each with an area of its own: open, allocate, seal, in this order, for one table after the other. Seal
// takes what the table left free of its area, so that the next table allocates from its own, and an area is unused as
// soon as its table is closed.
//
// Control thread.
#pragma once

#include "base/hugepages.h"

struct route_memory {
	struct hugepages pages; // base NULL: not open
	void *rest;             // what was free when it was sealed: a list
	int socket;             // for the socket_id of DPDK's functions
};

// Returns 0, or -errno.
int route_memory_open(struct route_memory *memory, size_t bytes);
void route_memory_seal(struct route_memory *memory);

// Everything that was allocated from it has been freed.
void route_memory_close(struct route_memory *memory);
