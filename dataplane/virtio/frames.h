// SPDX-License-Identifier: BSD-3-Clause
// Frames in a guest's rings: looked at where they lie (view), copied in (deliver), moved from one guest to another
// (xconnect), and copied to mbufs. On raw memory like ring.h; one worker uses a ring.
#pragma once

#include <stdint.h>
#include <string.h>

#include <linux/virtio_net.h>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "base/isa.h"
#include "base/packet.h"
#include "virtio/device_ring.h"

// --- Bytes that lie in several pieces --------------------------------------------------------------------

// No bounds are kept here: the caller has counted that both lists have the bytes.

// A position in a list of pieces.
struct scatter {
	const struct piece *piece;
	uint32_t offset; // in the piece
};

// The byte at the position. There is one, unless it is the end of the last piece.
static inline uint8_t *scatter_start(const struct scatter *at)
{
	return at->piece->data + at->offset;
}

// Copy length bytes. Both positions move on.
void scatter_copy(struct scatter *to, struct scatter *from, uint32_t length);

// Move on by run bytes, at most to the end of the piece.
static inline void scatter_move_on(struct scatter *at, uint32_t run)
{
	at->offset += run;
	if (at->offset == at->piece->length) {
		at->piece++;
		at->offset = 0;
	}
}

// The position length bytes further: within a piece, never at its end unless that is the last.
static inline struct scatter scatter_skip(const struct piece *piece, uint32_t length)
{
	while (unlikely(length >= piece->length)) {
		length -= piece->length;
		piece++;
	}
	return (struct scatter){piece, length};
}

// Pieces for the length bytes from at on, which moves on. Returns how many.
static inline unsigned scatter_describe(struct piece *pieces, struct scatter *at, uint32_t length)
{
	unsigned count = 0;

	while (length) {
		uint32_t run = RTE_MIN(length, at->piece->length - at->offset);

		pieces[count++] = (struct piece){scatter_start(at), run};
		scatter_move_on(at, run);
		length -= run;
	}
	return count;
}

// --- Into a guest ----------------------------------------------------------------------------------------

enum { FRAME_LENGTH_MAX = 65535 };

// Bytes without a virtio-net header, at most FRAME_LENGTH_MAX (OFFLOAD_LENGTH_MAX with an offload).
struct frame {
	struct scatter at;
	uint32_t length;
	uint32_t
	        offload; // of a port with offloads: 0, or 1 + where its struct offload_room has what is to be done; else anything
};

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

// Buffers of a sender that were freed and made no frame. They count as received by nobody.
struct frames_lost {
	uint64_t bad;      // no byte behind the header
	uint64_t oversize; // longer than FRAME_LENGTH_MAX
};

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

// A burst of frames that a port lends to a task, which reads them and gives the view back before its poll ends. They
// lie in the rings of the port, or in mbufs.
// Instead of the number of its mbufs, of a view whose frames lie in a ring: each in one piece; or any.
enum { VIEW_IN_RING = -1, VIEW_IN_PIECES = -2 };

struct view {
	unsigned count; // of frames
	int held; // in mbufs: so many of pkts[], or NULL in their place, are freed with the view; else below 0
	union {
		struct rte_mbuf *pkts[BURST_FRAMES_MAX];
		struct {
			struct frame frames[BURST_FRAMES_MAX];
			struct ring_batch batch; // the port's own
		};
	};
};

static inline bool view_in_mbufs(const struct view *view)
{
	return view->held >= 0;
}

// Say where frame i is: the bytes of it that are in one piece, from its first.
static inline struct vnf_frame view_span(const struct view *view, unsigned i)
{
	const struct frame *frame = &view->frames[i];
	struct vnf_frame span;

	if (view_in_mbufs(view)) {
		const struct rte_mbuf *m = view->pkts[i];

		return (struct vnf_frame){rte_pktmbuf_mtod(m, uint8_t *), m->data_len, m->pkt_len};
	}
	span = (struct vnf_frame){scatter_start(&frame->at), frame->length, frame->length};
	if (unlikely(view->held == VIEW_IN_PIECES))
		span.length = RTE_MIN(frame->length, frame->at.piece->length - frame->at.offset);
	return span;
}

// Have the first bytes of the frames in this core's cache, as those in rings are.
static inline void view_fetch(const struct view *view)
{
	for (int i = 0; i < view->held; i++)
		rte_prefetch0(rte_pktmbuf_mtod(view->pkts[i], void *));
}

// The same of all frames, whose first bytes are fetched. Returns whether all are in one piece.
static inline bool view_spans(const struct view *view, struct vnf_frame *spans)
{
	bool whole = true;

	if (view->held == VIEW_IN_RING) { // fetched already
		for (unsigned i = 0; i < view->count; i++)
			spans[i] = view_span(view, i);
		return true;
	}
	for (unsigned i = 0; i < view->count; i++) {
		spans[i] = view_span(view, i);
		rte_prefetch0(spans[i].data);
		if (unlikely(spans[i].length != spans[i].total))
			whole = false;
	}
	return whole;
}

// Copy the first bytes of frame i, at most its length and length. Returns how many.
uint32_t view_copy(const struct view *view, unsigned i, uint8_t *to, uint32_t length);

// A view of some of the frames of another: begin it, then add frame i of that one to its end. A frame in an mbuf moves to
// it, so it can be added once; one in a ring may be added to several.
static inline void view_part_begin(struct view *part, const struct view *view)
{
	part->count = 0;
	part->held = RTE_MIN(view->held, 0);
}

static inline void view_part_add(struct view *part, struct view *view, unsigned i)
{
	if (view_in_mbufs(view)) {
		part->pkts[part->held++] = view->pkts[i];
		part->count++;
		view->pkts[i] = NULL;
	} else {
		part->frames[part->count++] = view->frames[i];
	}
}

// Describe n frames in mbufs. Returns how many: all, unless they have more segments than there are pieces.
unsigned frames_describe(struct rte_mbuf *const *pkts, unsigned n,
                         struct frame frames[static BURST_FRAMES_MAX],
                         struct piece pieces[static PIECES_MAX]);

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

// --- To mbufs, by one copy --------------------------------------------------------------------------------

// Copy count frames into as many empty mbufs of the pool. A frame that is longer than the room of one mbuf comes in a chain
// of them; what is not filled, since its chain could not be ended, is freed and counted. Returns how many are filled: the first ones of pkts.
uint16_t frames_fill(struct rte_mempool *pool, struct rte_mbuf **pkts, const struct frame *frames,
                     unsigned count, uint64_t *no_mbuf);

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
