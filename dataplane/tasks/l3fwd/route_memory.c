// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/l3fwd/route_memory.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static const size_t page_bytes = RTE_PGSIZE_2M;

// Aligned to a huge page; what is before and behind it is given back.
static void *map(size_t bytes)
{
	uint8_t *room =
	        mmap(NULL, bytes + page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *base;

	if (room == MAP_FAILED)
		return NULL;
	base = RTE_PTR_ALIGN_CEIL(room, page_bytes);
	if (base > room)
		munmap(room, (size_t)(base - room));
	munmap(base + bytes, (size_t)(room + page_bytes - base));
	madvise(base, bytes, MADV_HUGEPAGE);
	return base;
}

// A pool wants addresses for devices, which never see it.
static int add(struct route_memory *memory)
{
	size_t pages = memory->bytes / page_bytes;
	rte_iova_t *iovas = calloc(pages, sizeof(*iovas));
	int status = -1;

	for (size_t i = 0; iovas && i < pages; i++)
		iovas[i] = (uintptr_t)memory->base + i * page_bytes;
	if (iovas)
		status = rte_malloc_heap_memory_add(memory->name, memory->base, memory->bytes, iovas,
		                                    (unsigned)pages, page_bytes);
	free(iovas);
	return status;
}

int route_memory_open(struct route_memory *memory, size_t bytes)
{
	static unsigned heaps; // control thread
	int status;

	memory->bytes = RTE_ALIGN_CEIL(bytes, page_bytes);
	snprintf(memory->name, sizeof(memory->name), "routes%u", heaps++);
	memory->base = map(memory->bytes);
	if (!memory->base)
		return -ENOMEM;
	if (rte_malloc_heap_create(memory->name) == 0) {
		if (add(memory) == 0) {
			memory->socket = rte_malloc_heap_get_socket(memory->name);
			return 0;
		}
		status = -rte_errno;
		rte_malloc_heap_destroy(memory->name);
	} else {
		status = -rte_errno;
	}
	munmap(memory->base, memory->bytes);
	memory->base = NULL;
	return status;
}

void route_memory_close(struct route_memory *memory)
{
	if (!memory->base)
		return;
	rte_malloc_heap_memory_remove(memory->name, memory->base, memory->bytes);
	rte_malloc_heap_destroy(memory->name);
	munmap(memory->base, memory->bytes);
	memory->base = NULL;
}
