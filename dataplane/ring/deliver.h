// SPDX-License-Identifier: BSD-3-Clause
// Frames into a guest's receive ring: the one copy, whether they come from mbufs or from another guest's
// buffers. On raw memory like ring.h; used by one worker.
#pragma once

#include "lib/isa.h"
#include "ring/ring_io.h"
#include "ring/scatter.h"

enum { FRAME_LENGTH_MAX = 65535 };

// Bytes without a virtio-net header, at most FRAME_LENGTH_MAX.
struct frame {
	struct scatter at;
	uint32_t length;
};

// Copy up to n frames (at most RING_BATCH_MAX), in order, into the buffers that the guest has made available,
// each behind a header that says no offload (virtio 1.2 s5.1.6.4), and hand the buffers over. Returns how
// many the ring took: fewer than n if it has no more buffers, or has stopped. A frame that can never fit,
// however empty the ring, is taken and counted in *too_long: what comes after it must not wait for it.
ISA_DECLARE(unsigned, deliver,
            (struct ring * to, const struct frame *frames, unsigned n, uint64_t *too_long));

static inline unsigned deliver(struct ring *to, const struct frame *frames, unsigned n, uint64_t *too_long)
{
	static unsigned (*const table[])(struct ring *, const struct frame *, unsigned, uint64_t *) =
	        ISA_TABLE(deliver);

	return table[to->isa](to, frames, n, too_long);
}

// The same into buffers of any shape: where deliver() has come to one that is not plain.
unsigned deliver_any(struct ring *to, const struct frame *frames, unsigned n, uint64_t *too_long);
