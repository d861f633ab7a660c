// SPDX-License-Identifier: BSD-3-Clause
// view_peek() of plain buffers, compiled for each instruction set (isa.h).
#include "ring/ring_run.h"
#include "ring/view.h"

static inline void view_add(struct view *view, unsigned i, const struct ring_run *run, uint32_t header)
{
	struct ring_piece *piece = &view->batch.pieces[i];
	uint32_t length = run->length[i] - header;

	*piece = (struct ring_piece){run->data[i] + header, length};
	view->frames[i] = (struct frame){{piece, 0}, length};
	view->batch.buffers[i] = (struct ring_buffer){.id = run->id[i], .slots = 1};
}

unsigned ISA_NAME(view_peek)(struct ring *from, struct view *view, unsigned n, struct frames_lost *lost)
{
	uint32_t header = from->header_bytes;
	unsigned i, count;
	struct ring_run run;

	count = ring_run_peek(from, &run, RTE_MIN(n, (unsigned)RING_BATCH_MAX), false);
	for (i = 0; i < count; i++) {
		if (unlikely(run.length[i] - header - 1 >= FRAME_LENGTH_MAX)) // wraps below the header
			break;
		view_add(view, i, &run, header);
	}
	if (unlikely(i == 0 && (count || run.odd)))
		return view_peek_any(from, view, n, lost);
	view->count = view->batch.count = i;
	return i;
}
