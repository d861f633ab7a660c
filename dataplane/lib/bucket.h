// SPDX-License-Identifier: BSD-3-Clause
// A rate with a burst: a bucket that holds so many tokens and gets so many a minute. Pure; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { BUCKET_TOKEN = 60000 }; // what a rate of one a minute brings in that time, in milliseconds

struct bucket {
	uint32_t size, per_minute;
	int64_t level; // in BUCKET_TOKENs
	uint64_t at_ms;
};

// Return a full bucket.
static inline struct bucket bucket_full(uint32_t size, uint32_t per_minute, uint64_t now_ms)
{
	return (struct bucket){size, per_minute, (int64_t)size * BUCKET_TOKEN, now_ms};
}

// Take tokens that were used already: it may owe some.
static inline void bucket_charge(struct bucket *bucket, unsigned tokens)
{
	bucket->level -= (int64_t)tokens * BUCKET_TOKEN;
}

// Return how long until there is a token; 0: now.
static inline uint64_t bucket_wait_ms(struct bucket *bucket, uint64_t now_ms)
{
	const int64_t full = (int64_t)bucket->size * BUCKET_TOKEN;
	uint64_t passed_ms = now_ms - bucket->at_ms;

	bucket->at_ms = now_ms;
	if (passed_ms > (uint64_t)(full - bucket->level) / bucket->per_minute)
		bucket->level = full;
	else
		bucket->level += (int64_t)passed_ms * bucket->per_minute;
	if (bucket->level >= BUCKET_TOKEN)
		return 0;
	return (uint64_t)(BUCKET_TOKEN - bucket->level + bucket->per_minute - 1) / bucket->per_minute;
}

// Take a token. Returns false if there is none.
static inline bool bucket_take(struct bucket *bucket, uint64_t now_ms)
{
	if (bucket_wait_ms(bucket, now_ms))
		return false;
	bucket_charge(bucket, 1);
	return true;
}
