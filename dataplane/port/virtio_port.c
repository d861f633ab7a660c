// SPDX-License-Identifier: BSD-3-Clause
#include "port/virtio_port.h"

#include <sys/eventfd.h>

#include "ring/frames.h"
#include "ring/virtio_session.h"

enum { IDLE_POLLS = 1024 }; // between two looks for a device that sleeps

// --- Data path -------------------------------------------------------------------------------------------

static inline struct virtio_queue *source_queue(struct virtio_port *port, uint16_t index)
{
	return &port->queues[2 * index];
}

static inline struct virtio_queue *sink_queue(struct virtio_port *port, uint16_t index)
{
	return &port->queues[2 * index + 1];
}

static __attribute__((noinline)) void kick(const struct virtio_queue *queue)
{
	eventfd_write(queue->kick_fd, 1);
}

// Into the gate; and kick for what the last use made available.
static inline bool enter(struct virtio_queue *queue)
{
	if (unlikely(!gate_enter(&queue->gate)))
		return false;
	if (driver_ring_wants_kick(&queue->ring))
		kick(queue);
	return true;
}

static inline void leave(struct virtio_queue *queue)
{
	if (unlikely(queue->ring.fault != DRIVER_OK))
		fault_note(&queue->fault, queue->ring.fault);
	gate_leave(&queue->gate);
}

// A device that went to sleep just when we looked whether it would: both rings of the pair, since nobody may
// send for long. A receive ring always has buffers that are not used: it is worth a kick only after new ones.
// Behind the gate of the receive ring; the other's memory stays where it is while the port lives.
static __attribute__((noinline)) void wake_sleeper(struct virtio_port *port, uint16_t index)
{
	struct virtio_queue *source = source_queue(port, index), *sink = sink_queue(port, index);

	if (source->head_checked != source->ring.head && driver_ring_stalled(&source->ring))
		kick(source);
	source->head_checked = source->ring.head;
	if (driver_ring_stalled(&sink->ring))
		kick(sink);
}

// Nothing has come, or what came was empty.
static void peek_nothing(struct virtio_port *port, uint16_t index, unsigned empty)
{
	struct virtio_queue *queue = source_queue(port, index);

	if (empty) {
		queue->empty += empty;
		driver_ring_release(&queue->ring, empty);
	} else if (++queue->idle_polls % IDLE_POLLS == 0) {
		wake_sleeper(port, index);
	}
	leave(queue);
}

// Returns how many frames are in the view; if any, the gate is still ours.
static inline unsigned peek(struct virtio_port *port, uint16_t index, struct view *view, unsigned n,
                            unsigned *empty)
{
	struct virtio_queue *queue = source_queue(port, index);

	view->count = *empty = 0;
	if (!enter(queue))
		return 0;
	view->batch.count = driver_ring_peek(&queue->ring, n, view->frames, &view->count, empty);
	if (view->count == 0)
		peek_nothing(port, index, *empty);
	return view->count;
}

unsigned virtio_port_peek(struct virtio_port *port, uint16_t index, struct view *view, unsigned n)
{
	struct virtio_queue *queue = source_queue(port, index);
	unsigned empty;

	if (peek(port, index, view, n, &empty) == 0)
		return 0;
	queue->packets += view->count;
	queue->empty += empty;
	return view->count;
}

void virtio_port_release(struct virtio_port *port, uint16_t index, struct view *view)
{
	struct virtio_queue *queue = source_queue(port, index);

	driver_ring_release(&queue->ring, view->batch.count);
	leave(queue);
}

uint16_t virtio_port_receive(struct virtio_port *port, uint16_t index, struct rte_mbuf **pkts, uint16_t n)
{
	struct virtio_queue *queue = source_queue(port, index);
	struct view view;
	uint16_t received;
	unsigned empty;

	if (peek(port, index, &view, n, &empty) == 0)
		return 0;
	if (unlikely(rte_pktmbuf_alloc_bulk(port->pool, pkts, view.count) != 0)) {
		queue->no_mbuf += view.count; // they stay in the ring and are tried again
		leave(queue);
		return 0;
	}
	received = frames_fill(port->pool, pkts, view.frames, view.count, &queue->no_mbuf);
	queue->packets += received;
	queue->empty += empty;
	virtio_port_release(port, index, &view);
	return received;
}

unsigned virtio_port_deliver(struct virtio_port *port, uint16_t index, const struct frame *frames, unsigned n)
{
	struct virtio_queue *queue = sink_queue(port, index);
	uint64_t too_long = 0;
	unsigned taken;

	if (!enter(queue)) {
		queue->refused += n;
		return 0;
	}
	taken = driver_ring_deliver(&queue->ring, frames, n, &too_long);
	queue->packets += taken - too_long;
	queue->too_long += too_long;
	queue->refused += n - taken;
	leave(queue);
	return taken;
}

struct device_sink {
	struct virtio_port *port;
	uint16_t index;
};

static unsigned take(void *to, const struct frame *frames, unsigned n)
{
	const struct device_sink *sink = to;

	return virtio_port_deliver(sink->port, sink->index, frames, n);
}

uint16_t virtio_port_send(struct virtio_port *port, uint16_t index, struct rte_mbuf **pkts, uint16_t n)
{
	return frames_offer(pkts, n, take, &(struct device_sink){port, index});
}

unsigned virtio_port_reserve(struct virtio_port *port, uint16_t index, struct frame *frames, unsigned n)
{
	struct virtio_queue *queue = sink_queue(port, index);
	unsigned lent = 0;

	if (enter(queue)) {
		lent = driver_ring_reserve(&queue->ring, frames, n);
		leave(queue);
	}
	queue->refused += n - lent;
	return lent;
}

void virtio_port_warm(struct virtio_port *port, uint16_t index)
{
	struct virtio_queue *queue = sink_queue(port, index);

	if (!enter(queue))
		return;
	driver_ring_warm(&queue->ring);
	leave(queue);
}

// Behind the gate. The fence stands for the time that passes between two uses of a ring: the device either
// sees what was published before it sleeps, or we see that it sleeps.
static void flush_queue(struct virtio_queue *queue)
{
	if (!enter(queue))
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (driver_ring_stalled(&queue->ring))
		kick(queue);
	leave(queue);
}

void virtio_port_flush(struct virtio_port *port, uint16_t index)
{
	flush_queue(sink_queue(port, index));
}

void virtio_port_flush_all(struct virtio_port *port)
{
	for (unsigned i = 0; i < 2u * port->pairs; i++)
		flush_queue(&port->queues[i]);
}

// The rings may have begun afresh since these were lent: then they are not the next ones. If they are by
// chance, they are the right ones.
static inline bool still_lent(const struct driver_ring *ring, const struct frame *frames)
{
	return frames[0].at.piece == &ring->pieces[ring->head & (ring->size - 1u)];
}

void virtio_port_publish(struct virtio_port *port, uint16_t index, const struct frame *frames, unsigned n)
{
	struct virtio_queue *queue = sink_queue(port, index);

	if (n == 0)
		return;
	if (unlikely(!gate_enter(&queue->gate))) {
		queue->lost += n;
		return;
	}
	if (likely(still_lent(&queue->ring, frames))) {
		driver_ring_publish(&queue->ring, frames, n);
		queue->packets += n;
	} else {
		queue->lost += n;
	}
	leave(queue);
}

// Buffers may go from one to the other: of one size, and both devices know both.
static inline bool exchangeable(struct virtio_port *a, struct virtio_port *b)
{
	return a->room == b->room && atomic_load_explicit(&a->memory, memory_order_relaxed) ==
	                                     atomic_load_explicit(&b->memory, memory_order_relaxed);
}

unsigned virtio_port_pass(struct virtio_port *from, struct virtio_port *to, uint16_t index,
                          const struct view *view)
{
	struct virtio_queue *sink = sink_queue(to, index);
	unsigned taken;

	if (!enter(sink)) {
		sink->refused += view->count;
		return 0;
	}
	if (likely(exchangeable(from, to))) {
		taken = driver_ring_pass(&source_queue(from, index)->ring, &sink->ring, view->frames,
		                         view->count);
		sink->packets += taken;
		sink->refused += view->count - taken;
		leave(sink);
		return taken;
	}
	leave(sink);
	return virtio_port_deliver(to, index, view->frames, view->count);
}

// --- What is seen of it ----------------------------------------------------------------------------------

bool virtio_port_link_up(struct virtio_port *port)
{
	bool up = atomic_load(&port->link_up);

	for (unsigned i = 0; i < 2u * port->pairs; i++)
		up = up && !fault_there(&port->queues[i].fault);
	return up;
}

bool virtio_port_negotiated(struct virtio_port *port, struct negotiated *out)
{
	if (!atomic_load(&port->link_up))
		return false;
	out->features = atomic_load(&port->features);
	out->rings = 2u * port->pairs;
	for (unsigned i = 0; i < out->rings; i++)
		out->sizes[i] = port->ring_size;
	return true;
}

void virtio_port_counters(struct virtio_port *port, struct port_counters *out)
{
	virtio_session_say_faults(port);
	for (uint16_t i = 0; i < port->pairs; i++) {
		const struct virtio_queue *rx = source_queue(port, i), *tx = sink_queue(port, i);

		port_counters_add(out, i, rx->packets, tx->packets, tx->refused);
		out->rx_errors += rx->empty;
		out->rx_nombuf += rx->no_mbuf;
		out->tx_errors += tx->too_long + tx->lost;
	}
	out->broken_rings = atomic_load(&port->broken);
}

// --- The kind --------------------------------------------------------------------------------------------

static int open_port(struct port *port)
{
	const struct config_port *config = &port->config;
	struct virtio_port *virtio = NULL;
	int rc = virtio_port_open(config->name, config->path, (uint16_t)config->ring_size,
	                          (uint16_t)config->queues, port->rx_pool, &virtio);

	snprintf(port->device, sizeof(port->device), "virtio");
	port->mac = port_own_mac(config);
	port->own = virtio;
	return rc;
}

static void close_port(struct port *port)
{
	virtio_port_close(port->own);
	port->own = NULL;
}

static uint16_t rx(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return virtio_port_receive(port->own, queue, pkts, n);
}

static uint16_t tx(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return virtio_port_send(port->own, queue, pkts, n);
}

static unsigned peek_frames(const struct port *port, uint16_t queue, struct view *view, unsigned n)
{
	return virtio_port_peek(port->own, queue, view, n);
}

static void release(const struct port *port, uint16_t queue, struct view *view)
{
	virtio_port_release(port->own, queue, view);
}

static unsigned deliver_frames(const struct port *port, uint16_t queue, const struct frame *frames,
                               unsigned n)
{
	return virtio_port_deliver(port->own, queue, frames, n);
}

static unsigned pass(const struct port *from, const struct port *to, uint16_t queue, struct view *view)
{
	if (from->ops == to->ops)
		return virtio_port_pass(from->own, to->own, queue, view);
	return virtio_port_deliver(to->own, queue, view->frames, view->count);
}

static void warm(const struct port *port, uint16_t queue)
{
	virtio_port_warm(port->own, queue);
}

static unsigned reserve(const struct port *port, uint16_t queue, struct frame *frames, unsigned n)
{
	return virtio_port_reserve(port->own, queue, frames, n);
}

static void publish(const struct port *port, uint16_t queue, const struct frame *frames, unsigned n)
{
	virtio_port_publish(port->own, queue, frames, n);
}

static void flush(const struct port *port, uint16_t queue)
{
	virtio_port_flush(port->own, queue);
}

static void flush_all(const struct port *port)
{
	virtio_port_flush_all(port->own);
}

static bool link_up(const struct port *port)
{
	return virtio_port_link_up(port->own);
}

static void counters(const struct port *port, struct port_counters *out)
{
	virtio_port_counters(port->own, out);
}

static bool negotiated(const struct port *port, struct negotiated *out)
{
	return virtio_port_negotiated(port->own, out);
}

const struct port_ops virtio_port_ops = {
        .kind = "virtio-user",
        .backend = "vring",
        .is_default = true,
        .takes_mac = true,
        .view_writable = true,
        .open = open_port,
        .close = close_port,
        .rx = rx,
        .tx = tx,
        .peek = peek_frames,
        .release = release,
        .deliver = deliver_frames,
        .pass = pass,
        .warm = warm,
        .reserve = reserve,
        .publish = publish,
        .flush = flush,
        .flush_all = flush_all,
        .link_up = link_up,
        .counters = counters,
        .negotiated = negotiated,
};
PORT_KIND(virtio_port_ops)
