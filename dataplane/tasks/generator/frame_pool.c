// SPDX-License-Identifier: BSD-3-Clause
// Packet pools with the payload pattern in place, and the list of those that are given up but still in use.
#include <rte_mbuf.h>
#include <stdlib.h>

#include "tasks/tester/frame.h"
#include "tasks/generator/frame_pool.h"
#include "port/port.h"

enum {
	POOL_CACHE = 256, // what the worker reuses while the frames are hot in its caches
	POOL_MIN = 1024,
};

static struct retired {
	struct retired *next;
	struct rte_mempool *pool;
} * retired_pools;

static void reap(void)
{
	for (struct retired **at = &retired_pools; *at;) {
		struct retired *r = *at;

		if (!rte_mempool_full(r->pool)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		rte_mempool_free(r->pool);
		free(r);
	}
}

static void pattern_write(struct rte_mempool *pool, void *opaque, void *object, unsigned index)
{
	struct rte_mbuf *m = object;

	frame_fill_payload((uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, m->buf_len - RTE_PKTMBUF_HEADROOM);
}

struct rte_mempool *frame_pool_create(const struct port *port)
{
	static unsigned created; // makes the name: pools may outlive their task, and its name may be too long
	unsigned count = 2 * port->config.ring_size + 2 * POOL_CACHE + 2 * CONFIG_BURST_MAX;
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	reap();
	snprintf(name, sizeof(name), "frames-%u", created++);
	pool = rte_pktmbuf_pool_create(name, RTE_MAX(count, (unsigned)POOL_MIN), POOL_CACHE, 0,
	                               rte_pktmbuf_data_room_size(port->rx_pool), SOCKET_ID_ANY);
	if (pool)
		rte_mempool_obj_iter(pool, pattern_write, NULL);
	return pool;
}

void frame_pool_retire(struct rte_mempool *pool)
{
	struct retired *r = malloc(sizeof(*r));

	if (r) { // without memory the pool leaks, which is better than a device that reads what was freed
		*r = (struct retired){.next = retired_pools, .pool = pool};
		retired_pools = r;
	}
	reap();
}
