// SPDX-License-Identifier: BSD-3-Clause
// l2fwd: the VNF of the papers (METHODOLOGY.md s4). What comes in on one port leaves by the other with the
// peer's MAC address as destination and the port's own as source. One port, or the same twice, is an echo.
//
// What a port with writable views of its own lends is changed where it lies and passed on, if the other port
// takes frames in place too (port.h); the rest goes in mbufs. The counters are the same either way.
//
// Frames too short for an Ethernet header are dropped and counted as "runt".
// rx_packets == tx_packets + drop_tx_full + runt, always.
#include <errno.h>
#include <rte_ether.h>
#include <rte_prefetch.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "port.h"
#include "task.h"
#include "task_alloc.h"

enum { BURST_DEFAULT = 32, PREFETCH_AHEAD = 4 };

// From ports[in] to ports[out].
struct side {
	uint8_t in, out;
	bool in_place;
	uint8_t macs[2 *
	             RTE_ETHER_ADDR_LEN]; // destination, source: the first bytes of every frame that leaves
};

struct l2fwd {
	struct task task;
	uint16_t burst;
	uint16_t side_count;
	struct side sides[CONFIG_TASK_PORTS_MAX];
	uint64_t runts;
};

static int side_set(struct side *side, const struct config_task *config, struct port *const *ports,
                    unsigned in, unsigned out)
{
	static const uint8_t unset[RTE_ETHER_ADDR_LEN];
	const uint8_t peer[RTE_ETHER_ADDR_LEN] = {2, 0, 0, 0, 1, (uint8_t)out}; // locally administered
	struct rte_ether_addr own;
	int status = port_mac(ports[out], &own);

	if (status != 0) {
		LOG_ERROR("task %s: MAC address of port %s: %s", config->name, config->ports[out],
		          strerror(-status));
		return status;
	}
	side->in = (uint8_t)in;
	side->out = (uint8_t)out;
	side->in_place = port_view_writable(ports[in]) && port_in_place(ports[out]);
	memcpy(side->macs,
	       memcmp(config->peer_macs[out], unset, sizeof(unset)) ? config->peer_macs[out] : peer,
	       sizeof(peer));
	memcpy(side->macs + sizeof(peer), own.addr_bytes, sizeof(own.addr_bytes));
	return 0;
}

static int l2fwd_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct l2fwd *l = task_alloc(sizeof(*l), &l2fwd_ops, config, ports);
	bool echo = config->port_count == 1 || ports[0] == ports[1];
	int status = 0;

	if (!l)
		return -ENOMEM;
	l->burst = config->burst ? (uint16_t)config->burst : BURST_DEFAULT;
	l->side_count = echo ? 1 : 2;
	for (unsigned i = 0; i < l->side_count && status == 0; i++)
		status = side_set(&l->sides[i], config, ports, i, echo ? 0 : 1 - i);
	if (status != 0) {
		free(l);
		return status;
	}
	*out = &l->task;
	return 0;
}

static void l2fwd_destroy(struct task *task)
{
	free(task);
}

// Rewrite the addresses; frees runts and closes the gaps. Returns how many remain.
static inline uint16_t rewrite(struct l2fwd *l, const struct side *side, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < n; i++) {
		struct rte_mbuf *m = pkts[i];

		if (i + PREFETCH_AHEAD < n)
			__builtin_prefetch(rte_pktmbuf_mtod(pkts[i + PREFETCH_AHEAD], void *), 1);
		if (unlikely(m->data_len < RTE_ETHER_HDR_LEN)) {
			rte_pktmbuf_free(m);
			continue;
		}
		memcpy(rte_pktmbuf_mtod(m, void *), side->macs, sizeof(side->macs));
		pkts[kept++] = m;
	}
	l->runts += n - kept;
	return kept;
}

// As rewrite(). A frame of a writable view is one piece.
static inline void rewrite_in_place(struct l2fwd *l, const struct side *side, struct view *view)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < view->count; i++) {
		const struct frame *frame = &view->frames[i];

		if (unlikely(frame->length < RTE_ETHER_HDR_LEN))
			continue;
		memcpy(frame->at.piece->data + frame->at.offset, side->macs, sizeof(side->macs));
		view->frames[kept++] = *frame;
	}
	l->runts += view->count - kept;
	view->count = kept;
}

static inline unsigned side_poll_in_place(struct l2fwd *l, const struct side *side)
{
	struct task *task = &l->task;
	struct port *in = task->ports[side->in], *out = task->ports[side->out];
	struct view view;
	unsigned n = port_peek(in, task->queue, &view, l->burst), passed;

	if (n == 0)
		return 0;
	rewrite_in_place(l, side, &view);
	passed = port_pass(in, out, task->queue, &view);
	port_release(in, task->queue, &view);
	task->counters.rx_packets += n;
	task->counters.tx_packets += passed;
	task->counters.drop_tx_full[side->out] += view.count - passed;
	return n;
}

static inline uint16_t side_poll(struct l2fwd *l, const struct side *side)
{
	struct task *task = &l->task;
	struct rte_mbuf *pkts[CONFIG_BURST_MAX];
	uint16_t n = port_receive(task->ports[side->in], task->queue, pkts, l->burst), kept, dropped;

	if (n == 0)
		return 0;
	kept = rewrite(l, side, pkts, n);
	dropped = port_send_drop(task->ports[side->out], task->queue, pkts, kept);
	task->counters.rx_packets += n;
	task->counters.tx_packets += kept - dropped;
	task->counters.drop_tx_full[side->out] += dropped;
	return n;
}

static unsigned l2fwd_poll(struct task *task, uint64_t now_tsc)
{
	struct l2fwd *l = (struct l2fwd *)task;
	unsigned n = 0;

	for (unsigned i = 0; i < l->side_count; i++)
		n += l->sides[i].in_place ? side_poll_in_place(l, &l->sides[i]) : side_poll(l, &l->sides[i]);
	for (unsigned i = 0; n == 0 && i < l->side_count; i++)
		if (l->sides[i].in_place)
			port_warm(task->ports[l->sides[i].out], task->queue);
	return n;
}

static void l2fwd_clear(struct task *task)
{
	((struct l2fwd *)task)->runts = 0;
}

static void l2fwd_report(const struct task *task, json_t *object)
{
	const struct l2fwd *l = (const struct l2fwd *)task;

	json_object_set_new(json_object_get(object, "drops"), "runt", json_integer((json_int_t)l->runts));
}

const struct task_ops l2fwd_ops = {
        .kind = "l2fwd",
        .ports_min = 1,
        .ports_max = 2,
        .receives = true,
        .sends = true,
        .create = l2fwd_create,
        .destroy = l2fwd_destroy,
        .poll = l2fwd_poll,
        .clear = l2fwd_clear,
        .report = l2fwd_report,
};
