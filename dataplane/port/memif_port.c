// SPDX-License-Identifier: BSD-3-Clause
// Memif ports whose data path is our own: rings in shared memory, which libmemif, VPP and DPDK's driver speak too. A
// server listens on a unix socket; a client connects, makes the memory, and connects again when the server has gone. The
// port's thread (port/memif_session.c) speaks the protocol; workers move the frames.
//
// Frames that come lie in the shared memory: they are lent to tasks where they lie. Those that are sent are copied once, or
// not at all: from one client with "zero_copy" to another. Until the other
// end is there nothing is received, and nothing sent is taken.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/listen_socket.h"
#include "base/log.h"
#include "port/memif_session.h"

// --- Data path -------------------------------------------------------------------------------------------

static inline struct ring_queue *memif_source_queue(const struct port *port, uint16_t index)
{
	struct memif_port *own = port->own;

	return &own->base.queues[PAIR_RINGS * index + own->source];
}

static inline struct ring_queue *memif_sink_queue(const struct port *port, uint16_t index)
{
	struct memif_port *own = port->own;

	return &own->base.queues[PAIR_RINGS * index + (own->source ^ 1)];
}

static inline void memif_leave(struct ring_queue *queue)
{
	if (unlikely(queue->memif.fault != MEMIF_OK))
		fault_note(&queue->fault, queue->memif.fault);
	gate_leave(&queue->gate);
}

// Into the gate of a ring that is sent to; and wake the other end for what was sent before.
static inline bool enter_sink(struct ring_queue *queue)
{
	if (unlikely(!gate_enter(&queue->gate)))
		return false;
	if (memif_ring_look(&queue->memif))
		bell_ring(queue);
	return true;
}

typedef unsigned memif_peek(struct memif_ring *ring, struct view *view, unsigned n, struct frames_lost *lost);

static inline unsigned peek_by(memif_peek *look, const struct port *port, uint16_t index, struct view *view,
                               unsigned n)
{
	struct ring_queue *queue = memif_source_queue(port, index);

	view->count = 0;
	view->held = VIEW_IN_RING;
	bell_at_poll(queue, memif_sink_queue(port, index));
	if (unlikely(!gate_enter(&queue->gate)))
		return 0;
	if (look(&queue->memif, view, n, &queue->none) && likely(view->count)) {
		counter_add(&queue->packets, view->count);
		return view->count;
	}
	if (view->batch.count)
		memif_ring_release(&queue->memif, view->batch.count);
	memif_leave(queue);
	return 0;
}

static unsigned look_for_spans(const struct port *port, uint16_t index, struct view *view,
                               struct vnf_frame *spans, unsigned n)
{
	struct ring_queue *queue = memif_source_queue(port, index);

	if (unlikely(!gate_enter(&queue->gate)))
		return 0;
	n = memif_ring_peek_spans(&queue->memif, view, spans, n);
	counter_add(&queue->packets, n);
	if (n == 0)
		memif_leave(queue);
	return n;
}

static unsigned memif_port_peek(const struct port *port, uint16_t index, struct view *view, unsigned n)
{
	return peek_by(memif_ring_peek, port, index, view, n);
}

static void memif_release(const struct port *port, uint16_t index, struct view *view)
{
	struct ring_queue *queue = memif_source_queue(port, index);

	memif_ring_release(&queue->memif, view->batch.count);
	memif_leave(queue);
}

// polled: the task receives from this queue, too.
static inline unsigned memif_copy_out(const struct port *port, uint16_t index, const struct frame *frames,
                                      unsigned n, bool polled)
{
	struct ring_queue *queue = memif_sink_queue(port, index);
	uint64_t too_long = 0;
	unsigned taken;

	if (!enter_sink(queue)) {
		counter_add(&queue->refused, n);
		return 0;
	}
	taken = memif_deliver(&queue->memif, frames, n, &too_long);
	counter_add(&queue->packets, taken - too_long);
	counter_add(&queue->lost, too_long);
	counter_add(&queue->refused, n - taken);
	if (polled)
		bell_after_send(memif_source_queue(port, index), queue);
	memif_leave(queue);
	return taken;
}

static unsigned memif_deliver_frames(const struct port *port, uint16_t index, const struct frame *frames,
                                     unsigned n)
{
	return memif_copy_out(port, index, frames, n, false);
}

static unsigned memif_deliver_polled(const struct port *port, uint16_t index, const struct frame *frames,
                                     unsigned n)
{
	return memif_copy_out(port, index, frames, n, true);
}

// Inside the gate until send_placed(), if there are any.
static unsigned memif_port_place(const struct port *port, uint16_t index, const struct frame *frames,
                                 unsigned n, bool final, struct placed *placed)
{
	struct ring_queue *queue = memif_sink_queue(port, index);
	unsigned count = 0;

	placed->full = true;
	if (enter_sink(queue)) {
		count = memif_place_frames(&queue->memif, frames, n, placed);
		if (count == 0)
			memif_leave(queue);
	}
	if (final && placed->full)
		counter_add(&queue->refused, n - count);
	return count;
}

static void memif_port_send_placed(const struct port *port, uint16_t index, const struct placed *placed,
                                   unsigned n)
{
	struct ring_queue *queue = memif_sink_queue(port, index);

	memif_send_placed(&queue->memif, placed, n);
	counter_add(&queue->packets, n);
	bell_after_send(memif_source_queue(port, index), queue);
	memif_leave(queue);
}

// Inside the gate until publish(), if there are any: the buffers are the client's memory.
static unsigned memif_reserve(const struct port *port, uint16_t index, const uint16_t *lengths,
                              uint8_t **data, unsigned n)
{
	struct ring_queue *queue = memif_sink_queue(port, index);
	unsigned lent = 0;

	if (enter_sink(queue)) {
		lent = memif_ring_reserve(&queue->memif, lengths, data, n);
		if (lent == 0)
			memif_leave(queue);
	}
	counter_add(&queue->refused, n - lent);
	return lent;
}

static unsigned memif_publish(const struct port *port, uint16_t index, unsigned n)
{
	struct ring_queue *queue = memif_sink_queue(port, index);
	uint64_t too_long = 0;
	unsigned sent = memif_ring_publish(&queue->memif, n, &too_long);

	counter_add(&queue->packets, sent - too_long);
	counter_add(&queue->lost, too_long);
	counter_add(&queue->refused, n - sent);
	memif_leave(queue);
	return sent;
}

// Between two clients with "zero_copy". Frames that cannot be passed on as they are, are copied.
static unsigned memif_pass(const struct port *from, const struct port *to, uint16_t index, struct view *view)
{
	struct ring_queue *sink = memif_sink_queue(to, index);
	struct memif_ring *source;
	unsigned passed;

	if (from->ops != to->ops || view->held != VIEW_IN_RING || !enter_sink(sink))
		return memif_deliver_polled(to, index, view->frames, view->count);
	source = &memif_source_queue(from, index)->memif; // from is a memif: its ops say so
	if (unlikely(!memif_ring_can_pass(source, &sink->memif))) {
		memif_leave(sink);
		return memif_deliver_polled(to, index, view->frames, view->count);
	}
	passed = memif_ring_pass(source, &sink->memif, view->frames, view->count);
	counter_add(&sink->packets, passed);
	bell_after_send(memif_source_queue(to, index), sink);
	memif_leave(sink);
	if (likely(passed == view->count))
		return passed;
	return passed + memif_deliver_polled(to, index, &view->frames[passed], view->count - passed);
}

static struct port_moved memif_xconnect_over(const struct port *from, const struct port *to, uint16_t index,
                                             uint16_t n)
{
	struct view view;
	unsigned received = peek_by(memif_ring_peek_unread, from, index, &view, n), sent;

	if (received == 0)
		return (struct port_moved){0};
	sent = memif_pass(from, to, index, &view);
	memif_release(from, index, &view);
	return (struct port_moved){(uint16_t)received, (uint16_t)(received - sent)};
}

static void memif_warm(const struct port *port, uint16_t index)
{
	struct ring_queue *queue = memif_sink_queue(port, index);

	if (!gate_enter(&queue->gate))
		return;
	bell_pay(queue);
	memif_ring_warm(&queue->memif);
	memif_leave(queue);
}

static void memif_flush(const struct port *port, uint16_t index)
{
	bell_flush(memif_sink_queue(port, index));
}

// --- The kinds -------------------------------------------------------------------------------------------

static const struct shm_end server_end = {
        .device = "memif", .other = "client", .restart = "it", .fault_text = memif_fault_text};
static const struct shm_end client_end = {.drives = true,
                                          .device = "memif",
                                          .other = "server",
                                          .restart = "it",
                                          .fault_text = memif_fault_text};

static int check(const struct config_port *config)
{
	if (config->ring_size > 1 << MEMIF_LOG2_SIZE_MAX) {
		LOG_ERROR("port %s: ring_size is %u; a memif has %u at most", config->name, config->ring_size,
		          1u << MEMIF_LOG2_SIZE_MAX);
		return -EINVAL;
	}
	if (config->drivers.max_connections > 1) {
		LOG_ERROR("port %s: a memif has one connection at a time; leave out \"max_connections\"",
		          config->name);
		return -EINVAL;
	}
	return 0;
}

// Only those that are written to are in memory.
static int spares_take(struct memif_port *own)
{
	own->spares = calloc(own->base.pairs, MEMIF_SPARE_BYTES);
	return own->spares ? 0 : -ENOMEM;
}

static struct port_ops zero_copy_ops;

static int memif_open(struct port *port)
{
	const struct config_port *config = &port->config;
	bool server = port->ops->listens;
	uint32_t megabytes = config->drivers.max_memory_mb;
	struct memif_port *own;
	int rc = check(config);

	if (rc)
		return rc;
	own = shm_port_create(port, sizeof(*own), server ? &server_end : &client_end);
	if (own == NULL)
		return -errno;
	own->source = server ? GUEST_TRANSMITQ : GUEST_RECEIVEQ;
	own->config = (struct memif_link_config){
	        .server = server,
	        .name = own->base.name,
	        .pairs = own->base.pairs,
	        .log2_size = (unsigned)__builtin_ctz(config->ring_size),
	        .shares_buffers = config->zero_copy,
	        .charge = server ? &own->charge : NULL,
	        .memory_max = (uint64_t)(megabytes ? megabytes : CONFIG_DRIVER_MEMORY_MB_MAX) << 20,
	};
	rc = server ? spares_take(own) : 0;
	if (rc == 0)
		rc = memif_session_begin(own, &config->drivers);
	if (rc) {
		LOG_ERROR("port %s: no memif at %s: %s", config->name, config->path, listen_socket_error(rc));
		free(own->spares);
		free(own);
		return rc;
	}
	if (config->zero_copy)
		port->ops = &zero_copy_ops;
	port->own = own;
	return 0;
}

static void memif_stop(struct port *port)
{
	memif_session_stop(port->own);
}

// A port whose thread goes on is left to it.
static void memif_close(struct port *port)
{
	struct memif_port *own = port->own;

	if (memif_session_end(own)) {
		free(own->spares);
		free(own);
	} else {
		LOG_WARN("port %s: descriptors of its client cannot be closed; it is left behind",
		         port->config.name);
	}
	port->own = NULL;
}

static void count(const struct port *port, struct port_counters *out)
{
	const struct memif_port *own = port->own;

	shm_port_counters(port, out);
	for (unsigned i = 0; i < PEER_REFUSALS; i++)
		out->refused_messages[i] = atomic_load(&own->refusals.counts[i]);
}

#define MEMIF_OPS                                                                                            \
	.backend = "planed", .stop = memif_stop, .peek = memif_port_peek, .place = memif_port_place,         \
	.send_placed = memif_port_send_placed, .counters = count, SHM_PORT_OPS(memif)

static struct port_ops memif_server_ops = {.kind = "memif-server",
                                           .listens = true,
                                           .refuses = true,
                                           .peek_spans = look_for_spans,
                                           .tx_memory_is_peers = true,
                                           .reserve = memif_reserve,
                                           .publish = memif_publish,
                                           MEMIF_OPS};
PORT_KIND(memif_server_ops)

#define CLIENT_OPS .kind = "memif-client", .takes_zero_copy = true, MEMIF_OPS

static struct port_ops memif_client_ops = {CLIENT_OPS};
PORT_KIND(memif_client_ops)

// The same kind, of a port with "zero_copy".
static struct port_ops zero_copy_ops = {CLIENT_OPS, .pass = memif_pass, .xconnect = memif_xconnect_over};
PORT_VARIANT(zero_copy_ops)
