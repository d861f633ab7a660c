// SPDX-License-Identifier: BSD-3-Clause
// Frames in pieces of a VLAN-aware bridge: their heads as they came, and with another tag. On raw memory;
// what they describe belongs to the view that the frames came in. Worker only.
#pragma once

#include "tasks/bridge/bridge_decide.h"

// Frames of a burst as they leave by one port. The pieces of a batch are RING_PIECES_MAX at most; each frame
// has one more, its head.
struct bridge_frames {
	unsigned count, piece_count;
	struct frame frames[CONFIG_BURST_MAX];
	struct ring_piece pieces[RING_PIECES_MAX + 2 * CONFIG_BURST_MAX];
	uint8_t heads[CONFIG_BURST_MAX][BRIDGE_HEAD_BYTES];
};

// The first bytes of a frame, read once. What it has not is 0.
static inline void bridge_read_head(const struct frame *frame, union bridge_head *head)
{
	const struct ring_piece *piece = frame->at.piece;
	const uint8_t *at = piece->data + frame->at.offset;

	if (likely(piece->length - frame->at.offset >= BRIDGE_HEAD_BYTES)) {
		__builtin_memcpy(head, at, sizeof(*head));
	} else {
		const struct ring_piece all = {head->bytes, BRIDGE_HEAD_BYTES};
		struct scatter to = {&all, 0}, from = frame->at;

		*head = (union bridge_head){0};
		scatter_copy(&to, &from, RTE_MIN(frame->length, (uint32_t)BRIDGE_HEAD_BYTES));
	}
}

// Append a frame as it leaves, with a tag or without. Its head is what was decided about, not what the sender
// has made of it since: nobody gets into a VLAN that way.
void bridge_frames_add(struct bridge_frames *to, const struct frame *frame, const union bridge_head *head,
                       const struct bridge_fate *fate, bool with_tag);
