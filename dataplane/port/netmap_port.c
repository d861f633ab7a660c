// SPDX-License-Identifier: BSD-3-Clause
// Ports of netmap: of a VALE switch ("vale0:a", which is made when it is opened) or of a NIC ("eth0", whose driver knows
// netmap, or in netmap's emulated mode). The data path is two system calls: one takes what was written to the transmit
// ring, and of a VALE switch it is this call that forwards, on the CPU of the sender; the other says what has come.
//
// Frames that come lie in buffers of the port, which are lent to tasks where they lie. Those that are sent are copied once,
// or written where they leave from. What a VALE switch has no room for at its other port it drops, and tells nobody.
//
// Receiving, and sending, on one worker each. The rings are the kernel's to write to: what it says is checked, and a ring
// that breaks a rule stops until the port is opened again.
#include "port/netmap_port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/counters.h"
#include "base/log.h"
#include "port/port.h"
#include "shm/gate.h"

enum netmap_fault {
	NETMAP_OK,
	NETMAP_NO_SYNC,
	NETMAP_BAD_TAIL,
	NETMAP_BAD_BUFFER,
	NETMAP_BAD_LENGTH,
};

static const char *const fault_texts[] = {
        [NETMAP_NO_SYNC] = "the kernel refuses to look at it",
        [NETMAP_BAD_TAIL] = "its tail is outside of the ring, or went back",
        [NETMAP_BAD_BUFFER] = "a buffer is outside of the memory",
        [NETMAP_BAD_LENGTH] = "a frame is longer than a buffer",
};

// Of one direction, used by one worker. What it says of ring and buffers does not change, whatever the memory says later.
struct netmap_queue {
	struct netmap_ring *ring;
	uint8_t *buffers;
	uint32_t buffer_count, buffer_bytes;
	uint32_t size, head, tail;
	unsigned long sync; // the request
	int fd;
	struct fault_word fault;
	bool in_frame; // receiving: the last slot was not the last one of its frame
	uint64_t packets;
	uint64_t refused, lost;  // sending: not taken; taken, but no buffer holds it, or the ring stopped
	uint64_t bad;            // receiving: slots without a byte, or of frames that take several
	const uint16_t *lengths; // of the buffers that are reserved
} __attribute__((aligned(64)));

struct netmap_port {
	struct netmap_queue rx, tx;
	int promiscuous; // a socket: a NIC receives frames to all addresses as long as it is open
	void *memory;
	size_t bytes;
	_Atomic(uint64_t) broken;
	uint8_t spare[FRAME_LENGTH_MAX + 1]; // written, and not sent: of a frame that no buffer holds
};

static int open_device(void)
{
	return open("/dev/netmap", O_RDWR | O_CLOEXEC);
}

static int call_device(int fd, unsigned long request, void *argument)
{
	return ioctl(fd, request, argument);
}

struct netmap_calls netmap_calls = {.open = open_device, .ioctl = call_device};

// --- Data path -------------------------------------------------------------------------------------------

static inline uint32_t distance(const struct netmap_queue *q, uint32_t from, uint32_t to)
{
	return to >= from ? to - from : to + q->size - from;
}

static inline uint32_t next(const struct netmap_queue *q, uint32_t at)
{
	return likely(at + 1 < q->size) ? at + 1 : 0;
}

static inline bool stopped(struct netmap_queue *q)
{
	return unlikely(atomic_load_explicit(&q->fault.word, memory_order_relaxed) != NETMAP_OK);
}

// Give the kernel all before head, and see what it gives.
static bool sync_ring(struct netmap_queue *q)
{
	uint32_t had = distance(q, q->head, q->tail), tail;

	q->ring->head = q->ring->wakeup = q->head;
	if (unlikely(netmap_calls.ioctl(q->fd, q->sync, NULL) != 0)) {
		fault_note(&q->fault, NETMAP_NO_SYNC);
		return false;
	}
	tail = q->ring->tail;
	if (unlikely(tail >= q->size || distance(q, q->head, tail) < had)) {
		fault_note(&q->fault, NETMAP_BAD_TAIL);
		return false;
	}
	q->tail = tail;
	return true;
}

// How many slots are ours; the kernel is asked for more if they are fewer than wanted.
static inline uint32_t slots_for(struct netmap_queue *q, uint32_t wanted)
{
	uint32_t count = distance(q, q->head, q->tail);

	if (stopped(q))
		return 0;
	if (count >= wanted)
		return count;
	return sync_ring(q) ? distance(q, q->head, q->tail) : 0;
}

static inline uint8_t *buffer_of(struct netmap_queue *q, const struct netmap_slot *slot)
{
	uint32_t number = slot->buffer;

	if (likely(number < q->buffer_count))
		return q->buffers + (size_t)number * q->buffer_bytes;
	fault_note(&q->fault, NETMAP_BAD_BUFFER);
	return NULL;
}

// A frame of several slots only comes of a sender with an MTU larger than a buffer.
static unsigned netmap_peek(const struct port *port, uint16_t queue, struct view *view, unsigned n)
{
	struct netmap_queue *q = &((struct netmap_port *)port->own)->rx;
	uint32_t at = q->head;
	uint64_t bad = 0;

	view->count = 0;
	view->held = VIEW_IN_RING;
	view->batch.count = 0;
	n = RTE_MIN(n, slots_for(q, n));
	for (; view->batch.count < n; at = next(q, at), view->batch.count++) {
		const struct netmap_slot slot = q->ring->slots[at];
		bool part = q->in_frame || slot.flags & NETMAP_MORE_FRAGS;
		uint8_t *data = buffer_of(q, &slot);

		if (unlikely(data == NULL))
			break;
		if (unlikely(slot.length > q->buffer_bytes)) {
			fault_note(&q->fault, NETMAP_BAD_LENGTH);
			break;
		}
		q->in_frame = slot.flags & NETMAP_MORE_FRAGS;
		if (unlikely(part || slot.length == 0)) {
			bad += !q->in_frame;
			continue;
		}
		rte_prefetch0(data);
		view->batch.pieces[view->count] = (struct piece){data, slot.length};
		view->frames[view->count] =
		        (struct frame){{&view->batch.pieces[view->count], 0}, slot.length, 0};
		view->count++;
	}
	counter_add(&q->packets, view->count);
	counter_add(&q->bad, bad);
	if (unlikely(view->count == 0))
		q->head = at;
	return view->count;
}

// The slots go back to the kernel when it is asked the next time.
static void netmap_release(const struct port *port, uint16_t queue, struct view *view)
{
	struct netmap_queue *q = &((struct netmap_port *)port->own)->rx;

	q->head += view->batch.count;
	if (q->head >= q->size)
		q->head -= q->size;
}

static inline void fill_slot(struct netmap_queue *q, uint32_t at, uint32_t length)
{
	struct netmap_slot *slot = &q->ring->slots[at];

	slot->length = (uint16_t)length;
	slot->flags = 0;
}

// The first slots up to head are filled, for sent frames.
static void send_filled(struct netmap_queue *q, uint32_t head, unsigned sent)
{
	if (sent == 0)
		return;
	q->head = head;
	counter_add(likely(sync_ring(q)) ? &q->packets : &q->lost, sent);
}

static inline bool fits(const struct netmap_queue *q, uint32_t length)
{
	return length && length <= q->buffer_bytes;
}

static unsigned netmap_deliver(const struct port *port, uint16_t queue, const struct frame *frames,
                               unsigned n)
{
	struct netmap_queue *q = &((struct netmap_port *)port->own)->tx;
	unsigned taken = 0, sent = 0;
	uint32_t at = q->head, room = slots_for(q, n);

	for (; taken < n && !stopped(q); taken++) {
		struct scatter from = frames[taken].at;
		struct piece piece = {.length = frames[taken].length};

		if (unlikely(!fits(q, piece.length))) {
			counter_add(&q->lost, 1);
			continue;
		}
		piece.data = sent < room ? buffer_of(q, &q->ring->slots[at]) : NULL;
		if (piece.data == NULL)
			break;
		scatter_copy(&(struct scatter){&piece, 0}, &from, piece.length);
		fill_slot(q, at, piece.length);
		at = next(q, at);
		sent++;
	}
	counter_add(&q->refused, n - taken);
	send_filled(q, at, sent);
	return taken;
}

static unsigned netmap_reserve(const struct port *port, uint16_t queue, const uint16_t *lengths,
                               uint8_t **data, unsigned n)
{
	struct netmap_port *own = port->own;
	struct netmap_queue *q = &own->tx;
	uint32_t at = q->head, room = slots_for(q, n);
	unsigned lent = 0;

	for (; lent < n && !stopped(q); lent++) {
		data[lent] = own->spare;
		if (unlikely(!fits(q, lengths[lent])))
			continue;
		data[lent] = room ? buffer_of(q, &q->ring->slots[at]) : NULL;
		if (data[lent] == NULL)
			break;
		at = next(q, at);
		room--;
	}
	q->lengths = lengths;
	counter_add(&q->refused, n - lent);
	return lent;
}

static unsigned netmap_publish(const struct port *port, uint16_t queue, unsigned n)
{
	struct netmap_queue *q = &((struct netmap_port *)port->own)->tx;
	unsigned sent = 0;
	uint32_t at = q->head;

	for (unsigned i = 0; i < n; i++) {
		if (unlikely(!fits(q, q->lengths[i])))
			continue;
		fill_slot(q, at, q->lengths[i]);
		at = next(q, at);
		sent++;
	}
	counter_add(&q->lost, n - sent);
	send_filled(q, at, sent);
	return n;
}

// --- The kind --------------------------------------------------------------------------------------------

// Whether bytes at an offset are in the memory.
static bool within(const struct netmap_port *own, uint64_t offset, uint64_t bytes)
{
	return offset <= own->bytes && bytes <= own->bytes - offset;
}

// Find the ring whose offset from the interface, which is at start, is number index.
static bool find_ring(const struct netmap_port *own, uint64_t start, unsigned index, struct netmap_queue *q)
{
	uint64_t place = start + sizeof(struct netmap_interface) + index * sizeof(int64_t), at, buffers;
	struct netmap_ring *ring;

	if (!within(own, place, sizeof(int64_t)))
		return false;
	at = start + *(uint64_t *)((uint8_t *)own->memory + place);
	if (at % 8 || !within(own, at, sizeof(*ring)))
		return false;
	ring = (struct netmap_ring *)(void *)((uint8_t *)own->memory + at);
	q->ring = ring;
	q->size = ring->size;
	q->buffer_bytes = ring->buffer_bytes;
	buffers = at + (uint64_t)ring->buffers;
	if (q->size < 2 || q->buffer_bytes == 0 || !within(own, buffers, q->buffer_bytes) ||
	    !within(own, at + sizeof(*ring), (uint64_t)q->size * sizeof(struct netmap_slot)))
		return false;
	q->buffers = (uint8_t *)own->memory + buffers;
	q->buffer_count = (uint32_t)RTE_MIN((own->bytes - buffers) / q->buffer_bytes, UINT32_MAX);
	q->head = ring->head;
	q->tail = ring->tail;
	return q->head < q->size && q->tail < q->size;
}

static int find_rings(const struct port *port, struct netmap_port *own, const struct netmap_register *made)
{
	const struct netmap_interface *interface;
	const struct config_port *config = &port->config;

	if (made->rx_rings != 1) {
		LOG_ERROR(
		        "port %s: %s has %u receive rings, and a port here has one; `ethtool -L %s combined 1`",
		        config->name, config->device, made->rx_rings, config->device);
		return -EINVAL;
	}
	interface = (const void *)((const uint8_t *)own->memory + made->offset);
	if (!within(own, made->offset, sizeof(*interface)) || made->offset % 8 ||
	    !find_ring(own, made->offset, 0, &own->tx) ||
	    !find_ring(own, made->offset, interface->tx_rings + interface->host_tx_rings, &own->rx)) {
		LOG_ERROR("port %s: the rings of %s are not in the memory that netmap gives", config->name,
		          config->device);
		return -EPROTO;
	}
	if (own->tx.size != config->ring_size || own->rx.size != config->ring_size) {
		LOG_ERROR(
		        "port %s: ring_size is %u, and netmap gives %s rings of %u slots to send and %u to receive",
		        config->name, config->ring_size, config->device, own->tx.size, own->rx.size);
		return -EINVAL;
	}
	return 0;
}

// Returns the descriptor, with the memory mapped, or -errno after logging one line.
static int attach(const struct port *port, struct netmap_port *own, struct netmap_register *made)
{
	const struct config_port *config = &port->config;
	struct netmap_header header = {
	        .version = NETMAP_API, .request = NETMAP_REQ_REGISTER, .body = (uintptr_t)made};
	int fd = netmap_calls.open(), rc;

	if (fd < 0) {
		rc = -errno;
		LOG_ERROR("port %s: /dev/netmap: %s; load netmap, as root", config->name, strerror(-rc));
		return rc;
	}
	snprintf(header.name, sizeof(header.name), "%s", config->device);
	*made = (struct netmap_register){
	        .mode = NETMAP_REG_ALL_NIC, .tx_slots = config->ring_size, .rx_slots = config->ring_size};
	if (netmap_calls.ioctl(fd, NETMAP_CONTROL, &header) == 0) {
		own->bytes = made->bytes;
		own->memory =
		        mmap(NULL, own->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
		if (own->memory != MAP_FAILED)
			return fd;
	}
	rc = -errno;
	LOG_ERROR("port %s: netmap does not open %s: %s; `dmesg` has its reason", config->name,
	          config->device, strerror(-rc));
	close(fd);
	return rc;
}

static int make_promiscuous(unsigned index)
{
	// struct packet_mreq, PACKET_ADD_MEMBERSHIP and PACKET_MR_PROMISC of linux/if_packet.h, whose other names are ours.
	enum { ADD_MEMBERSHIP = 1, PROMISCUOUS = 1 };
	const struct {
		int index;
		uint16_t type, length;
		uint8_t address[8];
	} member = {.index = (int)index, .type = PROMISCUOUS};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		setsockopt(fd, SOL_PACKET, ADD_MEMBERSHIP, &member, sizeof(member));
	return fd;
}

static void free_port(struct netmap_port *own)
{
	if (own->promiscuous >= 0)
		close(own->promiscuous);
	munmap(own->memory, own->bytes);
	close(own->rx.fd);
	free(own);
}

static int check(const struct config_port *config)
{
	if (config->queues != 1 || strlen(config->device) >= NETMAP_NAME_MAX) {
		LOG_ERROR(
		        "port %s: a netmap port has one queue pair, and a device of less than %u characters",
		        config->name, NETMAP_NAME_MAX);
		return -EINVAL;
	}
	return 0;
}

static int netmap_open(struct port *port)
{
	struct netmap_register made;
	struct netmap_port *own;
	int rc = check(&port->config), fd;
	unsigned index;

	if (rc)
		return rc;
	own = aligned_alloc(64, sizeof(*own));
	if (own == NULL) {
		LOG_ERROR("port %s: no memory for %zu bytes", port->config.name, sizeof(*own));
		return -ENOMEM;
	}
	memset(own, 0, sizeof(*own));
	own->promiscuous = -1;
	fd = attach(port, own, &made);
	if (fd < 0) {
		free(own);
		return fd;
	}
	own->rx.fd = own->tx.fd = fd;
	own->rx.sync = NETMAP_RX_SYNC;
	own->tx.sync = NETMAP_TX_SYNC;
	rc = find_rings(port, own, &made);
	if (rc) {
		free_port(own);
		return rc;
	}
	snprintf(port->device, sizeof(port->device), "%s", port->config.device);
	port->mac = port_own_mac(&port->config);
	index = if_nametoindex(port->device);
	if (index) { // a NIC
		port_watch_interface(port, index);
		own->promiscuous = make_promiscuous(index);
	}
	port->own = own;
	return 0;
}

// A port of a VALE switch that was made by opening it is gone.
static void netmap_close(struct port *port)
{
	free_port(port->own);
	port->own = NULL;
}

static bool netmap_link_up(const struct port *port)
{
	struct netmap_port *own = port->own;

	return !fault_there(&own->rx.fault) && !fault_there(&own->tx.fault) && port_interface_runs(port);
}

static const char *netmap_driver(const struct port *port)
{
	return "netmap";
}

static void say_fault(const struct port *port, struct netmap_queue *q, const char *which)
{
	struct netmap_port *own = port->own;
	unsigned fault = fault_take(&q->fault);

	if (fault == NETMAP_OK)
		return;
	atomic_fetch_add(&own->broken, 1);
	LOG_WARN("port %s: the %s ring of %s is stopped: %s; open the port again", port->config.name, which,
	         port->device, fault_texts[fault]);
}

static void netmap_counters(const struct port *port, struct port_counters *counters)
{
	struct netmap_port *own = port->own;

	say_fault(port, &own->rx, "receive");
	say_fault(port, &own->tx, "transmit");
	port_counters_add(counters, 0, counter_read(&own->rx.packets), counter_read(&own->tx.packets),
	                  counter_read(&own->tx.refused));
	counters->rx_errors = counter_read(&own->rx.bad);
	counters->tx_errors = counter_read(&own->tx.lost);
	counters->broken_rings = atomic_load(&own->broken);
}

static struct port_ops netmap_port_ops = {
        .kind = "netmap",
        .is_default = true,
        .has_device = true,
        .takes_mac = true,
        .view_writable = true,
        .tx_memory_is_peers = true, // drivers and pipes of netmap exchange buffers
        .open = netmap_open,
        .close = netmap_close,
        .peek = netmap_peek,
        .release = netmap_release,
        .deliver = netmap_deliver,
        .reserve = netmap_reserve,
        .publish = netmap_publish,
        .link_up = netmap_link_up,
        .driver = netmap_driver,
        .counters = netmap_counters,
};
PORT_KIND(netmap_port_ops)
