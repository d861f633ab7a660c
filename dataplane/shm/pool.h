// SPDX-License-Identifier: BSD-3-Clause
// The buffers of ports that drive rings: a virtio driver, or a memif's client. A pool is one file, which the other end maps
// whole; it sees nothing else of ours but its rings. A pool is of one port; or of all that share theirs, which may then
// exchange buffers (driver_ring_pass(), memif_ring_pass()), and whose other ends see each other's frames. So none gives back
// "its own" buffers, but as many as it has taken.
//
// A buffer is aligned to a line, and has a line of its own before it, for a header (virtio 1.2 s5.1.6).
//
// Any thread but a worker; one lock for all pools.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "shm/frames.h"

enum { POOL_LINE = 64 };

struct shm_pool {
	struct shm_pool *next; // of those that are shared
	uint8_t *at;           // the file
	size_t bytes;
	uint32_t room; // of a buffer
	int fd;
	unsigned users, idle_count, total;
	uint8_t *idle[];
};

// Bytes from one buffer of so many bytes to the next.
static inline size_t shm_pool_stride(uint32_t room)
{
	size_t lines = 1 + (room + POOL_LINE - 1) / POOL_LINE;

	return (lines | 1) * POOL_LINE; // odd: first lines are spread over all sets of a cache
}

// Memory of a new file, for the other end, in pages of 4 KiB: sealed, so that nobody can make it shorter, which would end us
// by SIGBUS. flags: of mmap(2), besides MAP_SHARED. Returns NULL without memory. *fd is the caller's to close in any case, if
// it is not -1.
uint8_t *shm_memory(const char *name, size_t bytes, int flags, int *fd);

// Give data of count pieces a buffer of room bytes each: of a shared pool that has so many left, or of a new one. Returns the
// pool, or NULL without memory.
struct shm_pool *shm_pool_take(bool shared, uint32_t room, struct piece *pieces, unsigned count);

// Give back as many. Who was the last to use the pool frees it.
void shm_pool_give_back(struct shm_pool *pool, const struct piece *pieces, unsigned count);
