// SPDX-License-Identifier: BSD-3-Clause
// What the tests of memif's rings have in common: a connection in one process, and frames whose bytes tell their number.
// Included once in each.
#pragma once

#include "test/memif_pair.h"
#include "test/unit.h"

enum { LOG2_SIZE = 5, SIZE = 1 << LOG2_SIZE, PAIRS = 2, LONGEST = 9018, BATCH = 16 };

struct rig {
	struct memif_link server, client;
	struct memif_ring out, in, back,
	        home; // client to server, its other end; server to client, its other end
};

static const struct memif_link_config served = {
        .server = true, .name = "s", .pairs = PAIRS, .memory_max = 1 << 30};

static inline void rig_open(struct rig *r)
{
	const struct memif_link_config driven = {.name = "c", .pairs = PAIRS, .log2_size = LOG2_SIZE};

	assert_true(memif_connect(&r->server, &served, &r->client, &driven));
	assert_true(memif_link_open_ring(&r->client, 1, MEMIF_TO_SERVER, &r->out));
	assert_true(memif_link_open_ring(&r->server, 1, MEMIF_TO_SERVER, &r->in));
	assert_true(memif_link_open_ring(&r->server, 1, MEMIF_TO_CLIENT, &r->back));
	assert_true(memif_link_open_ring(&r->client, 1, MEMIF_TO_CLIENT, &r->home));
	memif_ring_start(&r->out);
	memif_ring_start(&r->home);
}

static inline void rig_close(struct rig *r)
{
	memif_link_end(&r->server);
	memif_link_end(&r->client);
}

// What a hostile end says of a buffer.
struct lie {
	uint16_t region;
	uint32_t offset, length;
};

static inline void lie_tell(const struct lie *lie, struct memif_ring *ring, unsigned slot)
{
	ring->shared->descriptors[slot].region = lie->region;
	ring->shared->descriptors[slot].offset = lie->offset;
	ring->shared->descriptors[slot].length = lie->length;
}

// --- Frames ----------------------------------------------------------------------------------------------

static inline uint8_t bytes_of(unsigned number, unsigned i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

// In two pieces, so that both ends of a copy have to be found.
static inline unsigned send_frames(struct memif_ring *ring, unsigned first, unsigned n, uint32_t length)
{
	static uint8_t bytes[BATCH][LONGEST];
	struct piece pieces[BATCH][2];
	struct frame frames[BATCH];
	uint64_t too_long = 0;
	unsigned taken;

	for (unsigned f = 0; f < n; f++) {
		uint32_t half = length / 2;

		for (uint32_t i = 0; i < length; i++)
			bytes[f][i] = bytes_of(first + f, i);
		pieces[f][0] = (struct piece){bytes[f], half};
		pieces[f][1] = (struct piece){bytes[f] + half, length - half};
		frames[f] = (struct frame){{pieces[f], 0}, length, 0};
	}
	taken = memif_deliver(ring, frames, n, &too_long);
	assert_int_equal(too_long, 0);
	return taken;
}

// Returns how many slots they took: in several polls, if they are many bytes.
static inline unsigned take_frames(struct memif_ring *ring, unsigned first, unsigned n, uint32_t length)
{
	struct frames_lost lost = {0};
	uint8_t bytes[LONGEST];
	struct view view;
	unsigned slots = 0, seen = 0;

	while (seen < n && memif_ring_peek(ring, &view, n - seen, &lost)) {
		for (unsigned f = 0; f < view.count; f++, seen++) {
			assert_int_equal(view_copy(&view, f, bytes, sizeof(bytes)), length);
			for (uint32_t i = 0; i < length; i++)
				assert_int_equal(bytes[i], bytes_of(first + seen, i));
		}
		slots += view.batch.count;
		memif_ring_release(ring, view.batch.count);
	}
	assert_int_equal(ring->fault, MEMIF_OK);
	assert_int_equal(seen, n);
	assert_int_equal(lost.bad + lost.oversize, 0);
	return slots;
}
