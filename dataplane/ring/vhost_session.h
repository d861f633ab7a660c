// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user port's control side: listening, connections, and giving the workers the rings and taking them
// away, as DPDK's rte_vhost calls for it. For vhost_port.c only.
#pragma once

#include "runtime/config.h"
#include "ring/gate.h"
#include "ring/vhost_door.h"
#include "port/vhost_port.h"

// The rings of pair i, as the guest calls them: receiveq 2i, transmitq 2i + 1 (virtio 1.2 s5.1.2).
enum { GUEST_RECEIVEQ, GUEST_TRANSMITQ, PAIR_RINGS, VHOST_RINGS_MAX = PAIR_RINGS * CONFIG_QUEUES_MAX };

// One ring. Used by one worker, cache lines of its own: two workers share none. Behind the gate: ring and
// call_fd.
struct queue {
	struct gate gate;
	bool attached; // the gate is open; library's thread
	int call_fd;   // eventfd that wakes the guest, or -1
	struct ring ring;
	struct fault_word fault; // of the ring; stays until the device is set up anew
	uint64_t packets, lost, refused;
	struct frames_lost from_guest;
	uint64_t no_mbuf;
	uint8_t pass_owed; // from the guest: polls until what the pair's sink owes is looked at
	                   // (vhost_port_pass())
} __attribute__((aligned(64)));

struct vhost_port {
	struct queue queues[VHOST_RINGS_MAX]; // of these, the first PAIR_RINGS * pairs
	unsigned pairs;
	struct guest_memory memory;
	struct rte_mempool *pool;
	char name[CONFIG_NAME_MAX], path[CONFIG_PATH_MAX];
	struct vhost_door *door; // who listens on path
	struct vhost_door_inner inner;
	int vid; // the connection that has the rings, or -1; library's thread
	_Atomic(bool) link_up;
	_Atomic(uint64_t) broken;
	_Atomic(uint64_t) features;               // negotiated; for who reports it
	_Atomic(uint16_t) sizes[VHOST_RINGS_MAX]; // of the rings that run, else 0; the same
	struct vhost_port *next;                  // in ports
};

// Listen on port->path; from here on the library's thread uses the port. Returns 0 or -errno.
int vhost_session_begin(struct vhost_port *port);

// Stop listening and end all connections. No worker may use the port.
void vhost_session_end(struct vhost_port *port);

static inline unsigned vhost_port_rings(const struct vhost_port *port)
{
	return PAIR_RINGS * port->pairs;
}

// Count and log, once each, the rings that a worker has stopped: it cannot say so itself. Any thread but a
// worker.
void vhost_session_say_faults(struct vhost_port *port);
