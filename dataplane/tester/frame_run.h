// SPDX-License-Identifier: BSD-3-Clause
// Frames of one stream by the burst: writing their heads, and checking those that are just what comes next.
// Compiled for each instruction set (base/isa.h).
//
// The check compares. All frames of a stream are the same but for number and checksum (struct frame_signature),
// and the pattern is known, so a frame is right if each byte is what the look says and number and checksum
// fit. This is stricter than the sums of frame_classify(), sees two words that were exchanged, and costs
// less. What does not compare equal is no verdict: it goes to frame_classify().
//
// Pure functions on caller's memory; any thread. The bytes may change meanwhile.
#pragma once

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "base/isa.h"
#include "base/packet.h"
#include "tester/frame.h"

enum {
	FRAME_RUN_MAX = 64, // frames of a call
	FRAME_AHEAD = 2,    // whose lines are fetched meanwhile; measured with the sender on another core
};

struct frame_run {
	// How many of the first n frames look like this, are no probes and carry the numbers sequence,
	// sequence + 1, ... FRAME_AHEAD entries behind the n are read too, to prefetch: length 0 if there is
	// nothing.
	unsigned (*check)(const struct frame_signature *look, const struct vnf_frame *frames, unsigned n,
	                  uint32_t sequence);

	// frame_write() of n frames with consecutive numbers.
	void (*write)(const struct frame_template *t, uint8_t *const *data, unsigned n, uint32_t sequence);
};

// For isa_current(), and for a given one, which this CPU must have.
const struct frame_run *frame_run_current(void);
const struct frame_run *frame_run_of(enum isa isa);

// What frames of a stream have in common when their headers and lengths differ.
struct frame_own {
	uint64_t words; // magic to epoch, as they lie in memory: 48 bits
	uint64_t nonce;
	uint64_t now_tsc; // of frames with FRAME_FLAG_STAMPED: about when they were stamped
	bool stamped;
};

// flags: 0 or FRAME_FLAG_STAMPED.
struct frame_own frame_own_make(uint8_t stream, uint8_t flags, uint16_t epoch, uint64_t nonce,
                                uint64_t now_tsc);

// How many of the first n frames, at most FRAME_RUN_MAX, are FRAME_INTACT for frame_classify() and have the nonce, what
// is our own, and the numbers sequence, sequence + 1, ... Plain headers are the quickest. stamps[]: the field of the TSC
// of each.
// FRAME_AHEAD entries behind the n are read too, to prefetch.
unsigned frame_run_sums(const struct frame_own *own, const struct vnf_frame *frames, unsigned n,
                        uint32_t sequence, uint64_t *stamps);

// How many frames of the first n are foreign at first sight: our magic and our port are nowhere where frame_classify()
// looks for them, or they have the headers of a plain frame and another nonce, in more bits than damage of a byte
// changes. nonce 0: any. FRAME_AHEAD entries behind the n are prefetched.
unsigned frame_run_foreign(const struct vnf_frame *frames, unsigned n, uint64_t nonce);

// Every line of the frame, of the first 24: leaving the later ones to the hardware's prefetcher costs a
// seventh at 1024 B. Most are one line. (A minimum would become one of vectors here, and cost more than the
// rest.) Addresses, not pointers: an entry of no bytes may have NULL, which has no offset in C17.
static inline void frame_prefetch(const struct vnf_frame *frame)
{
	uintptr_t line = RTE_ALIGN_FLOOR((uintptr_t)frame->data, RTE_CACHE_LINE_SIZE);
	uintptr_t end = (uintptr_t)frame->data + frame->length;

	if (unlikely(end > line + 24 * RTE_CACHE_LINE_SIZE))
		end = line + 24 * RTE_CACHE_LINE_SIZE;
	rte_prefetch0((const void *)line);
	while (unlikely((line += RTE_CACHE_LINE_SIZE) < end))
		rte_prefetch0((const void *)line);
}
