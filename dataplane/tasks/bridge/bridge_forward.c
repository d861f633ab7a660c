// SPDX-License-Identifier: BSD-3-Clause
// bridge, when all its ports lend their frames (port.h): decided where they lie, and copied once for each
// port that they go to. In a VLAN-aware bridge a frame leaves with a head of our own.
#include "tasks/bridge/bridge_forward.h"

#include <rte_mbuf.h>
#include <string.h>

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

static inline __attribute__((always_inline)) unsigned receive_view(struct bridge *b, unsigned in, bool vlan,
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
	task_received(&b->task.counters, burst.count, b->burst);
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
		received += receive_view((struct bridge *)task, in, false, now_tsc);
	return received;
}

unsigned bridge_poll_in_place_vlan(struct task *task, uint64_t now_tsc)
{
	unsigned received = 0;

	for (unsigned in = 0; in < task->port_count; in++)
		received += receive_view((struct bridge *)task, in, true, now_tsc);
	return received;
}

_Static_assert(CONFIG_BURST_MAX <= (int)RING_BATCH_MAX, "a burst is peeked at once");

void bridge_frames_add(struct bridge_frames *to, const struct frame *frame, const union bridge_head *head,
                       const struct bridge_fate *fate, bool with_tag)
{
	struct frame *out = &to->frames[to->count];
	uint8_t *bytes = to->heads[to->count++];
	unsigned skip = bridge_head_skip(fate), first = to->piece_count;
	uint32_t length = bridge_retag(head, fate, with_tag, bytes), left = frame->length - skip;
	struct scatter at = scatter_skip(frame->at.piece, frame->at.offset + skip);

	out->length = length + left;
	to->pieces[to->piece_count++] = (struct ring_piece){bytes, length};
	while (left) {
		uint32_t run = RTE_MIN(left, at.piece->length - at.offset);

		to->pieces[to->piece_count++] = (struct ring_piece){at.piece->data + at.offset, run};
		left -= run;
		at = (struct scatter){at.piece + 1, 0};
	}
	out->at = (struct scatter){&to->pieces[first], 0};
}

// --- In mbufs --------------------------------------------------------------------------------------------

// bridge, with frames in mbufs: any mixture of ports. A frame that goes to several ports is copied for all
// but the last of them, since no port is asked whether it takes an mbuf that somebody else has too.
//
// A header must lie in the first segment of its mbuf, or the frame is a runt: no driver here does it
// otherwise.

enum { PREFETCH_AHEAD = 4 };

static void read_heads(struct rte_mbuf *const *pkts, struct bridge_burst *burst)
{
	for (unsigned i = 0; i < burst->count; i++) {
		const struct rte_mbuf *m = pkts[i];
		uint32_t here = m->data_len;

		if (i + PREFETCH_AHEAD < burst->count)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *));
		burst->heads[i] = (union bridge_head){0};
		memcpy(&burst->heads[i], rte_pktmbuf_mtod(m, void *),
		       RTE_MIN(here, (uint32_t)BRIDGE_HEAD_BYTES));
		burst->lengths[i] = likely(here >= BRIDGE_TAGGED_BYTES_MIN) ? m->pkt_len : here;
	}
}

// The head that the frame leaves with. Returns false if there is no room for it before the frame.
static bool put_head(struct rte_mbuf *m, const union bridge_head *head, const struct bridge_fate *fate,
                     bool with_tag)
{
	uint8_t bytes[BRIDGE_HEAD_BYTES];
	unsigned length = bridge_retag(head, fate, with_tag, bytes), skip = bridge_head_skip(fate);
	char *start = length > skip ? rte_pktmbuf_prepend(m, (uint16_t)(length - skip))
	                            : rte_pktmbuf_adj(m, (uint16_t)(skip - length));

	if (unlikely(start == NULL))
		return false;
	memcpy(start, bytes, length);
	return true;
}

// The frame itself for the last port that it goes to, else a copy. NULL without an mbuf.
static inline struct rte_mbuf *own(struct bridge *b, struct rte_mbuf *m, uint32_t targets, unsigned out)
{
	if (targets >> out == 1)
		return m;
	return rte_pktmbuf_copy(m, b->task.ports[out]->rx_pool, 0, UINT32_MAX);
}

// The frame as it leaves by a port. NULL, counted, if that cannot be made.
static inline struct rte_mbuf *prepare(struct bridge *b, struct rte_mbuf *m, const struct bridge_burst *burst,
                                       unsigned i, unsigned out, bool vlan)
{
	const struct bridge_fate *fate = &burst->fates[i];
	struct rte_mbuf *copy = own(b, m, fate->targets, out);

	if (unlikely(copy == NULL)) {
		b->no_mbuf++;
		return NULL;
	}
	if (vlan && unlikely(!put_head(copy, &burst->heads[i], fate,
	                               b->vlans[fate->tci & (BRIDGE_VLANS - 1)].tagged >> out & 1))) {
		rte_pktmbuf_free(copy);
		b->no_headroom++;
		return NULL;
	}
	return copy;
}

static inline void send_to(struct bridge *b, struct rte_mbuf **pkts, unsigned count, unsigned out)
{
	uint16_t dropped = port_send_drop(b->task.ports[out], b->task.queue, pkts, (uint16_t)count);

	b->task.counters.tx_packets += count - dropped;
	b->task.counters.drop_tx_full[out] += dropped;
}

static inline void send_each(struct bridge *b, struct rte_mbuf **pkts, const struct bridge_burst *burst,
                             bool vlan)
{
	// Ports upwards: what is done to a frame for its last one is seen by no other.
	for (uint32_t left = burst->any; left; left &= left - 1) {
		unsigned out = (unsigned)__builtin_ctz(left), count = 0;
		struct rte_mbuf *ready[CONFIG_BURST_MAX];

		for (unsigned i = 0; i < burst->count; i++)
			if (burst->fates[i].targets >> out & 1) {
				ready[count] = prepare(b, pkts[i], burst, i, out, vlan);
				count += ready[count] != NULL;
			}
		send_to(b, ready, count, out);
	}
	for (unsigned i = 0; i < burst->count; i++)
		if (burst->fates[i].targets == 0)
			rte_pktmbuf_free(pkts[i]);
}

static inline __attribute__((always_inline)) unsigned receive_mbufs(struct bridge *b, unsigned in, bool vlan,
                                                                    uint64_t now_tsc)
{
	struct rte_mbuf *pkts[CONFIG_BURST_MAX];
	struct bridge_burst burst;

	burst.count = port_receive(b->task.ports[in], b->task.queue, pkts, b->burst);
	if (burst.count == 0)
		return 0;
	read_heads(pkts, &burst);
	bridge_decide_burst(b, in, &burst, vlan, now_tsc);
	task_received(&b->task.counters, burst.count, b->burst);
	if (!vlan && likely(burst.together))
		send_to(b, pkts, burst.count, (unsigned)__builtin_ctz(burst.any));
	else
		send_each(b, pkts, &burst, vlan);
	return burst.count;
}

unsigned bridge_poll_mbufs(struct task *task, uint64_t now_tsc)
{
	unsigned received = 0;

	for (unsigned in = 0; in < task->port_count; in++)
		received += receive_mbufs((struct bridge *)task, in, false, now_tsc);
	return received;
}

unsigned bridge_poll_mbufs_vlan(struct task *task, uint64_t now_tsc)
{
	unsigned received = 0;

	for (unsigned in = 0; in < task->port_count; in++)
		received += receive_mbufs((struct bridge *)task, in, true, now_tsc);
	return received;
}
