// SPDX-License-Identifier: BSD-3-Clause
// The loops of frame_run.h, once for each instruction set: vectors of 16, 32 or 64 bytes.
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <string.h>

#include "tester/frame_run.h"

#ifdef ISA_X86
#include <immintrin.h>
#endif

// The prototypes are where the table is; a source that is compiled three times has no header of its own.
unsigned ISA_NAME(frame_run_check)(const struct frame_signature *look, const struct vnf_frame *frames,
                                   unsigned n, uint32_t sequence);
void ISA_NAME(frame_run_write)(const struct frame_template *t, uint8_t *const *data, unsigned n,
                               uint32_t sequence);

// --- Heads, one after the other --------------------------------------------------------------------------

// Two words of a head differ from frame to frame: the checksum with the magic behind it, and the number. The next
// frame's number is one more and its checksum is one less: two halves of a number add up to the number modulo 0xffff,
// for 0x10000 is 1. From 1 the checksum goes on with 0xffff, since 0 says that there is none (RFC 768).
//
// It breaks where the number itself goes from 0xffffffff to 0.
//
// So no sum is taken for a frame. Both words are kept in the byte order of this CPU: one addition to the head makes the
// next one, and one shuffle puts it into the order of the network.
enum { CHECKSUM_AT = FRAME_OFFSET_UDP_CHECKSUM, NUMBER_AT = FRAME_OFFSET_SEQUENCE };

struct head {
	alignas(64) uint8_t bytes[FRAME_STORE_BYTES];
};

// The checksum of a frame with this number.
static inline unsigned checksum_of_number(uint32_t udp_sum, uint32_t sequence)
{
	uint32_t be = rte_cpu_to_be_32(sequence);

	return rte_be_to_cpu_16(checksum_of(udp_sum + (be & 0xffff) + (be >> 16), true));
}

// How many of n frames, from the one with this number and checksum on, have each a checksum of one less.
static inline unsigned numbers_in_a_row(unsigned n, uint32_t sequence, unsigned checksum)
{
	uint64_t until_zero = (UINT64_C(1) << 32) - sequence;

	n = RTE_MIN(n, checksum);
	return (unsigned)RTE_MIN((uint64_t)n, until_zero);
}

// image: the head without number and checksum.
static inline struct head head_make(const void *image, unsigned checksum, uint32_t sequence)
{
	struct head head;
	uint32_t word;

	memcpy(head.bytes, image, sizeof(head.bytes));
	word = rte_be_to_cpu_32(load32(head.bytes + CHECKSUM_AT)) | checksum << 16;
	memcpy(head.bytes + CHECKSUM_AT, &word, sizeof(word));
	memcpy(head.bytes + NUMBER_AT, &sequence, sizeof(sequence));
	return head;
}

// What is added to the words of a head.
alignas(64) static const uint32_t step[FRAME_STORE_BYTES / sizeof(uint32_t)] = {
        [CHECKSUM_AT / sizeof(uint32_t)] = -(UINT32_C(1) << 16),
        [NUMBER_AT / sizeof(uint32_t)] = 1,
};

#ifdef ISA_X86
// 16 bytes of which one word is turned round.
#define TURN_0 3, 2, 1, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define TURN_1 0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15
#define TURN_2 0, 1, 2, 3, 4, 5, 6, 7, 11, 10, 9, 8, 12, 13, 14, 15
#define TURN_3 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 14, 13, 12
#define KEEP   0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#endif

#if defined(ISA_X86) && defined(__AVX512BW__)

enum { HEAD_BYTES = FRAME_STORE_BYTES }; // that are compared as a head; the others as pattern

alignas(64) static const uint8_t turn[FRAME_STORE_BYTES] = {KEEP, KEEP, TURN_2, TURN_0};

static inline void heads_write(const struct head *head, uint8_t *const *data, unsigned n)
{
	const __m512i order = _mm512_load_si512(turn), add = _mm512_load_si512(step);
	__m512i next = _mm512_load_si512(head->bytes);

#pragma GCC unroll 4
	for (unsigned i = 0; i < n; i++) {
		_mm512_storeu_si512(data[i], _mm512_shuffle_epi8(next, order));
		next = _mm512_add_epi32(next, add);
	}
}

struct comparison {
	__m512i next, wrong;
	__mmask64 there; // the bytes that a frame has
};

static inline __mmask64 first_bytes(uint32_t n)
{
	return _bzhi_u64(~UINT64_C(0), n);
}

static inline struct comparison comparison_begin(const struct head *head, uint32_t length)
{
	return (struct comparison){.next = _mm512_load_si512(head->bytes),
	                           .wrong = _mm512_setzero_si512(),
	                           .there = first_bytes(RTE_MIN(length, (uint32_t)HEAD_BYTES))};
}

// Masked loads do not fault, or touch, what is masked.
static inline void compare_next(struct comparison *c, const uint8_t *data)
{
	const __m512i order = _mm512_load_si512(turn), add = _mm512_load_si512(step);
	__m512i is = _mm512_maskz_loadu_epi8(c->there, data);

	// wrong | (is ^ expected)
	c->wrong = _mm512_ternarylogic_epi64(c->wrong, is, _mm512_shuffle_epi8(c->next, order), 0xf6);
	c->next = _mm512_add_epi32(c->next, add);
}

static inline bool found_wrong(const struct comparison *c)
{
	const __mmask64 addresses = 0xfff; // of Ethernet

	return _mm512_mask_test_epi8_mask(c->there & ~addresses, c->wrong, c->wrong);
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

enum { HEAD_BYTES = FRAME_HEADER_BYTES };

#if defined(ISA_X86) && defined(__AVX2__)
typedef __m256i vec;
enum { WIDTH = 32 };
#define vec_load(p)     _mm256_loadu_si256((const __m256i *)(p))
#define vec_store(p, a) _mm256_storeu_si256((__m256i *)(p), a)
#define vec_xor(a, b)   _mm256_xor_si256(a, b)
#define vec_or(a, b)    _mm256_or_si256(a, b)
#define vec_add(a, b)   _mm256_add_epi32(a, b)
#define vec_any(a)      !_mm256_testz_si256(a, a)

// The upper half of a head, from byte 32 on; and its last 32 bytes but for the pattern, from byte 28 on.
enum { LAST = FRAME_HEADER_BYTES - WIDTH };
alignas(32) static const uint8_t turn_upper[WIDTH] = {TURN_2, TURN_0}, turn_last[WIDTH] = {TURN_3, TURN_1};

static inline void heads_write(const struct head *head, uint8_t *const *data, unsigned n)
{
	const vec first = vec_load(head->bytes), order = vec_load(turn_upper), add = vec_load(&step[8]);
	vec next = vec_load(head->bytes + WIDTH);

#pragma GCC unroll 4
	for (unsigned i = 0; i < n; i++) {
		uint8_t *to = data[i];

		vec_store(to, first);
		vec_store(to + WIDTH, _mm256_shuffle_epi8(next, order));
		next = vec_add(next, add);
	}
}

struct comparison {
	vec first, next;             // expected: the same in all frames, and what ends with the head
	vec wrong_first, wrong_last; // bits that were not as expected
};

static inline struct comparison comparison_begin(const struct head *head, uint32_t length)
{
	vec none = _mm256_setzero_si256();

	return (struct comparison){vec_load(head->bytes), vec_load(head->bytes + LAST), none, none};
}

static inline void compare_next(struct comparison *c, const uint8_t *data)
{
	vec last = _mm256_shuffle_epi8(c->next, vec_load(turn_last));

	c->wrong_first = vec_or(c->wrong_first, vec_xor(vec_load(data), c->first));
	c->wrong_last = vec_or(c->wrong_last, vec_xor(vec_load(data + LAST), last));
	c->next = vec_add(c->next, vec_load(&step[LAST / 4]));
}

static inline bool found_wrong(const struct comparison *c)
{
	const vec no_addresses = _mm256_set_epi32(-1, -1, -1, -1, -1, 0, 0, 0);

	return vec_any(vec_or(_mm256_and_si256(c->wrong_first, no_addresses), c->wrong_last));
}
#else
typedef uint32_t __attribute__((vector_size(16), may_alias)) vec;
enum { WIDTH = 16 };
#define vec_xor(a, b) ((a) ^ (b))
#define vec_or(a, b)  ((a) | (b))
#define vec_add(a, b) ((a) + (b))

static inline vec vec_load(const void *p)
{
	vec v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void vec_store(uint8_t *p, vec v)
{
	memcpy(p, &v, sizeof(v));
}

static inline bool vec_any(vec v)
{
	uint64_t halves[2];

	memcpy(halves, &v, sizeof(halves));
	return (halves[0] | halves[1]) != 0;
}

// With one word turned round.
static inline vec vec_turn(vec v, unsigned word)
{
	v[word] = rte_cpu_to_be_32(v[word]);
	return v;
}

static inline void heads_write(const struct head *head, uint8_t *const *data, unsigned n)
{
	const vec first = vec_load(head->bytes), second = vec_load(head->bytes + 16);
	vec third = vec_load(head->bytes + 32), fourth = vec_load(head->bytes + 48);

	for (unsigned i = 0; i < n; i++) {
		uint8_t *to = data[i];

		vec_store(to, first);
		vec_store(to + 16, second);
		vec_store(to + 32, vec_turn(third, 2));
		vec_store(to + 48, vec_turn(fourth, 0));
		third = vec_add(third, vec_load(&step[8]));
		fourth = vec_add(fourth, vec_load(&step[12]));
	}
}

// The 48 bytes behind the addresses: the checksum is in the middle, the number in the last 16 bytes.
struct comparison {
	vec first, middle, last; // expected
	vec wrong;
};

static inline struct comparison comparison_begin(const struct head *head, uint32_t length)
{
	return (struct comparison){.first = vec_load(head->bytes + 12),
	                           .middle = vec_load(head->bytes + 28),
	                           .last = vec_load(head->bytes + 44)};
}

static inline void compare_next(struct comparison *c, const uint8_t *data)
{
	c->wrong = vec_or(c->wrong, vec_xor(vec_load(data + 12), c->first));
	c->wrong = vec_or(c->wrong, vec_xor(vec_load(data + 28), vec_turn(c->middle, 3)));
	c->wrong = vec_or(c->wrong, vec_xor(vec_load(data + 44), vec_turn(c->last, 1)));
	c->middle = vec_add(c->middle, vec_load(&step[28 / 4]));
	c->last = vec_add(c->last, vec_load(&step[44 / 4]));
}

static inline bool found_wrong(const struct comparison *c)
{
	return vec_any(c->wrong);
}
#endif

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

// --- Check -----------------------------------------------------------------------------------------------

// Check frames by the group, with one branch for all that a group may have wrong. Returns how many are right, a multiple
// of the group: those before a group in which something is not as expected. Lengths are looked at first, for a shorter
// frame must not be read.
static __rte_always_inline unsigned check_groups(const struct frame_signature *look, const struct head *head,
                                                 const struct vnf_frame *frames, unsigned n,
                                                 const unsigned group, const bool bodies)
{
	const uint8_t *pattern = frame_pattern();
	const uint32_t length = look->length;
	const struct vnf_frame *at = frames, *end = &frames[n - n % group];
	struct comparison heads = comparison_begin(head, length);

	for (; at < end; at += group) {
		uint32_t other_length = 0;
		bool wrong = false;

		for (unsigned i = 0; i < group; i++)
			other_length |= at[i].length ^ length;
		if (unlikely(other_length))
			break;
		for (unsigned i = 0; i < group; i++) {
			compare_next(&heads, at[i].data);
			if (bodies) {
				frame_prefetch(&at[i + FRAME_AHEAD]);
				wrong |= body_differs(at[i].data, pattern, length);
			} else { // only the second line, if it has one: the first has been asked for
				rte_prefetch0(RTE_PTR_ADD(at[i + FRAME_AHEAD].data, FRAME_HEADER_BYTES - 1));
			}
		}
		if (unlikely(wrong | found_wrong(&heads)))
			break;
	}
	return (unsigned)(at - frames);
}

enum { GROUP = 4 };

// How many of n frames are right, all of whose checksums are one less than the one before.
static inline unsigned check_some(const struct frame_signature *look, const struct vnf_frame *frames,
                                  unsigned n, uint32_t sequence, unsigned checksum)
{
	struct head head = head_make(look->image, checksum, sequence);
	unsigned right;

	if (look->length <= HEAD_BYTES)
		right = check_groups(look, &head, frames, n, GROUP, false);
	else
		right = check_groups(look, &head, frames, n, GROUP, true);
	if (likely(right == n))
		return n;
	// The last ones, and those of a group that is not right, one by one.
	head = head_make(look->image, checksum - right, sequence + right);
	return right + check_groups(look, &head, &frames[right], n - right, 1, true);
}

unsigned ISA_NAME(frame_run_check)(const struct frame_signature *look, const struct vnf_frame *frames,
                                   unsigned n, uint32_t sequence)
{
	unsigned done = 0, some, right;

	if (unlikely(look->length == 0))
		return 0;
	do {
		unsigned checksum = checksum_of_number(look->udp_sum, sequence + done);

		some = numbers_in_a_row(n - done, sequence + done, checksum);
		right = check_some(look, &frames[done], some, sequence + done, checksum);
		done += right;
	} while (unlikely(right == some && done < n));
	return done;
}

// --- Write -----------------------------------------------------------------------------------------------

void ISA_NAME(frame_run_write)(const struct frame_template *t, uint8_t *const *data, unsigned n,
                               uint32_t sequence)
{
	while (n) {
		unsigned checksum = checksum_of_number(t->udp_sum, sequence);
		unsigned some = numbers_in_a_row(n, sequence, checksum);
		struct head head = head_make(t->words, checksum, sequence);

		heads_write(&head, data, some);
		data += some;
		sequence += some;
		n -= some;
	}
}
