// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user port's control side: listening, connections, and giving the workers the rings and taking them
// away, as DPDK's rte_vhost calls for it. For vhost_port.c only.
#pragma once

#include "config.h"
#include "vhost_port.h"

// As the guest calls them (virtio 1.2 s5.1.2).
enum { GUEST_RECEIVEQ, GUEST_TRANSMITQ, QUEUES };

// Used by one worker, a cache line of its own. Behind the gate: ring and call_fd.
struct queue {
	struct gate gate;
	bool attached; // the gate is open; library's thread
	int call_fd;   // eventfd that wakes the guest, or -1
	struct ring ring;
	_Atomic(enum ring_fault) fault; // of the ring; stays until the device is set up anew
	_Atomic(bool) fault_said;       // counted and logged
	uint64_t packets, lost, refused;
	struct frames_lost from_guest;
	uint64_t no_mbuf;
} __attribute__((aligned(64)));

struct vhost_port {
	struct queue queues[QUEUES];
	struct guest_memory memory;
	struct rte_mempool *pool;
	char name[CONFIG_NAME_MAX], path[CONFIG_PATH_MAX];
	int vid; // the connection that has the rings, or -1; library's thread
	_Atomic(bool) link_up;
	_Atomic(uint64_t) broken;
	struct vhost_port *next; // in ports
};

// Listen on port->path; from here on the library's thread uses the port. Returns 0 or -errno.
int vhost_session_begin(struct vhost_port *port);

// Stop listening and end all connections. No worker may use the port.
void vhost_session_end(struct vhost_port *port);

// Count and log, once each, the rings that a worker has stopped: it cannot say so itself. Any thread but a
// worker.
void vhost_session_say_faults(struct vhost_port *port);
