// SPDX-License-Identifier: BSD-3-Clause
// The out-of-order half of the sequence tracker.
#include <stdbool.h>
#include <string.h>

#include "tester/sequence.h"

void sequence_reset(struct sequence *s, uint32_t first)
{
	memset(s, 0, sizeof(*s));
	s->next = SEQUENCE_FIRST + first;
}

static inline bool test_and_set(struct sequence *s, uint64_t number)
{
	uint64_t *word = &s->seen[number % SEQUENCE_WINDOW / 64], bit = UINT64_C(1) << (number % 64);
	bool was = *word & bit;

	*word |= bit;
	return was;
}

// Forget the bits of [from, to): they still speak of numbers one window earlier.
static void clear_range(struct sequence *s, uint64_t from, uint64_t to)
{
	if (to - from >= SEQUENCE_WINDOW) {
		memset(s->seen, 0, sizeof(s->seen));
		return;
	}
	while (from < to && from % 64 != 0) {
		s->seen[from % SEQUENCE_WINDOW / 64] &= ~(UINT64_C(1) << (from % 64));
		from++;
	}
	for (; from + 64 <= to; from += 64)
		s->seen[from % SEQUENCE_WINDOW / 64] = 0;
	if (from < to)
		s->seen[from % SEQUENCE_WINDOW / 64] &= ~UINT64_C(0) << (to % 64);
}

// Which of the 64 numbers from first on, a multiple of 64, have come as far as the window tells.
static uint64_t came(const struct sequence *s, uint64_t first)
{
	const uint64_t oldest = s->next - SEQUENCE_WINDOW;
	uint64_t bits = s->seen[first % SEQUENCE_WINDOW / 64];

	if (first >= s->next || first + 64 <= oldest)
		return 0;
	if (first < oldest)
		bits &= ~UINT64_C(0) << (oldest - first);
	if (first + 64 > s->next)
		bits &= ~UINT64_C(0) >> (first + 64 - s->next);
	return bits;
}

uint64_t sequence_shared(const struct sequence *s, const struct sequence *const *others, unsigned n)
{
	uint64_t shared = 0;

	for (uint64_t at = (s->next - SEQUENCE_WINDOW) & ~UINT64_C(63); at < s->next; at += 64) {
		uint64_t there = 0;

		for (unsigned i = 0; i < n; i++)
			there |= came(others[i], at);
		shared += (unsigned)__builtin_popcountll(came(s, at) & there);
	}
	return shared;
}

enum sequence_verdict sequence_track_slow(struct sequence *s, uint32_t number)
{
	int32_t distance = (int32_t)(number - (uint32_t)s->next);
	uint64_t extended = s->next + (uint64_t)(int64_t)distance;

	if (distance >= 0) {
		clear_range(s, s->next, extended + 1);
		test_and_set(s, extended);
		s->next = extended + 1;
		s->unique++;
		return SEQUENCE_IN_ORDER;
	}
	if (s->next - extended > SEQUENCE_WINDOW || test_and_set(s, extended)) {
		s->duplicate++;
		return SEQUENCE_DUPLICATE;
	}
	s->unique++;
	s->reordered++;
	return SEQUENCE_REORDERED;
}
