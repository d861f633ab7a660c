// SPDX-License-Identifier: BSD-3-Clause
// Frames that lie in the buffers of a ring that sends, and are not handed over yet: a function changes them there, so that
// what it does costs one copy. The other end may write to them meanwhile.
#pragma once

#include "base/packet.h"
#include "virtio/frames.h"

struct placed {
	bool full; // of fewer than were offered: the ring has no buffer for the next one now. Else deliver() may take it
	struct vnf_frame frames[BURST_FRAMES_MAX];
	uint16_t ids[BURST_FRAMES_MAX]; // of their buffers; the ring's own
};

// Copy the first of n frames (at most BURST_FRAMES_MAX) that fit a plain buffer each. Returns how many: the ring is unchanged
// until as many or none of them are sent, before anything else is done with it.
ISA_DECLARE(unsigned, ring_place,
            (struct device_ring * to, const struct frame *frames, unsigned n, struct placed *placed));
ISA_DECLARE(void, ring_send_placed, (struct device_ring * to, const struct placed *placed, unsigned n));

static inline unsigned ring_place(struct device_ring *to, const struct frame *frames, unsigned n,
                                  struct placed *placed)
{
	static unsigned (*const table[])(struct device_ring *, const struct frame *, unsigned,
	                                 struct placed *) = ISA_TABLE(ring_place);

	return table[to->isa](to, frames, n, placed);
}

static inline void ring_send_placed(struct device_ring *to, const struct placed *placed, unsigned n)
{
	static void (*const table[])(struct device_ring *, const struct placed *, unsigned) =
	        ISA_TABLE(ring_send_placed);

	table[to->isa](to, placed, n);
}
