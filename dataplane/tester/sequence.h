// SPDX-License-Identifier: BSD-3-Clause
// What became of the numbered frames of one stream: unique, duplicate, reordered. A bitmap remembers which of
// the last SEQUENCE_WINDOW numbers came; 32-bit numbers are extended to 64 by their distance from the next
// expected one.
//
// reordered is RFC 4737 s3.3 type-P-reordered: unique, but with a number below the next expected one.
// Older than the window: it cannot be told whether the frame came before, and it counts as duplicate. So lost
// = offered - unique is never flattered and never negative. At 15 Mpps the window is 0.56 s of delay: that of
// a frame which waits for the time slices of 63 VNFs on one core, three times. Of it only what is written now
// is in a cache: a line holds 512 numbers.
//
// The memory is the caller's. One thread. Lost frames are not known here: the sender's count is needed.
#pragma once

#include <stdint.h>

enum {
	SEQUENCE_WINDOW_BITS = 23,
	SEQUENCE_WINDOW = 1 << SEQUENCE_WINDOW_BITS,
	SEQUENCE_WORDS = SEQUENCE_WINDOW / 64,
};

#define SEQUENCE_FIRST (UINT64_C(1) << 32) // number 0, extended

enum sequence_verdict { SEQUENCE_IN_ORDER, SEQUENCE_REORDERED, SEQUENCE_DUPLICATE };

struct sequence {
	uint64_t
	        next; // next expected number, extended, plus SEQUENCE_FIRST: a number before the first one is
	              // not negative
	uint64_t unique;
	uint64_t duplicate;
	uint64_t reordered;            // of unique
	uint64_t seen[SEQUENCE_WORDS]; // bit n modulo window; meaningful for the window below next
};

// Begin at number first.
void sequence_reset(struct sequence *s, uint32_t first);

// Of the numbers that s has counted, how many one of n others of the same stream has counted, too. Older than the window of
// either they are not known. Nobody tracks meanwhile.
uint64_t sequence_shared(const struct sequence *s, const struct sequence *const *others, unsigned n);

// The number is not the next expected one.
enum sequence_verdict sequence_track_slow(struct sequence *s, uint32_t number);

// Count a frame with this number.
static inline enum sequence_verdict sequence_track(struct sequence *s, uint32_t number)
{
	uint64_t next = s->next;

	if (__builtin_expect(number != (uint32_t)next, 0))
		return sequence_track_slow(s, number);
	s->seen[next % SEQUENCE_WINDOW / 64] |= UINT64_C(1)
	                                        << (next % 64); // the bit's old meaning left the window
	s->next = next + 1;
	s->unique++;
	return SEQUENCE_IN_ORDER;
}

// Count n frames, at most 64, that carry just the numbers that were expected next.
static inline void sequence_track_run(struct sequence *s, unsigned n)
{
	uint64_t next = s->next, bits = n < 64 ? (UINT64_C(1) << n) - 1 : ~UINT64_C(0);
	unsigned shift = next % 64;

	s->seen[next % SEQUENCE_WINDOW / 64] |= bits << shift;
	if (shift + n > 64)
		s->seen[(next + n - 1) % SEQUENCE_WINDOW / 64] |= bits >> (64 - shift);
	s->next = next + n;
	s->unique += n;
}
