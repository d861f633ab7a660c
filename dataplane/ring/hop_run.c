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

struct hop_counts ISA_NAME(hop)(struct ring *from, struct ring *to, unsigned n)
{
	struct hop_counts counts = {0};
	uint32_t written[RING_BATCH_MAX];
	struct ring_run tx, rx;
	unsigned done;

	n = RTE_MIN(n, (unsigned)RING_BATCH_MAX);
	if (unlikely(to == NULL)) {
		hop_any(from, to, n, &counts);
		return counts;
	}
	if (ring_run_peek(from, &tx, n, false) == 0 && !tx.odd)
		return counts;
	ring_run_peek(to, &rx, tx.count, true);
	if (likely(from->header_bytes == RING_HEADER && to->header_bytes == RING_HEADER))
		done = copy_frames(&tx, &rx, RING_HEADER, RING_HEADER, written);
	else
		done = copy_frames(&tx, &rx, from->header_bytes, to->header_bytes, written);
	ring_run_commit(to, &rx, done, written);
	ring_run_commit(from, &tx, done, NULL);
	counts.received = counts.forwarded = done;
	if (unlikely(tx.odd || done < tx.count))
		hop_any(from, to, n - done, &counts);
	return counts;
}
