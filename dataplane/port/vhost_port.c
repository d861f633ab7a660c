// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user port whose data path is our own: we are the device and listen on a unix socket; a virtio
// driver (DPDK's virtio-user, QEMU for its guest) connects. The listener's thread (virtio/vhost_listener.h) speaks the
// protocol and maps the memory; our workers move the frames.
//
// Up to CONFIG_QUEUES_MAX queue pairs, as many as its driver enables of them; what is sent to a pair that it
// has not is not taken. A port lives through any number of connections, one after the other; a second driver that completes
// its set-up while the first is still connected is refused. Until a driver is there nothing is received, and nothing sent is
// taken.
#include <errno.h>
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "port/vhost_session.h"

enum { CALL_GAP_US = 10 };

// --- Data path -------------------------------------------------------------------------------------------

// Worker, behind the gate: keep what ended the ring.
static inline void note_fault(struct ring_queue *queue)
{
	if (unlikely(queue->ring.fault != RING_OK))
		fault_note(&queue->fault, queue->ring.fault);
}

// At the end of each poll, behind the gate; moved: it has committed something. What is owed when the gate is
// shut is paid when the ring is given back (port/vhost_session.c), which always calls.
static inline void call_by_poll(struct ring_queue *queue, bool moved)
{
	if (unlikely(doorbell_poll(&queue->bell, moved)))
		bell_ring(queue);
}

// From the guest, and to it.
static inline struct ring_queue *vhost_source_queue(const struct port *port, uint16_t index)
{
	return &((struct shm_port *)port->own)->queues[PAIR_RINGS * index + GUEST_TRANSMITQ];
}

static inline struct ring_queue *vhost_sink_queue(const struct port *port, uint16_t index)
{
	return &((struct shm_port *)port->own)->queues[PAIR_RINGS * index + GUEST_RECEIVEQ];
}

static inline void vhost_count_sent(struct ring_queue *queue, unsigned offered, unsigned taken,
                                    uint64_t too_long)
{
	counter_add(&queue->packets, taken - too_long);
	counter_add(&queue->lost, too_long);
	counter_add(&queue->refused, offered - taken);
	note_fault(queue);
}

static void vhost_give_back(struct ring_queue *queue, const struct view *view)
{
	view_commit(&queue->ring, view);
	call_by_poll(queue, true);
	gate_leave(&queue->gate);
}

// room: of a port with offloads.
static __rte_always_inline unsigned peek_with(const struct port *port, uint16_t index, struct view *view,
                                              unsigned n, struct offload_room *room)
{
	struct ring_queue *queue = vhost_source_queue(port, index);

	view->count = 0;
	view->held = VIEW_IN_RING;
	bell_at_poll(queue, vhost_sink_queue(port, index));
	if (!gate_enter(&queue->gate))
		return 0;
	if ((room ? offload_peek(&queue->ring, view, n, &queue->none, room)
	          : view_peek(&queue->ring, view, n, &queue->none)) == 0) {
		note_fault(queue);
		call_by_poll(queue, false);
		gate_leave(&queue->gate);
		return 0;
	}
	counter_add(&queue->packets, view->count);
	if (unlikely(view->count == 0))
		vhost_give_back(queue, view);
	return view->count;
}

static unsigned vhost_peek(const struct port *port, uint16_t index, struct view *view, unsigned n)
{
	return peek_with(port, index, view, n, NULL);
}

static void vhost_release(const struct port *port, uint16_t index, struct view *view)
{
	vhost_give_back(vhost_source_queue(port, index), view);
}

// polled: the task receives from this queue, too.
static inline unsigned vhost_copy_out(const struct port *port, uint16_t index, const struct frame *frames,
                                      unsigned n, bool polled)
{
	struct ring_queue *queue = vhost_sink_queue(port, index);
	uint64_t too_long = 0;
	unsigned taken;

	if (!gate_enter(&queue->gate)) {
		counter_add(&queue->refused, n);
		return 0;
	}
	taken = deliver(&queue->ring, frames, n, &too_long);
	vhost_count_sent(queue, n, taken, too_long);
	call_by_poll(queue, taken > too_long);
	if (polled)
		bell_after_send(vhost_source_queue(port, index), queue);
	gate_leave(&queue->gate);
	return taken;
}

static unsigned vhost_deliver_frames(const struct port *port, uint16_t index, const struct frame *frames,
                                     unsigned n)
{
	return vhost_copy_out(port, index, frames, n, false);
}

static unsigned vhost_deliver_polled(const struct port *port, uint16_t index, const struct frame *frames,
                                     unsigned n)
{
	return vhost_copy_out(port, index, frames, n, true);
}

static void leave_sink(const struct port *port, uint16_t index, bool moved)
{
	struct ring_queue *queue = vhost_sink_queue(port, index);

	note_fault(queue);
	call_by_poll(queue, moved);
	bell_after_send(vhost_source_queue(port, index), queue);
	gate_leave(&queue->gate);
}

// Inside the gate until send_placed(), if there are any.
static unsigned vhost_place(const struct port *port, uint16_t index, const struct frame *frames, unsigned n,
                            bool final, struct placed *placed)
{
	struct ring_queue *queue = vhost_sink_queue(port, index);
	unsigned count = 0;

	placed->full = true;
	if (gate_enter(&queue->gate)) {
		count = ring_place(&queue->ring, frames, n, placed);
		if (count == 0)
			leave_sink(port, index, false);
	}
	if (final && placed->full)
		counter_add(&queue->refused, n - count);
	return count;
}

static void vhost_send_placed(const struct port *port, uint16_t index, const struct placed *placed,
                              unsigned n)
{
	struct ring_queue *queue = vhost_sink_queue(port, index);

	ring_send_placed(&queue->ring, placed, n);
	counter_add(&queue->packets, n);
	leave_sink(port, index, n > 0);
}

// --- With offloads ---------------------------------------------------------------------------------------

static struct offload_room *room_of(const struct port *port, uint16_t index)
{
	return &((struct vhost_port *)port->own)->rooms[index];
}

static unsigned peek_offloads(const struct port *port, uint16_t index, struct view *view, unsigned n)
{
	return peek_with(port, index, view, n, room_of(port, index));
}

struct ring_end {
	struct device_ring *ring;
	uint64_t too_long;
};

static unsigned into_ring(void *to, const struct frame *frames, const struct virtio_net_hdr *headers,
                          unsigned n)
{
	struct ring_end *end = to;

	return headers ? deliver_offloads(end->ring, frames, headers, n, &end->too_long)
	               : deliver(end->ring, frames, n, &end->too_long);
}

// What the guest accepts is known behind the gate: the next one may accept less.
static struct offload_sent send_offloads(const struct port *port, uint16_t index, struct offload_room *room,
                                         const struct frame *frames, unsigned n)
{
	struct ring_queue *queue = vhost_sink_queue(port, index);
	struct ring_end end = {.ring = &queue->ring};
	struct offload_sent sent;

	if (!gate_enter(&queue->gate)) {
		counter_add(&queue->refused, n);
		return (struct offload_sent){.offered = n};
	}
	sent = offload_send(room, frames, n, queue->ring.offloads, into_ring, &end);
	vhost_count_sent(queue, sent.offered, sent.taken, end.too_long);
	call_by_poll(queue, sent.taken > end.too_long);
	bell_after_send(vhost_source_queue(port, index), queue);
	gate_leave(&queue->gate);
	return sent;
}

// --- From guest to guest ---------------------------------------------------------------------------------

static struct port_moved vhost_xconnect_over(const struct port *from, const struct port *to, uint16_t index,
                                             uint16_t n)
{
	struct ring_queue *source = vhost_source_queue(from, index), *sink = vhost_sink_queue(to, index);
	struct xconnect_counts counts;
	uint16_t base;
	bool open;

	if (!gate_enter(&source->gate)) {
		if (gate_enter(&sink->gate)) { // what is owed there nobody else pays while it sends
			call_by_poll(sink, false);
			gate_leave(&sink->gate);
		}
		return (struct port_moved){0};
	}
	open = gate_enter(&sink->gate);
	base = device_ring_base(&source->ring);
	counts = xconnect(&source->ring, open ? &sink->ring : NULL, n);
	counter_add(&source->packets, counts.received);
	counter_add(&source->none.bad, counts.lost.bad);
	counter_add(&source->none.oversize, counts.lost.oversize);
	note_fault(source);
	if (open) {
		vhost_count_sent(sink, counts.received, counts.forwarded, counts.too_long);
		call_by_poll(sink, counts.forwarded > counts.too_long);
		gate_leave(&sink->gate);
	} else {
		counter_add(&sink->refused, counts.received);
	}
	call_by_poll(source, device_ring_base(&source->ring) != base);
	gate_leave(&source->gate);
	return (struct port_moved){(uint16_t)counts.received, (uint16_t)(counts.received - counts.forwarded)};
}

static void vhost_warm(const struct port *port, uint16_t index)
{
	struct ring_queue *queue = vhost_sink_queue(port, index);

	if (!gate_enter(&queue->gate))
		return;
	device_ring_warm(&queue->ring);
	call_by_poll(queue, false); // a cross-connect from a ring that is gone never looks at this one again
	gate_leave(&queue->gate);
}

static void vhost_flush(const struct port *port, uint16_t index)
{
	bell_flush(vhost_sink_queue(port, index));
}

static struct port_ops offload_port_ops;

// --- The kind --------------------------------------------------------------------------------------------

static const struct shm_end device_end = {
        .device = "planed", .other = "guest", .restart = "its driver", .fault_text = ring_fault_text};

static void free_port(struct vhost_port *own)
{
	free(own->rooms);
	free(own);
}

// Its other kind of cross-connect is chosen here: the functions of ports without offloads know nothing of them.
static int open_offloads(struct port *port, struct vhost_port *own)
{
	size_t bytes = own->base.pairs * sizeof(own->rooms[0]);

	own->rooms = aligned_alloc(64, bytes);
	if (own->rooms == NULL)
		return -ENOMEM;
	memset(own->rooms, 0, bytes);
	port->ops = &offload_port_ops;
	return 0;
}

static int vhost_open(struct port *port)
{
	struct vhost_port *own = shm_port_create(port, sizeof(*own), &device_end);
	int rc;

	if (own == NULL)
		return -errno;
	for (unsigned i = 0; i < shm_port_rings(&own->base); i++)
		own->base.queues[i].call_gap_tsc = clock_hz() / US_PER_S * CALL_GAP_US;
	rc = port->config.offloads ? open_offloads(port, own) : 0;
	if (rc == 0)
		rc = vhost_session_begin(own, &port->config.drivers);
	if (rc) {
		LOG_ERROR("port %s: cannot listen on %s: %s", own->base.name, own->base.path,
		          listen_socket_error(rc));
		free_port(own);
		return rc;
	}
	port->own = own;
	return 0;
}

static void vhost_stop(struct port *port)
{
	vhost_session_stop(port->own);
}

static void vhost_close(struct port *port)
{
	vhost_session_end(port->own);
	free_port(port->own);
	port->own = NULL;
}

static void count(const struct port *port, struct port_counters *out)
{
	const struct vhost_port *own = port->own;

	shm_port_counters(port, out);
	for (unsigned i = 0; i < PEER_REFUSALS; i++)
		out->refused_messages[i] = vhost_listener_refused(own->listener, (enum peer_refusal)i);
	for (unsigned i = 0; own->rooms && i < own->base.pairs * OFFLOAD_REFUSALS; i++) {
		uint64_t refused = own->rooms[i / OFFLOAD_REFUSALS].refused[i % OFFLOAD_REFUSALS];

		out->refused_offloads[i % OFFLOAD_REFUSALS] += refused;
		out->rx_errors += refused;
	}
}

#define VHOST_PORT_OPS                                                                                       \
	SHM_PORT_OPS(vhost), .kind = "vhost-user", .backend = "planed", .negotiated = shm_port_negotiated,   \
	                     .listens = true, .refuses = true, .takes_offloads = true, .stop = vhost_stop,   \
	                     .counters = count

struct port_ops vhost_port_ops = {VHOST_PORT_OPS, .peek = vhost_peek, .place = vhost_place,
                                  .send_placed = vhost_send_placed, .xconnect = vhost_xconnect_over};
PORT_KIND(vhost_port_ops)

// The same kind, of a port with offloads: only tasks that pass frames on as they are take it.
static struct port_ops offload_port_ops = {VHOST_PORT_OPS, .peek = peek_offloads, .offloads = room_of,
                                           .send_offloads = send_offloads};
PORT_VARIANT(offload_port_ops)
