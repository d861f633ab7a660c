// SPDX-License-Identifier: BSD-3-Clause
// A driver that does what the bytes of a fuzzer's input say: its memory, rings included, is whatever these
// make of it, and it may set its ring up anew anywhere. Random bytes would be refused by the first check; so
// most changes are steps that a driver takes, with a detail that it would not think of.
//
// Its two regions adjoin for the guest and not here, each of its exact size: a sanitizer sees the first byte
// beyond either. Owned by the harness; one thread.
#pragma once

#include "test/fuzz.h"
#include "virtio/device_ring.h"

enum {
	HOSTILE_NEAR_BYTES = 0x3c00, // the region with the rings
	HOSTILE_FAR_BYTES = 0x400,
	HOSTILE_BYTES = HOSTILE_NEAR_BYTES + HOSTILE_FAR_BYTES,
};

struct hostile {
	uint8_t *near, *far;
	struct guest_memory memory;
	struct device_ring_layout layout; // of the ring; layout.base is where it began
	bool packed;
	unsigned position; // packed: slot of the next offer, + size in the turns with wrap counter 0
	struct device_ring ring;
};

// The first bytes of the input are features, size and base.
void hostile_open(struct hostile *h, struct input *in, bool writable);
void hostile_close(struct hostile *h);

// One change, or a few that belong together.
void hostile_change(struct hostile *h, struct input *in);

// A stopped ring is set up anew, as by a driver that restarts: the rest of the input is not wasted. Returns
// the fault that it had.
enum ring_fault hostile_revive(struct hostile *h);

// The memory as it is; and whether it still is so but for the part of the ring that the device may write.
void hostile_remember(const struct hostile *h, uint8_t was[static HOSTILE_BYTES]);
bool hostile_untouched(const struct hostile *h, uint8_t was[static HOSTILE_BYTES]);
