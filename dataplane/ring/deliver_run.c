// SPDX-License-Identifier: BSD-3-Clause
// deliver() into plain buffers: a frame of any number of pieces goes straight into a buffer of one. The first
// frame that does not fit its buffer, or a buffer that is not plain, leaves the rest to deliver_any().
#include "ring/copy.h"
#include "ring/deliver.h"
#include "ring/deliver_header.h"
#include "ring/ring_run.h"

static inline unsigned copy_frames(const struct ring_run *rx, const struct frame *frames, unsigned n,
                                   uint32_t header, uint32_t written[static RING_BATCH_MAX])
{
	unsigned i;

	n = RTE_MIN(n, rx->count);
	for (i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];

		if (unlikely(frame->length > COPY_SMALL) && i + COPY_AHEAD < n)
			ring_run_fetch(rx, i + COPY_AHEAD, header, frame[COPY_AHEAD].length);
		if (unlikely(rx->length[i] < header + frame->length))
			break;
		header_write(rx->data[i], header);
		copy_scattered(rx->data[i] + header, &frame->at, frame->length);
		written[i] = header + frame->length;
	}
	return i;
}

unsigned ISA_NAME(deliver)(struct ring *to, const struct frame *frames, unsigned n, uint64_t *too_long)
{
	uint32_t written[RING_BATCH_MAX];
	struct ring_run rx;
	unsigned done;

	n = RTE_MIN(n, (unsigned)RING_BATCH_MAX);
	ring_run_peek(to, &rx, n, true);
	if (likely(to->header_bytes == RING_HEADER))
		done = copy_frames(&rx, frames, n, RING_HEADER, written);
	else
		done = copy_frames(&rx, frames, n, to->header_bytes, written);
	ring_run_commit(to, &rx, done, written);
	if (likely(done == n || (done == rx.count && !rx.odd)))
		return done;
	return done + deliver_any(to, &frames[done], n - done, too_long);
}
