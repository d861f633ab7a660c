// SPDX-License-Identifier: BSD-3-Clause
// Frames where they lie: what a port with rings of ours lends to a task, so that nothing is copied to be
// looked at. The task reads them, closes gaps among them if it likes, and gives the view back before its poll
// ends.
#pragma once

#include "ring/hop.h"

struct view {
	unsigned count;                      // of frames[]
	struct frame frames[RING_BATCH_MAX]; // the task may leave some out and close the gap, in order
	struct ring_batch batch;             // the port's own
};

// Read up to n (at most RING_BATCH_MAX) frames of a guest's transmit ring ahead. Returns how many buffers
// these are, in view->batch; of these, *lost counts those that make no frame. Where plain buffers
// (ring_run.h) end, the view ends: the next one begins with the other.
ISA_DECLARE(unsigned, view_peek,
            (struct ring * from, struct view *view, unsigned n, struct frames_lost *lost));

static inline unsigned view_peek(struct ring *from, struct view *view, unsigned n, struct frames_lost *lost)
{
	static unsigned (*const table[])(struct ring *, struct view *, unsigned, struct frames_lost *) =
	        ISA_TABLE(view_peek);

	return table[from->isa](from, view, n, lost);
}

// The same of buffers of any shape: where the first is not plain.
unsigned view_peek_any(struct ring *from, struct view *view, unsigned n, struct frames_lost *lost);

// Give all buffers of a view back.
void view_commit(struct ring *from, const struct view *view);
