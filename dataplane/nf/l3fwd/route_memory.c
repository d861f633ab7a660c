// SPDX-License-Identifier: BSD-3-Clause
#include "nf/l3fwd/route_memory.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <stdint.h>
#include <stdlib.h>

#define HEAP "routes"

enum { HEAD_MAX = 4 * RTE_CACHE_LINE_SIZE }; // of an element of the heap, with its trailer

static unsigned areas; // in the heap, which exists while there are any

// The heap wants addresses for devices, which never see this memory.
static int area_add(const struct hugepages *pages)
{
	unsigned count = (unsigned)(pages->mapped / RTE_PGSIZE_2M);
	rte_iova_t *iovas = calloc(count, sizeof(*iovas));
	int rc = iovas ? 0 : -ENOMEM;

	for (unsigned i = 0; iovas && i < count; i++)
		iovas[i] = (uintptr_t)pages->base + i * (uintptr_t)RTE_PGSIZE_2M;
	if (rc == 0 &&
	    rte_malloc_heap_memory_add(HEAP, pages->base, pages->mapped, iovas, count, RTE_PGSIZE_2M))
		rc = -rte_errno;
	free(iovas);
	return rc;
}

static int heap_add(const struct hugepages *pages)
{
	int rc = areas == 0 && rte_malloc_heap_create(HEAP) ? -rte_errno : 0;

	if (rc)
		return rc;
	rc = area_add(pages);
	if (rc == 0)
		areas++;
	else if (areas == 0)
		rte_malloc_heap_destroy(HEAP);
	return rc;
}

int route_memory_open(struct route_memory *memory, size_t bytes)
{
	int rc = hugepages_reserve(&memory->pages, bytes);

	if (rc)
		return rc;
	rc = heap_add(&memory->pages);
	if (rc)
		hugepages_unmap(&memory->pages);
	else
		memory->socket = rte_malloc_heap_get_socket(HEAP);
	return rc;
}

// Allocate all of the heap's largest free element, whose header and trailer take an unknown number of cache lines.
// Returns NULL if the element is too small for any data.
static void *largest_take(int socket)
{
	struct rte_malloc_socket_stats stats = {0};
	void *block = NULL;

	rte_malloc_get_socket_stats(socket, &stats);
	for (size_t head = RTE_CACHE_LINE_SIZE; !block && head <= HEAD_MAX && head < stats.greatest_free_size;
	     head += RTE_CACHE_LINE_SIZE)
		block = rte_malloc_socket(NULL, stats.greatest_free_size - head, 0, socket);
	return block;
}

void route_memory_seal(struct route_memory *memory)
{
	void **rest;

	if (!memory->pages.base)
		return;
	while ((rest = largest_take(memory->socket))) {
		*rest = memory->rest;
		memory->rest = rest;
	}
}

void route_memory_close(struct route_memory *memory)
{
	if (!memory->pages.base)
		return;
	while (memory->rest) {
		void *next = *(void **)memory->rest;

		rte_free(memory->rest);
		memory->rest = next;
	}
	rte_malloc_heap_memory_remove(HEAP, memory->pages.base, memory->pages.mapped);
	if (--areas == 0)
		rte_malloc_heap_destroy(HEAP);
	hugepages_unmap(&memory->pages);
}
