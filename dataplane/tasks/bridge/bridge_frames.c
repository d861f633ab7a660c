// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/bridge/bridge_frames.h"

_Static_assert(CONFIG_BURST_MAX <= (int)RING_BATCH_MAX, "a burst is peeked at once");

void bridge_frames_add(struct bridge_frames *to, const struct frame *frame, const union bridge_head *head,
                       const struct bridge_fate *fate, bool with_tag)
{
	struct frame *out = &to->frames[to->count];
	uint8_t *bytes = to->heads[to->count++];
	unsigned skip = bridge_head_skip(fate), first = to->piece_count;
	uint32_t length = bridge_retag(head, fate, with_tag, bytes), left = frame->length - skip;
	struct scatter at = scatter_skip(frame->at.piece, frame->at.offset + skip);

	out->length = length + left;
	to->pieces[to->piece_count++] = (struct ring_piece){bytes, length};
	while (left) {
		uint32_t run = RTE_MIN(left, at.piece->length - at.offset);

		to->pieces[to->piece_count++] = (struct ring_piece){at.piece->data + at.offset, run};
		left -= run;
		at = (struct scatter){at.piece + 1, 0};
	}
	out->at = (struct scatter){&to->pieces[first], 0};
}
