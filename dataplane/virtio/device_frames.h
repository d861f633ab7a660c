// SPDX-License-Identifier: BSD-3-Clause
// Frames in a guest's rings: looked at where they lie (view), copied in (deliver), moved from one guest to another
// (cross-connect). On raw memory like device_ring.h; one worker uses a ring.
#pragma once

#include <stdint.h>
#include <string.h>

#include <linux/virtio_net.h>

#include "base/isa.h"
#include "virtio/device_ring.h"

// --- Into a guest ----------------------------------------------------------------------------------------

// Copy up to n frames (at most BURST_FRAMES_MAX), in order, into the buffers that the guest has made available,
// each behind a header that says no offload (virtio 1.2 s5.1.6.4), and hand the buffers over. Returns how
// many the ring took: fewer than n if it has no more buffers, or has stopped. A frame that can never fit,
// however empty the ring, is taken and counted in *too_long: what comes after it must not wait for it.
ISA_DECLARE(unsigned, deliver,
            (struct device_ring * to, const struct frame *frames, unsigned n, uint64_t *too_long));

static inline unsigned deliver(struct device_ring *to, const struct frame *frames, unsigned n,
                               uint64_t *too_long)
{
	static unsigned (*const table[])(struct device_ring *, const struct frame *, unsigned, uint64_t *) =
	        ISA_TABLE(deliver);

	return table[to->isa](to, frames, n, too_long);
}

// The same into buffers of any shape: where deliver() has come to one that is not plain.
unsigned deliver_any(struct device_ring *to, const struct frame *frames, unsigned n, uint64_t *too_long);

// The same, with a header for each frame that the guest accepts (virtio/offload.h); num_buffers is set here.
unsigned deliver_offloads(struct device_ring *to, const struct frame *frames,
                          const struct virtio_net_hdr *headers, unsigned n, uint64_t *too_long);

// --- From guest to guest ---------------------------------------------------------------------------------

struct xconnect_counts {
	unsigned received;  // frames taken from the sender
	unsigned forwarded; // of these, taken by the receiver
	struct frames_lost lost;
	uint64_t too_long; // of the forwarded, lost since no buffers of the receiver can hold them
};

// Move up to n frames (at most BURST_FRAMES_MAX). What the receiver has no buffers for is dropped, never left
// in the sender's ring: received - forwarded. to may be NULL or have stopped: then all is dropped.
ISA_DECLARE(struct xconnect_counts, xconnect,
            (struct device_ring * from, struct device_ring *to, unsigned n));

static inline struct xconnect_counts xconnect(struct device_ring *from, struct device_ring *to, unsigned n)
{
	static struct xconnect_counts (*const table[])(struct device_ring *, struct device_ring *, unsigned) =
	        ISA_TABLE(xconnect);

	return table[from->isa](from, to, n);
}

// The same for buffers of any shape, added to *counts: where xconnect() has come to one that is not plain.
void xconnect_any(struct device_ring *from, struct device_ring *to, unsigned n,
                  struct xconnect_counts *counts);

// The frames in the buffers of a batch, without their headers. Returns how many; *lost counts the others.
unsigned xconnect_frames(const struct device_ring *from, const struct ring_batch *batch,
                         struct frame frames[static BURST_FRAMES_MAX], struct frames_lost *lost);

// --- Where they lie --------------------------------------------------------------------------------------

// Read up to n (at most BURST_FRAMES_MAX) frames of a guest's transmit ring ahead. Returns how many buffers
// these are, in view->batch; of these, *lost counts those that make no frame. Where plain buffers
// (device_run.c) end, the view ends: the next one begins with the other.
ISA_DECLARE(unsigned, view_peek,
            (struct device_ring * from, struct view *view, unsigned n, struct frames_lost *lost));

static inline unsigned view_peek(struct device_ring *from, struct view *view, unsigned n,
                                 struct frames_lost *lost)
{
	static unsigned (*const table[])(struct device_ring *, struct view *, unsigned,
	                                 struct frames_lost *) = ISA_TABLE(view_peek);

	return table[from->isa](from, view, n, lost);
}

// The same of buffers of any shape: where the first is not plain.
unsigned view_peek_any(struct device_ring *from, struct view *view, unsigned n, struct frames_lost *lost);

// Give all buffers of a view back.
void view_commit(struct device_ring *from, const struct view *view);

// --- Placed first, sent later --------------------------------------------------------------------------

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

// --- For frames.c and device_run.c -------------------------------------------------------------------------

// The virtio-net header that we write before each frame: no offload, one buffer (virtio 1.2 s5.1.6.4).
_Static_assert(sizeof(struct virtio_net_hdr_mrg_rxbuf) == RING_HEADER, "virtio 1.2 s5.1.6");
_Static_assert(sizeof(struct virtio_net_hdr) == RING_HEADER_LEGACY, "virtio 1.2 s5.1.6.1");

// header_bytes: RING_HEADER or RING_HEADER_LEGACY. Two stores.
static inline void header_write(uint8_t *at, uint32_t header_bytes)
{
	const uint64_t zero = 0;
	const uint32_t one_buffer = 1 << 16; // behind the last two bytes of the legacy header

	memcpy(at, &zero, sizeof(zero));
	if (header_bytes == RING_HEADER)
		memcpy(at + sizeof(zero), &one_buffer, sizeof(one_buffer));
	else
		memcpy(at + sizeof(zero), &zero, RING_HEADER_LEGACY - sizeof(zero));
}
