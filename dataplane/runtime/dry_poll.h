// SPDX-License-Identifier: BSD-3-Clause
// Dry poll: one thread reads the clock on one CPU and does nothing else, so each gap between two readings is
// the noise of that CPU: interrupts, SMIs, other threads, the hypervisor. What oslat does. Needs no EAL.
#pragma once

#include <stdint.h>

enum { DRY_POLL_BUCKETS = 24, DRY_POLL_LEAST_LOG2 = 10 };

struct dry_poll {
	double core_mhz; // before, as the core counts its cycles
	uint64_t tsc_hz; // of its TSC; 0 if the time was too short to tell
	uint64_t duration_ns, polls, longest_ns;
	// Gaps of 2^(n + DRY_POLL_LEAST_LOG2) ns to twice as long, from 1024 ns on; the last has all longer ones.
	uint64_t gaps[DRY_POLL_BUCKETS];
};

// Polls for so many ms on this thread. Returns 0, or -errno: EINVAL for a CPU that this process may not use.
int dry_poll_measure(unsigned cpu, unsigned duration_ms, struct dry_poll *out);
