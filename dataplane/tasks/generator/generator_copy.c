// SPDX-License-Identifier: BSD-3-Clause
// Frames that the port copies once, into a guest's buffers. A frame is two pieces: a head of its own, and the
// pattern, which all have in common. The heads of a burst stay in the first-level cache whatever the frame
// size. A frame that the port refused is written again by the next call.
#include <errno.h>
#include <stdlib.h>

#include "tasks/generator/generator_way.h"
#include "lib/log.h"

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
