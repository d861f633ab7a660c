// SPDX-License-Identifier: BSD-3-Clause
// Memory for DPDK's tables that is not memory.size_mb: a heap of rte_malloc of its own, in anonymous memory.
// So a table is as large as the machine allows, goes back to the system when it is closed, and lies in huge
// pages where the system gives them to whoever asks (madvise), also with --no-huge: a lookup goes anywhere in
// 64 MB.
//
// Control thread.
#pragma once

#include <stddef.h>

enum { ROUTE_MEMORY_NAME_MAX = 32 };

struct route_memory {
	char name[ROUTE_MEMORY_NAME_MAX];
	void *base; // NULL: not open
	size_t bytes;
	int socket; // for the socket_id of DPDK's functions
};

// Returns 0, or -errno.
int route_memory_open(struct route_memory *memory, size_t bytes);

// Everything in it has been freed.
void route_memory_close(struct route_memory *memory);
