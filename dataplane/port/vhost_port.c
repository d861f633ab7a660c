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

struct port_hop vhost_port_hop(struct vhost_port *from, struct vhost_port *to, uint16_t index, uint16_t n)
{
	struct queue *source = source_queue(from, index), *sink = sink_queue(to, index);
	struct hop_counts counts;
	uint16_t base;
	bool open;

	if (!gate_enter(&source->gate))
		return (struct port_hop){0};
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
	return (struct port_hop){(uint16_t)counts.received, (uint16_t)(counts.received - counts.forwarded)};
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

void vhost_port_flush(struct vhost_port *port)
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

void vhost_port_counters(struct vhost_port *port, struct port_counters *out)
{
	vhost_session_say_faults(port);
	for (uint16_t i = 0; i < port->pairs; i++) {
		const struct queue *rx = source_queue(port, i), *tx = sink_queue(port, i);

		port_counters_add(out, i, rx->packets, tx->packets, tx->refused);
		out->rx_errors += rx->from_guest.bad + rx->from_guest.oversize;
		out->rx_nombuf += rx->no_mbuf;
		out->tx_errors += tx->lost;
	}
	out->broken_rings = atomic_load(&port->broken);
}

// --- The kind --------------------------------------------------------------------------------------------

static int open_port(struct port *port)
{
	struct vhost_port *vhost = NULL;
	int rc = vhost_port_open(&port->config, port->rx_pool, &vhost);

	snprintf(port->device, sizeof(port->device), "vring");
	port->mac = port_own_mac(&port->config);
	port->own = vhost;
	return rc;
}

static void close_port(struct port *port)
{
	vhost_port_close(port->own);
	port->own = NULL;
}

static uint16_t rx(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return vhost_port_receive(port->own, queue, pkts, n);
}

static uint16_t tx(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return vhost_port_send(port->own, queue, pkts, n);
}

static unsigned peek(const struct port *port, uint16_t queue, struct view *view, unsigned n)
{
	return vhost_port_peek(port->own, queue, view, n);
}

static void release(const struct port *port, uint16_t queue, struct view *view)
{
	vhost_port_release(port->own, queue, view);
}

static unsigned deliver_frames(const struct port *port, uint16_t queue, const struct frame *frames,
                               unsigned n)
{
	return vhost_port_deliver(port->own, queue, frames, n);
}

static unsigned pass(const struct port *from, const struct port *to, uint16_t queue, struct view *view)
{
	return vhost_port_pass(to->own, queue, view->frames, view->count);
}

static void warm(const struct port *port, uint16_t queue)
{
	vhost_port_warm(port->own, queue);
}

static struct port_hop hop_frames_of(const struct port *from, const struct port *to, uint16_t queue,
                                     uint16_t n)
{
	return vhost_port_hop(from->own, to->own, queue, n);
}

static void flush_all(const struct port *port)
{
	vhost_port_flush(port->own);
}

static bool link_up(const struct port *port)
{
	return vhost_port_link_up(port->own);
}

static void counters(const struct port *port, struct port_counters *out)
{
	vhost_port_counters(port->own, out);
}

static bool negotiated(const struct port *port, struct negotiated *out)
{
	return vhost_port_negotiated(port->own, out);
}

const struct port_ops vhost_port_ops = {
        .kind = "vhost-user",
        .backend = "vring",
        .is_default = true,
        .takes_mac = true,
        .listens = true,
        .open = open_port,
        .close = close_port,
        .rx = rx,
        .tx = tx,
        .peek = peek,
        .release = release,
        .deliver = deliver_frames,
        .pass = pass,
        .warm = warm,
        .hop = hop_frames_of,
        .flush_all = flush_all,
        .link_up = link_up,
        .counters = counters,
        .negotiated = negotiated,
};
PORT_KIND(vhost_port_ops)
