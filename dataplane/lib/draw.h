// SPDX-License-Identifier: BSD-3-Clause
// Random numbers by counter: what number k draws is a function of key and k alone, in any order and as often
// as wanted (docs/design/traffic.md). The mixing function is SplitMix64's (Steele, Lea, Flood: Fast
// Splittable Pseudorandom Number Generators, OOPSLA 2014), whose k-th output this is.
#pragma once

#include <stdint.h>

static inline uint64_t draw_hash(uint64_t key, uint64_t k)
{
	uint64_t x = key + (k + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

// A key of its own for each purpose and stream.
static inline uint64_t draw_key(uint64_t seed, uint64_t purpose, uint64_t stream)
{
	return draw_hash(draw_hash(seed, purpose), stream);
}

// The upper 32 bits of a hash to 0 .. n - 1. What is not even about it is below n / 2^32.
static inline uint32_t draw_below(uint64_t hash, uint32_t n)
{
	return (uint32_t)((hash >> 32) * n >> 32);
}
