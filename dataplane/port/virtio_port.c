// SPDX-License-Identifier: BSD-3-Clause
// A virtio-user port whose driver is our own: we connect to the unix socket of a vhost-user device (a switch)
// and drive its rings as a guest would. Buffers are ours: what has come is looked at, changed and passed on
// where it lies, and what is sent can be written where the device will read it.
//
// A port lives through any number of devices, one after the other: while there is none, nothing comes and
// nothing that is sent is taken. What was in the rings is lost when a device goes.
//
// A thread of virtio_session.c watches the sockets, takes the rings away from the workers and gives them back.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "port/virtio_session.h"

// --- Data path -------------------------------------------------------------------------------------------

static inline struct ring_queue *virtio_source_queue(const struct port *port, uint16_t index)
{
	return &((struct shm_port *)port->own)->queues[PAIR_RINGS * index + GUEST_RECEIVEQ];
}

static inline struct ring_queue *virtio_sink_queue(const struct port *port, uint16_t index)
{
	return &((struct shm_port *)port->own)->queues[PAIR_RINGS * index + GUEST_TRANSMITQ];
}

// Into the gate; and kick for what the last use made available: by now it has long been visible, and the line of the device's
// word, which is that of used->idx, is near.
static inline bool virtio_enter(struct ring_queue *queue)
{
	if (unlikely(!gate_enter(&queue->gate)))
		return false;
	bell_look(queue);
	return true;
}

static inline void virtio_leave(struct ring_queue *queue)
{
	if (unlikely(queue->driver.fault != DRIVER_OK))
		fault_note(&queue->fault, queue->driver.fault);
	gate_leave(&queue->gate);
}

// Nothing has come, or what came was empty.
static void look_in_vain(struct ring_queue *queue, unsigned empty)
{
	if (empty) {
		counter_add(&queue->none.bad, empty);
		driver_ring_release(&queue->driver, empty);
	} else {
		bell_pay(queue);
	}
	virtio_leave(queue);
}

// The gate is ours until the release, if there are frames.
static unsigned virtio_peek(const struct port *port, uint16_t index, struct view *view, unsigned n)
{
	struct ring_queue *queue = virtio_source_queue(port, index);
	unsigned empty;

	view->count = 0;
	view->held = VIEW_IN_RING;
	bell_at_poll(queue, virtio_sink_queue(port, index));
	if (!virtio_enter(queue))
		return 0;
	view->batch.count = driver_ring_peek(&queue->driver, n, view->frames, &view->count, &empty);
	if (view->count == 0) {
		look_in_vain(queue, empty);
		return 0;
	}
	counter_add(&queue->packets, view->count);
	counter_add(&queue->none.bad, empty);
	return view->count;
}

// spans NULL: frames of this length, which nobody reads.
static __rte_always_inline unsigned peek_uniform(const struct port *port, uint16_t index, struct view *view,
                                                 struct vnf_frame *spans, uint32_t length, unsigned n)
{
	struct ring_queue *queue = virtio_source_queue(port, index);

	if (!virtio_enter(queue))
		return 0;
	n = spans ? driver_ring_peek_spans(&queue->driver, spans, n)
	          : driver_ring_peek_alike(&queue->driver, length, n);
	counter_add(&queue->packets, n);
	view->held = VIEW_IN_RING;
	view->count = view->batch.count = n;
	if (n == 0)
		virtio_leave(queue);
	return n;
}

static unsigned peek_spans(const struct port *port, uint16_t index, struct view *view,
                           struct vnf_frame *spans, unsigned n)
{
	return peek_uniform(port, index, view, spans, 0, n);
}

static unsigned peek_alike(const struct port *port, uint16_t index, struct view *view, uint32_t length,
                           unsigned n)
{
	return peek_uniform(port, index, view, NULL, length, n);
}

static void virtio_release(const struct port *port, uint16_t index, struct view *view)
{
	struct ring_queue *queue = virtio_source_queue(port, index);

	driver_ring_release(&queue->driver, view->batch.count);
	virtio_leave(queue);
}

// polled: the task receives from this queue, too.
static inline unsigned virtio_copy_out(const struct port *port, uint16_t index, const struct frame *frames,
                                       unsigned n, bool polled)
{
	struct ring_queue *queue = virtio_sink_queue(port, index);
	uint64_t too_long = 0;
	unsigned taken;

	if (!virtio_enter(queue)) {
		counter_add(&queue->refused, n);
		return 0;
	}
	taken = driver_ring_deliver(&queue->driver, frames, n, &too_long);
	counter_add(&queue->packets, taken - too_long);
	counter_add(&queue->lost, too_long);
	counter_add(&queue->refused, n - taken);
	if (polled)
		bell_after_send(virtio_source_queue(port, index), queue);
	virtio_leave(queue);
	return taken;
}

static unsigned virtio_deliver_frames(const struct port *port, uint16_t index, const struct frame *frames,
                                      unsigned n)
{
	return virtio_copy_out(port, index, frames, n, false);
}

static unsigned virtio_deliver_polled(const struct port *port, uint16_t index, const struct frame *frames,
                                      unsigned n)
{
	return virtio_copy_out(port, index, frames, n, true);
}

static unsigned virtio_reserve(const struct port *port, uint16_t index, const uint16_t *lengths,
                               uint8_t **data, unsigned n)
{
	struct ring_queue *queue = virtio_sink_queue(port, index);
	unsigned lent = 0;

	if (virtio_enter(queue)) {
		lent = driver_ring_reserve(&queue->driver, lengths, data, n);
		virtio_leave(queue);
	}
	counter_add(&queue->refused, n - lent);
	return lent;
}

static void virtio_warm(const struct port *port, uint16_t index)
{
	struct ring_queue *queue = virtio_sink_queue(port, index);

	if (!gate_enter(&queue->gate))
		return;
	bell_pay(queue);
	driver_ring_warm(&queue->driver);
	virtio_leave(queue);
}

static void virtio_flush(const struct port *port, uint16_t index)
{
	bell_flush(virtio_sink_queue(port, index));
}

// If the rings have begun afresh since the buffers were lent, the frames are lost.
static unsigned virtio_publish(const struct port *port, uint16_t index, unsigned n)
{
	struct ring_queue *queue = virtio_sink_queue(port, index);
	unsigned sent = 0;

	if (likely(gate_enter(&queue->gate))) {
		sent = driver_ring_publish(&queue->driver, n);
		virtio_leave(queue);
	}
	counter_add(&queue->packets, sent);
	counter_add(&queue->lost, n - sent);
	return n;
}

// Buffers may go from one to the other: both devices know both.
static inline bool exchangeable(const struct port *from, const struct port *to)
{
	return ((struct virtio_port *)from->own)->pool == ((struct virtio_port *)to->own)->pool;
}

static unsigned virtio_pass(const struct port *from, const struct port *to, uint16_t index, struct view *view)
{
	struct ring_queue *sink = virtio_sink_queue(to, index);
	unsigned taken;

	if (from->ops != to->ops)
		return virtio_deliver_polled(to, index, view->frames, view->count);
	if (!virtio_enter(sink)) {
		counter_add(&sink->refused, view->count);
		return 0;
	}
	if (likely(exchangeable(from, to))) {
		taken = driver_ring_pass(&virtio_source_queue(from, index)->driver, &sink->driver,
		                         view->frames, view->count);
		counter_add(&sink->packets, taken);
		counter_add(&sink->refused, view->count - taken);
		bell_after_send(virtio_source_queue(to, index), sink);
		virtio_leave(sink);
		return taken;
	}
	virtio_leave(sink);
	return virtio_deliver_polled(to, index, view->frames, view->count);
}

// --- Opened, closed, and kept aside where its device may still write to what is its -----------------------

static int rings_init(struct virtio_port *port)
{
	unsigned count = shm_port_rings(&port->base);
	size_t bytes = driver_ring_bytes(port->ring_size);

	port->rings_bytes = RTE_ALIGN_CEIL(count * bytes, (size_t)getpagesize());
	port->rings = shm_memory("virtio rings", port->rings_bytes, MAP_POPULATE, &port->rings_fd);
	port->pieces = aligned_alloc(
	        DRIVER_LINE, RTE_ALIGN_CEIL(count * port->ring_size * sizeof(*port->pieces), DRIVER_LINE));
	if (port->rings == NULL || port->pieces == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++) {
		struct ring_queue *queue = &port->base.queues[i];

		driver_ring_init(&queue->driver, i % 2 == 0, port->ring_size, port->room,
		                 port->rings + i * bytes, &port->pieces[i * port->ring_size]);
		queue->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		queue->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		queue->bell.fd = queue->kick_fd;
		if (queue->kick_fd < 0 || queue->call_fd < 0)
			return -EMFILE;
	}
	return 0;
}

static void rings_free(struct virtio_port *port)
{
	for (unsigned i = 0; i < shm_port_rings(&port->base); i++) {
		if (port->base.queues[i].kick_fd >= 0)
			close(port->base.queues[i].kick_fd);
		if (port->base.queues[i].call_fd >= 0)
			close(port->base.queues[i].call_fd);
	}
	free(port->pieces);
	if (port->rings)
		munmap(port->rings, port->rings_bytes);
	if (port->rings_fd >= 0)
		close(port->rings_fd);
}

// Ports whose device may still write to rings and buffers. Control thread.
static struct virtio_port *quarantined;

static unsigned virtio_buffer_count(const struct virtio_port *port)
{
	return shm_port_rings(&port->base) * port->ring_size;
}

static void virtio_discard(struct virtio_port *port)
{
	rings_free(port);
	free(port);
}

static void virtio_give_back(struct virtio_port *port)
{
	shm_pool_give_back(port->pool, port->pieces, virtio_buffer_count(port));
	virtio_discard(port);
}

// The session is over. A device that hangs must not find what another port has now when it goes on.
static void release_or_quarantine(struct virtio_port *port)
{
	if (virtio_session_parted(port)) {
		virtio_give_back(port);
		return;
	}
	LOG_WARN("port %s: its device has not stopped and may still write: %u buffers and the rings stay "
	         "unused until it hangs up and another port is opened",
	         port->base.name, virtio_buffer_count(port));
	port->next = quarantined;
	quarantined = port;
}

static void quarantine_sweep(void)
{
	struct virtio_port **at = &quarantined;

	while (*at) {
		struct virtio_port *port = *at;

		if (!virtio_session_parted(port)) {
			at = &port->next;
			continue;
		}
		*at = port->next;
		virtio_give_back(port);
	}
}

// Takes the port over: it is released, or kept aside, if this fails.
static int virtio_begin(struct virtio_port *port)
{
	unsigned count = virtio_buffer_count(port);
	int rc;

	port->pool = shm_pool_take(true, port->room, port->pieces, count);
	if (port->pool == NULL) {
		LOG_ERROR("port %s: no memory for %u buffers of %u bytes", port->base.name, count,
		          port->room);
		virtio_discard(port);
		return -ENOMEM;
	}
	rc = virtio_session_begin(port);
	if (rc)
		release_or_quarantine(port);
	return rc;
}

static const struct shm_end driver_end = {.drives = true,
                                          .device = "virtio",
                                          .other = "device",
                                          .restart = "it",
                                          .fault_text = driver_fault_text};

static int virtio_open(struct port *port)
{
	struct virtio_port *own;
	int rc;

	quarantine_sweep();
	own = shm_port_create(port, sizeof(*own), &driver_end);
	if (own == NULL)
		return -errno;
	own->ring_size = (uint16_t)port->config.ring_size;
	own->packed = port->config.packed;
	own->room = rte_pktmbuf_data_room_size(port->rx_pool) - RTE_PKTMBUF_HEADROOM;
	own->lingering_fd = own->rings_fd = -1;
	rc = rings_init(own);
	if (rc) {
		LOG_ERROR("port %s: no rings: %s; %s", own->base.name, strerror(-rc),
		          rc == -EMFILE ? "raise ulimit -n" : "free some memory");
		virtio_discard(own);
		return rc;
	}
	rc = virtio_begin(own);
	if (rc == 0)
		port->own = own;
	return rc;
}

static void virtio_close(struct port *port)
{
	virtio_session_end(port->own);
	release_or_quarantine(port->own);
	port->own = NULL;
}

struct port_ops virtio_port_ops = {.kind = "virtio-user",
                                   .backend = "planed",
                                   .negotiated = shm_port_negotiated,
                                   .view_writable = true,
                                   .takes_packed = true,
                                   .reserve = virtio_reserve,
                                   .publish = virtio_publish,
                                   .pass = virtio_pass,
                                   .counters = shm_port_counters,
                                   .peek = virtio_peek,
                                   .peek_spans = peek_spans,
                                   .peek_alike = peek_alike,
                                   SHM_PORT_OPS(virtio)};
PORT_KIND(virtio_port_ops)
