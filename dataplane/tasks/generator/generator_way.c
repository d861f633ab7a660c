// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/generator/generator_way.h"

#include <errno.h>
#include <rte_bitops.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/random.h"
#include "port/port.h"
#include "tasks/tester/frame.h"

// A packet pool whose buffers carry the payload pattern of the tester frame (frame.h), so that a sender
// writes headers only. Who receives its mbufs in this process may rewrite the first FRAME_STORE_BYTES, not
// the pattern behind them. Control thread.

// --- Packet pools ----------------------------------------------------------------------------------------

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

// A pool for the sender of one port: large enough that the port's tx ring cannot empty it, with the data room
// of the port's receive pool. NULL with rte_errno set.
static struct rte_mempool *frame_pool_create(const struct port *port)
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

// Give a pool up. While a device's tx ring or another task still holds mbufs of it, freeing would pull the
// memory from under them: then it is kept, and freed by a later call of frame_pool_retire() or
// frame_pool_create().
static void frame_pool_retire(struct rte_mempool *pool)
{
	struct retired *r = malloc(sizeof(*r));

	if (r) { // without memory the pool leaks, which is better than a device that reads what was freed
		*r = (struct retired){.next = retired_pools, .pool = pool};
		retired_pools = r;
	}
	reap();
}

// --- Buffers that a port lends ---------------------------------------------------------------------------

// Open addressing, never more than half full: nearly all buffers are found where they are looked for first.
// No entry is removed but by forgetting all.
struct frame_room {
	unsigned known, shift, mask; // entries: mask + 1, a power of two
	const uint8_t *filled[];
};

struct frame_room *frame_room_create(unsigned buffers)
{
	unsigned entries = rte_align32pow2(4 * RTE_MAX(buffers, 16u));
	struct frame_room *room = calloc(1, sizeof(*room) + entries * sizeof(room->filled[0]));

	if (room) {
		room->mask = entries - 1;
		room->shift = 64 - rte_log2_u32(entries);
	}
	return room;
}

void frame_room_free(struct frame_room *room)
{
	free(room);
}

void frame_room_forget(struct frame_room *room)
{
	memset(room->filled, 0, (room->mask + 1) * sizeof(room->filled[0]));
	room->known = 0;
}

// Fibonacci hashing: buffers are a constant distance apart, which this spreads evenly.
static inline unsigned entry_of(const struct frame_room *room, const uint8_t *data)
{
	return (unsigned)(((uintptr_t)data * RANDOM_GOLDEN) >> room->shift);
}

static __attribute__((noinline)) void fill(struct frame_room *room, uint8_t *data, uint32_t length)
{
	unsigned at;

	if (room->known > room->mask / 2) // more buffers than were announced: begin anew
		frame_room_forget(room);
	for (at = entry_of(room, data); room->filled[at]; at = (at + 1) & room->mask)
		;
	room->filled[at] = data;
	room->known++;
	memcpy(data + FRAME_STORE_BYTES, frame_pattern() + FRAME_STORE_BYTES, length - FRAME_STORE_BYTES);
}

static inline bool is_filled(const struct frame_room *room, const uint8_t *data)
{
	unsigned at = entry_of(room, data);

	while (room->filled[at] && room->filled[at] != data)
		at = (at + 1) & room->mask;
	return room->filled[at];
}

unsigned frame_room_prepare(struct frame_room *room, struct frame *frames, unsigned n, uint32_t length,
                            uint8_t **data)
{
	const uint32_t needed = RTE_MAX(length, (uint32_t)FRAME_STORE_BYTES);

	for (unsigned i = 0; i < n; i++) {
		const struct scatter *at = &frames[i].at;

		if (unlikely(frames[i].length < needed || at->piece->length - at->offset < needed))
			return i;
		data[i] = at->piece->data + at->offset;
		frames[i].length = length;
		if (length > FRAME_STORE_BYTES && unlikely(!is_filled(room, data[i])))
			fill(room, data[i], length);
	}
	return n;
}

unsigned frame_room_prepare_mixed(struct frame_room *room, struct frame *frames, unsigned n,
                                  const uint16_t *lengths, uint32_t store, uint32_t longest, uint8_t **data)
{
	for (unsigned i = 0; i < n; i++) {
		const struct scatter *at = &frames[i].at;
		uint32_t needed = RTE_MAX((uint32_t)lengths[i], store);
		uint32_t whole = RTE_MIN(frames[i].length, at->piece->length - at->offset);

		if (unlikely(whole < needed))
			return i;
		data[i] = at->piece->data + at->offset;
		frames[i].length = lengths[i];
		if (longest > FRAME_STORE_BYTES && unlikely(!is_filled(room, data[i])))
			fill(room, data[i], RTE_MIN(whole, longest));
	}
	return n;
}

// --- By one copy -----------------------------------------------------------------------------------------

// Frames that the port copies once, into a guest's buffers. A frame is two pieces: a head of its own, and the
// pattern, which all have in common. The heads of a burst stay in the first-level cache whatever the frame
// size. A frame that the port refused is written again by the next call.

struct copies {
	alignas(64) uint8_t heads[CONFIG_BURST_MAX][PROFILE_STORE_MAX];
	uint8_t *data[CONFIG_BURST_MAX]; // of heads[]
	struct frame frames[CONFIG_BURST_MAX];
	struct ring_piece pieces[CONFIG_BURST_MAX][2];
};

static int copy_open(struct generator *g)
{
	g->own = aligned_alloc(64, sizeof(struct copies));
	if (!g->own) {
		LOG_ERROR("task %s: no memory for its frames", g->task.name);
		return -ENOMEM;
	}
	return 0;
}

static void copy_close(struct generator *g)
{
	free(g->own);
}

// Pieces are only ever read: they are not const because most of them are a guest's.
static inline void frame_lay(struct copies *own, unsigned i, uint32_t length, uint32_t store)
{
	uint32_t head = RTE_MIN(length, store);

	own->pieces[i][0] = (struct ring_piece){own->heads[i], head};
	own->pieces[i][1] = (struct ring_piece){(uint8_t *)(uintptr_t)frame_pattern() + head, length - head};
	own->frames[i] = (struct frame){.at = {own->pieces[i], 0}, .length = length};
}

static int copy_begin(struct generator *g)
{
	struct copies *own = g->own;

	for (unsigned i = 0; i < CONFIG_BURST_MAX; i++) {
		own->data[i] = own->heads[i];
		frame_lay(own, i, g->template.length, FRAME_STORE_BYTES);
	}
	return 0;
}

static void copy_end(struct generator *g)
{
	// Nothing is held.
}

static uint16_t copy_send(struct generator *g, uint16_t n, uint64_t now_tsc)
{
	struct copies *own = g->own;
	uint16_t sent;

	g->write(&g->template, own->data, n, g->next_sequence);
	probe_choose(g, n, now_tsc);
	probe_stamp(g, own->data, n);
	sent = (uint16_t)port_deliver(g->task.ports[0], g->task.queue, own->frames, n);
	frames_sent(g, n, sent);
	return sent;
}

static uint16_t copy_send_profile(struct generator *g, uint16_t n, uint64_t now_tsc)
{
	struct copies *own = g->own;
	uint16_t sent;

	profile_draw(g->profile, g->offered, n);
	for (unsigned i = 0; i < n; i++)
		frame_lay(own, i, profile_drawn(g->profile, g->offered + i)->length, g->profile->store);
	profile_write(g->profile, own->data, g->offered, n);
	probe_choose(g, n, now_tsc);
	profile_probe_stamp(g, own->data, n);
	sent = (uint16_t)port_deliver(g->task.ports[0], g->task.queue, own->frames, n);
	frames_sent(g, n, sent);
	return sent;
}

const struct generator_way generator_way_copy = {
        .open = copy_open,
        .close = copy_close,
        .begin = copy_begin,
        .end = copy_end,
        .send = copy_send,
        .send_profile = copy_send_profile,
};

// --- In mbufs --------------------------------------------------------------------------------------------

// Frames in mbufs of the generator's own pool. Those that the port refused stay filled in held[] in sequence
// order and are the first of the next burst.

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

// --- In lent buffers -------------------------------------------------------------------------------------

// Frames written where the port sends them from: only the head of each, once the pattern is behind it
//. What the port had no room for was never written.

static int room_open(struct generator *g)
{
	g->own = frame_room_create(g->task.ports[0]->config.ring_size);
	if (!g->own) {
		LOG_ERROR("task %s: no memory for its list of buffers", g->task.name);
		return -ENOMEM;
	}
	return 0;
}

static void room_close(struct generator *g)
{
	frame_room_free(g->own);
}

static int room_begin(struct generator *g)
{
	frame_room_forget(g->own); // others may have used the buffers since
	return 0;
}

static void room_end(struct generator *g)
{
	// What was lent and not published is lent again.
}

static uint16_t room_send(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	const struct port *port = g->task.ports[0];
	struct frame frames[CONFIG_BURST_MAX];
	uint8_t *data[CONFIG_BURST_MAX];
	unsigned n = port_reserve(port, g->task.queue, frames, slots);

	n = frame_room_prepare(g->own, frames, n, g->template.length, data);
	if (likely(n)) {
		g->write(&g->template, data, n, g->next_sequence);
		probe_choose(g, (uint16_t)n, now_tsc);
		probe_stamp(g, data, (uint16_t)n);
		port_publish(port, g->task.queue, frames, n);
	}
	frames_sent(g, slots, (uint16_t)n);
	return (uint16_t)n;
}

static uint16_t room_send_profile(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	const struct port *port = g->task.ports[0];
	struct frame frames[CONFIG_BURST_MAX];
	uint16_t lengths[CONFIG_BURST_MAX];
	uint8_t *data[CONFIG_BURST_MAX];
	unsigned n = port_reserve(port, g->task.queue, frames, slots);

	profile_draw(g->profile, g->offered, n);
	for (unsigned i = 0; i < n; i++)
		lengths[i] = profile_drawn(g->profile, g->offered + i)->length;
	n = frame_room_prepare_mixed(g->own, frames, n, lengths, g->profile->store, g->profile->longest,
	                             data);
	if (likely(n)) {
		profile_write(g->profile, data, g->offered, n);
		probe_choose(g, (uint16_t)n, now_tsc);
		profile_probe_stamp(g, data, (uint16_t)n);
		port_publish(port, g->task.queue, frames, n);
	}
	frames_sent(g, slots, (uint16_t)n);
	return (uint16_t)n;
}

const struct generator_way generator_way_room = {
        .open = room_open,
        .close = room_close,
        .begin = room_begin,
        .end = room_end,
        .send = room_send,
        .send_profile = room_send_profile,
};
