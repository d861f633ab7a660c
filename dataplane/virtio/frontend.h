// SPDX-License-Identifier: BSD-3-Clause
// The front end of the vhost-user protocol (QEMU, docs/interop/vhost-user.rst): what a driver says to a
// device behind a unix socket to set rings up and to stop them. One thread at a time; it never waits longer
// than FRONTEND_PATIENCE_MS for an answer. The peer is not believed: whatever it answers, a call returns, and
// what was wrong is in error: one sentence with the socket, the message and the value.
//
// Owns the socket only: descriptors and memory are the caller's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "virtio/vhost_message.h"

// Memory as a device is told of it: regions of address space, each with the file that is mapped there. Our virtual addresses
// serve as the guest physical ones.
struct memory_region {
	uint64_t address, bytes;
	uint64_t offset; // in the file
	int fd;
};

struct memory_table {
	unsigned count;
	struct memory_region regions[PEER_REGIONS_MAX];
};

enum { FRONTEND_PATIENCE_MS = 5000, FRONTEND_ERROR_MAX = 256, FRONTEND_PATH_MAX = 108 };

// What the device is told of a ring. Rings are numbered as virtio 1.2 s5.1.2 has it: 2N receives, 2N + 1
// transmits, of queue pair N.
struct frontend_ring {
	const void *desc, *avail, *used;
	uint16_t size;
	int kick_fd, call_fd; // eventfds
};

struct frontend {
	int fd;                     // or -1
	bool in_order, packed;      // negotiated
	bool gone;                  // the peer has hung up: it uses nothing of ours any more
	int64_t deadline_ms;        // of the call that is being made
	uint64_t features;          // negotiated
	uint64_t protocol_features; // negotiated
	char path[FRONTEND_PATH_MAX], error[FRONTEND_ERROR_MAX];
};

// Connect and negotiate, for this many queue pairs; packed: rings of that kind, if the device offers them. Returns 0 or -errno; -ECONNREFUSED, -ENOENT or -EAGAIN if
// nobody serves the socket now.
int frontend_open(struct frontend *frontend, const char *path, unsigned pairs, bool packed);
void frontend_close(struct frontend *frontend); // also one that is not open

// Hang up on a device that may still use rings and memory: it sees the end of the connection when it looks.
// Returns the socket, the caller's from here on: frontend_left() says whether the device has hung up too.
int frontend_leave(struct frontend *frontend);
bool frontend_left(int fd);

// Tell it which memory rings and buffers may lie in; when this returns 0 it has done so. Also while rings
// run, if nobody uses them.
int frontend_share(struct frontend *frontend, const struct memory_table *table);

// Hand it count rings, at index 0, and let it begin; take them back. After frontend_stop() has returned 0 it
// uses them no more.
int frontend_start(struct frontend *frontend, const struct frontend_ring *rings, unsigned count);
int frontend_stop(struct frontend *frontend, unsigned count);

// Whether the peer is still there. It has nothing to say unless asked: if it says something, error has it.
bool frontend_alive(struct frontend *frontend);
