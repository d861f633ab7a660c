// SPDX-License-Identifier: BSD-3-Clause
// Core distance: how long a cache line takes from one CPU to another and back (DESIGN section 4, "Two
// bands"). Needs no EAL; starts two threads of its own for a few milliseconds.
#pragma once

struct core_distance {
	double median_ns; // one round trip
	double min_ns;
	// The independent additions that a core makes in a cycle, a and b alone and both at the same time; the median of samples
	// over a tenth of a millisecond. A core alone makes as many as it is wide; fewer, and another hyperthread uses it,
	// which a guest of a virtual machine sees in no other way. Below 0: not known.
	double additions_per_cycle[2];
};

// Returns 0, or -errno: EINVAL for a CPU this process may not use, ETIMEDOUT if one of the two never got its
// CPU.
int core_distance_measure(unsigned cpu_a, unsigned cpu_b, struct core_distance *out);
