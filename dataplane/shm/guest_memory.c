// SPDX-License-Identifier: BSD-3-Clause
#include "shm/guest_memory.h"

#include <errno.h>

int guest_memory_add(struct guest_memory *memory, uint64_t address, uint64_t size, void *host)
{
	// The end must be an address too: sums of an address inside and a length inside then never wrap.
	if (size == 0 || address > UINT64_MAX - size || (uintptr_t)host > UINTPTR_MAX - size)
		return -EINVAL;
	if (memory->count == GUEST_REGIONS_MAX)
		return -ENOSPC;
	memory->regions[memory->count++] = (struct guest_region){address, size, host};
	return 0;
}

unsigned guest_memory_find(const struct guest_memory *memory, uint64_t address)
{
	unsigned i = 0;

	while (i < memory->count && address - memory->regions[i].address >= memory->regions[i].size)
		i++;
	return i;
}

bool guest_memory_holds(const struct guest_memory *memory, const void *host, uint64_t bytes)
{
	for (unsigned i = 0; i < memory->count; i++) {
		const struct guest_region *region = &memory->regions[i];
		uint64_t offset = (uintptr_t)host - (uintptr_t)region->host;

		if (offset < region->size && bytes <= region->size - offset)
			return true;
	}
	return false;
}
