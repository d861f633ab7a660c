// SPDX-License-Identifier: BSD-3-Clause
// bridge, when all its ports lend their frames (port.h): decided where they lie, and copied once for each
// port that they go to. In a VLAN-aware bridge a frame leaves with a head of our own (bridge_frames.h).
#include "tasks/bridge/bridge_frames.h"

static void count_delivered(struct bridge *b, unsigned out, unsigned offered, unsigned taken)
{
	b->task.counters.tx_packets += taken;
	b->task.counters.drop_tx_full[out] += offered - taken;
}

// What goes to one port, in the order in which it came.
static unsigned gather(const struct view *view, const struct bridge_burst *burst, unsigned out,
                       struct frame *frames)
{
	unsigned count = 0;

	for (unsigned i = 0; i < burst->count; i++) {
		frames[count] = view->frames[i];
		count += burst->fates[i].targets >> out & 1;
	}
	return count;
}

static void deliver_plain(struct bridge *b, const struct view *view, const struct bridge_burst *burst)
{
	for (uint32_t left = burst->any; left; left &= left - 1) {
		unsigned out = (unsigned)__builtin_ctz(left), count;
		struct frame frames[CONFIG_BURST_MAX];

		count = gather(view, burst, out, frames);
		count_delivered(b, out, count,
		                port_deliver(b->task.ports[out], b->task.queue, frames, count));
	}
}

static void deliver_vlan(struct bridge *b, const struct view *view, const struct bridge_burst *burst)
{
	for (uint32_t left = burst->any; left; left &= left - 1) {
		unsigned out = (unsigned)__builtin_ctz(left);
		struct bridge_frames to;

		to.count = to.piece_count = 0;
		for (unsigned i = 0; i < burst->count; i++) {
			const struct bridge_fate *fate = &burst->fates[i];
			uint16_t vlan = fate->tci & (BRIDGE_VLANS - 1);

			if (fate->targets >> out & 1)
				bridge_frames_add(&to, &view->frames[i], &burst->heads[i], fate,
				                  b->vlans[vlan].tagged >> out & 1);
		}
		count_delivered(b, out, to.count,
		                port_deliver(b->task.ports[out], b->task.queue, to.frames, to.count));
	}
}

static inline __attribute__((always_inline)) unsigned receive(struct bridge *b, unsigned in, bool vlan,
                                                              uint64_t now_tsc)
{
	const struct port *from = b->task.ports[in];
	struct bridge_burst burst;
	struct view view;

	burst.count = port_peek(from, b->task.queue, &view, b->burst);
	if (burst.count == 0)
		return 0;
	for (unsigned i = 0; i < burst.count; i++) {
		bridge_read_head(&view.frames[i], &burst.heads[i]);
		burst.lengths[i] = view.frames[i].length;
	}
	bridge_decide_burst(b, in, &burst, vlan, now_tsc);
	b->task.counters.rx_bursts++;
	b->task.counters.rx_packets += burst.count;
	if (vlan) {
		deliver_vlan(b, &view, &burst);
	} else if (likely(burst.together)) {
		unsigned out = (unsigned)__builtin_ctz(burst.any);

		count_delivered(b, out, burst.count,
		                port_pass(from, b->task.ports[out], b->task.queue, &view));
	} else {
		deliver_plain(b, &view, &burst);
	}
	port_release(from, b->task.queue, &view);
	return burst.count;
}

unsigned bridge_poll_in_place(struct task *task, uint64_t now_tsc)
{
	unsigned received = 0;

	for (unsigned in = 0; in < task->port_count; in++)
		received += receive((struct bridge *)task, in, false, now_tsc);
	return received;
}

unsigned bridge_poll_in_place_vlan(struct task *task, uint64_t now_tsc)
{
	unsigned received = 0;

	for (unsigned in = 0; in < task->port_count; in++)
		received += receive((struct bridge *)task, in, true, now_tsc);
	return received;
}
