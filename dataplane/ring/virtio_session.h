// SPDX-License-Identifier: BSD-3-Clause
// A virtio port's control side: its connection to a device, giving the workers the rings and taking them
// away. For virtio_port.c and virtio_open.c only.
//
// One thread for all ports waits for sockets that hang up, and tries again ten times a second where there is
// no device. It sleeps while every port has one. Between virtio_session_begin() and _end() a port's
// connection is that thread's.
#pragma once

#include <stdatomic.h>

#include "ring/driver_ring.h"
#include "ring/gate.h"
#include "ring/frontend.h"
#include "port/virtio_port.h"

enum { VIRTIO_NAME_MAX = 32 };

// Used by one worker, cache lines of its own. Behind the gate: the ring.
struct virtio_queue {
	struct gate gate;
	struct driver_ring ring;
	int kick_fd, call_fd; // eventfds
	uint32_t idle_polls;
	uint16_t head_checked;   // receive: where the ring was when we last looked for a device that sleeps
	struct fault_word fault; // of the ring; stays until there is a new device
	uint64_t packets, empty, no_mbuf, too_long, lost, refused;
} __attribute__((aligned(64)));

struct virtio_port {
	uint16_t pairs, ring_size;
	uint32_t room;
	_Atomic(uint64_t) memory; // which memory table the device has; changes while the gates are shut
	struct rte_mempool *pool;
	struct virtio_queue *queues; // 2 * pairs: receive, transmit, receive, ...
	_Atomic(bool) link_up;
	_Atomic(uint64_t) broken;
	_Atomic(uint64_t) features; // negotiated; for who reports it: frontend is the thread's
	struct frontend frontend;
	bool lent;      // the device at the other end of frontend was told of the rings and may use them
	int parting_fd; // -1, or the socket of a device that was told of them, and has not hung up as we have
	bool silent;    // one failure to connect was logged
	char name[VIRTIO_NAME_MAX], path[FRONTEND_PATH_MAX];
	void *rings;               // shared with the device
	struct ring_piece *pieces; // of all rings
	struct virtio_port *next;  // in the thread's list
	unsigned round;            // the thread's
};

// Connect, as virtio_port_open() says; from here on the thread watches. Returns 0, or -errno after logging.
int virtio_session_begin(struct virtio_port *port);

// Stop the device and disconnect. No worker may use the port.
void virtio_session_end(struct virtio_port *port);

// After virtio_session_end(), or a virtio_session_begin() that failed: whether no device can use rings and
// buffers any more. Now, or when it is asked again later.
bool virtio_session_parted(struct virtio_port *port);

// Count and log, once each, the rings that a worker has stopped. Any thread but a worker.
void virtio_session_say_faults(struct virtio_port *port);
