// SPDX-License-Identifier: BSD-3-Clause
// Frames written where the port sends them from: only the head of each, once the pattern is behind it
// (frame_room.h). What the port had no room for was never written.
#include <errno.h>

#include "tasks/generator/frame_room.h"
#include "tasks/generator/generator_way.h"
#include "lib/log.h"

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
