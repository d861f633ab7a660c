// SPDX-License-Identifier: BSD-3-Clause
// Lookups, compiled for each instruction set: hash and prefetch the first bucket of every key, then look at
// these and prefetch the second of those that were not there, then look at these. One after the other the
// cache misses of a billion entries would take a hundred nanoseconds each; like this they overlap.
#include "table/cuckoo_table.h"
#include "base/isa.h"

// ThreadSanitizer knows C11's atomics and no vector loads: it sees the scalar code.
#if defined(__SANITIZE_THREAD__)
#define VECTOR_NONE 1
#elif defined(__AVX512F__) && defined(__AVX512VL__)
#include <immintrin.h>
#define VECTOR_512 1
#elif defined(__AVX2__)
#include <immintrin.h>
#define VECTOR_256 1
#endif

void ISA_NAME(cuckoo_find_run)(const struct cuckoo *table, const uint64_t *keys, unsigned n,
                               uint16_t *values);
void ISA_NAME(cuckoo_wide_find_run)(const struct cuckoo *table, const struct cuckoo_wide_key *keys,
                                    unsigned n, uint16_t *values);

// A vector is loaded once (volatile): what is compared is what is returned. Each of its words is loaded
// whole, as words that are aligned are on every x86 with such vectors.
#if defined(VECTOR_512)
static inline uint16_t look(const struct cuckoo_bucket *bucket, uint64_t key)
{
	__m512i entries = *(const volatile __m512i *)(const volatile void *)bucket;
	__m512i least = _mm512_set1_epi64((long long)(key << CUCKOO_VALUE_BITS | 1));
	__mmask8 found =
	        _mm512_cmplt_epu64_mask(_mm512_sub_epi64(entries, least), _mm512_set1_epi64(UINT16_MAX));

	return (uint16_t)_mm_cvtsi128_si64(
	        _mm512_castsi512_si128(_mm512_maskz_compress_epi64(found, entries)));
}
#elif defined(VECTOR_256)
static inline __m256i equal(__m256i entries, __m256i key)
{
	__m256i match = _mm256_cmpeq_epi64(_mm256_srli_epi64(entries, CUCKOO_VALUE_BITS), key);

	return _mm256_and_si256(match, entries); // an empty entry is like the key 0, and 0
}

static inline uint16_t look(const struct cuckoo_bucket *bucket, uint64_t key)
{
	const volatile __m256i *halves = (const volatile __m256i *)(const volatile void *)bucket;
	__m256i wanted = _mm256_set1_epi64x((long long)key);
	__m256i found = _mm256_or_si256(equal(halves[0], wanted), equal(halves[1], wanted));
	__m128i half = _mm_or_si128(_mm256_castsi256_si128(found), _mm256_extracti128_si256(found, 1));

	return (uint16_t)(_mm_cvtsi128_si64(half) | _mm_extract_epi64(half, 1));
}
#else
static inline uint16_t look(const struct cuckoo_bucket *bucket, uint64_t key)
{
	return cuckoo_bucket_find(bucket, key);
}
#endif

// The second bucket where the first had not got it, else the first again, which costs nothing. Without a
// branch: whether it is there is known late, and a wrong guess would end the overlap of misses.
static inline uint32_t next_of(uint64_t pair, bool missing)
{
	return cuckoo_first(pair) ^ ((cuckoo_first(pair) ^ cuckoo_second(pair)) & -(uint32_t)missing);
}

static inline uint64_t read_moves(const struct cuckoo *table)
{
	atomic_signal_fence(memory_order_acq_rel); // vector loads are not C11's: none past this
	return atomic_load_explicit(&table->moves, memory_order_acquire);
}

static uint16_t look_again(const struct cuckoo *table, uint64_t key)
{
	uint64_t pair = cuckoo_pair(table, key);
	uint64_t moves;
	uint16_t value;

	do {
		moves = read_moves(table);
		value = cuckoo_bucket_find(&table->narrow[cuckoo_first(pair)], key);
		if (value == CUCKOO_NONE)
			value = cuckoo_bucket_find(&table->narrow[cuckoo_second(pair)], key);
	} while (value == CUCKOO_NONE && moves != read_moves(table));
	return value;
}

// Those that were found nowhere may have moved meanwhile, from the bucket that was looked at last to the
// other.
static void settle(const struct cuckoo *table, const uint64_t *keys, const uint8_t *missing, unsigned count,
                   uint16_t *values)
{
	for (unsigned i = 0; i < count; i++)
		if (values[missing[i]] == CUCKOO_NONE)
			values[missing[i]] = look_again(table, keys[missing[i]]);
}

void ISA_NAME(cuckoo_find_run)(const struct cuckoo *table, const uint64_t *keys, unsigned n, uint16_t *values)
{
	uint64_t pairs[CUCKOO_BULK_MAX];
	uint8_t missing[CUCKOO_BULK_MAX];
	unsigned count = 0, absent = 0;
	uint64_t moves = read_moves(table);

	for (unsigned i = 0; i < n; i++)
		pairs[i] = cuckoo_pair(table, keys[i]);
	for (unsigned i = 0; i < n; i++)
		cuckoo_fetch(table, cuckoo_first(pairs[i]));
	for (unsigned i = 0; i < n; i++) {
		values[i] = look(&table->narrow[cuckoo_first(pairs[i])], keys[i]);
		missing[count] = (uint8_t)i;
		count += values[i] == CUCKOO_NONE;
		cuckoo_fetch(table, next_of(pairs[i], values[i] == CUCKOO_NONE));
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned at = missing[i];

		values[at] = look(&table->narrow[cuckoo_second(pairs[at])], keys[at]);
		absent += values[at] == CUCKOO_NONE;
	}
	if (absent && moves != read_moves(table))
		settle(table, keys, missing, count, values);
}

static uint16_t wide_look_again(const struct cuckoo *table, const struct cuckoo_wide_key *key)
{
	uint64_t pair = cuckoo_wide_pair(table, key);
	uint64_t moves;
	uint16_t value;

	do {
		moves = read_moves(table);
		value = cuckoo_wide_bucket_find(&table->wide[cuckoo_first(pair)], key);
		if (value == CUCKOO_NONE)
			value = cuckoo_wide_bucket_find(&table->wide[cuckoo_second(pair)], key);
	} while (value == CUCKOO_NONE && moves != read_moves(table));
	return value;
}

static void wide_settle(const struct cuckoo *table, const struct cuckoo_wide_key *keys,
                        const uint8_t *missing, unsigned count, uint16_t *values)
{
	for (unsigned i = 0; i < count; i++)
		if (values[missing[i]] == CUCKOO_NONE)
			values[missing[i]] = wide_look_again(table, &keys[missing[i]]);
}

void ISA_NAME(cuckoo_wide_find_run)(const struct cuckoo *table, const struct cuckoo_wide_key *keys,
                                    unsigned n, uint16_t *values)
{
	uint64_t pairs[CUCKOO_BULK_MAX];
	uint8_t missing[CUCKOO_BULK_MAX];
	unsigned count = 0, absent = 0;
	uint64_t moves = read_moves(table);

	for (unsigned i = 0; i < n; i++)
		pairs[i] = cuckoo_wide_pair(table, &keys[i]);
	for (unsigned i = 0; i < n; i++)
		cuckoo_fetch(table, cuckoo_first(pairs[i]));
	for (unsigned i = 0; i < n; i++) {
		values[i] = cuckoo_wide_bucket_find(&table->wide[cuckoo_first(pairs[i])], &keys[i]);
		missing[count] = (uint8_t)i;
		count += values[i] == CUCKOO_NONE;
		cuckoo_fetch(table, next_of(pairs[i], values[i] == CUCKOO_NONE));
	}
	for (unsigned i = 0; i < count; i++) {
		unsigned at = missing[i];

		values[at] = cuckoo_wide_bucket_find(&table->wide[cuckoo_second(pairs[at])], &keys[at]);
		absent += values[at] == CUCKOO_NONE;
	}
	if (absent && moves != read_moves(table))
		wide_settle(table, keys, missing, count, values);
}
