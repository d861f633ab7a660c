// SPDX-License-Identifier: BSD-3-Clause
// Frames where they lie: what a port with rings of ours lends to a task, so that nothing is copied to be
// looked at. The task reads them, closes gaps among them if it likes, and gives the view back before its poll
// ends.
#pragma once

#include "deliver.h"

struct view {
	unsigned count;                      // of frames[]
	struct frame frames[RING_BATCH_MAX]; // the task may leave some out and close the gap, in order
	struct ring_batch batch;             // the port's own
};
