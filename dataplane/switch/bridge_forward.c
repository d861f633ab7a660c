// SPDX-License-Identifier: BSD-3-Clause
// bridge: its frames from port to port, decided where they lie (bridge_forward.h). A frame is copied for each port that
// it goes to; one in an mbuf for all but the last, if that is a device of DPDK's, since no port is asked whether it takes
// an mbuf that somebody else has too. In a VLAN-aware bridge a frame leaves with a head of our own: what was decided
// about, not what the sender has made of it since, so that nobody gets into a VLAN that way.
#include "switch/bridge_forward.h"

#include <rte_mbuf.h>
#include <string.h>

enum { STATIONS_A_FRAME = 16 }; // are looked through in the time that a frame takes

_Static_assert(CONFIG_BURST_MAX <= (int)BURST_FRAMES_MAX, "a burst is peeked at once");

static inline void count_sent(struct bridge *b, unsigned out, unsigned offered, unsigned taken)
{
	counter_add(&b->task.counters.tx_packets, taken);
	counter_add(&b->task.counters.drop_tx_full[out], offered - taken);
}

// The frame itself, or a copy for a port that is not the last of those that it goes to. Returns false without an mbuf.
static inline bool add(struct bridge *b, struct bridge_leaving *to, struct view *view, unsigned i,
                       uint32_t targets, unsigned out)
{
	struct rte_mbuf *copy;

	if (likely(!view_in_mbufs(view) || targets >> out == 1)) {
		view_part_add(&to->part, view, i);
		return true;
	}
	b->task.charge += BRIDGE_CHARGE_MBUF;
	copy = rte_pktmbuf_copy(view->pkts[i], b->task.ports[out]->rx_pool, 0, UINT32_MAX);
	if (unlikely(copy == NULL)) {
		b->no_mbuf++;
		return false;
	}
	to->part.pkts[to->part.held++] = copy;
	to->part.count++;
	return true;
}

static bool head_mbuf(struct rte_mbuf *m, const uint8_t *head, unsigned length, unsigned skip)
{
	char *start = length > skip ? rte_pktmbuf_prepend(m, (uint16_t)(length - skip))
	                            : rte_pktmbuf_adj(m, (uint16_t)(skip - length));

	if (unlikely(start == NULL))
		return false;
	memcpy(start, head, length);
	return true;
}

// Other pieces describe it.
static void head_frame(struct bridge_leaving *to, struct frame *frame, const uint8_t *head, unsigned length,
                       unsigned skip)
{
	struct scatter at = scatter_skip(frame->at.piece, frame->at.offset + skip);
	uint32_t left = frame->length - skip;
	unsigned first = to->piece_count;

	to->pieces[to->piece_count++] = (struct piece){(uint8_t *)(uintptr_t)head, length};
	*frame = (struct frame){{&to->pieces[first], 0}, length + left, frame->offload};
	to->piece_count += scatter_describe(&to->pieces[to->piece_count], &at, left);
}

bool bridge_set_head(struct bridge_leaving *to, const union bridge_head *head, const struct bridge_fate *fate,
                     bool with_tag)
{
	unsigned last = to->part.count - 1;
	unsigned length = bridge_retag(head, fate, with_tag, to->heads[last]), skip = bridge_head_skip(fate);

	if (view_in_mbufs(&to->part))
		return head_mbuf(to->part.pkts[last], to->heads[last], length, skip);
	head_frame(to, &to->part.frames[last], to->heads[last], length, skip);
	return true;
}

static inline void add_tagged(struct bridge *b, struct bridge_leaving *to, struct view *view,
                              const struct bridge_burst *burst, unsigned i, unsigned out)
{
	const struct bridge_fate *fate = &burst->fates[i];
	bool with_tag = b->vlans[fate->tci & (BRIDGE_VLANS - 1)].tagged >> out & 1;

	if (unlikely(!add(b, to, view, i, fate->targets, out)) ||
	    likely(bridge_set_head(to, &burst->heads[i], fate, with_tag)))
		return;
	rte_pktmbuf_free(to->part.pkts[--to->part.held]);
	to->part.count--;
	b->no_headroom++;
}

// Hand frames on to a port. together: the whole view goes to no other. Segments are work, as copies are.
static inline __attribute__((always_inline)) void hand_on(struct bridge *b, unsigned in, unsigned out,
                                                          struct view *view, bool together, bool offloads)
{
	const struct port *from = b->task.ports[in], *to = b->task.ports[out];
	unsigned n = view->count;
	struct offload_sent sent;

	if (!offloads) {
		count_sent(b, out, n,
		           together ? port_pass(from, to, b->task.queue, view)
		                    : port_pass_shared(from, to, b->task.queue, view));
		return;
	}
	sent = port_send(from, to, b->task.queue, view, !together);
	b->segments_added += sent.offered - n;
	b->task.charge += BRIDGE_CHARGE_COPY * (sent.offered - n);
	count_sent(b, out, sent.offered, sent.taken);
}

// What goes to each port, in the order in which it came. Ports upwards: what is done to a frame for its last one is seen
// by no other.
static inline __attribute__((always_inline)) void send_each(struct bridge *b, unsigned in, struct view *view,
                                                            const struct bridge_burst *burst, bool vlan,
                                                            bool offloads)
{
	struct bridge_leaving to;

	for (uint32_t left = burst->any; left; left &= left - 1) {
		unsigned out = (unsigned)__builtin_ctz(left);

		view_part_begin(&to.part, view);
		to.piece_count = 0;
		for (unsigned i = 0; i < burst->count; i++)
			if (!(burst->fates[i].targets >> out & 1))
				continue;
			else if (vlan)
				add_tagged(b, &to, view, burst, i, out);
			else
				add(b, &to, view, i, burst->fates[i].targets, out);
		hand_on(b, in, out, &to.part, false, offloads);
	}
}

void bridge_read_heads(const struct view *view, struct bridge_burst *burst)
{
	burst->count = view->count;
	view_fetch(view);
	for (unsigned i = 0; i < burst->count; i++) {
		const struct vnf_frame span = view_span(view, i);
		union bridge_head *head = &burst->heads[i];

		burst->lengths[i] = span.total;
		if (likely(span.length >= BRIDGE_HEAD_BYTES)) {
			memcpy(head, span.data, sizeof(*head));
		} else {
			*head = (union bridge_head){0};
			view_copy(view, i, head->bytes, sizeof(*head));
		}
	}
}

static inline __attribute__((always_inline)) unsigned receive(struct bridge *b, unsigned in, bool vlan,
                                                              bool offloads, uint64_t now_tsc)
{
	const struct port *from = b->task.ports[in];
	struct bridge_burst burst;
	struct view view;

	if (task_skips_poll(&b->task, in))
		return 0;
	if (port_peek(from, b->task.queue, &view, b->burst) == 0)
		return 0;
	bridge_read_heads(&view, &burst);
	bridge_decide_burst(b, in, &burst, vlan, now_tsc);
	task_received(&b->task.counters, burst.count, b->burst);
	if (!vlan && likely(burst.together))
		hand_on(b, in, (unsigned)__builtin_ctz(burst.any), &view, true, offloads);
	else
		send_each(b, in, &view, &burst, vlan, offloads);
	port_release(from, b->task.queue, &view);
	task_charge(&b->task, in, b->burst);
	return burst.count;
}

static bool is_of(const struct bridge *b, unsigned port, uint64_t key, uint64_t now_tsc)
{
	struct mac_bucket *bucket = mac_table_bucket(b->table, key);
	uint64_t entry;
	int way = mac_bucket_find(bucket, key, &entry);

	return way >= 0 && (entry & (MAC_TABLE_PORTS - 1)) == port &&
	       !mac_table_is_old(b->table, atomic_load_explicit(&bucket->seen_tsc[way], memory_order_relaxed),
	                         now_tsc);
}

// The place of a new station, or one that is back: of those that are gone one is found by the way, so a flood of
// addresses costs no search.
static bool take_place(struct bridge *b, unsigned in, uint64_t key, uint64_t now_tsc)
{
	struct bridge_port *port = &b->ports[in];

	for (unsigned i = 0; i < port->station_count; i++)
		if (port->stations[i] == key)
			return true;
	if (port->station_count < port->max_stations) {
		port->stations[port->station_count++] = key;
		return true;
	}
	port->next = (uint8_t)((port->next + 1) % port->max_stations);
	if (is_of(b, in, port->stations[port->next], now_tsc))
		return false;
	port->stations[port->next] = key;
	return true;
}

enum bridge_verdict bridge_admit(struct bridge *b, unsigned in, uint64_t source, uint16_t vlan,
                                 uint64_t now_tsc)
{
	uint64_t key = mac_key(source, vlan);
	bool own = false;

	if (source == 0 || mac_is_group(source))
		return b->ports[in].locked ? BRIDGE_LOCKED : BRIDGE_FORWARDED;
	if (likely(is_of(b, in, key, now_tsc))) {
		bridge_learn(b, in, source, vlan, now_tsc);
		return BRIDGE_FORWARDED;
	}
	b->task.charge += (b->static_count + b->ports[in].station_count) / STATIONS_A_FRAME;
	for (unsigned i = 0; i < b->static_count; i++)
		if (b->statics[i].mac == source) {
			if (b->statics[i].port != in)
				return BRIDGE_LOCKED;
			own = true;
		}
	if (b->ports[in].locked && !own)
		return BRIDGE_LOCKED;
	if (b->ports[in].max_stations && !take_place(b, in, key, now_tsc))
		return BRIDGE_STATION_LIMIT;
	bridge_learn(b, in, source, vlan, now_tsc);
	return BRIDGE_FORWARDED;
}

static inline __attribute__((always_inline)) unsigned poll_all(struct task *task, bool vlan, bool offloads,
                                                               uint64_t now_tsc)
{
	unsigned received = 0;

	for (unsigned in = 0; in < task->port_count; in++)
		received += receive((struct bridge *)task, in, vlan, offloads, now_tsc);
	return received;
}

unsigned bridge_poll(struct task *task, uint64_t now_tsc)
{
	return poll_all(task, false, false, now_tsc);
}

unsigned bridge_poll_vlan(struct task *task, uint64_t now_tsc)
{
	return poll_all(task, true, false, now_tsc);
}

unsigned bridge_poll_offloads(struct task *task, uint64_t now_tsc)
{
	return poll_all(task, false, true, now_tsc);
}

unsigned bridge_poll_vlan_offloads(struct task *task, uint64_t now_tsc)
{
	return poll_all(task, true, true, now_tsc);
}
