// SPDX-License-Identifier: BSD-3-Clause
// The buffers of a memif's client: one file, which the server maps whole. A connection has a pool of its own, whose server
// sees nothing else; or it shares that of the process with other connections, which may then exchange buffers
// (memif_ring_pass()), and whose servers see each other's frames. So none gives back "its own" buffers, but as many as it
// has taken.
//
// Any thread but a worker; one lock for all pools.
#pragma once

#include "shm/frames.h"

enum {
	MEMIF_BUFFER_BYTES = 2048,                     // of a client: what DPDK's server takes for given
	MEMIF_BUFFER_STRIDE = MEMIF_BUFFER_BYTES + 64, // first lines are spread over all sets of a cache
};

// Memory of a new file, for the other end: sealed, so that nobody can make it shorter. flags: of mmap(2), besides MAP_SHARED.
// Returns NULL without memory. *fd is the caller's to close in any case, if it is not -1.
uint8_t *memif_memory(const char *name, size_t bytes, int flags, int *fd);

struct memif_pool {
	struct memif_pool *next; // of those that are shared
	uint8_t *at;             // the first buffer
	size_t bytes;
	int fd;
	unsigned users, idle_count, total;
	uint8_t *idle[];
};

// Give data of count pieces a buffer each, in memory: of a shared pool that has so many left, or of a new one. Returns the pool,
// or NULL without memory.
struct memif_pool *memif_pool_take(bool shared, struct piece *pieces, unsigned count);

// Give back as many. Who was the last to use the pool frees it.
void memif_pool_give_back(struct memif_pool *pool, const struct piece *pieces, unsigned count);
