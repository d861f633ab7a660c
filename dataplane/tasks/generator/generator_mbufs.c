// SPDX-License-Identifier: BSD-3-Clause
// Frames in mbufs of the generator's own pool. Those that the port refused stay filled in held[] in sequence
// order and are the first of the next burst.
#include <errno.h>
#include <rte_errno.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/generator/frame_pool.h"
#include "tasks/generator/generator_way.h"
#include "lib/log.h"

struct mbufs {
	struct rte_mempool *pool;     // of the next frames
	struct rte_mempool *pools[2]; // heads of FRAME_STORE_BYTES; longer ones, which write over the pattern
	uint16_t held_count;
	struct rte_mbuf *held[CONFIG_BURST_MAX]; // numbers g->next_sequence and on
	uint8_t *data[CONFIG_BURST_MAX];         // of held[]
};

static int mbufs_open(struct generator *g)
{
	struct mbufs *own = calloc(1, sizeof(*own));

	if (own)
		own->pool = own->pools[0] = frame_pool_create(g->task.ports[0]);
	if (!own || !own->pool) {
		LOG_ERROR("task %s: no memory for its packet pool: %s; raise memory.size_mb", g->task.name,
		          rte_strerror(rte_errno));
		free(own);
		return -ENOMEM;
	}
	g->own = own;
	return 0;
}

static unsigned pool_for(const struct profile *profile)
{
	return profile && profile->store > FRAME_STORE_BYTES;
}

// A pool takes milliseconds, which a load that begins has not.
static int mbufs_prepare(struct generator *g)
{
	unsigned which = pool_for(g->next);
	struct mbufs *own = g->own;

	if (!own->pools[which])
		own->pools[which] = frame_pool_create(g->task.ports[0]);
	if (own->pools[which])
		return 0;
	LOG_ERROR("task %s: no memory for a second packet pool: %s; raise memory.size_mb", g->task.name,
	          rte_strerror(rte_errno));
	return -ENOMEM;
}

// The pattern is in the pool's mbufs. Frames of the load before may still be under way in theirs.
static int mbufs_begin(struct generator *g)
{
	struct mbufs *own = g->own;

	own->pool = own->pools[pool_for(g->profile)];
	return 0;
}

static void mbufs_end(struct generator *g)
{
	struct mbufs *own = g->own;

	if (own->held_count)
		rte_pktmbuf_free_bulk(own->held, own->held_count);
	own->held_count = 0;
}

static void mbufs_close(struct generator *g)
{
	struct mbufs *own = g->own;

	mbufs_end(g);
	for (unsigned i = 0; i < RTE_DIM(own->pools); i++) {
		if (!own->pools[i])
			continue;
		if (!rte_mempool_full(own->pools[i]))
			port_reclaim(g->task.ports[0]);
		frame_pool_retire(own->pools[i]);
	}
	free(own);
}

// One at a time, when the pool has less than the whole bulk.
static __attribute__((noinline, cold)) uint16_t alloc_rest(struct generator *g, struct mbufs *own, uint16_t n)
{
	uint16_t got = 0;

	while (got < n && (own->held[own->held_count + got] = rte_pktmbuf_alloc(own->pool)))
		got++;
	g->no_mbuf += n - got;
	return got;
}

// Up to n mbufs behind held[]; returns how many.
static inline uint16_t held_alloc(struct generator *g, struct mbufs *own, uint16_t n)
{
	if (likely(rte_pktmbuf_alloc_bulk(own->pool, &own->held[own->held_count], n) == 0))
		return n;
	return alloc_rest(g, own, n);
}

// Fill up held[] to n frames; returns how many are there.
static inline uint16_t held_fill(struct generator *g, struct mbufs *own, uint16_t n)
{
	uint16_t first = own->held_count, want = n - first;

	if (n <= first)
		return n;
	want = held_alloc(g, own, want);
	for (uint16_t i = first; i < first + want; i++) {
		struct rte_mbuf *m = own->held[i];

		m->data_len = g->template.length;
		m->pkt_len = g->template.length;
		own->data[i] = rte_pktmbuf_mtod(m, uint8_t *);
	}
	g->write(&g->template, &own->data[first], want, g->next_sequence + first);
	own->held_count += want;
	return own->held_count;
}

// The first sent frames of held[] are gone.
static inline void held_advance(struct mbufs *own, uint16_t sent)
{
	own->held_count -= sent;
	if (likely(own->held_count == 0))
		return;
	memmove(own->held, &own->held[sent], own->held_count * sizeof(own->held[0]));
	memmove(own->data, &own->data[sent], own->held_count * sizeof(own->data[0]));
}

static inline uint16_t held_send(struct generator *g, struct mbufs *own, uint16_t n)
{
	uint16_t sent = port_send(g->task.ports[0], g->task.queue, own->held, n);

	held_advance(own, sent);
	frames_sent(g, n, sent);
	return sent;
}

static uint16_t mbufs_send(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	struct mbufs *own = g->own;
	uint16_t n = held_fill(g, own, slots);

	if (unlikely(n == 0))
		return 0;
	probe_choose(g, n, now_tsc);
	probe_stamp(g, own->data, n);
	return held_send(g, own, n);
}

// --- Of a profile ----------------------------------------------------------------------------------------

static inline uint16_t held_fill_profile(struct generator *g, struct mbufs *own, uint16_t n)
{
	uint16_t first = own->held_count, want = n - first;

	if (n <= first)
		return n;
	want = held_alloc(g, own, want);
	profile_draw(g->profile, g->offered + first, want);
	for (uint16_t i = first; i < first + want; i++) {
		struct rte_mbuf *m = own->held[i];

		m->data_len = profile_drawn(g->profile, g->offered + i)->length;
		m->pkt_len = m->data_len;
		own->data[i] = rte_pktmbuf_mtod(m, uint8_t *);
	}
	profile_write(g->profile, &own->data[first], g->offered + first, want);
	own->held_count += want;
	return own->held_count;
}

static uint16_t mbufs_send_profile(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	struct mbufs *own = g->own;
	uint16_t n = held_fill_profile(g, own, slots);

	if (unlikely(n == 0))
		return 0;
	probe_choose(g, n, now_tsc);
	profile_probe_stamp(g, own->data, n);
	return held_send(g, own, n);
}

const struct generator_way generator_way_mbufs = {
        .open = mbufs_open,
        .close = mbufs_close,
        .prepare = mbufs_prepare,
        .begin = mbufs_begin,
        .end = mbufs_end,
        .send = mbufs_send,
        .send_profile = mbufs_send_profile,
};
