// SPDX-License-Identifier: BSD-3-Clause
// A virtio port's control side: its connection to a device, giving the workers the rings and taking them
// away. For virtio_port.c only.
//
// One thread for all ports waits for sockets that hang up, and tries again ten times a second where there is
// no device. It sleeps while every port has one. Between virtio_session_begin() and _end() a port's
// connection is that thread's.
#pragma once

#include "port/shm_port.h"
#include "shm/pool.h"
#include "virtio/frontend.h"

struct virtio_port {
	struct shm_port base; // first
	uint16_t ring_size;
	bool packed; // rings, if the device offers them
	uint32_t room;
	struct frontend frontend;
	bool lent;        // the device at the other end of frontend was told of the rings and may use them
	int lingering_fd; // -1, or the socket of a device that was told of them, and has not hung up as we have
	bool silent;      // one failure to connect was logged
	uint8_t *rings;   // shared with the device
	size_t rings_bytes;
	int rings_fd;
	struct shm_pool *pool;    // of the buffers
	struct piece *pieces;     // of all rings
	struct virtio_port *next; // in the thread's list
	unsigned round;           // the thread's
};

// Connect; a device that is not there yet is waited for, for a second. From here on the thread watches. Returns 0, or -errno after logging.
int virtio_session_begin(struct virtio_port *port);

// Stop the device and disconnect. No worker may use the port.
void virtio_session_end(struct virtio_port *port);

// After virtio_session_end(), or a virtio_session_begin() that failed: whether no device can use rings and
// buffers any more. Now, or when it is asked again later.
bool virtio_session_parted(struct virtio_port *port);
