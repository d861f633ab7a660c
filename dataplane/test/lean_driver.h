// SPDX-License-Identifier: BSD-3-Clause
// The cheapest driver there can be, for measuring the device's side: descriptors are written once, buffer i
// is always descriptor i, buffers go round in order (so VIRTIO_F_IN_ORDER holds), and giving them back is one
// store (split) or one per descriptor (packed). Told to, it writes descriptors anew each time, as real
// drivers do: their lines then travel between the cores. It touches as little of a frame as it is told to.
//
// Buffers lie as DPDK's drivers have them: the header at the end of one cache line, the frame in the next.
// The memory is the end's. One thread drives; another uses the rings. Chains, indirect tables and
// notifications are not covered: see guest.h.
#pragma once

#include "virtio/device_ring.h"

enum lean_touch {
	LEAN_NONE, // frames are never looked at: all of them stay in the device's caches
	LEAN_HEAD, // a sender writes, a receiver reads the first line of each
	LEAN_ALL,  // every line
	LEAN_TEST, // as planed's tester: the head is written, every line is read
};

struct lean_driver {
	struct device_ring ring; // the device's side, as under test
	uint16_t size, next;
	bool wrap;           // packed: of used descriptors
	uint16_t send_flags; // packed: without avail and used
	uint32_t length;     // of a descriptor: header and room
	uint8_t *buffers;    // the first one's header
	uint64_t addresses;  // and the guest's address of it
	enum lean_touch touch;
	bool rewrite;
	uint64_t frames, bytes, seen; // seen: keeps the reads
};

struct lean_end {
	struct guest_memory memory;
	uint8_t *bytes;
	size_t size;
	struct lean_driver receive, transmit;
};

// frame_bytes: of every frame that is sent. Everything is made available at once. Aborts without memory.
void lean_open(struct lean_end *end, uint64_t features, uint16_t size, uint32_t frame_bytes,
               enum lean_touch touch, bool rewrite);
void lean_close(struct lean_end *end);

// Take back what the device has used, about 32 buffers at most, and make them available again. Returns how
// many.
unsigned lean_drive(struct lean_driver *driver);
