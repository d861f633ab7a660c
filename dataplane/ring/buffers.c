// SPDX-License-Identifier: BSD-3-Clause
#include "ring/buffers.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_malloc.h>

#include "ring/driver_ring.h"

// A run of buffers that was allocated at once.
struct chunk {
	struct chunk *next;
	void *memory;
};

static struct chunk *chunks;
static uint8_t **idle; // those that no port has
static unsigned idle_count, total;
static uint32_t room_of_all;

static void free_all(void)
{
	while (chunks) {
		struct chunk *chunk = chunks;

		chunks = chunk->next;
		rte_free(chunk->memory);
		free(chunk);
	}
	free(idle);
	idle = NULL;
	idle_count = total = 0;
}

static int grow(unsigned count, uint32_t room)
{
	size_t stride = driver_buffer_stride(room);
	struct chunk *chunk = malloc(sizeof(*chunk));
	uint8_t **list = realloc(idle, (total + count) * sizeof(*idle));

	if (list)
		idle = list;
	if (chunk)
		chunk->memory = rte_zmalloc("virtio buffers", count * stride, DRIVER_LINE);
	if (chunk == NULL || list == NULL || chunk->memory == NULL) {
		if (chunk)
			rte_free(chunk->memory);
		free(chunk);
		return -ENOMEM;
	}
	chunk->next = chunks;
	chunks = chunk;
	for (unsigned i = 0; i < count; i++)
		idle[idle_count++] = (uint8_t *)chunk->memory + (count - 1 - i) * stride + DRIVER_LINE;
	total += count;
	room_of_all = room;
	return 0;
}

int buffers_take(struct ring_piece *pieces, unsigned count, uint32_t room)
{
	if (total && room != room_of_all)
		return -EINVAL;
	if (idle_count < count && grow(count - idle_count, room))
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		pieces[i].data = idle[--idle_count];
	return 0;
}

void buffers_give_back(const struct ring_piece *pieces, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		idle[idle_count++] = pieces[i].data;
	if (idle_count == total)
		free_all();
}
