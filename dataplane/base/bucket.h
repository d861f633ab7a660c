// SPDX-License-Identifier: BSD-3-Clause
// A rate with a burst: a token bucket (RFC 2697, the committed one). It holds so many tokens, and gets so many in each
// period of its user's clock, of milliseconds or of ticks. Credit is counted in parts of a token, as many as the period has
// ticks: whole numbers, so nothing is rounded and nothing drifts. Pure; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bucket {
	uint64_t rate;       // tokens in a period
	int64_t token, full; // in parts of a token: one, and what a full bucket holds (2^62 at most)
	int64_t level;       // the same; below 0: it owes some
	uint64_t seen;       // time of the last look
};

// Return a full bucket.
static inline struct bucket bucket_full(uint64_t size, uint64_t rate, uint64_t period, uint64_t now)
{
	int64_t full = (int64_t)(size * period);

	return (struct bucket){rate, (int64_t)period, full, full, now};
}

// Take tokens that were used already: it may owe some.
static inline void bucket_charge(struct bucket *bucket, unsigned tokens)
{
	bucket->level -= (int64_t)tokens * bucket->token;
}

// Return how long until there is a token; 0: now.
static inline uint64_t bucket_wait(struct bucket *bucket, uint64_t now)
{
	int64_t passed = (int64_t)(now - bucket->seen);

	if (passed > 0) { // the time of another CPU may be a little behind
		bucket->seen = now;
		if ((uint64_t)passed > (uint64_t)(bucket->full - bucket->level) / bucket->rate)
			bucket->level = bucket->full;
		else
			bucket->level += passed * (int64_t)bucket->rate;
	}
	if (bucket->level >= bucket->token)
		return 0;
	return ((uint64_t)(bucket->token - bucket->level) + bucket->rate - 1) / bucket->rate;
}

// Take a token. Returns false if there is none.
static inline bool bucket_take(struct bucket *bucket, uint64_t now)
{
	if (bucket_wait(bucket, now))
		return false;
	bucket_charge(bucket, 1);
	return true;
}
