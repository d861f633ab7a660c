// SPDX-License-Identifier: BSD-3-Clause
#include "ring/view.h"

unsigned view_peek_any(struct ring *from, struct view *view, unsigned n, struct frames_lost *lost)
{
	struct ring_batch *batch = &view->batch;

	view->count = 0;
	if (ring_peek(from, batch, n) == 0)
		return 0;
	for (unsigned i = 0; i < batch->count; i++)
		batch->buffers[i].written = 0;
	view->count = hop_frames(from, batch, view->frames, lost);
	return batch->count;
}

void view_commit(struct ring *from, const struct view *view)
{
	ring_commit(from, &view->batch, view->batch.count);
}
