// SPDX-License-Identifier: BSD-3-Clause
// The loops of frame_run.h, once for each instruction set: vectors of 16, 32 or 64 bytes.
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <string.h>

#include "tasks/tester/frame_run.h"

#ifdef ISA_X86
#include <immintrin.h>
#endif

// The prototypes are where the table is; a source that is compiled three times has no header of its own.
unsigned ISA_NAME(frame_run_check)(const struct frame_look *look, const struct vnf_frame *frames, unsigned n,
                                   uint32_t sequence);
void ISA_NAME(frame_run_write)(const struct frame_template *t, uint8_t *const *data, unsigned n,
                               uint32_t sequence);

#if defined(ISA_X86) && defined(__AVX512BW__)

// Bytes 12..39, 42..47 and 52..63: all but addresses, checksum and number.
#define SAME_BYTES UINT64_C(0xfff0fcfffffff000)

static inline __mmask64 first_bytes(uint32_t n)
{
	return _bzhi_u64(~UINT64_C(0), n);
}

// Masked loads do not fault, or touch, what is masked.
static inline bool head_differs(const struct frame_look *look, const uint8_t *data)
{
	__mmask64 there = first_bytes(RTE_MIN(look->length, 64u));
	__m512i head = _mm512_maskz_loadu_epi8(there, data);

	return _mm512_mask_cmpneq_epu8_mask(there & SAME_BYTES, head, _mm512_load_si512(look->image));
}

static inline bool body_differs(const uint8_t *data, const uint8_t *pattern, uint32_t length)
{
	__m512i wrong = _mm512_setzero_si512(), a, b;
	__mmask64 rest = first_bytes(length % 64);
	uint32_t at = 64;

	if (length <= 64)
		return false;
	for (; at + 64 <= length; at += 64) {
		a = _mm512_loadu_si512(data + at);
		b = _mm512_load_si512(pattern + at);
		wrong = _mm512_ternarylogic_epi64(wrong, a, b, 0xf6); // wrong | (a ^ b)
	}
	a = _mm512_maskz_loadu_epi8(rest, data + at);
	b = _mm512_maskz_loadu_epi8(rest, pattern + at);
	wrong = _mm512_ternarylogic_epi64(wrong, a, b, 0xf6);
	return _mm512_test_epi64_mask(wrong, wrong);
}

#else

#if defined(ISA_X86) && defined(__AVX2__)
typedef __m256i vec;
enum { WIDTH = 32 };
#define vec_load(p)   _mm256_loadu_si256((const __m256i *)(p))
#define vec_xor(a, b) _mm256_xor_si256(a, b)
#define vec_or(a, b)  _mm256_or_si256(a, b)
#define vec_and(a, b) _mm256_and_si256(a, b)
#define vec_any(a)    !_mm256_testz_si256(a, a)
#elif defined(ISA_X86)
typedef __m128i vec;
enum { WIDTH = 16 };
#define vec_load(p)   _mm_loadu_si128((const __m128i *)(p))
#define vec_xor(a, b) _mm_xor_si128(a, b)
#define vec_or(a, b)  _mm_or_si128(a, b)
#define vec_and(a, b) _mm_and_si128(a, b)
#define vec_any(a)    !_mm_testz_si128(a, a)
#else
typedef uint64_t vec __attribute__((vector_size(16)));
enum { WIDTH = 16 };
#define vec_xor(a, b) ((a) ^ (b))
#define vec_or(a, b)  ((a) | (b))
#define vec_and(a, b) ((a) & (b))
#define vec_any(a)    (((a)[0] | (a)[1]) != 0)

static inline vec vec_load(const uint8_t *p)
{
	vec v;

	memcpy(&v, p, sizeof(v));
	return v;
}
#endif

enum { FIRST = 12 }; // byte that is compared

// 0xff for each byte that all frames of a stream have in common.
static const uint8_t same[FRAME_HEADER_BYTES] = {
        [FIRST... FRAME_OFFSET_UDP_CHECKSUM - 1] = 0xff,
        [FRAME_OFFSET_MAGIC... FRAME_OFFSET_SEQUENCE - 1] = 0xff,
        [FRAME_OFFSET_TSC... FRAME_HEADER_BYTES - 1] = 0xff,
};

static inline vec head_wrong(const struct frame_look *look, const uint8_t *data, uint32_t at)
{
	return vec_and(vec_xor(vec_load(data + at), vec_load(look->image + at)), vec_load(same + at));
}

// The 48 bytes in three vectors, or in two that overlap.
static inline bool head_differs(const struct frame_look *look, const uint8_t *data)
{
	vec wrong = vec_or(head_wrong(look, data, FIRST), head_wrong(look, data, FRAME_HEADER_BYTES - WIDTH));

	if (WIDTH == 16)
		wrong = vec_or(wrong, head_wrong(look, data, FIRST + WIDTH));
	return vec_any(wrong);
}

static inline vec body_wrong(const uint8_t *data, const uint8_t *pattern, uint32_t at)
{
	return vec_xor(vec_load(data + at), vec_load(pattern + at));
}

// In whole vectors, the first and the last of which overlap their neighbours.
static inline bool body_differs(const uint8_t *data, const uint8_t *pattern, uint32_t length)
{
	uint32_t at = 64;
	vec wrong;

	if (length == FRAME_HEADER_BYTES)
		return false;
	if (unlikely(length < 64 + WIDTH))
		return memcmp(data + FRAME_HEADER_BYTES, pattern + FRAME_HEADER_BYTES,
		              length - FRAME_HEADER_BYTES) != 0;
	wrong = vec_or(body_wrong(data, pattern, FRAME_HEADER_BYTES),
	               body_wrong(data, pattern, length - WIDTH));
	for (; at + 64 <= length; at += 64)
		for (uint32_t in = 0; in < 64; in += WIDTH)
			wrong = vec_or(wrong, body_wrong(data, pattern, at + in));
	for (; at + WIDTH <= length; at += WIDTH)
		wrong = vec_or(wrong, body_wrong(data, pattern, at));
	return vec_any(wrong);
}

#endif

// The one's complement sum of all is 0xffff, and the checksum says something: a multiple of 0xffff below 2^32
// has low and high half adding up to 0xffff.
static inline bool checksum_fits(uint32_t udp_sum, uint32_t number_be, uint32_t checksum)
{
	uint32_t sum = udp_sum + (number_be & 0xffff) + (number_be >> 16) + checksum;

	return (sum & 0xffff) + (sum >> 16) == 0xffff && checksum != 0;
}

unsigned ISA_NAME(frame_run_check)(const struct frame_look *look, const struct vnf_frame *frames, unsigned n,
                                   uint32_t sequence)
{
	const uint8_t *pattern = frame_pattern();
	const uint32_t length = look->length;
	unsigned i;

	if (unlikely(length == 0))
		return 0;
	for (i = 0; i < n; i++) {
		const uint8_t *data = frames[i].data;
		uint32_t number_be = rte_cpu_to_be_32(sequence + i);

		frame_prefetch(&frames[i + FRAME_AHEAD]);
		if (unlikely(frames[i].length != length || head_differs(look, data) ||
		             load32(data + FRAME_OFFSET_SEQUENCE) != number_be ||
		             !checksum_fits(look->udp_sum, number_be,
		                            load16(data + FRAME_OFFSET_UDP_CHECKSUM)) ||
		             body_differs(data, pattern, length)))
			break;
	}
	return i;
}

// The two words of a head that differ from frame to frame, in the order in which two words that are repeated
// over the head come to their places: words[6] is the lower half of 16 bytes, words[5] the upper one.
struct varying {
	uint64_t number, checksum;
};

#ifdef ISA_X86

static inline __m128i fold(__m128i sum)
{
	const __m128i low = _mm_set1_epi32(0xffff);

	return _mm_add_epi32(_mm_and_si128(sum, low), _mm_srli_epi32(sum, 16));
}

// Checksums of four frames. RFC 768: one of 0 is written as 0xffff, for 0 means that there is none.
static inline __m128i checksums(__m128i udp_sum, __m128i numbers_be)
{
	const __m128i low = _mm_set1_epi32(0xffff);
	__m128i sum = fold(fold(_mm_add_epi32(udp_sum, fold(numbers_be))));

	return _mm_or_si128(_mm_xor_si128(sum, low), _mm_and_si128(_mm_cmpeq_epi32(sum, low), low));
}

// Two frames, numbers and checksums widened to words.
static inline void vary_two(struct varying *to, __m128i numbers, __m128i sums, __m128i words)
{
	_mm_store_si128((__m128i *)&to[0], _mm_or_si128(words, _mm_unpacklo_epi64(numbers, sums)));
	_mm_store_si128((__m128i *)&to[1], _mm_or_si128(words, _mm_unpackhi_epi64(numbers, sums)));
}

// Four frames at a time, so up to three more than n.
static inline void vary(const struct frame_template *t, struct varying *to, unsigned n, uint32_t sequence)
{
	const __m128i swap = _mm_set_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
	const __m128i words = _mm_set_epi64x((int64_t)t->words[5], (int64_t)t->words[6]),
	              zero = _mm_setzero_si128();
	const __m128i udp_sum = _mm_set1_epi32((int)t->udp_sum), four = _mm_set1_epi32(4);
	__m128i numbers = _mm_add_epi32(_mm_set1_epi32((int)sequence), _mm_set_epi32(3, 2, 1, 0));

	for (unsigned i = 0; i < n; i += 4) {
		__m128i be = _mm_shuffle_epi8(numbers, swap), sums = checksums(udp_sum, be);

		vary_two(&to[i], _mm_unpacklo_epi32(be, zero), _mm_unpacklo_epi32(sums, zero), words);
		vary_two(&to[i + 2], _mm_unpackhi_epi32(be, zero), _mm_unpackhi_epi32(sums, zero), words);
		numbers = _mm_add_epi32(numbers, four);
	}
}

static inline void head_store(const struct frame_template *t, const struct varying *words, uint8_t *data)
{
	const __m128i two = _mm_load_si128((const __m128i *)words);
#if defined(__AVX512BW__)
	_mm512_storeu_si512(data, _mm512_mask_broadcast_i64x2(_mm512_load_si512(t->words), 0x60, two));
#elif defined(__AVX2__)
	const __m256i *from = (const __m256i *)t->words;
	__m256i *to = (__m256i *)data;

	_mm256_storeu_si256(&to[0], from[0]);
	_mm256_storeu_si256(&to[1], _mm256_blend_epi32(from[1], _mm256_broadcastsi128_si256(two), 0x3c));
#else
	const __m128i *from = (const __m128i *)t->words;
	__m128i *to = (__m128i *)data;

	_mm_storeu_si128(&to[0], from[0]);
	_mm_storeu_si128(&to[1], from[1]);
	_mm_storeu_si128(&to[2], _mm_blend_epi16(from[2], two, 0xf0));
	_mm_storeu_si128(&to[3], _mm_blend_epi16(from[3], two, 0x0f));
#endif
}

#else

static inline void vary(const struct frame_template *t, struct varying *to, unsigned n, uint32_t sequence)
{
	for (unsigned i = 0; i < n; i++) {
		uint32_t be = rte_cpu_to_be_32(sequence + i);
		uint16_t checksum = checksum_of(t->udp_sum + (be & 0xffff) + (be >> 16), true);

		to[i] = (struct varying){.number = t->words[6] | be, .checksum = t->words[5] | checksum};
	}
}

static inline void head_store(const struct frame_template *t, const struct varying *words, uint8_t *data)
{
	const uint64_t end[] = {t->words[4], words->checksum, words->number, t->words[7]};

	memcpy(data, t->words, 32);
	memcpy(data + 32, end, sizeof(end));
}

#endif

void ISA_NAME(frame_run_write)(const struct frame_template *t, uint8_t *const *data, unsigned n,
                               uint32_t sequence)
{
	alignas(64) struct varying words[FRAME_RUN_MAX];

	vary(t, words, n, sequence);
	for (unsigned i = 0; i < n; i++)
		head_store(t, &words[i], data[i]);
}
