// SPDX-License-Identifier: BSD-3-Clause
// Copying a frame, compiled for each instruction set (isa.h). Reads and writes exactly the bytes it is told
// to: what lies behind a piece may be another's memory, or none. Frames of 64 B and less take no loop: two
// vector moves that overlap, or one. For isa_sources only, but for prefetch_to_write() and copy_fetch().
#pragma once

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <stdint.h>
#include <string.h>

#include "shm/frames.h"

// Fetch a line that is to be written, for ourselves alone. Never faults, whatever the address. The compiler would make this a prefetch to read, since the oldest CPUs that
// it builds for know no other; these take prefetchw for a no-op.
static inline void prefetch_to_write(void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" ::"m"(*(char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

// In a burst of copies: while frame i is copied, the lines of frame i + COPY_AHEAD to write to are on their
// way. The first line of each has been fetched by whoever read the ring ahead. A big frame that comes
// COPY_AHEAD behind one of COPY_SMALL and less is not fetched.
enum { COPY_SMALL = 64, COPY_AHEAD = 2, COPY_AHEAD_MAX = 2048 };

// Whoever read the ring ahead has asked for the first lines of all frames of a burst at once, which seems to be more than a
// core can have under way. While small frame i is copied, those of frame i + COPY_AGAIN are asked for again (docs/performance.md, "The limit").
enum { COPY_AGAIN = 16 };

// Ask for the first line of a copy's target and of its source. Never faults.
static inline void copy_fetch_again(uint8_t *to, const uint8_t *from)
{
	prefetch_to_write(to);
	rte_prefetch0(from);
}

// As wide as the instruction set has it: of a wider one GCC 12 makes moves of 16 bytes, by way of the stack.
#if defined(__AVX512F__)
enum { COPY_WIDTH = 64 };
#elif defined(__AVX2__)
enum { COPY_WIDTH = 32 };
#else
enum { COPY_WIDTH = 16 };
#endif
typedef uint8_t copy_part __attribute__((vector_size(COPY_WIDTH), aligned(1), may_alias));

// Both ends of n bytes, each move as wide as type: n from its size to twice that.
#define COPY_ENDS(type, to, from, n)                                                                         \
	do {                                                                                                 \
		type first_, last_;                                                                          \
		memcpy(&first_, (from), sizeof(first_));                                                     \
		memcpy(&last_, (from) + (n) - sizeof(last_), sizeof(last_));                                 \
		memcpy((to), &first_, sizeof(first_));                                                       \
		memcpy((to) + (n) - sizeof(last_), &last_, sizeof(last_));                                   \
	} while (0)

static inline void copy_tiny(uint8_t *to, const uint8_t *from, uint32_t n)
{
	if (n >= 8)
		COPY_ENDS(uint64_t, to, from, n);
	else if (n >= 4)
		COPY_ENDS(uint32_t, to, from, n);
	else if (n >= 2)
		COPY_ENDS(uint16_t, to, from, n);
	else if (n)
		*to = *from;
}

static __rte_always_inline void copy_line(uint8_t *to, const uint8_t *from)
{
#pragma GCC unroll 4
	for (unsigned at = 0; at < 64; at += COPY_WIDTH)
		*(copy_part *)(to + at) = *(const copy_part *)(from + at);
}

// n > 64: whole lines, then the last 64 bytes, which may overlap what was copied.
static inline void copy_lines(uint8_t *to, const uint8_t *from, uint32_t n)
{
	uint32_t at = 0;

	for (; at + 128 <= n; at += 128) {
		copy_line(to + at, from + at);
		copy_line(to + at + 64, from + at + 64);
	}
	if (n - at > 64)
		copy_line(to + at, from + at);
	copy_line(to + n - 64, from + n - 64);
}

static inline void copy_bytes(uint8_t *to, const uint8_t *from, uint32_t n)
{
	typedef uint8_t half __attribute__((vector_size(16), aligned(1), may_alias));
	typedef uint8_t whole __attribute__((vector_size(32), aligned(1), may_alias));

	if (unlikely(n > COPY_SMALL))
		copy_lines(to, from, n);
	else if (COPY_WIDTH == 64 &&
	         likely(n == 64)) // one store, where stores wait for lines of another core
		copy_line(to, from);
	else if (likely(n >= 32))
		COPY_ENDS(whole, to, from, n);
	else if (n >= 16)
		COPY_ENDS(half, to, from, n);
	else
		copy_tiny(to, from, n);
}

static __rte_noinline void copy_pieces(uint8_t *to, const struct scatter *at, uint32_t n)
{
	const struct piece *piece = at->piece;
	uint32_t run = piece->length - at->offset;

	copy_bytes(to, scatter_start(at), run);
	for (to += run, n -= run; n; to += run, n -= run) {
		piece++;
		run = RTE_MIN(n, piece->length);
		copy_bytes(to, piece->data, run);
	}
}

// A frame from its pieces. That of several is a call: what a loop of copies keeps on its stack for one is a store, which takes
// its turn behind those that wait for a line of another core.
static __rte_always_inline void copy_scattered(uint8_t *to, const struct scatter *at, uint32_t n)
{
	if (likely(at->piece->length - at->offset >= n))
		copy_bytes(to, scatter_start(at), n);
	else
		copy_pieces(to, at, n);
}

// Fetch what copy_bytes(to, ..., n) will write, but for its first line. Each line that another core has is a
// wait of its own, and stores meet them one after the other. What is read needs none of this: the CPU sees
// that it is read in order.
static inline void copy_fetch(uint8_t *to, uint32_t n)
{
	if (n > COPY_AHEAD_MAX) // bounded, whatever the guest says
		n = COPY_AHEAD_MAX;
	for (uint32_t at = 64; at < n; at += 64)
		prefetch_to_write(to + at);
}
