// SPDX-License-Identifier: BSD-3-Clause
// Bytes that lie in several pieces, and copying from one such list to another. Pure; no bounds are kept here:
// the caller has counted that both lists have the bytes.
#pragma once

#include <stdint.h>

#include "ring/ring.h"

// A position in a list of pieces.
struct scatter {
	const struct ring_piece *piece;
	uint32_t offset; // in the piece
};

// Copy length bytes. Both positions move on.
void scatter_copy(struct scatter *to, struct scatter *from, uint32_t length);

// The position length bytes further: within a piece, never at its end unless that is the last.
static inline struct scatter scatter_skip(const struct ring_piece *piece, uint32_t length)
{
	while (unlikely(length >= piece->length)) {
		length -= piece->length;
		piece++;
	}
	return (struct scatter){piece, length};
}
