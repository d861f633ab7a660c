// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a receive and a transmit ring in plain memory: our driver (virtio/driver_ring.h), our device
// (virtio/device_ring.h), and numbered frames whose every byte is checked. Needs no EAL. One test at a time.
#pragma once

#include "virtio/driver_ring.h"
#include "virtio/device_frames.h"

// What pair_open() makes from now on.
extern bool pair_packed;

enum { PAIR_ROOM = 2048, PAIR_FRAME_MAX = 1600 };

struct end {
	struct driver_ring driver;
	struct device_ring device;
	struct piece *pieces;
	uint8_t *buffers; // PAIR_ROOM bytes each, shm_pool_stride() apart
};

struct pair {
	struct end receive, transmit;
	struct guest_memory memory;
	uint32_t sent, came; // frames, by number
	uint32_t length;     // of all frames that are under way; 0: each has another
};

void pair_open(struct pair *p, uint16_t size);
void pair_close(struct pair *p);

// The device begins at index 0, as after driver_ring_reset().
void pair_device_reset(struct pair *p);

// Send up to n frames, written in place or copied from two pieces each. Returns how many went.
unsigned pair_send_reserved(struct pair *p, unsigned n);
unsigned pair_send_delivered(struct pair *p, unsigned n);

// The device takes up to n of these, in order and intact, behind headers of zeros; or gives the driver up to
// n.
unsigned pair_device_take(struct pair *p, unsigned n);
unsigned pair_device_give(struct pair *p, unsigned n);

// Look at up to n that have come: in order and intact.
unsigned pair_look(struct pair *p, unsigned n, struct frame *frames);

// The same by driver_ring_peek_spans().
unsigned pair_look_at_spans(struct pair *p, unsigned n);
