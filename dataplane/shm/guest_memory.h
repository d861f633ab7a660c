// SPDX-License-Identifier: BSD-3-Clause
// The memory that a guest shares with us: a few regions of its physical addresses, and where each is mapped
// here. Filled by the control thread while no worker looks; read by workers.
//
// Mapping and unmapping: shm/peer_memory.h. A process that truncates the file behind its memory: shm/guest_fault.h.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

enum { GUEST_REGIONS_MAX = 8 }; // of a vhost-user memory table

struct guest_region {
	uint64_t address; // guest physical
	uint64_t size;    // bytes; 0 matches nothing
	uint8_t *host;
};

struct guest_memory {
	unsigned count;
	struct guest_region regions[GUEST_REGIONS_MAX];
};

// Add a region. Returns 0; -EINVAL for one without bytes or that runs past the end of the address space;
// -ENOSPC for one too many.
int guest_memory_add(struct guest_memory *memory, uint64_t address, uint64_t size, void *host);

// The index of the region that holds address, or memory->count.
unsigned guest_memory_find(const struct guest_memory *memory, uint64_t address);

// Whether bytes at a host address, as they are mapped here, lie in one region.
bool guest_memory_holds(const struct guest_memory *memory, const void *host, uint64_t bytes);

// Where the bytes at a guest physical address are. *length is what is wanted and becomes what follows without
// a break: at most that, never beyond the region. NULL if the address is not the guest's. *last is the
// caller's memory of the region that it hit last, which nearly always is the next one too; start with 0.
static inline uint8_t *guest_memory_run(const struct guest_memory *memory, unsigned *last, uint64_t address,
                                        uint32_t *length)
{
	const struct guest_region *region = &memory->regions[*last];
	uint64_t offset = address - region->address; // wraps below the region: then it is not < size

	if (unlikely(offset >= region->size)) {
		unsigned found = guest_memory_find(memory, address);

		if (found == memory->count)
			return NULL;
		*last = found;
		region = &memory->regions[found];
		offset = address - region->address;
	}
	if (unlikely(*length > region->size - offset))
		*length = (uint32_t)(region->size - offset);
	return region->host + offset;
}
