// SPDX-License-Identifier: BSD-3-Clause
#include "tester/generator_tx.h"

#include <errno.h>
#include <rte_bitops.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/random.h"
#include "port/port.h"
#include "shm/copy.h"
#include "tester/frame.h"

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

// The pattern as far as a frame of length bytes needs it.
static void pattern_write(uint8_t *data, uint32_t length)
{
	memcpy(data + FRAME_STORE_BYTES, frame_pattern() + FRAME_STORE_BYTES, length - FRAME_STORE_BYTES);
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
	pattern_write(data, length);
}

static inline bool is_filled(const struct frame_room *room, const uint8_t *data)
{
	unsigned at = entry_of(room, data);

	while (room->filled[at] && room->filled[at] != data)
		at = (at + 1) & room->mask;
	return room->filled[at];
}

void frame_room_fill(struct frame_room *room, uint8_t *const *data, unsigned n, uint32_t length)
{
	for (unsigned i = 0; length > FRAME_STORE_BYTES && i < n; i++)
		if (unlikely(!is_filled(room, data[i])))
			fill(room, data[i], length);
}

// --- By one copy -----------------------------------------------------------------------------------------

// Frames that the port copies once, into a guest's buffers. A frame is two pieces: a head of its own, and the
// pattern, which all have in common. The heads of a burst stay in the first-level cache whatever the frame
// size. A frame that the port refused is written again by the next call.

struct copies {
	alignas(64) uint8_t heads[CONFIG_BURST_MAX][PROFILE_STORE_MAX];
	uint8_t *data[CONFIG_BURST_MAX]; // of heads[]
	struct frame frames[CONFIG_BURST_MAX];
	struct piece pieces[CONFIG_BURST_MAX][2];
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

	own->pieces[i][0] = (struct piece){own->heads[i], head};
	own->pieces[i][1] = (struct piece){(uint8_t *)(uintptr_t)frame_pattern() + head, length - head};
	own->frames[i] = (struct frame){.at = {own->pieces[i], 0}, .length = length};
}

static int copy_begin(struct generator *g)
{
	struct copies *own = g->own;
	uint32_t length = g->profile ? g->profile->longest : g->template.length;
	uint32_t store = g->profile ? g->profile->store : FRAME_STORE_BYTES;

	for (unsigned i = 0; i < CONFIG_BURST_MAX; i++) {
		own->data[i] = own->heads[i];
		frame_lay(own, i, length, store);
	}
	return 0;
}

static uint16_t copy_send(struct generator *g, uint16_t n, uint64_t now_tsc)
{
	struct copies *own = g->own;
	uint16_t sent;

	frames_write(g, own->data, n, now_tsc);
	sent = (uint16_t)port_deliver(g->task.ports[0], g->task.queue, own->frames, n);
	frames_sent(g, n, sent);
	return sent;
}

static uint16_t copy_send_profile(struct generator *g, uint16_t n, uint64_t now_tsc)
{
	struct copies *own = g->own;
	uint16_t sent;

	profile_draw(g->profile, g->offered, n);
	for (unsigned i = 0; i < n; i++) {
		uint32_t length = profile_drawn(g->profile, g->offered + i)->length;

		if (own->frames[i].length != length)
			frame_lay(own, i, length, g->profile->store);
	}
	profile_frames_write(g, own->data, n, now_tsc);
	sent = (uint16_t)port_deliver(g->task.ports[0], g->task.queue, own->frames, n);
	frames_sent(g, n, sent);
	return sent;
}

const struct generator_tx generator_tx_copy = {
        .open = copy_open,
        .close = copy_close,
        .begin = copy_begin,
        .send = copy_send,
        .send_profile = copy_send_profile,
};

// --- In lent buffers -------------------------------------------------------------------------------------

// Frames written where the port sends them from: only the head of each, once the pattern is behind it; all of it in buffers
// of the other end. A frame that the port refused is written again by the next call.

struct lent {
	bool begun;  // the port lends us its buffers
	bool pooled; // they are always the same
	bool filled; // and have the pattern, since no head was longer than FRAME_STORE_BYTES
	struct frame_room *room;
	uint32_t longest;                   // bytes of a frame
	uint16_t lengths[CONFIG_BURST_MAX]; // of the next frames
};

static void buffer_fill(uint8_t *data, uint32_t room)
{
	pattern_write(data, RTE_MIN(room, (uint32_t)FRAME_SIZE_MAX));
}

static int room_open(struct generator *g)
{
	struct lent *own = calloc(1, sizeof(*own));

	if (own)
		own->room = frame_room_create(g->task.ports[0]->config.ring_size);
	if (!own || !own->room) {
		LOG_ERROR("task %s: no memory for its list of buffers", g->task.name);
		free(own);
		return -ENOMEM;
	}
	g->own = own;
	return 0;
}

static void room_close(struct generator *g)
{
	struct lent *own = g->own;

	if (own->begun)
		port_take_back(g->task.ports[0], g->task.queue);
	frame_room_free(own->room);
	free(own);
}

// The buffers are borrowed here and not in room_open(): until then config.apply may have a task from before that sends on
// this queue.
static int room_begin(struct generator *g)
{
	struct lent *own = g->own;

	if (!own->begun) {
		int rc = port_lend(g->task.ports[0], g->task.queue, buffer_fill);

		if (rc < 0)
			return rc;
		own->begun = true;
		own->pooled = own->filled = rc;
	}
	frame_room_forget(own->room); // others may have used the buffers since
	own->longest = g->profile ? g->profile->longest : g->template.length;
	if (g->profile && g->profile->store > FRAME_STORE_BYTES)
		own->filled = false;
	for (unsigned i = 0; i < CONFIG_BURST_MAX; i++)
		own->lengths[i] = g->template.length;
	return 0;
}

// The pattern of each frame. The lines of those that come next are taken for writing meanwhile: each is in another core's
// cache, as a rule, and stores wait for one after the other.
static __attribute__((noinline)) void patterns_write(uint8_t *const *data, const uint16_t *lengths,
                                                     unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (i + COPY_AHEAD < n)
			copy_fetch(data[i + COPY_AHEAD], lengths[i + COPY_AHEAD]);
		if (lengths[i] > FRAME_STORE_BYTES)
			pattern_write(data[i], lengths[i]);
	}
}

// Up to n buffers for the frames that are next, but for their heads.
static inline unsigned room_reserve(struct generator *g, struct lent *own, unsigned n, uint8_t **data)
{
	unsigned lent = port_reserve(g->task.ports[0], g->task.queue, own->lengths, data, n);

	if (own->longest > FRAME_STORE_BYTES && port_lends_others(g->task.ports[0]))
		patterns_write(data, own->lengths, lent);
	else if (!own->filled)
		frame_room_fill(own->room, data, lent, own->longest);
	return lent;
}

static inline uint16_t room_publish(struct generator *g, const struct lent *own, uint16_t slots, unsigned n)
{
	uint16_t sent = 0;

	if (likely(n))
		sent = (uint16_t)port_publish(g->task.ports[0], g->task.queue, n);
	if (unlikely(n < slots) && own->pooled)
		g->no_mbuf += slots - n;
	frames_sent(g, slots, sent);
	return sent;
}

static uint16_t room_send(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	struct lent *own = g->own;
	uint8_t *data[CONFIG_BURST_MAX];
	unsigned n = room_reserve(g, own, slots, data);

	if (likely(n))
		frames_write(g, data, (uint16_t)n, now_tsc);
	return room_publish(g, own, slots, n);
}

static uint16_t room_send_profile(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	struct lent *own = g->own;
	uint8_t *data[CONFIG_BURST_MAX];
	unsigned n;

	profile_draw(g->profile, g->offered, slots);
	for (unsigned i = 0; i < slots; i++)
		own->lengths[i] = profile_drawn(g->profile, g->offered + i)->length;
	n = room_reserve(g, own, slots, data);
	if (likely(n))
		profile_frames_write(g, data, (uint16_t)n, now_tsc);
	return room_publish(g, own, slots, n);
}

const struct generator_tx generator_tx_in_place = {
        .open = room_open,
        .close = room_close,
        .begin = room_begin,
        .send = room_send,
        .send_profile = room_send_profile,
};
