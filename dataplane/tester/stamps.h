// SPDX-License-Identifier: BSD-3-Clause
// Where a probe was, and when: a task notes the time at which it got each probe and the time at which it let
// go of it. All tasks of a process read one clock, so that a chain's latency splits into the parts that each
// had in it (ic16 Fig. 8; docs/design/latency.md).
//
// A log of fixed size: what comes when it is full is counted. Written by the task's worker, made, read and
// freed by the control thread while that worker is parked.
#pragma once

#include <jansson.h>
#include <stdint.h>

enum { STAMPS_MAX = 65536 };

// What a probe met on its way (tester/monitor.h).
enum probe_met { MET_NOTHING, MET_GAP, MET_STALL, PROBE_MEETINGS };

struct stamp {
	uint64_t in_tsc, out_tsc; // out_tsc 0: it did not leave
	uint32_t sequence;
	uint8_t stream;
	uint8_t met;        // of a monitor: enum probe_met
	uint64_t port_ns;   // by the clock of the port; 0: that did not stamp this probe
	uint64_t empty_tsc; // of the last poll that found nothing: the probe came later; 0: not known
};

struct stamps {
	uint32_t count;
	uint64_t lost;         // came when the log was full
	struct probe_tap *tap; // of the kernel's stamps (tester/probe_tap.h), or NULL
	struct stamp log[STAMPS_MAX];
};

// An empty log, or NULL without memory.
struct stamps *stamps_create(void);
void stamps_free(struct stamps *stamps); // NULL is none

// The next entry of the log to write, or NULL when it is full, which is counted.
static inline struct stamp *stamps_next(struct stamps *stamps)
{
	if (stamps->count < STAMPS_MAX)
		return &stamps->log[stamps->count++];
	stamps->lost++;
	return NULL;
}

// Up to limit entries from the one numbered from: {"stamps": [[stream, sequence, in_tsc, out_tsc, port_ns,
// empty_tsc, met], ...], "next": n or null, "lost": n}. stamps may be NULL: nothing was asked for, the list is empty.
json_t *stamps_list(const struct stamps *stamps, uint32_t from, uint32_t limit);
