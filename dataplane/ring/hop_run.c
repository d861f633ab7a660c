// SPDX-License-Identifier: BSD-3-Clause
// hop() for plain buffers, which is nearly all there is: from descriptors to copy without a list in between.
// Both rings are read ahead first, so that the lines of all frames are on their way while the first is
// copied. The first buffer that is not plain is left to hop_any(), with all that follows in this poll.
#include "ring/copy.h"
#include "ring/deliver_header.h"
#include "ring/hop.h"
#include "ring/ring_run.h"

// Copy frames until one does not fit its buffer, or is none. header: of the sender. Returns how many.
static inline unsigned copy_frames(const struct ring_run *tx, const struct ring_run *rx, uint32_t header,
                                   uint32_t header_to, uint32_t written[static RING_BATCH_MAX])
{
	unsigned n = RTE_MIN(tx->count, rx->count), i;

	for (i = 0; i < n; i++) {
		uint32_t length = tx->length[i] - header; // wraps: too long

		if (unlikely(length - 1 >= FRAME_LENGTH_MAX || rx->length[i] < header_to + length))
			break;
		if (unlikely(length > COPY_SMALL) && i + COPY_AHEAD < n)
			ring_run_fetch(rx, i + COPY_AHEAD, header_to, tx->length[i + COPY_AHEAD] - header);
		header_write(rx->data[i], header_to);
		copy_bytes(rx->data[i] + header_to, tx->data[i] + header, length);
		written[i] = header_to + length;
	}
	return i;
}

// The receiver has no more buffers: give the frames from first on back to the sender. They were read already,
// so that a drop costs less than a forward.
static inline void drop_frames(const struct ring_run *tx, unsigned first, uint32_t header,
                               struct hop_counts *counts)
{
	for (unsigned i = first; i < tx->count; i++) {
		if (unlikely(tx->length[i] <= header))
			counts->lost.bad++;
		else if (unlikely(tx->length[i] - header > FRAME_LENGTH_MAX))
			counts->lost.oversize++;
		else
			counts->received++;
	}
}

struct hop_counts ISA_NAME(hop)(struct ring *from, struct ring *to, unsigned n)
{
	struct ring_run tx, rx = {.count = 0};
	struct hop_counts counts = {0};
	uint32_t written[RING_BATCH_MAX];
	unsigned done = 0, taken;

	n = RTE_MIN(n, (unsigned)RING_BATCH_MAX);
	if (ring_run_peek(from, &tx, n, false) == 0 && !tx.odd)
		return counts;
	if (likely(to)) {
		ring_run_peek(to, &rx, tx.count, true);
		if (likely(from->header_bytes == RING_HEADER && to->header_bytes == RING_HEADER))
			done = copy_frames(&tx, &rx, RING_HEADER, RING_HEADER, written);
		else
			done = copy_frames(&tx, &rx, from->header_bytes, to->header_bytes, written);
		ring_run_commit(to, &rx, done, written);
	}
	counts.received = counts.forwarded = taken = done;
	if (unlikely(done < tx.count && done == rx.count && !rx.odd)) {
		drop_frames(&tx, done, from->header_bytes, &counts);
		taken = tx.count;
	}
	ring_run_commit(from, &tx, taken, NULL);
	if (unlikely(tx.odd || taken < tx.count))
		hop_any(from, to, n - taken, &counts);
	return counts;
}
