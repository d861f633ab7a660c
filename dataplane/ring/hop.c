// SPDX-License-Identifier: BSD-3-Clause
#include "ring/view.h"

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

void hop_any(struct ring *from, struct ring *to, unsigned n, struct hop_counts *counts)
{
	struct view view;

	if (view_peek_any(from, &view, n, &counts->lost) == 0)
		return;
	counts->received += view.count;
	if (likely(to))
		counts->forwarded += deliver(to, view.frames, view.count, &counts->too_long);
	view_commit(from, &view);
}
