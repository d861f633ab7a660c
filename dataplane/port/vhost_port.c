// SPDX-License-Identifier: BSD-3-Clause
#include "port/vhost_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "lib/log.h"
#include "lib/stale_socket.h"
#include "ring/vhost_session.h"

static const char *listen_error(int rc)
{
	if (rc == -EADDRINUSE)
		return "another process listens there; give another path";
	return rc == -EEXIST ? "there is a file that is no socket; remove it or give another path"
	                     : strerror(-rc);
}

int vhost_port_open(const struct config_port *config, struct rte_mempool *pool, struct vhost_port **out)
{
	struct vhost_port *port;
	int rc = gate_prepare();

	if (rc) {
		LOG_ERROR("port %s: membarrier(2): %s; use \"backend\": \"dpdk\"", config->name,
		          strerror(-rc));
		return rc;
	}
	port = aligned_alloc(64, sizeof(*port));
	if (port == NULL) {
		LOG_ERROR("port %s: no memory for %zu bytes", config->name, sizeof(*port));
		return -ENOMEM;
	}
	memset(port, 0, sizeof(*port));
	snprintf(port->name, sizeof(port->name), "%s", config->name);
	snprintf(port->path, sizeof(port->path), "%s", config->path);
	port->pairs = config->queues;
	port->pool = pool;
	port->vid = -1;
	rc = stale_socket_remove(config->path);
	if (rc == 0)
		rc = vhost_session_begin(port);
	if (rc) {
		LOG_ERROR("port %s: cannot listen on %s: %s", config->name, config->path, listen_error(rc));
		free(port);
		return rc;
	}
	*out = port;
	return 0;
}

void vhost_port_close(struct vhost_port *port)
{
	if (port == NULL)
		return;
	vhost_session_end(port);
	free(port);
}

// --- Data path -------------------------------------------------------------------------------------------

// Worker, behind the gate: keep what ended the ring.
static inline void note_fault(struct queue *queue)
{
	if (unlikely(queue->ring.fault != RING_OK))
		fault_note(&queue->fault, queue->ring.fault);
}

// rte_vhost_vring_call() takes a lock that the library holds while a message waits for us to leave, so the
// descriptor is written here. Behind the gate: after a commit, in a queue that may not be polled again soon.
static inline void call(const struct queue *queue)
{
	if (queue->call_fd >= 0 && ring_wants_call(&queue->ring))
		eventfd_write(queue->call_fd, 1);
}

// At the end of each poll, behind the gate; moved: it has committed something. What is owed when the gate is
// shut is paid by queue_attach_call(), which always calls.
static inline void call_by_poll(struct queue *queue, bool moved)
{
	if (queue->call_fd >= 0 && ring_poll_wants_call(&queue->ring, moved))
		eventfd_write(queue->call_fd, 1);
}

// From the guest, and to it.
static inline struct queue *source_queue(struct vhost_port *port, uint16_t index)
{
	return &port->queues[PAIR_RINGS * index + GUEST_TRANSMITQ];
}

static inline struct queue *sink_queue(struct vhost_port *port, uint16_t index)
{
	return &port->queues[PAIR_RINGS * index + GUEST_RECEIVEQ];
}

// At each poll of what comes from a guest: a call that vhost_port_pass() owes it, once the pass has not been
// repeated between two polls. The same worker does both.
static inline void settle_pass(struct vhost_port *port, uint16_t index)
{
	struct queue *sink, *source = source_queue(port, index);

	if (likely(source->pass_owed == 0) || --source->pass_owed > 0)
		return;
	sink = sink_queue(port, index);
	if (gate_enter(&sink->gate)) {
		call_by_poll(sink, false);
		gate_leave(&sink->gate);
	}
}

uint16_t vhost_port_receive(struct vhost_port *port, uint16_t index, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = source_queue(port, index);
	uint16_t base, received;

	settle_pass(port, index);
	if (!gate_enter(&queue->gate))
		return 0;
	base = ring_base(&queue->ring);
	received = frames_receive(&queue->ring, port->pool, pkts, n, &queue->from_guest, &queue->no_mbuf);
	queue->packets += received;
	note_fault(queue);
	call_by_poll(queue, ring_base(&queue->ring) != base);
	gate_leave(&queue->gate);
	return received;
}

static inline void count_sent(struct queue *queue, unsigned offered, unsigned taken, uint64_t too_long)
{
	queue->packets += taken - too_long;
	queue->lost += too_long;
	queue->refused += offered - taken;
	note_fault(queue);
}

uint16_t vhost_port_send(struct vhost_port *port, uint16_t index, struct rte_mbuf **pkts, uint16_t n)
{
	struct queue *queue = sink_queue(port, index);
	uint64_t too_long = 0;
	uint16_t sent = 0;

	if (gate_enter(&queue->gate)) {
		sent = frames_send(&queue->ring, pkts, n, &too_long);
		count_sent(queue, n, sent, too_long);
		if (sent > too_long)
			call(queue);
		gate_leave(&queue->gate);
	} else {
		queue->refused += n;
	}
	return sent;
}

static void give_back(struct queue *queue, const struct view *view)
{
	view_commit(&queue->ring, view);
	call_by_poll(queue, true);
	gate_leave(&queue->gate);
}

unsigned vhost_port_peek(struct vhost_port *port, uint16_t index, struct view *view, unsigned n)
{
	struct queue *queue = source_queue(port, index);

	view->count = 0;
	settle_pass(port, index);
	if (!gate_enter(&queue->gate))
		return 0;
	if (view_peek(&queue->ring, view, n, &queue->from_guest) == 0) {
		note_fault(queue);
		call_by_poll(queue, false);
		gate_leave(&queue->gate);
		return 0;
	}
	queue->packets += view->count;
	if (unlikely(view->count == 0))
		give_back(queue, view);
	return view->count;
}

void vhost_port_release(struct vhost_port *port, uint16_t index, struct view *view)
{
	give_back(source_queue(port, index), view);
}

// polled: the task polls this queue again, and so pays a call that is owed; else it is paid behind a fence.
static inline unsigned copy_out(struct vhost_port *port, uint16_t index, const struct frame *frames,
                                unsigned n, bool polled)
{
	struct queue *queue = sink_queue(port, index);
	uint64_t too_long = 0;
	unsigned taken;

	if (!gate_enter(&queue->gate)) {
		queue->refused += n;
		return 0;
	}
	taken = deliver(&queue->ring, frames, n, &too_long);
	count_sent(queue, n, taken, too_long);
	if (polled) {
		call_by_poll(queue, taken > too_long);
		// Two: the poll of this port that comes next may be of the same round as this pass.
		source_queue(port, index)->pass_owed = queue->ring.call_owed ? 2 : 0;
	} else if (taken > too_long) {
		call(queue);
	}
	gate_leave(&queue->gate);
	return taken;
}

unsigned vhost_port_deliver(struct vhost_port *port, uint16_t index, const struct frame *frames, unsigned n)
{
	return copy_out(port, index, frames, n, false);
}

unsigned vhost_port_pass(struct vhost_port *port, uint16_t index, const struct frame *frames, unsigned n)
{
	return copy_out(port, index, frames, n, true);
}

struct vhost_hop vhost_port_hop(struct vhost_port *from, struct vhost_port *to, uint16_t index, uint16_t n)
{
	struct queue *source = source_queue(from, index), *sink = sink_queue(to, index);
	struct hop_counts counts;
	uint16_t base;
	bool open;

	if (!gate_enter(&source->gate))
		return (struct vhost_hop){0};
	open = gate_enter(&sink->gate);
	base = ring_base(&source->ring);
	counts = hop(&source->ring, open ? &sink->ring : NULL, n);
	source->packets += counts.received;
	source->from_guest.bad += counts.lost.bad;
	source->from_guest.oversize += counts.lost.oversize;
	note_fault(source);
	if (open) {
		count_sent(sink, counts.received, counts.forwarded, counts.too_long);
		call_by_poll(sink, counts.forwarded > counts.too_long);
		gate_leave(&sink->gate);
	} else {
		sink->refused += counts.received;
	}
	call_by_poll(source, ring_base(&source->ring) != base);
	gate_leave(&source->gate);
	return (struct vhost_hop){(uint16_t)counts.received, (uint16_t)(counts.received - counts.forwarded)};
}

void vhost_port_warm(struct vhost_port *port, uint16_t index)
{
	struct queue *queue = sink_queue(port, index);

	if (!gate_enter(&queue->gate))
		return;
	ring_warm(&queue->ring);
	call_by_poll(queue, false); // a hop from a ring that is gone never looks at this one again
	gate_leave(&queue->gate);
}

void vhost_port_settle(struct vhost_port *port)
{
	for (unsigned i = 0; i < vhost_port_rings(port); i++) {
		struct queue *queue = &port->queues[i];

		if (gate_enter(&queue->gate)) {
			call_by_poll(queue, false);
			gate_leave(&queue->gate);
		}
		queue->pass_owed = 0; // it is paid; the next task may only receive here
	}
}

// --- What is seen of it ----------------------------------------------------------------------------------

bool vhost_port_link_up(struct vhost_port *port)
{
	bool up = atomic_load(&port->link_up);

	for (unsigned i = 0; i < vhost_port_rings(port); i++)
		up = up && !fault_there(&port->queues[i].fault);
	return up;
}

bool vhost_port_negotiated(struct vhost_port *port, struct negotiated *out)
{
	if (!atomic_load(&port->link_up))
		return false;
	out->features = atomic_load(&port->features);
	out->rings = vhost_port_rings(port);
	for (unsigned i = 0; i < out->rings; i++)
		out->sizes[i] = atomic_load(&port->sizes[i]);
	return true;
}

static struct vhost_queue_stats queue_stats(struct vhost_port *port, uint16_t index)
{
	const struct queue *rx = source_queue(port, index), *tx = sink_queue(port, index);

	return (struct vhost_queue_stats){
	        .rx_packets = rx->packets,
	        .tx_packets = tx->packets,
	        .rx_bad = rx->from_guest.bad,
	        .rx_oversize = rx->from_guest.oversize,
	        .rx_nombuf = rx->no_mbuf,
	        .tx_too_long = tx->lost,
	        .tx_full = tx->refused,
	};
}

struct vhost_port_stats vhost_port_stats(struct vhost_port *port)
{
	struct vhost_port_stats stats = {0};

	vhost_session_say_faults(port);
	for (uint16_t i = 0; i < port->pairs; i++)
		stats.queues[i] = queue_stats(port, i);
	stats.broken = atomic_load(&port->broken);
	return stats;
}
