// SPDX-License-Identifier: BSD-3-Clause
// Random numbers, by seed or secret. What number k draws is a function of key and k alone, in any order and as often
// as wanted (docs/traffic.md). The mixing function is SplitMix64's (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014), whose k-th output this is.
#pragma once

#include <rte_cycles.h>
#include <stdint.h>
#include <sys/random.h>

// 2^64 divided by the golden ratio, odd: multiples of it are spread evenly (Fibonacci hashing).
#define RANDOM_GOLDEN   UINT64_C(0x9e3779b97f4a7c15)
#define RANDOM_GOLDEN32 UINT32_C(0x9e3779b1) // of 2^32, a prime

// Return the first output of SplitMix64 from this seed: a seed of few bits becomes a number of many.
static inline uint64_t random_mix(uint64_t seed)
{
	uint64_t x = seed + RANDOM_GOLDEN;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

// Return a secret from the kernel. Early in the life of a machine, when it has none yet, mix the time instead.
static inline uint64_t random_secret(void)
{
	uint64_t secret;

	return getrandom(&secret, sizeof(secret), GRND_NONBLOCK) == sizeof(secret) ? secret
	                                                                           : random_mix(rte_rdtsc());
}

// Between half of a time and all of it: nobody can tell the moment.
static inline unsigned random_within(unsigned ms)
{
	return ms - (unsigned)(random_secret() % (ms / 2));
}

static inline uint64_t draw_hash(uint64_t key, uint64_t k)
{
	return random_mix(key + k * RANDOM_GOLDEN);
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

// The whole hash to 0 .. n - 1: even for billions, where 32 bits of it are not.
static inline uint64_t draw_below_wide(uint64_t hash, uint64_t n)
{
	return (uint64_t)((unsigned __int128)hash * n >> 64);
}

// --- From any distribution -------------------------------------------------------------------------------

// Walker's alias method (ACM TOMS 3(3), 1977), built as Vose does (IEEE TSE 17(9), 1991): a draw from any
// distribution over n rows costs one look-up, 8 bytes a row. Shares are 32 bits: no row is off by more than
// 2^-32 of a row.

// A row is itself in share / 2^32 of the draws, and another one in the rest.
struct alias {
	uint32_t share, other;
};

// Rows 0 .. n - 1 with probabilities in proportion to 1 / (row + 1)^exponent. NULL without memory; free().
struct alias *alias_make_zipf(uint32_t n, double exponent);

// Return what becomes of the row that was drawn by draw_below().
static inline uint32_t alias_draw(const struct alias *table, uint32_t row, uint64_t hash)
{
	return (uint32_t)hash < table[row].share ? row : table[row].other;
}
