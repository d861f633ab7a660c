// SPDX-License-Identifier: BSD-3-Clause
// What a port with rings of our own has, at whichever end of them we are: a vhost-user device (port/vhost_port.c), a
// virtio driver (port/virtio_port.c), or either end of a memif (port/memif_port.c). Its rings, the gates before them, why one has stopped, and what is counted.
// How the other end connects is the session's of each kind, which takes the rings away from the workers and gives them
// back.
//
// Threads: open and close on the control thread while no worker uses the port. Receiving, and sending, on one worker
// each for each queue pair, the same or another; what they write is not on one cache line. No locks, no
// read-modify-write and no system calls on the data path, but the write that wakes an end that sleeps.
#pragma once

#include <stdatomic.h>

#include "lib/log_rate.h"
#include "port/port.h"
#include "ring/driver_ring.h"
#include "ring/frames.h"
#include "ring/gate.h"
#include "ring/memif_ring.h"

// The rings of pair i, as a driver calls them: receiveq 2i, transmitq 2i + 1 (virtio 1.2 s5.1.2). A memif's client calls
// them so.
enum { GUEST_RECEIVEQ, GUEST_TRANSMITQ, PAIR_RINGS, VRING_PORT_RINGS_MAX = PAIR_RINGS * CONFIG_QUEUES_MAX };

// One ring. Used by one worker, cache lines of its own: two workers share none. Behind the gate: the ring, and the
// eventfd that wakes the other end.
struct ring_queue {
	struct gate gate;
	bool attached;     // device: the gate is open; session's thread
	uint8_t pass_owed; // device: polls until what the pair's sink owes is looked at (copy_out())
	// Driver, receive: where the ring was when we last looked for a device that sleeps.
	uint16_t head_checked;
	int call_fd, kick_fd; // -1 for none
	union {
		struct ring ring;          // we are the device
		struct driver_ring driver; // we are the driver
		struct memif_ring memif;
	};
	// Device: when the guest was called last, and how long it is not called again (call_by_poll()).
	uint64_t called_tsc, call_gap_tsc;
	struct fault_word fault; // of the ring; stays until the other end sets it up anew
	uint32_t idle_polls;
	uint64_t packets;
	uint64_t refused, lost; // sending: not taken; taken, but no buffer can hold it, or gone with the ring
	uint64_t no_mbuf;       // receiving
	struct frames_lost none; // receiving: buffers that made no frame
} __attribute__((aligned(64)));

// Which end of its rings a port is.
struct vring_end {
	bool drives;         // the driver, or the client of a memif: receives from the receiveq
	const char *device;  // the name of the port's device
	const char *other;   // what the other end is called
	const char *restart; // what sets its rings up anew
	const char *(*fault_text)(unsigned fault);
};

struct vring_port {
	struct ring_queue queues[VRING_PORT_RINGS_MAX]; // of these, the first PAIR_RINGS * pairs
	unsigned pairs;
	const struct vring_end *end;
	char name[CONFIG_NAME_MAX], path[CONFIG_PATH_MAX];
	_Atomic(bool) link_up; // the other end is connected and the first pair runs
	_Atomic(uint64_t) broken;
	struct log_rate lines;
	_Atomic(uint64_t) features;                    // negotiated; for who reports it
	_Atomic(uint16_t) sizes[VRING_PORT_RINGS_MAX]; // of the rings that run, else 0; the same
};

static inline unsigned vring_port_rings(const struct vring_port *port)
{
	return PAIR_RINGS * port->pairs;
}

// Make the port of a kind, which begins with a struct vring_port and has bytes in all, zeros but for what the document
// says. To be freed. Returns NULL, with errno, after logging one line.
void *vring_port_create(struct port *port, size_t bytes, const struct vring_end *end);

// Count and log, once each, the rings that a worker has stopped: it cannot say so itself. Any thread but a worker.
void vring_port_say_faults(struct vring_port *port);

// The rings are set up anew: forget why they have stopped. Who has shut the gates.
void vring_port_forgive(struct vring_port *port);

// What all kinds have in their struct port_ops: these, and functions of the same names of their own.
bool vring_port_link_up(const struct port *port);
void vring_port_counters(const struct port *port, struct port_counters *counters);
bool vring_port_negotiated(const struct port *port, struct negotiated *out);
#define VRING_PORT_OPS                                                                                       \
	.is_default = true, .takes_mac = true, .open = open_port, .close = close_port, .release = release,   \
	.deliver = deliver_frames, .warm = warm, .flush_all = flush_all, .link_up = vring_port_link_up

extern const struct port_ops vhost_port_ops, virtio_port_ops; // for tests that make their own port
