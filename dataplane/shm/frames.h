// SPDX-License-Identifier: BSD-3-Clause
// Frames as all that move them see them, wherever they lie: in pieces of shared memory, in a burst that a port lends, or
// placed in the buffers of a ring. Nothing here knows a ring.
#pragma once

#include <stdint.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "base/packet.h"

enum {
	BURST_FRAMES_MAX = 64, // buffers read ahead
	PIECES_MAX =
	        256, // pieces, and descriptors, of all these together: an honest driver needs one or two a buffer
	// Bytes that one poll takes from a guest, unless the first frame alone has more: a whole batch of 1518 bytes has less,
	// so that polls of honest guests without jumbo frames are never cut (48 KB cost a tenth of 1024 B between guests).
	POLL_BYTES_MAX = 96 << 10,
};

// Neighbouring members of what the other end shares, as one load or store.
typedef uint64_t __attribute__((may_alias)) ring_word;

// A run of the guest's memory, checked.
struct piece {
	uint8_t *data;
	uint32_t length;
};

// One buffer that the guest has made available: a chain of descriptors, as pieces.
struct ring_buffer {
	uint32_t length;  // bytes of all pieces, > 0
	uint32_t written; // by us; told to the guest at commit
	uint16_t id;      // the guest's name for it
	uint16_t slots;   // ring entries it takes (packed rings; 1 in split ones)
	uint16_t first_piece;
	uint16_t piece_count;
};

// What was read ahead. Not initialised: who peeks does.
struct ring_batch {
	unsigned count, piece_count;
	unsigned descriptor_count; // read, also those without a byte and those of a chain that is not in here
	uint64_t bytes;            // of the buffers of a guest that sends
	bool limited; // ended by something other than the ring's end or n: the next peek tells more
	struct ring_buffer buffers[BURST_FRAMES_MAX];
	struct piece pieces[PIECES_MAX];
};

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

// --- Frames ---------------------------------------------------------------------------------------------

enum { FRAME_LENGTH_MAX = 65535 };

// Bytes without a virtio-net header, at most FRAME_LENGTH_MAX (OFFLOAD_LENGTH_MAX with an offload).
struct frame {
	struct scatter at;
	uint32_t length;
	uint32_t
	        offload; // of a port with offloads: 0, or 1 + where its struct offload_room has what is to be done; else anything
};

// Buffers of a sender that were freed and made no frame. They count as received by nobody.
struct frames_lost {
	uint64_t bad;      // no byte behind the header
	uint64_t oversize; // longer than FRAME_LENGTH_MAX
};

// --- Where they lie -------------------------------------------------------------------------------------

// In view.held instead of the number of its mbufs: the frames lie in a ring, each in one piece; or in any pieces.
enum { VIEW_IN_RING = -1, VIEW_IN_PIECES = -2 };

// A burst of frames that a port lends to a task, which reads them and gives the view back before its poll ends. They
// lie in the rings of the port, or in mbufs.
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

// Whether n frames have this length each.
static inline bool spans_alike(const struct vnf_frame *spans, unsigned n, uint32_t length)
{
	uint32_t other = 0;

	for (unsigned i = 0; i < n; i++)
		other |= spans[i].total ^ length;
	return other == 0;
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

// --- To mbufs, by one copy --------------------------------------------------------------------------------

// Copy count frames into as many empty mbufs of the pool. A frame that is longer than the room of one mbuf comes in a chain
// of them; what is not filled, since its chain could not be ended, is freed and counted. Returns how many are filled: the first ones of pkts.
uint16_t frames_fill(struct rte_mempool *pool, struct rte_mbuf **pkts, const struct frame *frames,
                     unsigned count, uint64_t *no_mbuf);

// --- In the buffers of a ring that sends ----------------------------------------------------------------

// Frames in buffers that are not handed over yet: a function changes them there, so that what it does costs one copy. The
// other end may write to them meanwhile.
struct placed {
	bool full; // of fewer than were offered: the ring has no buffer for the next one now. Else deliver() may take it
	struct vnf_frame frames[BURST_FRAMES_MAX];
	uint16_t ids[BURST_FRAMES_MAX]; // of their buffers; the ring's own
};
