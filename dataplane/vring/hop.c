// SPDX-License-Identifier: BSD-3-Clause
#include "hop.h"

#include <rte_prefetch.h>

unsigned hop_frames(const struct ring *from, const struct ring_batch *batch,
                    struct frame frames[static RING_BATCH_MAX], struct frames_lost *lost)
{
	unsigned count = 0;

	for (unsigned i = 0; i < batch->count; i++) {
		const struct ring_buffer *buffer = &batch->buffers[i];
		struct frame *frame = &frames[count];

		if (unlikely(buffer->length <= from->header_bytes)) {
			lost->bad++;
			continue;
		}
		if (unlikely(buffer->length - from->header_bytes > FRAME_LENGTH_MAX)) {
			lost->oversize++;
			continue;
		}
		// The header is not even looked at: with no offload negotiated it says nothing.
		frame->at = scatter_skip(&batch->pieces[buffer->first_piece], from->header_bytes);
		frame->length = buffer->length - from->header_bytes;
		rte_prefetch0(frame->at.piece->data + frame->at.offset);
		count++;
	}
	return count;
}

static void nothing_written(struct ring_batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++)
		batch->buffers[i].written = 0;
}

void hop_any(struct ring *from, struct ring *to, unsigned n, struct hop_counts *counts)
{
	struct frame frames[RING_BATCH_MAX];
	struct ring_batch batch;
	unsigned count;

	if (ring_peek(from, &batch, n) == 0)
		return;
	nothing_written(&batch);
	count = hop_frames(from, &batch, frames, &counts->lost);
	counts->received += count;
	if (likely(to))
		counts->forwarded += deliver(to, frames, count, &counts->too_long);
	ring_commit(from, &batch, batch.count);
}
