// SPDX-License-Identifier: BSD-3-Clause
// Guest to guest: frames from one's transmit ring straight into the other's receive buffers, with one copy.
// On raw memory like ring.h; one worker uses both rings.
#pragma once

#include "ring/deliver.h"
#include "lib/isa.h"

// Buffers of a sender that were freed and made no frame. They count as received by nobody.
struct frames_lost {
	uint64_t bad;      // no byte behind the header
	uint64_t oversize; // longer than FRAME_LENGTH_MAX
};

struct hop_counts {
	unsigned received;  // frames taken from the sender
	unsigned forwarded; // of these, taken by the receiver
	struct frames_lost lost;
	uint64_t too_long; // of the forwarded, lost since no buffers of the receiver can hold them
};

// Move up to n frames (at most RING_BATCH_MAX). What the receiver has no buffers for is dropped, never left
// in the sender's ring: received - forwarded. to may be NULL or have stopped: then all is dropped.
ISA_DECLARE(struct hop_counts, hop, (struct ring * from, struct ring *to, unsigned n));

static inline struct hop_counts hop(struct ring *from, struct ring *to, unsigned n)
{
	static struct hop_counts (*const table[])(struct ring *, struct ring *, unsigned) = ISA_TABLE(hop);

	return table[from->isa](from, to, n);
}

// The same for buffers of any shape, added to *counts: where hop() has come to one that is not plain.
void hop_any(struct ring *from, struct ring *to, unsigned n, struct hop_counts *counts);

// The frames in the buffers of a batch, without their headers. Returns how many; *lost counts the others.
unsigned hop_frames(const struct ring *from, const struct ring_batch *batch,
                    struct frame frames[static RING_BATCH_MAX], struct frames_lost *lost);
